"""Shifts of importance: against the whole history written out, and on streams that do what streams do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attributary_explainers import ImportanceShift, InvalidParameterError, Shift, ShiftEnd, SnapshotError
from attributary_explainers.shifts.reference import find_period
from tests.explainers.plain_data import strangers

from . import naive

NAMES = ("a", "b", "c")
MEANS = np.array([3.0, 1.0, 0.0])


def stream(n, seed, at=None, factor=1.0, feature=1, until=None):
    """Increments whose spread is 1 and their mean; one of them shifts."""
    rng = np.random.default_rng(seed)
    means = np.tile(MEANS, (n, 1))
    if at is not None:
        means[at:until, feature] *= factor
    return means * (1.0 + rng.normal(size=(n, 3))) + rng.normal(size=(n, 3))


def follow(increments, names=NAMES, shift=None, **parameters):
    shift = ImportanceShift(**parameters) if shift is None else shift
    told = [shift.update(names, row) for row in increments]
    return [event for event in told if event is not None], shift


@pytest.mark.parametrize(
    ("at", "until", "factor"), [(7000, None, 2.5), (12_000, 20_000, 0.2), (8000, 17_000, 3.0), (None, None, 1.0)]
)
def test_what_is_told_is_what_the_whole_history_says(at, until, factor):
    increments = stream(26_000, 3, at, factor, until=until)
    events, _ = follow(increments)
    found = [event for event in events if isinstance(event, Shift)]
    expected = naive.shifts(increments)
    assert len(found) == len(expected) == {None: 0, 7000: 1, 12_000: 1, 8000: 2}[at]
    for event, (j, direction, n, onset, before, after, level, length) in zip(found, expected, strict=True):
        assert (event.feature, event.direction, event.n_observations) == (NAMES[j], direction, n)
        assert (event.onset, event.n_reference, event.n_since_onset) == (onset, length, n - onset + 1)
        assert (event.before.value, event.after.value) == pytest.approx((before, after), rel=1e-9)
        assert event.level == pytest.approx(level, rel=1e-6)


def test_no_gain_is_expected_where_nothing_shifts_whatever_the_tails():
    # All two-point distributions with mean 0 and variance r^2; what is between is a mixture of such.
    for rate in (0.25, 0.5, 1.0):
        for high in np.geomspace(rate / 100, 100 * rate, 201):
            low = -rate * rate / high
            p = -low / (high - low)
            of = [naive.gain(v, (0.0, 0.0, 1.0, -math.inf, math.inf, 0.0), 0, rate) for v in (high / rate, low / rate)]
            assert p * math.exp(of[0]) + (1 - p) * math.exp(of[1]) <= 1.0 + 1e-12


@pytest.mark.parametrize(
    "cut", [*(pytest.param(cut, marks=pytest.mark.long) for cut in (100, 5120, 5500, 8000, 9000, 14_000)), 8700, 20_000]
)
def test_continued_from_a_snapshot_equals_never_stopped(cut):
    increments = stream(24_000, 4, at=7500, factor=3.0)
    names = [NAMES if n % 3 else (*NAMES, n // 6000) for n in range(len(increments))]
    rows = [row if n % 3 else np.append(row, 0.05) for n, row in enumerate(increments)]
    whole, stopped = ImportanceShift(), ImportanceShift()
    told = [whole.update(name, row) for name, row in zip(names, rows, strict=True)]
    again = [stopped.update(name, row) for name, row in zip(names[:cut], rows[:cut], strict=True)]
    snapshot = stopped.snapshot()
    assert strangers(snapshot) == []
    restored = ImportanceShift()
    restored.restore(snapshot)
    again += [restored.update(name, row) for name, row in zip(names[cut:], rows[cut:], strict=True)]
    assert again == told
    assert [type(event) for event in told if event] == [Shift, ShiftEnd]
    assert restored.snapshot() == whole.snapshot()


def test_a_snapshot_of_another_promise_or_format_is_not_taken():
    with pytest.raises(SnapshotError, match=r"n_explainers, once_in.*make ImportanceShift"):
        ImportanceShift(n_explainers=2).restore(ImportanceShift().snapshot())
    with pytest.raises(SnapshotError, match="format"):
        ImportanceShift().restore({"format": 0})


@pytest.mark.parametrize("scale", [1e-3, 1e6, 2.0**-300, 2.0**300])
def test_the_unit_says_nothing(scale):
    increments = stream(24_000, 5, at=12_000, factor=0.0, feature=0)
    events, one = follow(increments)
    others, other = follow(increments * scale)
    assert [(e.feature, e.direction, e.n_observations, e.onset) for e in events if isinstance(e, Shift)] == [
        (e.feature, e.direction, e.n_observations, e.onset) for e in others if isinstance(e, Shift)
    ]
    assert [type(e) for e in events] == [type(e) for e in others] == [Shift, ShiftEnd]
    assert others[0].after.value == pytest.approx(scale * events[0].after.value, rel=1e-6)
    assert other.least_change == pytest.approx(one.least_change, rel=1e-6)


def test_a_shift_that_stays_becomes_the_reference_and_one_that_goes_is_released():
    (told, end), shift = follow(stream(24_000, 6, at=8000, factor=2.5))
    assert (told.feature, told.direction, end.kind, end.shift) == ("b", "up", "referenced", told)
    assert told.share == pytest.approx(1.5 / 4.0, rel=0.25)
    assert end.now.low < 2.5 < end.now.high
    assert end.share == pytest.approx(1.5 / 4.0, rel=0.15)
    assert abs(told.onset - 8001) <= 256
    assert shift.shift is None
    told, end, *rest = follow(stream(24_000, 6, at=8000, factor=2.5, until=9400))[0]
    assert (told.feature, end.kind, rest) == ("b", "released", [])
    assert abs(end.share) < 0.1


def test_a_slow_drift_is_told():
    rng = np.random.default_rng(8)
    n = 80_000
    means = np.tile(MEANS, (n, 1))
    means[:, 1] *= np.interp(np.arange(n), [45_000, 65_000], [1.0, 2.0])
    increments = means * (1.0 + rng.normal(size=(n, 3)))
    told = [event for event in follow(increments)[0] if isinstance(event, Shift)]
    assert told[0].feature == "b"
    assert 45_000 < told[0].n_observations < 65_000


def test_increments_that_are_not_finite_leave_their_observation_out():
    increments = stream(12_000, 9, at=8000, factor=3.0)
    spoilt = np.insert(increments, np.arange(0, 12_000, 7), [1.0, math.nan, 1.0], axis=0)
    spoilt[0] = [math.inf, 1.0, 1.0]
    spoilt[8] = [1e200, 1.0, 1.0]
    (clean, *_), _ = follow(increments)
    (told, *_), shift = follow(spoilt)
    assert shift.n_skipped == len(spoilt) - len(increments)
    assert (told.after, told.level) == (clean.after, clean.level)


def test_one_absurd_observation_tells_nothing():
    increments = stream(20_000, 10)
    increments[[2000, 9000, 15_000], 1] = 1e12
    assert follow(increments)[0] == []


def test_a_feature_that_appears_and_one_that_vanishes_are_told():
    increments = stream(14_000, 11)
    shift = ImportanceShift()
    told = []
    for n, row in enumerate(increments):
        names = ("a", "c") if n < 8000 else NAMES
        told.append(shift.update(names, row[[0, 2]] if n < 8000 else row))
    (event, *_) = [event for event in told if event]
    assert (event.feature, event.direction, event.before.value) == ("b", "up", 0.0)
    shift, told = ImportanceShift(), []
    for n, row in enumerate(increments):
        told.append(shift.update(NAMES if n < 8000 else ("a", "c"), row if n < 8000 else row[[0, 2]]))
    (event, *_) = [event for event in told if event]
    assert (event.feature, event.direction, event.after.value) == ("b", "down", pytest.approx(0.0, abs=0.4))


def test_ever_new_names_are_forgotten():
    rng = np.random.default_rng(12)
    shift = ImportanceShift()
    for n in range(30_000):
        shift.update(("a", f"new {n // 10}"), rng.normal([1.0, 0.0], 0.5))
    assert len(shift._blocks.names) < 5 * 5120 / 10


def test_without_importance_there_is_no_reference():
    events, shift = follow(np.zeros((12_000, 3)))
    assert (events, shift.ready, shift.least_change, shift.reference, shift.level) == ([], False, {}, {}, 0.0)
    assert shift.is_growing


def test_constant_importances_have_a_reference_and_a_shift():
    increments = np.tile([2.0, 1.0, 0.0], (10_000, 1))
    increments[55 * 128 :, 1] = 2.0
    (told, *_), _ = follow(increments)
    assert (told.feature, told.before.value, told.after.value) == ("b", 1.0, 2.0)


def test_the_promise_is_shared():
    increments = stream(30_000, 13, at=22_000, factor=2.0)
    (alone, *_), (shared, *_) = follow(increments)[0], follow(increments, n_explainers=10)[0]
    assert min(alone.level, shared.level) >= 1e6
    assert shared.n_observations >= alone.n_observations
    one, ten = (follow(stream(12_000, 13), n_explainers=n)[1].least_change for n in (1, 10))
    assert all(ten[name] > least for name, least in one.items() if least > 0.02)


def test_a_restart_takes_another_reference_and_forgets_the_shift():
    _, shift = follow(stream(9500, 14, at=7000, factor=3.0))
    told = shift.shift
    assert told is not None
    end = shift.restart()
    assert end is not None
    assert (end.shift, end.kind, end.now, end.n_reference) == (told, "replaced", told.after, 0)
    assert shift.restart() is None
    assert (shift.shift, shift.ready, shift.n_reference, shift.precise) == (None, False, 0, False)
    assert follow(stream(12_000, 15), shift=shift)[0] == []


def test_numbers_may_be_the_caller_s():
    increments = stream(12_000, 16, at=8000, factor=3.0)
    shift = ImportanceShift()
    told = [shift.update(NAMES, row, number=10 * n) for n, row in enumerate(increments)]
    (event, *_) = [event for event in told if event]
    assert 77_000 < event.onset < 83_000 < event.n_observations < 100_000


@pytest.mark.parametrize("period", [900.0, 1440.0, 3000.0])
def test_a_season_is_a_whole_number_of_periods(period):
    rng = np.random.default_rng(17)
    n = 45_000
    angle = 2.0 * np.pi * np.arange(n) / period
    season = 1.0 + 0.8 * np.sin(angle[:, None] + np.array([0.0, 2.0, 4.0]))
    events, shift = follow(MEANS * season + rng.normal(size=(n, 3)))
    assert events == []
    assert shift.period == pytest.approx(period, rel=0.02)
    periods = shift.n_reference / shift.period
    assert abs(periods - round(periods)) * shift.period <= 64.0 + 1e-9
    assert shift.reference["a"] == pytest.approx(3.0, abs=0.05)


def test_a_period_is_found_only_where_one_is():
    rng = np.random.default_rng(18)
    found = [find_period(rng.normal(size=(80, 5))) for _ in range(300)]
    assert sum(period is not None for period in found) <= 3  # 1 in 1000 each
    assert find_period(np.ones((80, 2))) is None


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match="n_explainers"):
        ImportanceShift(n_explainers=0)
    with pytest.raises(InvalidParameterError, match="once_in"):
        ImportanceShift(once_in=100)
