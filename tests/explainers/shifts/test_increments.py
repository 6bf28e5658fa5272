"""Shifts of what the explainers themselves add up, and the benchmark's streams beside them."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.calibration.shifts import DRAWS, STREAMS, D, World, stored_rows

from attributary_explainers import ImportanceShift, IncrementalPFI, Shift


@pytest.mark.long
@pytest.mark.parametrize("at", [8000, None])
def test_a_model_that_relies_on_another_feature(at):
    rng = np.random.default_rng(21)
    weights = {"a": 1.2, "b": 0.7, "c": 0.7, "unused": 0.0}
    pfi = IncrementalPFI(lambda x: sum(w * x[name] for name, w in weights.items()), loss="squared", n_samples=2, seed=3)
    shift, told = ImportanceShift(), []
    for n in range(10_500):
        if n == at:
            weights["b"] *= 2.0**0.5  # its importance is 2 w^2, the variance of the feature being 1
        x = dict(zip(weights, rng.normal(size=4).tolist(), strict=True))
        y = sum(w * x[name] for name, w in weights.items()) + 0.5 * rng.normal()
        before = pfi.n_observations
        pfi.explain_one(x, y)
        event = shift.update(*pfi.latest_increments) if pfi.n_observations > before else None
        if event is not None:
            told.append(event)
    found = [event for event in told if isinstance(event, Shift)]
    if at is None:
        assert told == []
        assert shift.reference["b"] == pytest.approx(2 * 0.49, rel=0.1)
        assert shift.reference["unused"] == 0.0
    else:
        assert [(event.feature, event.direction) for event in found] == [("b", "up")]
        assert found[0].n_observations - at < 2500
        assert abs(found[0].onset - at) < 1000
        assert found[0].after.low < 4 * 0.49 < found[0].after.high


@pytest.mark.parametrize("classes", [False, True])
def test_the_benchmark_s_importances_change_with_the_weight(classes):
    world = World.of(classes, np.random.default_rng(22))
    expected = world.expected()
    assert expected[-1] == 0.0
    without = world.expected(3, 0.0)
    assert without[3] == 0.0 < expected[3]
    if not classes:
        assert world.expected(3, 2.0)[3] == pytest.approx(4 * expected[3], rel=0.1)


def test_stored_rows_are_old_and_lie_within_the_reach():
    n = 40_000
    age = np.arange(n)[:, None] - stored_rows(n, np.random.default_rng(23))
    late = age[20_000:]
    assert late.shape == (20_000, DRAWS)
    assert late.min() >= 200
    assert late.mean() == pytest.approx(200 + 3000, rel=0.1)


@pytest.mark.parametrize("name", STREAMS)
def test_streams_come_as_they_are_called(name):
    x = STREAMS[name](20_000, np.random.default_rng(24))
    assert x.shape == (20_000, D)
    assert np.isfinite(x).all()
    if name in ("iid", "t5", "AR(1), rho .9"):
        assert x.std(axis=0) == pytest.approx(1.0, abs=0.15)
        rho = np.corrcoef(x[:-1, 0], x[1:, 0])[0, 1]
        assert rho == pytest.approx(0.9 if "rho" in name else 0.0, abs=0.03)
