"""Standard errors by the contrast of two smoothings: the sums written out, and processes whose variance is known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from attributary_explainers import SmoothedImportance
from attributary_explainers.smoothing.importance import t_quantile
from tests.explainers.naive import Contrast, weights_of
from tests.explainers.oracles import smoothing_weights
from tests.explainers.plain_data import strangers


@settings(max_examples=60, deadline=None)
@given(
    alpha=st.floats(0.002, 1.0),
    n=st.integers(1, 45),
    passing=st.booleans(),
    scale=st.sampled_from([1.0, 1e-6, 1e6]),
    seed=st.integers(0, 2**32),
)
def test_at_every_prefix_the_recursion_is_the_sums_over_the_whole_history(alpha, n, passing, scale, seed):
    rng, smoothed, history, times = np.random.default_rng(seed), SmoothedImportance(alpha), [], []
    for t in range(n):
        # "late" comes in the middle, and any feature but "a" may be absent: an increment 0.
        names = ["a", *(name for name in ("b", "late") if rng.random() < 0.7 and (name == "b" or t > n // 2))]
        increments = dict(zip(names, (scale * rng.normal(2.0, 1.0, size=len(names))).tolist(), strict=True))
        times.append(int(rng.integers(1, 5)) if passing else 1)
        history.append(increments)
        smoothed.update(increments, times[-1])
    weights = weights_of(alpha, times)
    for name in smoothed.names:
        values = np.array([of.get(name, 0.0) for of in history])
        assert smoothed.mean()[name] == pytest.approx(float(weights @ values), rel=1e-9, abs=1e-9 * scale)
        if weights @ weights > 1.0 - 1e-6 and n <= 20:
            continue  # a single value counts: its spread is divided by a rounding
        expected = Contrast(alpha, values, times)
        close = {"rel": 1e-6, "abs": 1e-6 * scale, "nan_ok": True}
        assert smoothed.std_error()[name] == pytest.approx(expected.std_error, **close)
        assert smoothed.degrees_of_freedom == pytest.approx(expected.degrees_of_freedom, rel=1e-6, nan_ok=True)
        assert smoothed.half_width()[name] == pytest.approx(
            expected.half_width, rel=1e-5, abs=1e-4 * scale, nan_ok=True
        )


def test_the_standard_error_of_one_value_is_not_known():
    smoothed = SmoothedImportance(0.1)
    smoothed.update({"a": 1.0})
    for found in (smoothed.std_error()["a"], smoothed.half_width()["a"], smoothed.degrees_of_freedom):
        assert math.isnan(found)
    last_only = SmoothedImportance(1.0)
    for value in (1.0, 2.0, 5.0):
        last_only.update({"a": value})
    assert last_only.mean() == {"a": 5.0}
    assert math.isnan(last_only.std_error()["a"])
    assert math.isnan(last_only.half_width()["a"])


@pytest.mark.parametrize("alpha", [0.001, 0.1, 1 / 3, 0.7, 1.0])
@pytest.mark.parametrize("n", [3, 60])
def test_the_standard_error_of_equal_values_is_0(alpha, n):
    smoothed = SmoothedImportance(alpha)
    for _ in range(n):
        smoothed.update({"a": 1.0, "b": 0.0})
    assert smoothed.mean() == pytest.approx({"a": 1.0, "b": 0.0})
    if alpha < 1.0 or n > 20:
        assert smoothed.std_error()["a"] == pytest.approx(0.0, abs=1e-7)  # the root of a rounding, not NaN
        assert smoothed.std_error()["b"] == smoothed.half_width()["b"] == 0.0


def test_the_first_twenty_count_as_uncorrelated():
    # E[weighted variance / (1 - q)] is the variance of one value, whatever alpha: so the standard error squared has
    # the expectation Var * q.
    rng, alpha, n = np.random.default_rng(2), 0.1, 20
    values = rng.normal(0.0, 2.0, size=(n, 2000))
    smoothed = run(alpha, values)
    assert smoothed.degrees_of_freedom == n - 1
    squares = np.array(list(smoothed.std_error().values())) ** 2
    expected = 4.0 * (smoothing_weights(alpha, n) ** 2).sum()
    assert abs(np.mean(squares) - expected) < 4 * np.std(squares, ddof=1) / math.sqrt(len(squares))


@pytest.mark.parametrize("alpha", [0.3, 0.01])
def test_of_independent_values_the_variance_is_right_before_and_after_the_start(alpha):
    values = np.random.default_rng(3).normal(0.0, 1.0, size=(60, 2000))
    smoothed, names = SmoothedImportance(alpha), tuple(range(2000))
    for n, row in enumerate(values, start=1):
        smoothed.update_arrays(names, row)
        if n in (10, 20, 21, 25, 60):
            # The expectation of the variance is right from the first difference on.
            expected = (smoothing_weights(alpha, n) ** 2).sum()
            assert smoothed.variances().mean() == pytest.approx(expected, rel=0.12)


def run(alpha, values, times=None):
    """One importance of as many features as there are columns: runs of a process, one independent of the other."""
    smoothed, names = SmoothedImportance(alpha), tuple(range(values.shape[1]))
    for t, row in enumerate(values):
        smoothed.update_arrays(names, row, 1 if times is None else times[t])
    return smoothed


def ar1(rho, n, runs, rng):
    """Values with the variance 1, and the correlation rho^k of those that are k apart."""
    values = rng.normal(size=(n, runs))
    for t in range(1, n):
        values[t] = rho * values[t - 1] + math.sqrt(1.0 - rho * rho) * values[t]
    return values


PROCESSES = {
    "independent": (lambda n, runs, rng: rng.normal(size=(n, runs)), 1.0),
    "skewed": (lambda n, runs, rng: rng.exponential(size=(n, runs)), 1.0),
    "dependent": (lambda n, runs, rng: ar1(0.8, n, runs, rng), 1.8 / 0.2),
    "alternating": (lambda n, runs, rng: ar1(-0.5, n, runs, rng), 0.5 / 1.5),
}
"""Processes with their long-run variance: the sum of all autocovariances."""


@pytest.mark.parametrize("windows", [5, pytest.param(12, marks=pytest.mark.long)])
@pytest.mark.parametrize("alpha", [0.01, pytest.param(0.003, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", list(PROCESSES))
def test_errors_are_those_of_the_process_and_intervals_hold_its_mean(name, alpha, windows):
    process, long_run = PROCESSES[name]
    n, runs = round(windows / alpha), 800
    values = process(n, runs, np.random.default_rng([windows, round(1 / alpha)]))
    mean = 1.0 if name == "skewed" else 0.0
    smoothed = run(alpha, values)
    estimates, errors, halves = (
        np.array(list(of.values())) for of in (smoothed.mean(), smoothed.std_error(), smoothed.half_width())
    )
    # 800 runs tell a standard deviation to 2.5 %; that of a dependent process is cut off at the ends of the window.
    sd = float(estimates.std())
    assert sd == pytest.approx(math.sqrt(long_run * alpha / (2.0 - alpha)), rel=0.1)
    assert math.sqrt((errors**2).mean()) / sd == pytest.approx(1.0, abs=0.12)
    assert 0.92 <= np.mean(np.abs(estimates - mean) <= halves) <= 0.985


@pytest.mark.parametrize("alpha", [0.01, 0.001])
@pytest.mark.parametrize("name", ["independent", "dependent"])
def test_intervals_hold_from_the_beginning_and_are_of_use(name, alpha):
    process, _ = PROCESSES[name]
    values = process(1000, 1000, np.random.default_rng([7, round(1 / alpha)]))
    smoothed, names = SmoothedImportance(alpha), tuple(range(1000))
    for n, row in enumerate(values, start=1):
        smoothed.update_arrays(names, row)
        if n in (25, 50, 100, 200, 400, 1000):
            estimates, halves = (np.array(list(of.values())) for of in (smoothed.mean(), smoothed.half_width()))
            # Of 25 dependent observations the differences do not say all yet.
            assert 0.915 <= np.mean(np.abs(estimates) <= halves) <= 0.99, n
            # Two standard deviations are least; with a few degrees of freedom it takes more.
            assert np.median(halves) / estimates.std() < (6.5 if n < 50 else 4.5), n


def test_degrees_of_freedom_grow_to_twenty_one_with_a_long_stream():
    smoothed, found = SmoothedImportance(0.01), {}
    for n in range(1, 8001):
        smoothed.update({"a": 0.0})
        found[n] = smoothed.degrees_of_freedom
    assert [found[n] for n in (2, 11, 20)] == [1, 10, 19]
    assert found[21] == pytest.approx(1.0 + 2.0 / 22.0, abs=0.01)  # as good as equal weights: w.w is 1 / 21
    later = [found[n] for n in range(21, 8001)]
    assert later == sorted(later)
    assert later[-1] == pytest.approx(1.0 + 20.0 - 0.01, abs=0.1)


@pytest.mark.parametrize("degrees", [0.5, 1, 1.01, 2, 5.5, 21, 1e6])
def test_the_quantile_is_that_of_the_t_distribution(degrees):
    assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-9)
    assert math.isnan(t_quantile(math.nan))


def test_an_interval_of_observations_that_are_passed_over_is_as_wide_as_what_is_known():
    """Every fourth is explained and stands for four: the errors are those of a window with a quarter of them."""
    alpha, runs, n = 0.005, 800, 600
    rng = np.random.default_rng(8)
    times = rng.geometric(0.25, size=n).tolist()
    smoothed = run(alpha, rng.normal(size=(n, runs)), times)
    estimates, errors, halves = (
        np.array(list(of.values())) for of in (smoothed.mean(), smoothed.std_error(), smoothed.half_width())
    )
    weights = weights_of(alpha, times)
    assert estimates.std() == pytest.approx(math.sqrt(weights @ weights), rel=0.1)
    assert math.sqrt((errors**2).mean()) / estimates.std() == pytest.approx(1.0, abs=0.12)
    assert 0.92 <= np.mean(np.abs(estimates) <= halves) <= 0.985


@pytest.mark.parametrize("at", [0, 1, 2, 20, 21, 22, 50])
def test_restored_and_continued_is_never_stopped_bit_for_bit(at):
    rng, smoothed = np.random.default_rng(9), SmoothedImportance(0.07)
    steps = [({name: float(rng.normal()) for name in ("a", "b", 3)[: 1 + t % 3]}, 1 + t % 2) for t in range(90)]
    for increments, times in steps[:at]:
        smoothed.update(increments, times)
    snapshot = smoothed.snapshot()
    assert strangers(snapshot) == []
    other = SmoothedImportance.from_snapshot(snapshot)
    for increments, times in steps[at:]:
        for one in (smoothed, other):
            one.update(increments, times)
    assert other.snapshot() == smoothed.snapshot()
    assert (other.mean(), other.std_error()) == (smoothed.mean(), smoothed.std_error())
    assert other.half_width() == smoothed.half_width()


def test_of_no_feature_there_is_no_error():
    smoothed = SmoothedImportance(0.1)
    for _ in range(30):
        smoothed.update({})
    assert smoothed.mean() == smoothed.std_error() == smoothed.half_width() == {}


def test_a_feature_that_is_forgotten_leaves_the_others_as_they_were() -> None:
    smoothed, never = SmoothedImportance(alpha=0.1), SmoothedImportance(alpha=0.1)
    for i in range(50):
        smoothed.update({"gone": 7.0, "a": float(i), "b": 1.0})
        never.update({"a": float(i), "b": 1.0})
    smoothed.forget({"gone", "unknown"})
    for one in (smoothed, never):
        one.update({"b": 2.0, "a": 3.0})
    assert smoothed.mean() == never.mean()
    assert smoothed.std_error() == never.std_error()
