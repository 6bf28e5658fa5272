"""Linear models read and evaluated by one call of compiled code: the same bits as where Python reads them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from river import linear_model, optim, preprocessing
from river.utils import VectorDict

from attributary_explainers import IncrementalPFI, IncrementalSAGE
from attributary_explainers.compiled import is_compiling
from attributary_explainers.evaluation.evaluator import Evaluator, NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.fast_paths.pipelines import linear
from attributary_explainers.fast_paths.pipelines.linear_kernels import _add_up, _add_up_any
from attributary_explainers.meanwhile import waiting
from attributary_explainers.typing import Array

from .harness import learnt
from .streams import binary

pytestmark = pytest.mark.skipif(not is_compiling(), reason="kernels are not compiled")


@pytest.fixture(autouse=True)
def compiled_at_once() -> Iterator[None]:
    with waiting():
        yield


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return what compiled code answers, call by call."""
    found: list[int] = []
    kernel = linear.predict_at_once

    def noted(address: int) -> int:
        found.append(kernel(address))
        return found[-1]

    monkeypatch.setattr(linear, "predict_at_once", noted)
    return found


def scaled(model: Any) -> Any:
    return preprocessing.StandardScaler() | model


def outcome(evaluator: Evaluator, X: Array) -> Any:
    """Return the bits of predictions, or why there are none."""
    try:
        return evaluator.predict(X).tobytes()
    except NotCoveredError as reason:
        return str(reason)


def twice_alike(model: Any, X: Array, evaluator: Evaluator) -> None:
    """Check that an evaluator gives what a new one does, which has only Python to read with."""
    for _ in range(2):
        assert outcome(evaluator, X) == outcome(make_evaluator(model, Schema(["x0", "x1", "x2"])), X)


@pytest.mark.parametrize(
    "model",
    [
        scaled(linear_model.LogisticRegression()),
        scaled(linear_model.LogisticRegression(optim.Adam(0.1), loss=optim.losses.Hinge(), l1=0.001)),
        scaled(linear_model.LinearRegression(loss=optim.losses.Huber())),
        scaled(linear_model.Perceptron()),
        linear_model.LogisticRegression(),
        linear_model.LinearRegression(),
    ],
    ids=str,
)
def test_it_is_what_python_reads(model: Any, answers: list[int]) -> None:
    evaluator = make_evaluator(model, Schema(["x0", "x1", "x2"]))
    X = np.zeros((7, 3))
    rng = np.random.default_rng(1)
    for step, (x, y) in enumerate(binary(60)):
        model.learn_one(x, y)
        X[:] = rng.normal(size=X.shape) * 10.0 ** rng.integers(-3, 4)
        X[step % 7, step % 3] = math.nan if step % 2 else -0.0  # as of a row that lacks a feature
        twice_alike(model, X, evaluator)
    assert answers == [1] * len(answers)
    assert len(answers) == 2 * 60 - 2


MEDDLING: dict[str, Any] = {
    "a mean of numpy's": (lambda scaler, _: scaler.means.update(x1=np.float64(0.5)), "left"),
    "a whole mean": (lambda scaler, _: scaler.means.update(x1=1), "left"),
    "a variance of numpy's": (lambda scaler, _: scaler.vars.update(x1=np.float64(0.3)), "left"),
    "a variance below 0": (lambda scaler, _: scaler.vars.update(x1=-1.0), "left"),
    "a variance of 0": (lambda scaler, _: scaler.vars.update(x1=0.0), "read"),
    "no mean": (lambda scaler, _: scaler.means.pop("x1"), "left"),
    "no variance": (lambda scaler, _: scaler.vars.pop("x1"), "left"),
    "no weight": (lambda _, model: model._weights.pop("x1"), "left"),
    "a whole weight": (lambda _, model: model._weights.update({"x1": 2}), "read"),  # a VectorDict has floats alone
    "a weight that is infinite": (lambda _, model: model._weights.update({"x1": math.inf}), "read"),
    "a whole intercept": (lambda _, model: vars(model).update(intercept=1), "left"),
    "no number as the intercept": (lambda _, model: vars(model).update(intercept="x"), "left"),
    "other means": (lambda scaler, _: vars(scaler).update(means=defaultdict(float, x0=1.0, x1=2.0, x2=3.0)), "again"),
    "other variances": (lambda scaler, _: vars(scaler).update(vars={"x0": 1.0, "x1": 2.0, "x2": 3.0}), "again"),
    "other weights": (
        lambda _, model: vars(model).update(_weights=VectorDict({"x0": 1.0, "x1": 2.0, "x2": 3.0})),
        "again",
    ),
    "weights of another type": (lambda _, model: vars(model).update(_weights={"x0": 1.0}), "left"),
    "another loss": (lambda _, model: vars(model).update(loss=optim.losses.Hinge()), "again"),
    "a loss with another link": (lambda _, model: vars(model).update(loss=optim.losses.Poisson()), "left"),
    "a scaler that begins anew": (lambda scaler, _: vars(scaler).update(vars(preprocessing.StandardScaler())), "left"),
}
"""What happens to a scaler or a model, and whether compiled code reads it then, after a call of Python, or not."""


@pytest.mark.parametrize("name", MEDDLING)
def test_what_it_cannot_read_is_left_to_python(name: str, answers: list[int]) -> None:
    meddle, became = MEDDLING[name]
    model = learnt(scaled(linear_model.LogisticRegression()), binary(30))
    evaluator = make_evaluator(model, Schema(["x0", "x1", "x2"]))
    X = np.random.default_rng(1).normal(size=(5, 3))
    for _ in range(3):
        evaluator.predict(X)
    assert answers == [1]
    meddle(model["StandardScaler"], model["LogisticRegression"])
    twice_alike(model, X, evaluator)
    answers.clear()
    twice_alike(model, X, evaluator)
    assert 1 not in answers if became == "left" else answers == [1, 1], answers


def test_other_rows_in_between_are_no_matter(answers: list[int]) -> None:
    model = learnt(scaled(linear_model.LogisticRegression()), binary(30))
    schema = Schema(["x0", "x1", "x2"])
    evaluator = make_evaluator(model, schema)
    rows = np.random.default_rng(1).normal(size=(9, 3))
    X, fewer, as_many = rows.copy(), rows[:4].copy(), rows.copy()
    for _ in range(3):
        twice_alike(model, X, evaluator)
    assert 1 in answers
    variances = model["StandardScaler"].vars
    for others in (fewer, as_many, np.asfortranarray(rows)):
        before, variances["x0"] = variances["x0"], -1.0
        twice_alike(model, others, evaluator)  # which is refused
        variances["x0"] = before
        for one in (X, others, X, X, others, others, X):
            twice_alike(model, one, evaluator)


def test_an_observation_after_another_is_evaluated_by_it(answers: list[int]) -> None:
    for make in (IncrementalPFI, IncrementalSAGE):
        for model in (scaled(linear_model.LogisticRegression()), linear_model.LogisticRegression()):
            explainer = make(model, seed=1)
            for x, y in binary(50):
                explainer.explain_one(x, y)
                model.learn_one(x, y)
            assert answers == [1] * len(answers)
            assert len(answers) > 40
            answers.clear()


@pytest.mark.parametrize("depth", [0, 1])
def test_the_sums_of_four_rows_at_a_time_are_those_of_one(depth: int) -> None:
    rng = np.random.default_rng(1)
    none = np.zeros(0, np.int64)
    for step in range(100):
        n, R = int(rng.integers(0, 6)), int(rng.integers(1, 10))
        X = rng.choice([1.5, -0.0, 0.0, math.nan, math.inf, 1e308, -3.25e-310], size=(R, n + 1))
        X[rng.random(X.shape) < 0.5] = rng.normal()
        values = rng.normal(size=(2 * depth + 1) * n + 1) * rng.choice(
            [1.0, 1e-300, -0.0], size=(2 * depth + 1) * n + 1
        )
        source = rng.permutation(n + 1)[:n]
        P, expected = np.zeros((R, 2)), np.zeros((R, 2))
        _add_up(X, source, depth, values, P)
        _add_up_any(X, source, none, none, depth, 1, values, expected)
        np.testing.assert_array_equal(P, expected, err_msg=str(step))
        known = expected == expected
        assert (np.signbit(P) == np.signbit(expected))[known].all(), step
