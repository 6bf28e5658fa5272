"""The observations kept around a shift: which these are, by their numbers, and that they come back exactly."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from attributary_explainers import InvalidParameterError
from attributary_explainers.loss_shift.rows import KeptRows
from tests.explainers.plain_data import strangers

STRANGE = [1, 2**60, 0.5, math.inf, -0.0, True, None, "red", ""]


def numbered(n, rows, start=1):
    """Each observation holds its own number."""
    for i in range(start, start + n):
        rows.update({"a": i, "b": 0.5 * i}, y=-i)


def numbers(rows):
    assert all(y == -x["a"] and x["b"] == 0.5 * x["a"] for x, y in rows)
    return [x["a"] for x, _ in rows]


def test_few_observations_are_all_kept():
    rows = KeptRows(10, seed=0)
    numbered(15, rows)
    assert sorted(numbers(rows.before())) == list(range(1, 11))  # the sample has five, and five wait first in line
    rows.begin(onset=13)
    assert sorted(numbers(rows.before())) == list(range(1, 11))
    assert numbers(rows.after()) == [13, 14, 15]
    assert (rows.n_missing, rows.is_due) == (7, False)
    numbered(7, rows, start=16)
    assert (rows.n_missing, rows.is_due) == (0, True)
    assert numbers(rows.after()) == list(range(13, 23))


def test_the_reference_is_a_uniform_sample_of_all_that_is_old_enough():
    window, n, found = 10, 210, np.zeros(211)
    for seed in range(400):
        rows = KeptRows(window, seed)
        numbered(n, rows)
        kept = numbers(rows.before())
        assert len(set(kept)) == window
        assert max(kept) <= n - window
        found[kept] += 1
    counts = found[1 : n - window + 1].reshape(20, 10).sum(axis=1)
    assert counts.sum() == 400 * window
    assert stats.chisquare(counts).pvalue > 1e-3


def test_no_observation_of_a_shift_enters_the_reference():
    rows = KeptRows(20, seed=1)
    numbered(300, rows)
    rows.begin(onset=290)
    numbered(500, rows, start=301)
    assert max(numbers(rows.before())) < 290
    rows.end(returned=True)
    assert rows.onset is None
    assert rows.after() == []
    assert not rows.is_due
    numbered(500, rows, start=801)
    kept = numbers(rows.before())
    assert not [i for i in kept if 290 <= i <= 800]
    assert max(kept) > 800
    assert len(kept) == 20


def test_what_entered_before_the_onset_was_known_leaves_the_reference():
    rows = KeptRows(20, seed=1)
    numbered(300, rows)
    rows.begin(onset=150)
    kept = numbers(rows.before())
    assert kept
    assert max(kept) < 150
    assert rows.is_due
    assert numbers(rows.after()) == list(range(281, 301))


def test_a_new_reference_has_nothing_of_the_old_one():
    rows = KeptRows(20, seed=1)
    numbered(300, rows)
    rows.begin(onset=295)
    numbered(5, rows, start=301)
    rows.end(returned=False)
    assert numbers(rows.before()) == list(range(295, 306))
    numbered(200, rows, start=306)
    kept = numbers(rows.before())
    assert len(set(kept)) == 20
    assert min(kept) >= 295


def test_a_second_shift_soon_after_the_first():
    rows = KeptRows(20, seed=1)
    numbered(300, rows)
    rows.begin(onset=290)
    numbered(30, rows, start=301)
    rows.end(returned=True)
    numbered(5, rows, start=331)
    rows.begin(onset=334)
    numbered(40, rows, start=336)
    assert numbers(rows.after()) == list(range(356, 376))
    assert max(numbers(rows.before())) < 290


@pytest.mark.parametrize("onset", [-3, 0, 1, 50, 51, 99])
def test_any_onset_will_do(onset):
    rows = KeptRows(20, seed=1)
    numbered(50, rows)
    rows.begin(onset)
    first = max(1, min(onset, 51))
    assert all(i < first for i in numbers(rows.before()))
    assert numbers(rows.after()) == list(range(max(first, 31), 51))


def test_nothing_is_shared_with_the_caller():
    rows, x = KeptRows(5, seed=0), {"a": 1}
    rows.update(x, 0)
    x["a"] = 2
    assert rows.before() == [({"a": 1}, 0)]


@pytest.mark.parametrize("at", [3, 60, 130, 170, 260, 340])
def test_restored_and_continued_equals_never_stopped(at):
    def step(rows, i):
        x = {"a": 0.1 * i, "b": STRANGE[i % len(STRANGE)], "c": "text"}
        if i % 7 == 0:
            del x["c"]
        if 100 < i <= 200:
            x = {"a": 0.1 * i, "b": 0.5}
        rows.update(x, i % 3 == 0)
        if i in (150, 300):
            rows.begin(i - 10)
        if i in (200, 320):
            rows.end(returned=i == 200)

    one = KeptRows(25, seed=3)
    for i in range(1, at):
        step(one, i)
    state = one.snapshot()
    assert not strangers(state)
    other = KeptRows.from_snapshot(pickle.loads(pickle.dumps(state)))
    assert other.snapshot() == state
    for i in range(at, 400):
        step(one, i)
        step(other, i)
    assert repr(one.snapshot()) == repr(other.snapshot())  # of repr 1 is not True, and 0.0 not -0.0
    assert repr(one.before()) == repr(other.before())
    assert repr(one.after()) == repr(other.after())


def test_floats_take_eight_bytes_each_in_a_snapshot():
    rows, rng = KeptRows(100, seed=0), np.random.default_rng(0)
    for x in rng.normal(size=(300, 20)).tolist():
        rows.update(dict(enumerate(x)), 1.0)
    assert len(pickle.dumps(rows.snapshot())) < 200 * 21 * 8 + 4000


def test_a_window_of_one_is_refused():
    with pytest.raises(InvalidParameterError, match="window"):
        KeptRows(1, seed=0)
