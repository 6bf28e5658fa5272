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
from attributary_agents.models.trial import check_models
from tests.agents.stand_ins import FACTORY, CountingClassifier


def made(**settings: Any) -> Any:
    return make_model(parse_config({"models": {"m": settings}}).models["m"])


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


def test_classes_in_the_arguments_of_a_class() -> None:
    trees = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 9}}
    bagging = {"class": "river.ensemble.BaggingClassifier", "params": {"model": trees, "n_models": 3, "seed": 1}}
    model = made(model=bagging)
    assert isinstance(model, ensemble.BaggingClassifier)
    assert [(type(one), one.grace_period) for one in model.models] == [(tree.HoeffdingTreeClassifier, 9)] * 3
    members = [{"class": "river.naive_bayes.GaussianNB"}, {"class": "river.tree.HoeffdingTreeClassifier"}]
    voting = made(model={"class": "river.ensemble.VotingClassifier", "params": {"models": members}})
    assert [type(model).__name__ for model in voting.models] == ["GaussianNB", "HoeffdingTreeClassifier"]


def test_each_call_makes_a_new_model() -> None:
    assert isinstance(made(factory=FACTORY), CountingClassifier)
    config = ModelConfig.model_validate({"model": {"class": "river.naive_bayes.GaussianNB"}})
    assert make_model(config) is not make_model(config)


def nested(inner: dict[str, Any]) -> dict[str, Any]:
    return {"model": {"class": "river.ensemble.BaggingClassifier", "params": {"model": inner}}}


def absent(path: str, missing: str) -> tuple[dict[str, Any], list[str]]:
    return {"model": {"class": path}}, [f"cannot import {path!r}", missing]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        absent("nowhere.Model", "PYTHONPATH"),
        absent("river.tree.NoTree", "NoTree"),
        absent("HoeffdingTreeClassifier", "did you mean 'river.tree.HoeffdingTreeClassifier'?"),
        absent(".tree.HoeffdingTreeClassifier", ".tree"),
        absent("river..HoeffdingTreeClassifier", "river."),
        absent("", ""),
        (
            {"model": {"class": "river.naive_bayes.GaussianNB", "params": {"depth": 3}}},
            ["river.naive_bayes.GaussianNB", "'depth'"],
        ),
        ({"model": {"class": "river.__version__"}}, ["river.__version__"]),
        (
            {"model": [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.nothing.Here"}]},
            ["river.nothing.Here"],
        ),
        (nested({"class": "river.tree.NoTree"}), ["river.tree.NoTree"]),
        (nested({"class": "river.tree.HoeffdingTreeClassifier", "parms": {}}), ["parms"]),
        (nested({"class": 3}), ["class"]),
        ({"factory": "no_colon"}, ["no_colon", "module:function"]),
        ({"factory": "nowhere:make"}, ["nowhere:make", "nowhere"]),
        ({"factory": "tests.agents.stand_ins:absent"}, ["tests.agents.stand_ins:absent", "absent"]),
        ({"factory": "os.path:join"}, ["os.path:join", "TypeError"]),
        ({"factory": "tests.agents.models.test_factory:raising"}, ["DivisionByZero"]),
    ],
)
def test_what_does_not_make_a_model_is_named(settings: dict[str, Any], named: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        made(**settings)
    assert [text for text in named if text not in str(caught.value)] == []


def test_an_empty_pipeline_is_refused_before_the_start() -> None:
    with pytest.raises(ConfigError, match=r"models\.m"):
        check_models(parse_config({"models": {"m": {"model": []}}}))


def raising() -> None:
    raise DivisionByZeroError("on purpose")


class DivisionByZeroError(Exception):
    pass


def test_a_module_that_raises_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "attributary_test_broken.py").write_text("raise RuntimeError('half installed')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"(?s)attributary_test_broken:make.*half installed"):
        made(factory="attributary_test_broken:make")
    assert "attributary_test_broken" not in sys.modules
