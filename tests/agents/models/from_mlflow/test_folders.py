"""Folders that MLflow has written: their hash is that of a shell's line, and others are refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import ConfigError, DeploymentError, NotAllowedError
from attributary_agents.models.factory import make_model
from attributary_agents.models.from_mlflow.flavours import load_folder
from attributary_agents.models.from_mlflow.folders import check_digest, copied, digest_of

OUTSIDE = Path("..") / "other"
LINE = "find . -type f ! -name registered_model_meta -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as `mlflow.sklearn.save_model` writes it, as far as it is read."""
    from sklearn.linear_model import LogisticRegression
    from skops import io

    made = tmp_path / "models" / "bank-3"
    (made / "data" / "Ünder").mkdir(parents=True)
    (made / "data" / "Ünder" / "b, too").write_bytes(b"1")
    (made / "data.txt").write_bytes(b"2")
    settings = {"pickled_model": "model.skops", "serialization_format": "skops", "skops_trusted_types": ["os.system"]}
    (made / "MLmodel").write_text(yaml.safe_dump({"flavors": {"python_function": {}, "sklearn": settings}}))
    (made / "model.skops").write_bytes(io.dumps(LogisticRegression().fit([[0.0], [1.0], [20.0]], [0, 0, 1])))
    return made


def test_the_digest_is_that_of_the_documented_line(folder: Path) -> None:
    digest = subprocess.run(LINE, shell=True, cwd=folder, capture_output=True, check=True, text=True).stdout.split()[0]
    assert digest_of(folder) == digest
    (folder / "registered_model_meta").write_text("what MLflow's client adds")
    assert digest_of(folder) == digest


@pytest.mark.parametrize("change", ["content", "name", "more", "fewer"])
def test_every_change_is_another_digest(change: str, folder: Path) -> None:
    before = digest_of(folder)
    if change == "content":
        (folder / "data.txt").write_bytes(b"3")
    elif change == "name":
        (folder / "data.txt").rename(folder / "date.txt")
    elif change == "more":
        (folder / "empty").write_bytes(b"")
    else:
        (folder / "data.txt").unlink()
    with pytest.raises(
        DeploymentError, match=f"bank: sha256 is {digest_of(folder)}, the record says {before}"
    ) as caught:
        check_digest(folder, "bank", before)
    assert caught.value.reason == "wrong_artefact"


def test_links_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(DeploymentError, match="link is a link, or no file"):
        digest_of(folder)
    with copied(folder.parent, "bank-3") as copy, pytest.raises(DeploymentError, match="link is a link"):
        digest_of(copy)


def test_a_name_that_could_pretend_to_be_two_files_is_refused(folder: Path) -> None:
    (folder / "a\n0000  .").mkdir()
    (folder / "a\n0000  ." / "b").write_bytes(b"")
    with pytest.raises(DeploymentError, match=r"'a\\n0000  \..* has a line end in its name: rename it"):
        digest_of(folder)


def test_only_folders_below_the_directory(folder: Path, tmp_path: Path) -> None:
    inside = folder.parent
    (tmp_path / "elsewhere").mkdir()
    (inside / "out").symlink_to(tmp_path / "elsewhere")
    (inside / "empty").mkdir()
    for directory, name, kind, said in [
        (None, "bank-3", NotAllowedError, "set artefacts.directory"),
        (inside, str(Path("..") / "models" / "bank-3"), NotAllowedError, "without `..`"),
        (inside, str(folder), NotAllowedError, "below artefacts.directory"),
        (inside, "out", NotAllowedError, "a link out of artefacts.directory"),
        (inside, "bank-4", DeploymentError, "cannot read the folder 'bank-4': No such file or directory"),
        (inside, "empty", DeploymentError, "empty has no file MLmodel"),
    ]:
        with pytest.raises(kind, match=said), copied(directory, name):
            pass


def configured(folder: Path, **given: Any) -> Any:
    raw = {"artefacts": {"directory": str(folder.parent)}, "models": {"m": {"model": {"mlflow": folder.name, **given}}}}
    return parse_config(raw).models["m"]


def test_a_folder_is_the_model_of_a_configuration_and_pinned(folder: Path) -> None:
    with pytest.raises(ConfigError, match=f"model: bank-3 has no hash; write sha256: {digest_of(folder)}"):
        make_model(configured(folder))
    with pytest.raises(ConfigError, match=f"bank-3: sha256 is {digest_of(folder)}, the configuration says 000"):
        make_model(configured(folder, sha256="0" * 64))
    made = make_model(configured(folder, sha256=digest_of(folder)))
    assert made.predict([[0.0], [20.0]]).tolist() == [0, 1]


def test_what_the_folder_says_may_be_trusted_is_not(folder: Path) -> None:
    from sklearn.tree import DecisionTreeClassifier
    from skops import io

    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    (folder / "model.skops").write_bytes(io.dumps(tree))
    settings = yaml.safe_load((folder / "MLmodel").read_text())
    settings["flavors"]["sklearn"]["skops_trusted_types"] = ["sklearn.tree._tree.Tree"]
    (folder / "MLmodel").write_text(yaml.safe_dump(settings))
    said = r"^bank: model\.skops holds types not allowed: sklearn\.tree\._tree\.Tree; add them to control.allowed"
    with pytest.raises(NotAllowedError, match=said):
        load_folder("bank", folder, ["river."])
    assert load_folder("bank", folder, ["sklearn.tree._tree.Tree"]).predict([[1.0]]).tolist() == [1]


@pytest.mark.parametrize(
    ("flavours", "said"),
    [
        ("not yaml: [", "bank: its file MLmodel cannot be read"),
        ("flavors: 3", "bank: its file MLmodel cannot be read"),
        ("flavors: {spark: {}}", "bank: it has only the flavours spark; save one of sklearn, xgboost"),
        (
            f"flavors: {{sklearn: {{pickled_model: {OUTSIDE}, serialization_format: skops}}}}",
            "other: expected a file of the model's folder",
        ),
    ],
)
def test_what_cannot_be_loaded_is_said(flavours: str, said: str, folder: Path) -> None:
    (folder / "MLmodel").write_text(flavours)
    with pytest.raises(DeploymentError, match=said):
        load_folder("bank", folder, [])
