"""From configuration to model, and what is said where that does not work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from river import compose, ensemble, linear_model, preprocessing, tree

from attributary_agents.config.models import ModelConfig
from attributary_agents.config.reading import parse_config
from attributary_agents.errors import ConfigError
from attributary_agents.models.factory import make_model
from attributary_agents.models.model_state import check_models
from tests.agents.stand_ins import FACTORY, CountingClassifier


def made(**settings: Any) -> Any:
    return make_model(parse_config({"models": {"m": settings}}).models["m"])


def refusal(**settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        made(**settings)
    return str(caught.value)


def test_a_class_with_its_arguments() -> None:
    model = made(model={"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 7}})
    assert isinstance(model, tree.HoeffdingTreeClassifier)
    assert model.grace_period == 7


def test_a_pipeline_of_steps() -> None:
    model = made(
        model=[
            {"class": "river.preprocessing.StandardScaler"},
            {"class": "river.linear_model.LogisticRegression", "params": {"l2": 0.5}},
        ]
    )
    assert isinstance(model, compose.Pipeline)
    scaler, regression = model.steps.values()
    assert isinstance(scaler, preprocessing.StandardScaler)
    assert isinstance(regression, linear_model.LogisticRegression)
    assert regression.l2 == 0.5


def test_a_class_in_the_arguments_of_a_class() -> None:
    tree_step = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 9}}
    model = made(
        model={"class": "river.ensemble.BaggingClassifier", "params": {"model": tree_step, "n_models": 3, "seed": 1}}
    )
    assert isinstance(model, ensemble.BaggingClassifier)
    assert [(type(one), one.grace_period) for one in model.models] == [(tree.HoeffdingTreeClassifier, 9)] * 3


def test_each_call_makes_a_new_model() -> None:
    config = ModelConfig.model_validate({"model": {"class": "river.naive_bayes.GaussianNB"}})
    assert make_model(config) is not make_model(config)


def test_a_factory() -> None:
    assert isinstance(made(factory=FACTORY), CountingClassifier)


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("nowhere.Model", "nowhere"),
        ("river.tree.NoTree", "NoTree"),
        ("HoeffdingTreeClassifier", "HoeffdingTreeClassifier"),
        (".tree.HoeffdingTreeClassifier", ".tree"),
        ("river..HoeffdingTreeClassifier", "river."),
        ("", ""),
    ],
)
def test_a_class_that_is_not_there(path: str, missing: str) -> None:
    message = refusal(model={"class": path})
    assert f"cannot import {path!r}" in message
    assert missing in message
    assert "PYTHONPATH" in message


def test_arguments_that_the_class_does_not_take() -> None:
    message = refusal(model={"class": "river.naive_bayes.GaussianNB", "params": {"depth": 3}})
    assert "river.naive_bayes.GaussianNB" in message
    assert "'depth': 3" in message
    assert "TypeError" in message


def test_something_that_cannot_be_called() -> None:
    assert "river.__version__" in refusal(model={"class": "river.__version__"})


def test_a_step_of_a_pipeline_that_is_not_there() -> None:
    steps = [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.nothing.Here"}]
    assert "river.nothing.Here" in refusal(model=steps)


def test_an_empty_pipeline_is_refused_before_the_start() -> None:
    with pytest.raises(ConfigError, match=r"models\.m"):
        check_models(parse_config({"models": {"m": {"model": []}}}))


@pytest.mark.parametrize(
    ("nested", "named"),
    [
        ({"class": "river.tree.NoTree"}, "river.tree.NoTree"),
        ({"class": "river.tree.HoeffdingTreeClassifier", "parms": {}}, "parms"),
        ({"class": 3}, "class"),
    ],
)
def test_a_nested_class_that_is_wrong(nested: dict[str, Any], named: str) -> None:
    message = refusal(model={"class": "river.ensemble.BaggingClassifier", "params": {"model": nested}})
    assert named in message


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("no_colon", "module:function"),
        ("nowhere:make", "nowhere"),
        ("tests.agents.stand_ins:absent", "absent"),
        ("os.path:join", "TypeError"),
    ],
)
def test_a_factory_that_does_not_work(path: str, named: str) -> None:
    message = refusal(factory=path)
    assert path in message
    assert named in message


def test_a_factory_that_raises() -> None:
    assert "DivisionByZero" in refusal(factory="tests.agents.models.test_factory:raising")


def raising() -> None:
    raise DivisionByZeroError("on purpose")


class DivisionByZeroError(Exception):
    pass


def test_a_module_that_raises_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "attributary_test_broken.py").write_text("raise RuntimeError('half installed')\n")
    monkeypatch.syspath_prepend(tmp_path)
    message = refusal(factory="attributary_test_broken:make")
    assert "attributary_test_broken:make" in message
    assert "half installed" in message
    assert "attributary_test_broken" not in sys.modules


def test_a_list_of_nested_models() -> None:
    members = [{"class": "river.naive_bayes.GaussianNB"}, {"class": "river.tree.HoeffdingTreeClassifier"}]
    voting = made(model={"class": "river.ensemble.VotingClassifier", "params": {"models": members}})
    assert [type(model).__name__ for model in voting.models] == ["GaussianNB", "HoeffdingTreeClassifier"]
