"""The fast path of forests and bags of trees equals them, while trees are replaced."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pytest
from river import drift, ensemble, forest, linear_model, metrics, naive_bayes, tree

from attributary_explainers.core.evaluators.trees import write_medians
from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator, read_as_categories
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.fast_paths.trees import forest_of_trees, mean_of_trees

from . import harness
from .harness import equals_the_model, learnt, predicted
from .tree_cases import drifting, growing_numbers

SHAKY: dict[str, Any] = {
    "drift_detector": drift.DummyDriftDetector(trigger_method="fixed", t_0=90),
    "warning_detector": drift.DummyDriftDetector(trigger_method="fixed", t_0=50),
}
"""Detectors that replace trees every now and then, whatever happens."""


all_covered = partial(harness.all_covered, n_rows=6, fresh_every=25, copy_every=150)


@pytest.mark.parametrize("categories", [0, 5])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"leaf_prediction": "mc", "metric": metrics.CohenKappa(), "max_features": 1},
        {"leaf_prediction": "nb", "nb_threshold": 10, "metric": metrics.F1(pos_val="yes"), "lambda_value": 1},
        {"disable_weighted_vote": True, "max_features": None},
        {"metric": metrics.LogLoss(), "warning_detector": drift.NoDrift()},
        {"drift_detector": drift.NoDrift(), "warning_detector": drift.NoDrift(), "n_models": 1},
    ],
)
@pytest.mark.share(2, "options", "categories")
def test_a_forest_of_classifiers_is_the_model_as_trees_are_replaced(options: dict[str, Any], categories: int) -> None:
    model = forest.ARFClassifier(**{"n_models": 4, "seed": 1, "grace_period": 15, **SHAKY, **options})
    sizes = []
    stream = drifting(360, ("no", "yes"), categories=categories)
    all_covered(model, stream, after=lambda _, model: sizes.append(max(member.n_nodes or 0 for member in model)))
    assert max(sizes) > 1
    if "drift_detector" not in options:
        assert model.n_drifts_detected() > 0


@pytest.mark.parametrize("labels", [tuple(range(10)), ("only",), ("True", "a", "2")])
def test_labels_that_come_late(labels: tuple[Any, ...]) -> None:
    stream = drifting(150, labels[:1]) + drifting(200, labels, seed=2)
    all_covered(forest.ARFClassifier(n_models=3, seed=2, grace_period=15), stream)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"aggregation_method": "mean"},
        {"aggregation_method": "mean", "disable_weighted_vote": False, "metric": metrics.MAE()},
        {"aggregation_method": "mean", "disable_weighted_vote": False, "leaf_prediction": "mean", "n_models": 9},
        {"aggregation_method": "median", "disable_weighted_vote": False, "leaf_prediction": "model", "n_models": 5},
    ],
)
def test_a_forest_of_regressors_is_the_model_as_trees_are_replaced(options: dict[str, Any]) -> None:
    model = forest.ARFRegressor(**{"n_models": 4, "seed": 1, "grace_period": 15, **SHAKY, **options})
    all_covered(model, growing_numbers(250), number=True)
    assert max(member.n_nodes or 0 for member in model) > 1
    assert model.n_drifts_detected() > 0


def test_the_median_is_numpys() -> None:
    rng = np.random.default_rng(1)
    for n in (1, 2, 3, 10):
        values = rng.normal(size=(50, n)).round(1)
        values[3, n // 2], values[4, 0], values[5, n - 1] = np.nan, np.inf, -np.inf
        found = np.empty((50, 1))
        write_medians(values, found)
        assert np.array_equal(found[:, 0], np.median(values, axis=1), equal_nan=True)


def test_the_shares_of_a_single_weighted_regressor_are_not_numbers() -> None:
    model = forest.ARFRegressor(n_models=1, seed=1, aggregation_method="mean", disable_weighted_vote=False)
    with np.errstate(invalid="ignore"):
        all_covered(model, growing_numbers(60), number=True)
        assert np.isnan(model.predict_one(growing_numbers(1)[0][0]))


@pytest.mark.parametrize("size", [1e7, 1e9])
@pytest.mark.parametrize("make", [forest.ARFClassifier, ensemble.LeveragingBaggingClassifier, ensemble.SRPClassifier])
@pytest.mark.share(2, "make", "size")
def test_a_number_far_below_0_beside_a_text(make: Any, size: float) -> None:
    """A class that a leaf has not seen was looked up with the number, below the begin of the memory."""
    rng = random.Random(1)
    model = make(
        **({} if make is forest.ARFClassifier else {"model": tree.HoeffdingTreeClassifier()}), n_models=3, seed=1
    )
    stream: list[tuple[dict[str, Any], str]] = []
    for n in range(600):
        x = {"balance": rng.gauss(0, size) if n % 9 else -size, "c": rng.choice("uvw")}
        label = "r" if n > 300 and x["balance"] > size else rng.choice("pq")
        stream.append((x, label))
    all_covered(model, stream)


def test_before_the_first_observation() -> None:
    x = {"a": 1.0, "b": 2.0}
    model: Any = forest.ARFClassifier(seed=1)
    assert predicted(model, [x]).shape == (1, 0)
    assert len(model) == 0, "asking has changed the model"
    assert predicted(forest.ARFRegressor(seed=1), [x]).tolist() == [[0.0]]
    model.predict_proba_one(x)
    assert predicted(model, [x]).shape == (1, 0)


def test_features_that_a_forest_reads_as_categories() -> None:
    stream = [({"k": i * 7919 % 5, "n": i * 31 % 17 / 3.0}, (i * 7919 % 5) in (1, 3)) for i in range(250)]
    model = forest.ARFClassifier(n_models=3, seed=1, grace_period=15, nominal_attributes=["k"])
    assert read_as_categories(model) == {"k"}
    all_covered(model, stream)


def follow_bag(model: Any, stream: Any) -> None:
    """Follow a bag of trees, which has the evaluator of forests and not that of ensembles of any members."""
    all_covered(model, stream, fresh_every=40, copy_every=40)
    schema = Schema(stream[0][0], [name for name, value in stream[0][0].items() if isinstance(value, str)])
    assert type(make_evaluator(model, schema)) is type(forest_of_trees(model, schema))


@pytest.mark.parametrize("kind", [ensemble.BaggingClassifier, ensemble.ADWINBaggingClassifier])
@pytest.mark.parametrize(
    "member",
    [
        tree.HoeffdingTreeClassifier(grace_period=20, delta=0.05),
        tree.HoeffdingAdaptiveTreeClassifier(grace_period=20, delta=0.05, seed=1),
        tree.ExtremelyFastDecisionTreeClassifier(grace_period=20, delta=0.05, leaf_prediction="nb"),
    ],
)
@pytest.mark.share(2, "kind", "member")
def test_a_bag_of_trees_is_the_model(kind: Any, member: Any) -> None:
    model = kind(member, n_models=3, seed=1)
    follow_bag(model, drifting(300, categories=4))
    assert max(member.n_nodes for member in model) > 1


@pytest.mark.parametrize("method", ["bag", "wt", "subag"])
def test_leveraging_bags_whose_members_are_replaced(method: str) -> None:
    member = tree.HoeffdingTreeClassifier(grace_period=20, delta=0.05)
    model = ensemble.LeveragingBaggingClassifier(member, n_models=3, seed=1, adwin_delta=0.5, bagging_method=method)
    follow_bag(model, [(x, (x["n0"] > 5) != i // 120 % 2) for i, (x, _) in enumerate(drifting(360))])
    assert model.n_detected_changes


def test_bags_that_are_not_covered() -> None:
    class Mine(ensemble.BaggingClassifier):
        pass

    schema = Schema(("a",))
    for model in (
        Mine(tree.HoeffdingTreeClassifier()),
        ensemble.BaggingClassifier(naive_bayes.GaussianNB()),
        ensemble.BaggingRegressor(linear_model.LinearRegression()),
    ):
        with pytest.raises(NotCoveredError):
            forest_of_trees(model, schema)
        with pytest.raises(NotCoveredError):
            mean_of_trees(model, schema)
    model = ensemble.BaggingClassifier(tree.HoeffdingTreeClassifier(), n_models=2, seed=1)
    evaluator = forest_of_trees(model, schema)
    model.data[1] = naive_bayes.GaussianNB()
    with pytest.raises(NotCoveredError, match="no Hoeffding tree"):
        evaluator.predict(schema.encode_many([{"a": 1.0}]))


def test_a_member_of_another_kind_joins() -> None:
    stream = drifting(200)
    schema = Schema(stream[0][0])
    model = ensemble.BaggingClassifier(tree.HoeffdingTreeClassifier(grace_period=20), n_models=2, seed=1)
    other = tree.HoeffdingAdaptiveTreeClassifier(grace_period=20, seed=1)
    learnt(model, stream)
    learnt(other, ((x, not y) for x, y in stream))
    evaluator, rows = forest_of_trees(model, schema), [x for x, _ in stream[:30]]
    X = schema.encode_many(rows)
    evaluator.predict(X)
    for members in ([model.data[0], other], [other, model.data[0]], [other], [other, other, model.data[1]]):
        model.data[:] = members
        equals_the_model(evaluator.predict(X), model, rows)
