"""What the library does by default the worker does by default: what both make without a word is the same."""

from __future__ import annotations

import inspect

import pytest
from river import linear_model, tree

from attributary_agents.config.explainers import ChangeConfig, ExplainConfig, ExplainerConfig
from attributary_agents.config.models import ModelConfig
from attributary_explainers import ChangeExplainer, LossMonitor, Quality
from attributary_explainers.monitor.explainers import new_change_explainer, new_explainer, new_loss_watch
from attributary_explainers.monitor.quality import new_quality
from attributary_explainers.monitor.settings import EXPLAINERS

MODELS = [tree.HoeffdingTreeClassifier, linear_model.LinearRegression]


def config():
    return ModelConfig(factory="models:make", explainers={name: {} for name in EXPLAINERS})


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("name", EXPLAINERS)
def test_an_explainer_of_the_worker_is_that_of_the_library(make, name):
    model = make()
    found, expected = new_explainer("m", config().settings, name, model), EXPLAINERS[name](model)
    assert found.parameters == expected.parameters


@pytest.mark.parametrize("make", MODELS)
def test_a_change_explainer_of_the_worker_is_that_of_the_library(make):
    model = make()
    found = new_change_explainer("m", config().settings, model)
    assert found is not None
    assert found.parameters == ChangeExplainer(model).parameters


@pytest.mark.parametrize("make", MODELS)
def test_a_loss_monitor_of_the_worker_is_that_of_the_library(make):
    model = make()
    found, expected = new_loss_watch("m", config().settings, model).monitor.parameters, LossMonitor(model).parameters
    assert {**found, "seed": 0} == expected  # its seed only chooses rows


def test_the_quality_of_a_model_that_learns_waits_and_both_say_so():
    model = tree.HoeffdingTreeClassifier()
    found, expected = new_quality(config().settings, model), Quality(["accuracy", "roc_auc"])
    assert found is not None
    assert {**found.parameters, "reference_after": 0} == expected.parameters
    assert found.reference_after == 2 / found.alpha
    assert "2 / alpha" in inspect.getdoc(Quality).split("reference_after")[1]
    assert "2 / alpha" in inspect.getdoc(new_quality)


def test_every_parameter_with_a_key_of_its_name_has_its_default():
    compared = set()
    for section, kinds in (
        (ExplainerConfig, EXPLAINERS.values()),
        (ExplainConfig, EXPLAINERS.values()),
        (ModelConfig, EXPLAINERS.values()),
        (ChangeConfig, [ChangeExplainer]),
    ):
        for kind in kinds:
            for name, declared in inspect.signature(kind).parameters.items():
                key = section.model_fields.get(name)
                if key is None or name in ("model", "seed"):
                    continue
                default = key.get_default(call_default_factory=True)
                if default in (None, {}) or name in ("reservoir", "sampling"):
                    continue  # stands for the library's own; `reservoir` and `sampling` are compared above
                expected = list(declared.default) if isinstance(declared.default, tuple) else declared.default
                assert default == expected, (section.__name__, kind.__name__, name)
                compared.add(name)
    assert {"alpha", "n_samples", "removal", "missing", "feature_share", "window", "threshold", "margin"} <= compared


def test_the_seed_differs_and_both_say_so():
    assert inspect.signature(ChangeExplainer).parameters["seed"].default is None
    assert ModelConfig.model_fields["seed"].default == 42
    assert "42" in inspect.getdoc(EXPLAINERS["pfi"].__mro__[1])
    assert "None" in str(ModelConfig.model_fields["seed"].description)
