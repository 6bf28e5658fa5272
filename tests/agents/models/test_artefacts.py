"""Models of scikit-learn from files: as the first version, as later ones, and what is said where that fails."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import pytest
import sklearn
from click.testing import CliRunner
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import AttributaryError, ConfigError, DeploymentError
from attributary_agents.models.deployments import Job, prepare
from attributary_agents.models.model_state import new_state
from attributary_agents.models.trial import check_models
from attributary_agents.state.codec import decode_state, encode_state
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_explainers import load_model
from attributary_topics import Deployment
from tests.agents.stand_ins import DEAD_LETTERS, FACTORY, TOPIC, observations

ROWS = observations(200)
X, Y = [[o.x["a"], o.x["b"]] for o in ROWS], [o.y for o in ROWS]
HERE = sklearn.__version__


class Odd(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A type that skops does not know."""

    def fit(self, _x: Any, y: Any) -> Odd:
        self.classes_ = sorted(set(y))
        return self

    def predict_proba(self, x: Any) -> Any:
        import numpy as np

        return np.full((len(x), len(self.classes_)), 1 / len(self.classes_))

    def predict(self, x: Any) -> Any:
        return [self.classes_[0]] * len(x)


def skops_bytes(model: Any) -> bytes:
    import skops.io  # takes a second, which processes that run other files do without

    return bytes(skops.io.dumps(model))


def joblib_bytes(model: Any) -> bytes:
    buffer = io.BytesIO()
    joblib.dump(model, buffer, compress=3)
    return buffer.getvalue()


DUMPS: dict[str, Callable[[Any], bytes]] = {
    "bank.skops": skops_bytes,
    "bank.joblib": joblib_bytes,
    "bank.pkl": pickle.dumps,
    "deep/bank.pickle": pickle.dumps,
}
OUTSIDE = "/".join(["..", "bank.pkl"])
MODELS: dict[str, Callable[[], Any]] = {
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=5, random_state=1).fit(X, Y),
    "regressor": lambda: RandomForestRegressor(n_estimators=5, random_state=1).fit(X, [x[0] for x in X]),
}


def written(folder: Path, name: str, content: bytes) -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def config(folder: Path | None, model: Any, allowed: list[str] | None = None, **more: Any) -> Config:
    own = {"model": model, "learn": False, "change": None, "alpha": 0.05, "publish": {"every": 50}, **more}
    return parse_config(
        {
            "models": {"bank": own},
            "artefacts": {"directory": str(folder) if folder else None},
            "control": {"allowed": ["river.", *(allowed or [])]},
        }
    )


def refusal(folder: Path | None, model: Any, allowed: list[str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        check_models(config(folder, model, allowed))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", DUMPS)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.share(2, "kind", "name")
def test_a_file_is_the_first_version_and_is_explained_and_stored(kind: str, name: str, tmp_path: Path) -> None:
    model = MODELS[kind]()
    # Trees hold types that skops does not trust by itself.
    chosen = config(tmp_path, {"file": name, "sha256": written(tmp_path, name, DUMPS[name](model))}, ["sklearn"])
    check_models(chosen)
    partition = Partition(TOPIC, 0, chosen, {}.get)
    sent = []
    for i, o in enumerate(ROWS):
        y = o.x["a"] if kind == "regressor" else o.y
        value = json.dumps({"x": o.x, "y": y}).encode()
        sent += partition.handle(Record(TOPIC, 0, i, i, b"bank", value))
    assert [out for out in sent if out.topic == DEAD_LETTERS] == []
    state = partition.models["bank"]
    importance = state.explainers["pfi"].importance
    assert state.n_observations == 200
    assert importance["a"] > 10 * abs(importance["b"])
    predicted = model.predict(X[:20]).tolist()
    restored = decode_state("bank", chosen.models["bank"], encode_state(state))
    assert restored.model.predict(X[:20]).tolist() == state.model.predict(X[:20]).tolist() == predicted
    assert state.current.spec == {"artefact": name, "sha256": chosen.models["bank"].spec["sha256"]}


@pytest.mark.parametrize("name", DUMPS)
def test_a_file_is_a_later_version(name: str, tmp_path: Path) -> None:
    model = MODELS["pipeline"]()
    sha256 = written(tmp_path, name, DUMPS[name](model))
    chosen = config(tmp_path, {"class": "river.naive_bayes.GaussianNB"})
    made = load_model(
        prepare(Job.of(chosen, Deployment("bank", "2", {"artefact": name, "sha256": sha256})), in_full=True)
    )
    assert made.predict(X).tolist() == model.predict(X).tolist()


def test_a_new_hash_in_the_configuration_is_another_version(tmp_path: Path) -> None:
    first = {"file": "bank.pkl", "sha256": written(tmp_path, "bank.pkl", pickle.dumps(MODELS["pipeline"]()))}
    state = new_state("bank", config(tmp_path, first).models["bank"])
    second = {"file": "bank.pkl", "sha256": written(tmp_path, "bank.pkl", pickle.dumps(MODELS["boosting"]()))}
    changed = config(tmp_path, second, version="2").models["bank"]
    assert state.configured != new_state("bank", changed).configured


def test_a_file_without_its_hash_is_refused_with_the_hash_to_write(tmp_path: Path) -> None:
    sha256 = written(tmp_path, "bank.pkl", pickle.dumps(MODELS["pipeline"]()))
    assert (
        refusal(tmp_path, {"file": "bank.pkl"}) == f"models.bank: model: bank.pkl has no hash; write sha256: {sha256}"
    )


def test_another_hash_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    sha256 = written(tmp_path, "bank.skops", b"anything")
    said = refusal(tmp_path, {"file": "bank.skops", "sha256": "9f2c" * 16})
    assert f"bank.skops: sha256 is {sha256}, the configuration says {'9f2c' * 16}" in said


def test_types_that_skops_does_not_know_need_to_be_allowed(tmp_path: Path) -> None:
    sha256 = written(tmp_path, "bank.skops", skops_bytes(Odd().fit(X, Y)))
    named = {"file": "bank.skops", "sha256": sha256}
    odd = f"{__name__}.Odd"
    assert f"bank.skops holds types not allowed: {odd}; add them to control.allowed" in refusal(tmp_path, named)
    for allowed in ([odd], ["tests"], ["tests.agents."]):
        check_models(config(tmp_path, named, allowed))
    assert "not allowed" in refusal(tmp_path, named, [f"{__name__}.Od"])
    spec = {"artefact": "bank.skops", "sha256": sha256}
    chosen = config(tmp_path, {"class": "river.naive_bayes.GaussianNB"})
    with pytest.raises(DeploymentError, match="add them to control") as caught:
        prepare(Job.of(chosen, Deployment("bank", "2", spec)), in_full=True)
    assert caught.value.reason == "not_allowed"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bank.pkl", b"junk", "bank.pkl is no pickle"),
        ("bank.pkl", b"", "bank.pkl is no pickle"),
        ("bank.pkl", joblib_bytes([1]), "bank.pkl is no pickle"),
        ("bank.joblib", b"junk", "bank.joblib is no joblib file"),
        ("bank.skops", b"junk", "bank.skops is no skops file"),
        ("bank.skops", pickle.dumps(MODELS["pipeline"]()), "bank.skops is no skops file"),
        ("bank.onnx", b"junk", "bank.onnx: it is no ONNX file"),
        ("bank.bin", b"junk", "expected a file that ends in .skops, .joblib, .pkl, .pickle, .onnx"),
        ("bank.pkl", b"c__main__\nMine\n.", "Define the class in a module that can be imported"),
        ("bank.pkl", b"cnowhere.models\nMine\n.", "install the package 'nowhere' that it needs"),
        ("bank.pkl", pickle.dumps({"a": 1}), "dict"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_the_remedy(
    name: str, content: bytes, said: str, tmp_path: Path
) -> None:
    assert said in refusal(tmp_path, {"file": name, "sha256": written(tmp_path, name, content)})


@pytest.mark.parametrize("name", ["bank.skops", "bank.joblib"])
def test_a_package_that_is_not_installed_is_named_with_the_extra(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = DUMPS[name](MODELS["pipeline"]())
    package = name.partition(".")[2]
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    said = refusal(tmp_path, {"file": name, "sha256": written(tmp_path, name, content)})
    assert f"{package} is not installed: pip install 'attributary[sklearn]'" in said


def other_release(content: bytes, release: str = "0.0.1") -> bytes:
    """The file as another release of scikit-learn, whose number has as many digits, would have written it."""
    assert len(release) == len(HERE)
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return content.replace(HERE.encode(), release.encode())
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(changed, "w") as new:
        for name in archive.namelist():
            new.writestr(name, archive.read(name).replace(HERE.encode(), release.encode()))
    return changed.getvalue()


@pytest.mark.parametrize("name", ["bank.skops", "bank.pkl"])
def test_a_file_of_another_release_that_can_be_read_is_taken_with_a_warning(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    release = "".join("0" if character != "." else "." for character in HERE)
    content = other_release(DUMPS[name](MODELS["pipeline"]()), release)
    check_models(config(tmp_path, {"file": name, "sha256": written(tmp_path, name, content)}))
    assert f"{name}: it was made with scikit-learn {release}, and {HERE} is installed here" in caplog.text


def test_a_file_of_another_release_that_cannot_be_read_says_both(tmp_path: Path) -> None:
    release = "".join("0" if character != "." else "." for character in HERE)
    content = other_release(pickle.dumps(MODELS["pipeline"]()), release).replace(b"StandardScaler", b"StandardScalar")
    said = refusal(tmp_path, {"file": "bank.pkl", "sha256": written(tmp_path, "bank.pkl", content)})
    assert f"it was made with scikit-learn {release}, and {HERE} is installed here" in said
    assert f"install scikit-learn=={release}" in said


def test_files_need_a_folder_and_stay_in_it(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    sha256 = written(tmp_path, "bank.pkl", pickle.dumps(MODELS["pipeline"]()))
    assert "set artefacts.directory" in refusal(None, {"file": "bank.pkl", "sha256": sha256})
    assert "below artefacts.directory" in refusal(tmp_path / "inside", {"file": OUTSIDE, "sha256": sha256})


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"served": "http://bank:8080"}, "name the features"),
        ({"file": "bank.pkl", "sha256": "9F2C"}, "sha256"),
        ({"file": "bank.pkl", "params": {}}, "params"),
    ],
)
def test_what_a_file_cannot_be_is_said_in_a_line(model: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(None, model)
    assert said in str(caught.value)
    assert "models.bank" in str(caught.value)


def deployed(folder: Path, *arguments: str) -> Any:
    raw = {"models": {"bank": {"factory": FACTORY, "learn": False}}, "artefacts": {"directory": str(folder)}}
    (folder / "attributary.yaml").write_text(json.dumps(raw))
    command = ["models", "deploy", "bank", *arguments, "--dry-run", "--json", "-c", str(folder / "attributary.yaml")]
    return CliRunner().invoke(cli, command)


@pytest.mark.parametrize("name", DUMPS)
def test_the_command_deploys_a_file_of_each_format(name: str, tmp_path: Path) -> None:
    sha256 = written(tmp_path, name, DUMPS[name](MODELS["pipeline"]()))
    by_option = deployed(tmp_path, "--version", "2", "--artefact", name)
    (tmp_path / "two.yaml").write_text(json.dumps({"version": "2", "model": {"file": name, "sha256": sha256}}))
    by_file = deployed(tmp_path, str(tmp_path / "two.yaml"))
    expected = {"model_id": "bank", "version": "2", "artefact": name, "sha256": sha256, "sent": False}
    assert json.loads(by_option.stdout) == json.loads(by_file.stdout) == expected


@pytest.mark.parametrize("form", [{"artefact": "bank.pkl"}, {"model": {"file": "bank.pkl"}}])
def test_the_command_says_the_hash_that_a_file_lacks(form: dict[str, Any], tmp_path: Path) -> None:
    sha256 = written(tmp_path, "bank.pkl", pickle.dumps(MODELS["pipeline"]()))
    (tmp_path / "two.yaml").write_text(json.dumps({"version": "2", **form}))
    found = deployed(tmp_path, str(tmp_path / "two.yaml"))
    assert isinstance(found.exception, AttributaryError)
    assert str(found.exception) == f"bank.pkl has no hash; write sha256: {sha256}"
