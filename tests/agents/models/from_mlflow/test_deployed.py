"""What a record of the models topic may name of MLflow: what the configuration names, exactly, with its digest."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import DeploymentError
from attributary_agents.models.deployments import Job, decode, prepare
from attributary_agents.models.from_mlflow.folders import digest_of
from attributary_explainers import load_model
from attributary_topics import Deployment, InvalidRecordError

DIGEST = "0" * 64


def config(directory: Path | None = None, allowed: tuple[str, ...] = (), **model: Any) -> Config:
    raw: dict[str, Any] = {
        "models": {"m": {"model": {"mlflow": "models:/bank@champion"}, "learn": False, **model}},
        "mlflow": {"allowed": list(allowed)},
    }
    if directory is not None:
        raw["artefacts"] = {"directory": str(directory)}
    return parse_config(raw)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from sklearn.linear_model import LogisticRegression
    from skops import io

    made = tmp_path / "bank-3"
    made.mkdir()
    settings = {"pickled_model": "model.skops", "serialization_format": "skops"}
    (made / "MLmodel").write_text(yaml.safe_dump({"flavors": {"sklearn": settings}}))
    (made / "model.skops").write_bytes(io.dumps(LogisticRegression().fit([[0.0], [1.0], [20.0]], [0, 0, 1])))
    return made


def refused(spec: dict[str, Any], chosen: Config, folder: Path | None = None) -> tuple[str, str]:
    with pytest.raises(DeploymentError) as caught:
        prepare(Job.of(chosen, Deployment("m", "4", spec), folder))
    return caught.value.reason, str(caught.value)


@pytest.mark.parametrize(
    "uri", ["models:/bank@champion", "models:/bank", "models:/bank/latest", "models:/a/b/3", "models:/bank/03"]
)
def test_a_record_names_a_version_exactly(uri: str) -> None:
    value = orjson.dumps({"version": "4", "mlflow": uri, "sha256": DIGEST})
    with pytest.raises(InvalidRecordError, match="models:/NAME/VERSION, and no alias") as caught:
        decode(config(), b"m", value)
    assert caught.value.reason == "wrong_type"


def test_a_record_without_a_digest_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="sha256"):
        decode(config(), b"m", orjson.dumps({"version": "4", "mlflow": "models:/bank/4"}))


def test_other_registered_models_have_to_be_allowed(folder: Path) -> None:
    own = {"mlflow": "models:/bank/4", "sha256": digest_of(folder)}
    other = {"mlflow": "models:/other/4", "sha256": digest_of(folder)}
    assert load_model(prepare(Job.of(config(), Deployment("m", "4", own), folder))).predict([[20.0]]).tolist() == [1]
    reason, said = refused(other, config(), folder)
    assert reason == "not_allowed"
    assert "mlflow models:/other/4: a record of the models topic may name" in said
    assert "mlflow.allowed (bank); add 'other'" in said
    assert prepare(Job.of(config(allowed=("other",)), Deployment("m", "4", other), folder))
    chosen = parse_config({"models": {"m": {"model": {"class": "river.naive_bayes.GaussianNB"}}}})
    reason, said = refused(own, chosen, folder)
    assert (reason, "mlflow.allowed (none)" in said) == ("not_allowed", True)


def test_the_digest_is_compared_before_anything_is_read(folder: Path) -> None:
    (folder / "model.skops").write_bytes(b"anything")
    spec = {"mlflow": "models:/bank/4", "sha256": DIGEST}
    reason, said = refused(spec, config(), folder)
    assert reason == "wrong_artefact"
    assert said == f"models:/bank/4: sha256 is {digest_of(folder)}, the record says {DIGEST}"


def test_a_folder_is_of_the_directory_alone(folder: Path) -> None:
    spec = {"mlflow": "bank-3", "sha256": digest_of(folder)}
    assert prepare(Job.of(config(folder.parent), Deployment("m", "4", spec)))
    assert refused(spec, config())[0] == "not_allowed"
    assert refused({**spec, "mlflow": str(Path("..") / "bank-3")}, config(folder.parent))[0] == "not_allowed"
    assert refused({**spec, "sha256": DIGEST}, config(folder.parent))[0] == "wrong_artefact"


def test_what_unpickles_something_else_is_not_stored(folder: Path) -> None:
    """A pickle of the registry runs code when it is built, apart; what is stored of it goes through the list."""
    settings = {"pickled_model": "model.pkl", "serialization_format": "pickle"}
    (folder / "MLmodel").write_text(yaml.safe_dump({"flavors": {"sklearn": settings}}))
    (folder / "model.pkl").write_bytes(pickle.dumps(_Foreign()))
    spec = {"mlflow": "models:/bank/4", "sha256": digest_of(folder)}
    reason, said = refused(spec, config(loss="zero_one"), folder)
    assert (reason, "_Foreign" in said) == ("not_allowed", True)


class _Foreign:
    def __call__(self, x: dict[str, Any]) -> bool:
        return True
