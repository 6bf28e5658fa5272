"""What a record of the models topic may build, by the type of the class; and that no foreign text is told."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import pytest
import river
from river import base, naive_bayes

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import DeploymentError
from attributary_agents.models.deployments import Job, prepare
from attributary_agents.models.guards.parts import is_part
from attributary_topics import Deployment
from tests.agents.stand_ins import FACTORY

SECRET = "the-content-of-a-file"
HERE = "tests.agents.models.test_parts"
BAYES = {"class": "river.naive_bayes.GaussianNB"}
SHUFFLED = {"class": "river.stream.shuffle"}


def refusal(spec: dict[str, Any], allowed: list[str] | None = None, *, in_full: bool = False) -> tuple[str, str]:
    control = {} if allowed is None else {"control": {"allowed": allowed}}
    config = parse_config({"models": {"m": {"factory": FACTORY}}, **control})
    with pytest.raises(DeploymentError) as caught:
        prepare(Job.of(config, Deployment("m", "2", spec)), in_full=in_full)
    return caught.value.reason, str(caught.value)


def names_of(module: str) -> dict[str, Any]:
    found = importlib.import_module(f"river.{module}")
    return {name: getattr(found, name) for name in found.__all__ if hasattr(found, name)}


@pytest.mark.parametrize(
    "module",
    [
        "anomaly", "cluster", "compose", "drift", "ensemble", "facto", "forest", "imblearn", "linear_model", "metrics",
        "model_selection", "multiclass", "multioutput", "naive_bayes", "neighbors", "optim.losses",
        "optim.schedulers", "optim.initializers", "preprocessing", "proba", "rules", "stats", "tree", "tree.splitter",
    ],
)  # fmt: skip
def test_what_models_are_made_of_may_be_built(module: str) -> None:
    """Every class of the module is a part; what else it has (functions, modules, bases of nodes) is none."""
    helpers = {"SWINN", "LazySearch", "TransformerUnion"}
    classes = {name: one for name, one in names_of(module).items() if isinstance(one, type)}
    assert classes or module == "compose"
    assert {name for name, one in classes.items() if not is_part(one)} <= helpers
    assert not [name for name, one in names_of(module).items() if not isinstance(one, type) and is_part(one)]


@pytest.mark.parametrize("module", ["datasets", "datasets.synth", "evaluate", "stream", "checks", "bandit.datasets"])
def test_what_reads_runs_or_checks_may_not(module: str) -> None:
    assert [name for name, one in names_of_any(module).items() if is_part(one)] == []


def names_of_any(module: str) -> dict[str, Any]:
    """Return what a module defines itself or below, whether it is exported or not."""
    found = importlib.import_module(f"river.{module}")
    return {
        name: one
        for name, one in vars(found).items()
        if getattr(one, "__module__", "").startswith(f"river.{module}") and not name.startswith("__")
    }


def test_every_estimator_of_river_is_a_part() -> None:
    missed = []
    for one in pkgutil.iter_modules(river.__path__):
        module = importlib.import_module(f"river.{one.name}")
        for name in getattr(module, "__all__", ()):
            found = getattr(module, name, None)
            if isinstance(found, type) and issubclass(found, base.Estimator) and not is_part(found):
                missed.append(name)
    assert missed == []


@pytest.mark.parametrize(
    "spec",
    [
        {"model": {"class": "river.evaluate.progressive_val_score", "params": {}}},
        {"model": {"class": "river.stream.iter_csv", "params": {"filepath_or_buffer": "/proc/self/environ"}}},
        {"model": {"class": "river.datasets.base.FileDataset", "params": {"filename": "environ"}}},
        {"model": {"class": "river.datasets.Phishing", "params": {}}},
        {"model": {"class": "river.bandit.datasets.NewsArticles", "params": {}}},
        {"model": {"class": "river.checks.check_estimator", "params": {"model": BAYES}}},
        {"model": [{"class": "river.compose.FuncTransformer", "params": {"func": {"class": "river.stream.iter_csv"}}}]},
        {"model": {"class": "river.ensemble.VotingClassifier", "params": {"models": [SHUFFLED]}}},
        {"factory": "river.stream:iter_csv"},
        {"factory": "river.evaluate:progressive_val_score"},
    ],
)  # fmt: skip
def test_at_no_depth_is_anything_else_called(spec: dict[str, Any]) -> None:
    reason, message = refusal(spec)
    assert reason == "not_allowed"
    assert "control.allowed" in message


class Own(naive_bayes.GaussianNB):
    """Is a model."""


class Duck:
    """Has the method of a model, and no type of one."""

    def predict_one(self, x: dict[str, Any]) -> bool:
        return bool(x)


class Other:
    """Is no model, and tells what it has read."""

    def __init__(self) -> None:
        raise RuntimeError(SECRET)


class Telling(Own):
    """Is a model, and tells what it has read when it is made."""

    def __init__(self) -> None:
        raise RuntimeError(SECRET)


class TellsWhenSaved(Own):
    """Tells it when it is saved."""

    def __getstate__(self) -> Any:
        raise TypeError(SECRET)


def test_classes_of_the_user_are_parts_by_type_by_method_or_by_name() -> None:
    assert is_part(Own)
    assert is_part(Duck)
    assert not is_part(Other)
    spec = {"model": {"class": f"{HERE}.Other"}}
    assert refusal(spec, [HERE])[0] == "not_allowed"
    assert refusal(spec, [f"{HERE}.Other"])[0] == "unusable_model", "named itself, so it is called"


@pytest.mark.parametrize("name", ["Telling", "TellsWhenSaved"])
def test_the_text_of_a_foreign_exception_is_told_to_the_deployer_alone(name: str) -> None:
    spec = {"model": {"class": f"{HERE}.{name}"}}
    reason, message = refusal(spec, [HERE])
    assert reason == "unusable_model"
    assert SECRET not in message
    assert "Error" in message
    assert SECRET in refusal(spec, [HERE], in_full=True)[1]


def test_a_module_that_raises_is_told_without_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "attributary_telling.py").write_text(f"raise AttributeError({SECRET!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    spec = {"model": {"class": "attributary_telling.Model"}}
    message = refusal(spec, ["attributary_telling"])[1]
    assert "AttributeError in attributary_telling.py, line 1" in message
    assert SECRET not in message


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("feature_extraction.text.CountVectorizer", {"input": "filename"}),
        ("cluster.FeatureAgglomeration", {"memory": "/tmp/anywhere"}),
    ],
)
def test_an_estimator_may_not_be_told_to_read_files(name: str, params: dict[str, str]) -> None:
    pytest.importorskip("sklearn")
    reason, message = refusal({"model": {"class": f"sklearn.{name}", "params": params}}, ["sklearn"])
    assert reason == "not_allowed"
    assert next(iter(params)) in message
