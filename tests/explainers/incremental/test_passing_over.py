"""Observations passed over: the next one explained stands for them, in every mean and in its standard error."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np
import pytest
from benchmarks.calibration.cases import CASES, FEATURES
from river import forest
from river.datasets import synth

from attributary_explainers import (
    ExplainerError,
    Explainers,
    IncrementalPFI,
    IncrementalSAGE,
    SmoothedMean,
)
from attributary_explainers.core.rows import Rows
from attributary_explainers.smoothing.means import Weights

ALPHA = 0.02


def stream(n: int, seed: int = 3) -> list[tuple[dict[str, float], bool]]:
    rng = np.random.default_rng(seed)
    return [({"a": a, "b": b, "c": c}, bool(a + b > 0)) for a, b, c in rng.normal(size=(n, 3)).tolist()]


def model(x: dict[str, float]) -> dict[bool, float]:
    p = 1.0 / (1.0 + math.exp(-2.0 * x["a"] - x["b"]))
    return {True: p, False: 1.0 - p}


def made(cls: Any, **parameters: Any) -> Any:
    return cls(model, **{"loss": "cross_entropy", "alpha": ALPHA, "n_samples": 3, "seed": 5, **parameters})


@pytest.mark.parametrize("times", [1, 2, 5, 64])
def test_a_value_with_the_weight_of_several_is_that_value_so_often(times: int) -> None:
    once, often = Weights(ALPHA), Weights(ALPHA)
    mean, repeated = SmoothedMean(ALPHA), SmoothedMean(ALPHA)
    for value in np.random.default_rng(1).normal(size=40).tolist():
        once.step(times)
        mean.update(value, times)
        for _ in range(times):
            often.step()
            repeated.update(value)
        assert once.total == pytest.approx(often.total, rel=1e-12)
        assert mean.value == pytest.approx(repeated.value, rel=1e-9)
    assert once.n == 40


def test_where_nothing_is_passed_over_weights_are_to_the_last_bit_those_of_the_recursion() -> None:
    weights, total, squares = Weights(ALPHA), 0.0, 1.0
    for n in range(1, 400):
        total += ALPHA * (1.0 - total)
        rate = min(ALPHA / total, 1.0)
        squares = (1.0 - rate) * (1.0 - rate) * squares + rate * rate if n > 1 else 1.0
        assert (weights.step(), weights.total, weights.squares) == (rate, total, squares)


def test_a_value_with_the_weight_of_several_forgets_everything_at_alpha_1() -> None:
    mean = SmoothedMean(1.0)
    mean.update(3.0)
    assert mean.update(5.0, 4) == 5.0


@pytest.mark.parametrize("cls", [IncrementalPFI, IncrementalSAGE])
def test_importance_is_the_weighted_mean_of_the_increments(cls: Any) -> None:
    increments: list[np.ndarray] = []
    explainer = made(cls)
    rng, shares = np.random.default_rng(8), []
    passed = 0
    for x, y in stream(300):
        if rng.random() < 0.7:
            explainer.pass_over(x)
            passed += 1
            continue
        before = explainer.n_observations
        explainer.explain_one(x, y)
        if explainer.n_observations > before:
            increments.append(explainer.latest_increments[1])
            shares.append(1.0 - (1.0 - ALPHA) ** (1 + passed))
            passed = 0
    # Each increment's weight is its own share of what the later ones leave.
    weights = np.array([s * np.prod(1.0 - np.array(shares[i + 1 :])) for i, s in enumerate(shares)])
    expected = weights @ np.array(increments) / weights.sum()
    assert list(explainer.importance.values()) == pytest.approx(expected.tolist(), rel=1e-9)
    raw = weights @ np.array(increments)
    assert list(explainer.raw_importance.values()) == pytest.approx(raw.tolist(), rel=1e-9)
    assert explainer.skipped["budget"] + len(shares) + explainer.skipped["nothing_stored"] == 300
    assert explainer.n_observations + explainer.n_skipped == 300


def test_sage_values_sum_to_what_they_should_whatever_is_passed_over() -> None:
    sage = made(IncrementalSAGE)
    for i, (x, y) in enumerate(stream(200)):
        if i % 3 == 2:
            sage.explain_one(x, y)
            assert sum(sage.importance.values()) == pytest.approx(sage.marginal_loss - sage.model_loss, abs=1e-12)
        else:
            sage.pass_over(x, model(x))
    assert sage.n_observations == 66


def stored_or_waiting(explainer: Any) -> list[Any]:
    state = explainer.reservoir.snapshot()
    rows = [*Rows.from_snapshot(state["rows"]), *Rows.from_snapshot(state["waiting"]["rows"])]
    in_order = sorted(
        zip(array("q", state["numbers"] + state["waiting"]["numbers"]), rows, strict=True), key=lambda pair: pair[0]
    )
    return [row for _, row in in_order]


@pytest.mark.parametrize("cls", [IncrementalPFI, IncrementalSAGE])
def test_passing_over_stores_as_explaining_does(cls: Any) -> None:
    kept, explained = made(cls), made(cls)
    for x, y in stream(40):
        kept.pass_over(x)
        explained.explain_one(x, y)
    # Until the reservoir is full nothing is lost. Which one leaves the waiting room is drawn.
    assert kept.reservoir.n_seen == explained.reservoir.n_seen == 40
    assert len(kept.reservoir) == len(explained.reservoir) > 5
    assert stored_or_waiting(kept) == stored_or_waiting(explained) == [x for x, _ in stream(40)]
    for x, _ in stream(500, seed=9):
        kept.pass_over(x)
    rows = kept.reservoir.rows
    later = [x for x, _ in stream(500, seed=9)]
    assert len(rows) == kept.reservoir.size == 100
    assert sum(row in later for row in rows) > 75, "those of the last three windows are stored"
    assert not any(row in later[-199:] for row in rows), "the latest wait"
    assert kept.importance == {}


def test_passing_over_reads_missing_values_by_the_policy() -> None:
    left_out = made(IncrementalPFI, missing="skip")
    left_out.pass_over({"a": None, "b": 1.0, "c": 1.0})
    assert (dict(left_out.skipped), len(left_out.reservoir)) == ({"missing": 1}, 0)
    filled = made(IncrementalPFI, missing={"a": 7.0})
    filled.pass_over({"a": None, "b": 1.0, "c": 1.0})
    assert list(filled.reservoir.rows) == [{"a": 7.0, "b": 1.0, "c": 1.0}]


def test_an_observation_on_which_the_model_raises_is_not_stored() -> None:
    def failing(x: dict[str, float]) -> float:
        raise ValueError("no")

    explainer = IncrementalPFI(failing, loss="squared", seed=1)
    with pytest.warns(match="raised ValueError"):
        explainer.pass_over({"a": 1.0})
    assert (dict(explainer.skipped), len(explainer.reservoir)) == ({"model_error": 1}, 0)


@pytest.mark.parametrize("cls", [IncrementalPFI, IncrementalSAGE])
def test_a_snapshot_between_two_explained_observations_goes_on_bit_for_bit(cls: Any) -> None:
    explainer = made(cls)
    data = stream(120)
    for i, (x, y) in enumerate(data[:90]):  # 89 is passed over, as is 88
        explainer.explain_one(x, y) if i % 4 == 3 else explainer.pass_over(x)
    again = cls.from_snapshot(explainer.snapshot(), model)
    for i, (x, y) in enumerate(data[90:], start=90):
        for one in (explainer, again):
            one.explain_one(x, y) if i % 4 == 3 else one.pass_over(x)
    assert repr(again.snapshot()) == repr(explainer.snapshot())


def test_explained_together_or_alone_the_same_is_passed_over() -> None:
    learner = forest.ARFClassifier(n_models=3, seed=1)

    def two() -> dict[str, Any]:
        return {"pfi": IncrementalPFI(learner, n_samples=2, seed=1), "sage": IncrementalSAGE(learner, seed=2)}

    alone, joined = two(), two()
    together = Explainers(learner, joined)
    x: dict[str, Any] = {}
    for i, (now, y) in enumerate(synth.Agrawal(seed=7).take(150)):
        x.clear()  # the same dict again and again, as some readers give it
        x.update(now)
        if i % 3 == 2:
            together.explain_one(x, y)
            for explainer in alone.values():
                explainer.explain_one(now, y)
        else:
            y_pred = together.skip(x)
            for explainer in alone.values():
                explainer.pass_over(now, y_pred)
        learner.learn_one(now, y)
    for name, explainer in alone.items():
        assert joined[name].importance == explainer.importance
        assert joined[name].skipped == explainer.skipped
        assert list(joined[name].reservoir.rows) == list(explainer.reservoir.rows)
    with pytest.raises(ExplainerError, match="nothing to pass over"):
        together.pass_over()
    together.predict(x, explain=False)
    with pytest.raises(ExplainerError, match="nothing to explain"):
        together.explain(True)


@pytest.mark.parametrize("cls", [IncrementalPFI, IncrementalSAGE])
def test_infinity_that_leaves_no_prediction_is_not_drawn_into_others(cls: Any) -> None:
    explainer = cls(lambda x: x["a"] - x["b"], loss="squared", alpha=0.01, n_samples=5, seed=1)
    for i, (x, y) in enumerate(stream(600)):
        if 200 <= i < 300:
            infinite = {**x, "a": np.float32("inf") if i % 2 else -math.inf}
            explainer.pass_over(infinite) if i % 3 == 0 else explainer.explain_one(infinite, y)
        else:
            explainer.explain_one(x, y)
    assert explainer.skipped["no_prediction"] == 67
    assert explainer.n_observations == 499


def test_the_model_is_not_asked_again_for_what_was_predicted() -> None:
    asked: list[Any] = []

    def recording(x: dict[str, float]) -> dict[bool, float]:
        asked.append(x)
        return model(x)

    explainer = IncrementalSAGE(recording, loss="cross_entropy", seed=1)
    for x, _ in stream(10):
        explainer.pass_over(x, model(x))
    assert asked == []
    explainer.pass_over({"a": 1.0, "b": 1.0, "c": 1.0})
    assert len(asked) == 1


@pytest.mark.long
@pytest.mark.parametrize("name", ["pfi", "sage"])
def test_intervals_hold_the_exact_importance_with_every_fourth_explained(name: str) -> None:
    """120 runs, two features of two cases: they tell 1 %, were they all independent of each other."""
    cls = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}[name]
    holds = []
    for case in (CASES[0], CASES[3]):
        exact = case.exact(name)
        for seed in range(60):
            rng = np.random.default_rng(seed)
            explainer = cls(case.predict, loss=case.loss, alpha=0.01, n_samples=4, seed=seed)
            for i in range(300):
                x, y = case.draw(rng)
                explainer.explain_one(x, y) if i % 4 == 3 else explainer.pass_over(x, case.predict(x))
            importance, half = explainer.importance, explainer.half_width
            holds += [abs(importance[f] - exact[f]) <= half[f] for f in FEATURES if f != "c"]
    assert 0.91 <= np.mean(holds) <= 0.99  # of 75 increments few differences are independent: wide, but not too wide
