"""Held-out rows: the discrepancy against its definition over pairs, the baseline, and one reference for many rows."""

import math
import pickle
import statistics
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers import SnapshotError, as_batch
from attributary_explainers.change.discrepancy import as_distance, spread
from attributary_explainers.change.holdout import HeldOut
from attributary_explainers.change.rows import HeldRows, Row
from attributary_explainers.losses.losses import as_loss
from tests.explainers.plain_data import strangers


def held(window=10, *, loss="absolute", distance="number", relative=True, batch_size=None):
    return HeldOut(window, as_loss(loss), as_distance(distance), relative=relative, batch_size=batch_size)


def number_row(n, x, y, prediction):
    return Row.of(n, {"r": x}, y, prediction, is_label=False, loss=abs(y - prediction))


def add_number(of, n, x, y, prediction):
    of.add(n, {"r": x}, y, prediction, is_label=False, loss=abs(y - prediction))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_the_spread_of_numbers_is_the_mean_distance_of_pairs(values):
    expected = statistics.fmean(abs(a - b) for a, b in combinations(values, 2))
    assert spread(values, as_distance("number")) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(st.lists(st.sampled_from(["x", 1, True, None, (2, 3)]), min_size=2, max_size=30))
def test_the_spread_of_labels_is_the_share_of_pairs_that_differ(values):
    expected = statistics.fmean(float(a != b) for a, b in combinations(values, 2))
    assert spread(values, as_distance("label")) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("values", [[], [1.0], [3.0, 3.0], [None, "a"], [math.nan, 1.0], [0.0, 0.0]])
def test_without_two_different_numbers_there_is_no_spread(values):
    assert spread(values, as_distance("number")) == 0.0


@pytest.mark.parametrize("values", [[1e308, -1e308, 0.0], [10**400, 1.0, 2.0], [5e-324, 0.0, 5e-324]])
def test_the_spread_of_absurd_numbers_is_finite(values):
    assert math.isfinite(spread(values, as_distance("number")))


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9), st.floats(-9, 9)), min_size=3, max_size=20),
    st.sampled_from([0.01, 1.0, 1e3, 1e6]),
)
def test_the_discrepancy_has_no_unit(rows, scale):
    values = []
    for unit in (1.0, scale):
        of = held(20)
        of.compare_with(lambda x: x["r"])
        for n, (r, y, p) in enumerate(rows, start=1):
            add_number(of, n, unit * r, unit * y, unit * p)
        values.append(of.discrepancy(of.rows))
    pairs = statistics.fmean(abs(a[1] - b[1]) for a, b in combinations(rows, 2))
    expected = statistics.fmean(abs(r - p) for r, _, p in rows) / pairs if pairs > 1e-300 else 0.0
    assert values == pytest.approx([expected] * 2, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("distance", ["label", "probability"])
def test_the_discrepancy_of_forty_classes_is_relative_to_them(distance):
    of = held(1000, loss="brier", distance=distance)
    of.compare_with(lambda x: {x["r"]: 1.0})
    for n in range(1, 1001):
        # Always another class than the reference's: as often as two targets differ, but for one in forty.
        of.add(n, {"r": n % 40}, n % 40, {(n + 1) % 40: 1.0}, is_label=False, loss=2.0)
    assert of.discrepancy(of.rows) == pytest.approx(1 / ((1 - 1 / 40) * 1000 / 999))


def test_the_absolute_discrepancy_is_the_mean_distance():
    of = held(10, relative=False)
    of.compare_with(lambda x: x["r"])
    for n in range(1, 5):
        add_number(of, n, 2.0, 7.0, 5.0)
    assert of.discrepancy(of.rows) == 3.0


def test_a_label_is_compared_with_a_label():
    of = held(10, loss="brier", distance="label")
    of.compare_with(lambda x: {"a": 0.6, "b": 0.4})
    of.add(1, {}, "b", {"b": 1.0}, is_label=True, loss=0.0)
    of.add(2, {}, "b", {"b": 0.7, "a": 0.3}, is_label=False, loss=0.18)
    assert [row.reference_loss for row in of.rows] == pytest.approx([2.0, 2 * 0.36])


def test_the_baseline_is_of_what_has_left_the_window_up_to_four_windows():
    of = held(10)
    of.compare_with(lambda x: x["r"])
    for n in range(1, 81):
        add_number(of, n, float(n), 0.0, 0.0)
    assert list(of.baseline) == [float(n) for n in range(1, 41)]
    assert [row.n for row in of.rows] == list(range(71, 81))


def test_what_comes_shortly_before_an_alarm_is_no_baseline():
    of = held(10)
    of.compare_with(lambda x: x["r"])
    for n in range(1, 31):
        if n == 15:
            of.baseline_until = 8
        add_number(of, n, float(n), 0.0, 0.0)
    assert list(of.baseline) == [float(n) for n in range(1, 9)]


def test_another_reference_is_asked_about_the_rows_that_it_has_not_learnt():
    of = held(10)
    of.compare_with(lambda x: x["r"])
    for n in range(1, 31):
        add_number(of, n, float(n), 0.0, 1.0)
    of.compare_with(lambda x: 2 * x["r"], of.since(27))
    assert [(row.n, row.reference_loss, row.distance) for row in of.rows] == [
        (n, 2.0 * n, 2.0 * n - 1.0) for n in (28, 29, 30)
    ]
    assert list(of.baseline) == []


def test_rows_that_the_reference_has_no_prediction_for_are_left_out():
    of = held(10)
    of.compare_with(lambda x: None if x["r"] == 2.0 else x["r"])
    for n in range(1, 5):
        add_number(of, n, float(n), 0.0, 1.0)
    assert [row.n for row in of.rows] == [1, 3, 4]
    assert of.n_rows == 4


def test_a_row_on_which_the_reference_raises_is_left_out_alone():
    def many(rows):
        if any(row["r"] == 4 for row in rows):
            raise OSError("gone")
        return [row["r"] for row in rows]

    of = held(20, batch_size=3)
    of.compare_with(as_batch(many))
    for n in range(1, 13):
        add_number(of, n, float(n), 0.0, 1.0)
    assert [row.n for row in of.rows] == [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12]


def test_the_reference_is_asked_once_per_row_and_many_at_once():
    calls = []

    def many(rows):
        calls.append(len(rows))
        return [row["r"] for row in rows]

    of = held(50, batch_size=6)
    of.compare_with(as_batch(many))
    for n in range(1, 21):
        add_number(of, n, float(n), 0.0, 1.0)
    assert calls == [6, 6, 6]
    assert len(of.rows) == 20
    assert calls == [6, 6, 6, 2]


@pytest.mark.parametrize("stop", range(1, 25))
def test_restored_and_continued_it_is_as_never_stopped(stop):
    def reference(rows):
        return [2.0 * row["r"] for row in rows]

    running, never = held(6, batch_size=4), held(6, batch_size=4)
    for of in (running, never):
        of.compare_with(as_batch(reference))
    for n in range(1, 30):
        if n == stop:
            snapshot = running.snapshot()
            assert strangers(snapshot) == []
            running = held(6, batch_size=4)
            running.restore(pickle.loads(pickle.dumps(snapshot)), as_batch(reference))
        for of in (running, never):
            add_number(of, n, float(n), 0.0, 1.0)
    assert running.snapshot() == never.snapshot()
    assert list(running.rows) == list(never.rows)


@pytest.mark.parametrize(
    "change",
    [
        {"is_label": 2**40},
        {"n": b"1234567"},
        {"n": b""},
        {"losses": [b"", b"", b""]},
        {"losses": []},
        {"y": [1.0]},
        {"numbers": 5},
    ],
    ids=["a number of labels", "torn", "no rows", "no losses", "no columns", "one target", "a number"],
)
def test_forged_rows_are_refused(change):
    rows = HeldRows([number_row(n, float(n), 0.0, 1.0) for n in range(1, 4)])
    assert list(HeldRows.from_snapshot(rows.snapshot()))[2].n == 3
    with pytest.raises(SnapshotError, match="not what an explainer has written"):
        HeldRows.from_snapshot({**rows.snapshot(), **change})


def test_held_rows_are_those_of_a_list():
    given_rows = [number_row(n, float(n), 0.0, 1.0) for n in range(1, 6)]
    given_rows += [Row.of(6, {"r": 2}, "b", {"b": 0.7, "a": 0.3}, is_label=False, loss=0.18)]
    rows = HeldRows(given_rows[:4])
    for row in given_rows[4:]:
        rows.extend([row])
    for found, row in zip(rows, given_rows, strict=True):
        assert (found.n, found.x, found.y, found.prediction) == (row.n, row.x, row.y, row.prediction)
        assert (found.is_label, found.loss, repr(found.distance)) == (row.is_label, row.loss, repr(row.distance))
    assert [row.n for row in (rows[-1], *rows[1:3], *rows.after(5))] == [6, 2, 3, 6]
    rows.drop_oldest(4)
    assert [(row.n, row.y) for row in rows] == [(5, given_rows[4].y), (6, "b")]
    with pytest.raises(IndexError):
        rows[-3]
