"""What is kept of trees is at every moment what a new evaluator reads of them, also of rows that lack features."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from river import drift, ensemble, forest, tree
from river.tree import splitter as splitters

from attributary_explainers.evaluation.registry import make_evaluator
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.typing import Array

from .harness import TOLERANCE, Row, mixtures, same_bits
from .tree_cases import branches, drifting, growing_numbers

QUICK: dict[str, Any] = {"grace_period": 20, "delta": 0.05, "tau": 0.1}
SHAKY: dict[str, Any] = {
    "drift_detector": drift.DummyDriftDetector(trigger_method="fixed", t_0=90),
    "warning_detector": drift.DummyDriftDetector(trigger_method="fixed", t_0=50),
}
ADWIN: Any = drift.ADWIN
ALTERNATING: dict[str, Any] = {"seed": 3, "drift_window_threshold": 20, "drift_detector": ADWIN(0.05, clock=4)}

CLASSIFIERS: dict[str, Any] = {
    "tree": lambda: tree.HoeffdingTreeClassifier(**QUICK),
    "tree, binary": lambda: tree.HoeffdingTreeClassifier(**QUICK, binary_split=True, leaf_prediction="nb"),
    "tree that sleeps": lambda: tree.HoeffdingTreeClassifier(**QUICK, max_size=0.06, memory_estimate_period=10),
    "adaptive": lambda: tree.HoeffdingAdaptiveTreeClassifier(**QUICK, **ALTERNATING),
    "extremely fast": lambda: tree.ExtremelyFastDecisionTreeClassifier(**QUICK, min_samples_reevaluate=10),
    "forest": lambda: forest.ARFClassifier(n_models=4, seed=1, grace_period=15, **SHAKY),
    "bag": lambda: ensemble.LeveragingBaggingClassifier(
        tree.HoeffdingTreeClassifier(grace_period=20, delta=0.05), n_models=3, seed=1, adwin_delta=0.5
    ),
}
REGRESSORS: dict[str, Any] = {
    "tree": lambda: tree.HoeffdingTreeRegressor(grace_period=20, delta=0.05),
    "tree, mean": lambda: tree.HoeffdingTreeRegressor(grace_period=20, delta=0.05, leaf_prediction="mean"),
    "tree, multiway": lambda: tree.HoeffdingTreeRegressor(
        grace_period=20, delta=0.05, splitter=splitters.QOSplitter(allow_multiway_splits=True)
    ),
    "adaptive": lambda: tree.HoeffdingAdaptiveTreeRegressor(grace_period=20, delta=0.05, seed=1),
    "forest": lambda: forest.ARFRegressor(n_models=4, seed=1, grace_period=15, **SHAKY),
}


def encoded(schema: Schema, rows: list[Row]) -> Array:
    """Rows with NaN for a feature that they lack."""
    X = np.full((len(rows), len(schema)), math.nan)
    for r, row in enumerate(rows):
        for name, value in row.items():
            j = schema.position[name]
            X[r, j] = schema.code(j, value) if j in schema.codes else value
    return X


def without(x: Row, rng: random.Random, share: float) -> Row:
    return {name: value for name, value in x.items() if rng.random() >= share}


@pytest.mark.parametrize("gaps", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.parametrize("name", [*CLASSIFIERS, *(f"{name}, numbers" for name in REGRESSORS)])
def test_at_every_moment(name: str, gaps: bool) -> None:
    numbers = name.endswith(", numbers")
    model = REGRESSORS[name.removesuffix(", numbers")]() if numbers else CLASSIFIERS[name]()
    stream: Any = growing_numbers(420) if numbers else drifting(420, categories=4)
    schema = Schema(stream[0][0], () if numbers else ("colour", "shape"))
    evaluator, rng, n_gaps = None, random.Random(5), 0
    past: list[Row] = []
    for step, (x, y) in enumerate(stream):
        if step % 3 == 0:
            rows = list(mixtures(x, past, 12, rng))
            if gaps:
                rows = [without(row, rng, 0.0 if step % 2 else 0.3) for row in rows]
            X = encoded(schema, rows)
            evaluator = evaluator or make_evaluator(model, schema)
            found = evaluator.predict(X).copy()
            same_bits(found, evaluator, make_evaluator(model, schema), X, f"a new evaluator at {step}")
            for r in (0, 5, 11):
                alone = make_evaluator(model, schema).predict(X[r : r + 1])
                assert np.array_equal(alone, found[r : r + 1], equal_nan=True), f"row {r} alone at {step}"
            for row, values in zip(rows, found.tolist(), strict=True):
                n_gaps += len(row) < len(x)
                if numbers:
                    expected = [model.predict_one(dict(row))]
                else:
                    proba = model.predict_proba_one(dict(row))
                    expected = [proba.get(label, 0.0) for label in evaluator.labels or ()]
                for value, other in zip(values, expected, strict=True):
                    assert abs(value - other) <= TOLERANCE * max(1.0, abs(other)), f"{row} at {step}"
        try:
            model.learn_one(without(x, rng, 0.1) if gaps else x, y)
        except (KeyError, TypeError, AttributeError):
            assert gaps, "River's own trees fail on some gaps that they learn"
        past = [*past[-50:], x]
    trees = list(model) if hasattr(model, "__len__") else [model]
    assert any(hasattr(member._root, "children") for member in trees)
    assert (n_gaps > 300) == gaps


def test_a_feature_that_no_row_has() -> None:
    stream = drifting(420, categories=4)
    model: Any = tree.HoeffdingTreeClassifier(**QUICK)
    for x, y in stream:
        model.learn_one(x, y)
    split_by = {branch.feature for branch in branches(model)}
    assert len(split_by) > 2
    for name in split_by:
        rows = [{other: value for other, value in x.items() if other != name} for x, _ in stream[:50]]
        schema = Schema(rows[0], {"colour", "shape"} - {name})
        found = make_evaluator(model, schema).predict(schema.encode_many(rows))
        expected = [model.predict_proba_one(row) for row in rows]
        assert np.abs(found - [[proba[label] for label in (False, True)] for proba in expected]).max() <= TOLERANCE
