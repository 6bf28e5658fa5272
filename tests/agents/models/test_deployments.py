"""From a control record to a model: what may be named, what is refused with which reason, and what is never run."""

from __future__ import annotations

import hashlib
import pickle
import sys
from hashlib import md5  # noqa: F401 - see the test of what a module has imported
from pathlib import Path
from typing import Any

import pytest
from river import linear_model, naive_bayes

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import DeploymentError, NotAllowedError
from attributary_agents.models.artefacts import read_artefact
from attributary_agents.models.deployments import Job, decode, prepare
from attributary_explainers import dump_model, load_model
from attributary_topics import REASONS, Deployment, InvalidRecordError
from tests.agents.stand_ins import FACTORY, CountingClassifier

HERE = "tests.agents.models.test_deployments"
COUNTING = {"model": {"class": "tests.agents.stand_ins.CountingClassifier"}}
BAYES = {"class": "river.naive_bayes.GaussianNB", "params": {}}


def config(allowed: list[str] | None = None, directory: Path | None = None, **model: Any) -> Config:
    control = {} if allowed is None else {"control": {"allowed": allowed}}
    artefacts = {} if directory is None else {"artefacts": {"directory": str(directory)}}
    return parse_config({"models": {"m": {"factory": FACTORY, **model}}, **control, **artefacts})


def made(spec: dict[str, Any], chosen: Config | None = None) -> Any:
    return load_model(prepare(Job.of(chosen or config(), Deployment("m", "2", spec)), in_full=True))


def refused(spec: dict[str, Any], chosen: Config | None = None) -> tuple[str, str]:
    with pytest.raises(DeploymentError) as caught:
        made(spec, chosen)
    assert caught.value.reason in REASONS
    return caught.value.reason, str(caught.value)


def artefact(path: Path, content: bytes) -> dict[str, Any]:
    path.write_bytes(content)
    return {"artefact": path.name, "sha256": hashlib.sha256(content).hexdigest()}


def test_a_class_a_pipeline_and_a_factory() -> None:
    assert isinstance(made({"model": BAYES}), naive_bayes.GaussianNB)
    steps = [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}]
    assert list(made({"model": steps}).steps) == ["StandardScaler", "LogisticRegression"]
    assert isinstance(made({"factory": FACTORY}, config([FACTORY])), CountingClassifier)
    assert isinstance(made(COUNTING, config(["tests.agents"])), CountingClassifier)


def test_what_is_not_river_s_must_be_allowed_and_the_message_says_how() -> None:
    reason, message = refused(COUNTING)
    assert reason == "not_allowed"
    assert "control.allowed (river.)" in message
    assert "add 'tests'" in message


@pytest.mark.parametrize(
    "allowed", [["tests."], ["tests"], ["tests.agents"], ["tests.agents.stand_ins"], ["os", "tests"]]
)
def test_a_prefix_allows_what_is_below_it(allowed: list[str]) -> None:
    made(COUNTING, config(allowed))


@pytest.mark.parametrize(
    "allowed", [[], ["test"], ["tests.agent"], ["tests.agents.stand_ins.counting"], ["ests.agents"]]
)
def test_a_prefix_allows_nothing_else(allowed: list[str]) -> None:
    assert refused(COUNTING, config(allowed))[0] == "not_allowed"


@pytest.mark.parametrize(
    "allowed", [[], ["tests"], ["tests.agents.stand_ins"], [FACTORY.replace(":", ".")], [FACTORY + "s"]]
)
def test_a_factory_must_be_named_itself(allowed: list[str]) -> None:
    reason, message = refused({"factory": FACTORY}, config(allowed))
    assert (reason, "module:function" in message) == ("not_allowed", True)


@pytest.mark.parametrize(
    "spec",
    [
        {"model": {"class": "subprocess.Popen", "params": {"args": ["true"]}}},
        {"model": [BAYES, {"class": "os.system", "params": {"command": "true"}}]},
        {"model": {"class": "river.ensemble.BaggingClassifier", "params": {"model": {"class": "os.system"}}}},
        {"model": {"class": "river.ensemble.VotingClassifier", "params": {"models": [BAYES, {"class": "os.abort"}]}}},
        {"model": {"class": "riverbank.Model", "params": {}}},
        {"factory": "os:abort"},
        {"factory": "builtins:breakpoint"},
    ],
)
def test_nothing_else_is_imported_or_called_at_any_depth(spec: dict[str, Any]) -> None:
    assert refused(spec)[0] == "not_allowed"


def test_an_allowed_module_is_no_door_to_what_it_has_imported() -> None:
    """This module has imported `hashlib.md5`, which makes something without arguments."""
    reason, message = refused({"model": {"class": f"{HERE}.md5"}}, config(["tests"]))
    assert (reason, "defined in _hashlib" in message) == ("not_allowed", True)
    assert refused({"model": {"class": f"{HERE}.sys"}}, config(["tests"]))[0] == "not_allowed"


def test_a_refused_module_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "attributary_test_unwanted.py").write_text("make = dict\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert refused({"factory": "attributary_test_unwanted:make"})[0] == "not_allowed"
    assert "attributary_test_unwanted" not in sys.modules


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"model": {"class": "river.tree.NoTree"}}, "NoTree"),
        ({"model": {"class": "river.naive_bayes.GaussianNB", "params": {"depth": 1}}}, "has no parameter 'depth'"),
        ({"model": {"class": "river.linear_model.LinearRegression"}}, "regressor"),
        ({"model": {"class": "river.cluster.KMeans"}}, ""),
        ({"factory": "tests.agents.models.test_deployments:lambda_model"}, "cannot save"),
        ({"factory": "tests.agents.models.test_deployments:nothing"}, "None"),
        ({"factory": "tests.agents.models.test_deployments:recursive"}, "RecursionError"),
    ],
)
def test_a_model_that_cannot_be_used(spec: dict[str, Any], said: str) -> None:
    named = [f"{HERE}:{name}" for name in ("lambda_model", "nothing", "recursive")]
    chosen = config(["river", *named], loss="cross_entropy")
    reason, message = refused(spec, chosen)
    assert reason == "unusable_model"
    assert said in message


def lambda_model() -> Any:
    model = CountingClassifier()
    model.secret = lambda: None  # type: ignore[attr-defined]
    return model


def nothing() -> None:
    return None


def recursive() -> Any:
    return recursive()


def test_an_artefact_written_by_dump_model_or_pickle(tmp_path: Path) -> None:
    model = CountingClassifier()
    model.learn_one({"a": 1.0}, True)
    for dump in (dump_model, pickle.dumps):
        spec = artefact(tmp_path / "two.pkl", dump(model))
        assert made(spec, config(directory=tmp_path)).counts == model.counts


def test_an_artefact_in_a_folder_or_behind_a_link_that_stays_inside(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    spec = artefact(tmp_path / "deep/two.pkl", dump_model(CountingClassifier()))
    (tmp_path / "link.pkl").symlink_to("deep/two.pkl")
    for name in ("deep/two.pkl", "link.pkl", "./deep//two.pkl"):
        assert isinstance(made({**spec, "artefact": name}, config(directory=tmp_path)), CountingClassifier)


def test_artefacts_need_a_folder() -> None:
    reason, message = refused({"artefact": "two.pkl", "sha256": "0" * 64})
    assert (reason, "set artefacts.directory" in message) == ("not_allowed", True)


class Boom:
    """Shows whether it has been unpickled."""

    ran = False

    def __reduce__(self) -> Any:
        return _boom, ()


def _boom() -> None:
    Boom.ran = True
    raise RuntimeError("unpickled")


@pytest.mark.parametrize(
    "name", ["../two.pkl", "deep/../../two.pkl", "/etc/passwd", "out.pkl", "outside/two.pkl", ".."]
)
def test_a_path_out_of_the_folder_is_refused_and_not_read(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "artefacts"
    folder.mkdir()
    spec = artefact(tmp_path / "two.pkl", pickle.dumps(Boom()))
    (folder / "out.pkl").symlink_to(tmp_path / "two.pkl")
    (folder / "outside").symlink_to(tmp_path)
    (folder / "deep").mkdir()
    assert refused({**spec, "artefact": name}, config(directory=folder))[0] == "not_allowed"
    assert not Boom.ran


def test_another_hash_is_refused_before_anything_is_unpickled(tmp_path: Path) -> None:
    spec = artefact(tmp_path / "two.pkl", pickle.dumps(Boom()))
    reason, message = refused({**spec, "sha256": "0" * 64}, config(directory=tmp_path))
    assert (reason, spec["sha256"] in message) == ("wrong_artefact", True)
    assert not Boom.ran
    assert refused(spec, config(directory=tmp_path)) == ("unusable_model", "two.pkl: RuntimeError: unpickled")
    Boom.ran = False


@pytest.mark.parametrize("name", ["absent.pkl", "folder", "circle", "two.pkl/three", "x" * 300])
def test_a_file_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "two.pkl").write_bytes(b"")
    (tmp_path / "circle").symlink_to("circle")
    assert refused({"artefact": name, "sha256": "0" * 64}, config(directory=tmp_path))[0] == "wrong_artefact"


@pytest.mark.parametrize("content", [b"", b"junk", pickle.dumps(3), pickle.dumps({"a": 1})])
def test_a_file_that_is_no_model(content: bytes, tmp_path: Path) -> None:
    assert refused(artefact(tmp_path / "two.pkl", content), config(directory=tmp_path))[0] == "unusable_model"


def test_any_hash_will_do_to_find_out_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "two.pkl").write_bytes(b"abc")
    assert read_artefact(tmp_path, "two.pkl", None) == b"abc"
    with pytest.raises(NotAllowedError):
        read_artefact(tmp_path, "../two.pkl", None)


def test_only_configured_models_can_be_deployed() -> None:
    value = b'{"version": "2", "model": {"class": "river.naive_bayes.GaussianNB"}}'
    assert decode(config(), b"m", value).version == "2"
    with pytest.raises(InvalidRecordError, match=r"configured models \(m\)") as caught:
        decode(config(), b"other", value)
    assert caught.value.reason == "unknown_model"


def test_a_model_of_another_kind_may_follow_where_the_loss_is_not_named() -> None:
    assert isinstance(made({"model": {"class": "river.linear_model.LinearRegression"}}), linear_model.LinearRegression)
