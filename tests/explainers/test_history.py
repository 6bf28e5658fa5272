"""A history gives back what was recorded: against plain lists, on streams where every value is known."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import tree
from river.datasets import synth

from attributary_explainers import (
    BatchImportance,
    IncrementalMDI,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    InvalidParameterError,
    SlidingWindowSAGE,
    interval_pfi,
)
from attributary_explainers.history import ChangeMark, ImportanceHistory
from attributary_explainers.ranking import BAND
from tests.explainers.changes import explained


def said(importance, std_error=None):
    return BatchImportance(importance, std_error or dict.fromkeys(importance, 0.5), 10)


def same(found, expected):
    np.testing.assert_array_equal(found, expected)  # NaN equals NaN


def test_it_gives_back_what_the_explainer_said_at_every_position():
    explainer = IncrementalPFI(lambda x: x["a"] + x["b"], loss="squared", alpha=0.1, seed=1)
    history, said_so_far = ImportanceHistory(), []
    rng = np.random.default_rng(1)
    for n in range(1, 41):
        x = {"a": float(rng.normal()), "b": float(rng.normal())}
        explainer.explain_one(x, x["a"])
        history.record(explainer)
        if n > 1:  # there was nothing to draw from at the first
            said_so_far.append((n, explainer.importance, explainer.half_width))
    for name in "ab":
        positions, values, half_widths = history.series(name)
        same(positions, [n for n, _, _ in said_so_far])
        same(values, [importance[name] for _, importance, _ in said_so_far])
        same(half_widths, [half_width[name] for _, _, half_width in said_so_far])
    assert len(history) == 39
    assert (history.explainer, history.unit) == ("pfi", "squared loss: unit of the target, squared")


def test_the_position_counts_observations_that_could_not_be_explained():
    explainer = IncrementalPFI(lambda x: x["a"], loss="squared", seed=1)
    history = ImportanceHistory()
    for a in (0.0, 1.0, math.nan):
        explainer.explain_one({"a": a}, 0.0)
        history.record(explainer)
    # The first had no row to draw from, and the third predicts NaN.
    assert (explainer.n_observations, explainer.n_skipped) == (1, 2)
    same(history.positions, [2, 3])


def test_a_feature_that_comes_late_or_goes_has_nan_where_it_was_not():
    history = ImportanceHistory()
    for position, names in enumerate([("a",), ("a", "b"), ("b",), ("b", "a")]):
        history.record(said(dict.fromkeys(names, position / 4)), position)
    nan = math.nan
    same(history.series("a")[1], [0.0, 0.25, nan, 0.75])
    same(history.series("b")[1], [nan, 0.25, 0.5, 0.75])
    same(history.series("b")[2], [nan, *[BAND * 0.5] * 3])
    assert history.names == ["a", "b"]


def test_features_are_ordered_by_the_newest_record():
    history = ImportanceHistory()
    history.record(said({"a": 9.0, "gone": 5.0, "b": 1.0, "negative": 8.0}), 1)
    history.record(said({"a": 1.0, "b": 2.0, "negative": -3.0}), 2)
    assert history.features == ["b", "a", "gone", "negative"]  # no share: by name
    assert history.names == ["a", "gone", "b", "negative"]


@given(st.integers(2, 40), st.integers(1, 400))
def test_thinning_keeps_the_first_the_newest_and_even_spaces(max_records, n):
    history = ImportanceHistory(max_records)
    for position in range(n):
        history.record(said({"a": 3.0 * position}, {"a": 5.0 * position}), position)
        assert len(history) <= max_records
        assert history.positions[-1] == position
    positions, values, half_widths = history.series("a")
    same(values, 3.0 * positions)
    assert half_widths == pytest.approx(BAND * 5.0 * positions)
    assert positions[0] == 0
    gaps = np.diff(positions)
    if n <= max_records:
        same(positions, range(n))
    else:
        assert len(history) > max_records // 2
        assert len(set(gaps[:-1])) <= 1
        assert 0 < gaps[-1] <= gaps[0]
        assert len(gaps) == 1 or math.log2(gaps[0]).is_integer()


def test_a_feature_whose_only_record_was_thinned_away_is_nan():
    history = ImportanceHistory(4)
    for position in range(9):
        history.record(said({"a": 1.0, **({"b": 2.0} if position == 1 else {})}), position)
    same(history.series("b")[1], np.full(len(history), math.nan))
    assert history.features == ["a", "b"]


@given(st.lists(st.integers(0, 2), min_size=1, max_size=60), st.integers(2, 9))
def test_an_equal_position_replaces_the_record(steps, max_records):
    replaced, plain = ImportanceHistory(max_records), ImportanceHistory(max_records)
    last = {}
    position = 0
    for i, step in enumerate(steps):
        position += step
        replaced.record(said({"a": float(i)}), position)
        last[position] = float(i)
    for at, value in last.items():
        plain.record(said({"a": value}), at)
    same(replaced.positions, plain.positions)
    same(replaced.series("a")[1], plain.series("a")[1])


@pytest.mark.parametrize("position", [4, math.nan, math.inf, "5", True])
def test_a_position_that_is_not_further_is_refused_and_nothing_recorded(position):
    history = ImportanceHistory()
    history.record(said({"a": 1.0}), 5)
    with pytest.raises(InvalidParameterError, match=r"^position must be"):
        history.record(said({"a": 2.0, "b": 1.0}), position)
    assert (history.positions.tolist(), history.names) == ([5.0], ["a"])


def test_what_counts_no_observations_needs_a_position():
    model = tree.HoeffdingTreeClassifier()
    mdi = IncrementalMDI(model, features=["size"])
    history = ImportanceHistory(unit="Gini")
    for explainer in (mdi, said({"a": 1.0})):
        with pytest.raises(
            InvalidParameterError, match=rf"position must be given: {type(explainer).__name__} has counted no"
        ):
            history.record(explainer)
    for n, (x, y) in enumerate(synth.STAGGER(classification_function=2, seed=7).take(500), start=1):
        model.learn_one(x, y)
        history.record(mdi, n)
    assert history.series("size")[1][-1] == mdi.importance["size"] > 0.1
    assert np.isnan(history.series("size")[2]).all()
    assert (history.explainer, history.unit) == ("mdi", "Gini")


def test_baselines_can_be_recorded():
    def concept(x):
        return float(x["size"] != 0)

    stream = list(synth.STAGGER(classification_function=2, seed=7).take(300))
    history = ImportanceHistory()
    results = list(interval_pfi(concept, stream, interval=100, loss="squared", seed=1))
    for n, result in results:
        history.record(result, n)
    same(history.positions, [100, 200, 300])
    same(history.series("size")[1], [result.importance["size"] for _, result in results])
    window = SlidingWindowSAGE(concept, window=100, stride=100, loss="squared", seed=1)
    history = ImportanceHistory()
    for x, y in stream:
        window.explain_one(x, y)
        history.record(window)
    same(history.positions, range(100, 301))
    assert history.unit == "squared loss: unit of the target, squared"


def test_two_explainers_do_not_mix():
    pfi, brier = (
        IncrementalPFI(lambda x: {1: x["a"], 0: 1.0 - x["a"]}, loss=loss, seed=1) for loss in ("cross_entropy", "brier")
    )
    sage = IncrementalSAGE(lambda x: {1: x["a"], 0: 1.0 - x["a"]}, loss="cross_entropy", seed=1)
    for explainer in (pfi, brier, sage):
        for a in (0.2, 0.7):
            explainer.explain_one({"a": a}, 1)
    history = ImportanceHistory()
    history.record(pfi)
    for other in (brier, sage):
        with pytest.raises(InvalidParameterError, match="of the name and loss recorded before"):
            history.record(other)
    assert len(history) == 1


def test_nothing_is_shared_with_the_caller():
    importance = {"a": 1.0}
    history = ImportanceHistory()
    history.record(said(importance), 1)
    importance["a"] = 7.0
    for array in (*history.series("a"), history.positions):
        array[:] = 9.0
    history.names.clear(), history.features.clear(), history.changes.append(None)
    assert [column.tolist() for column in history.series("a")] == [[1.0], [1.0], [BAND * 0.5]]
    assert (history.names, history.changes) == (["a"], [])


def test_changes_are_marked_in_their_order_with_labels():
    history = ImportanceHistory()
    history.mark_change(explained())
    history.mark_change(explained(300, 250, before=0.9, names=("a", "b", "c")))
    history.mark_change(500, "deployed")
    history.mark_change(400)
    history.mark_change(explained(100, 90, before=0.45, names=("a",), after=0.46), label=None)
    history.mark_change(explained(50, 40), label="mine")
    found = [(mark.since, mark.position, mark.label) for mark in history.changes]
    assert found == [
        (40, 50, "mine"),
        (90, 100, "changed"),  # nothing beyond noise
        (250, 300, "a ↓ b ↓ …"),
        (400, 400, ""),
        (500, 500, "deployed"),
        (600, 700, "b ↑ a ↑"),
    ]


def test_only_the_newest_marks_are_kept():
    history = ImportanceHistory(3)
    for position in range(10):
        history.mark_change(position)
    assert [mark.position for mark in history.changes] == [7, 8, 9]


def test_a_mark_is_taken_as_it_is_or_with_another_label():
    history, mark = ImportanceHistory(), ChangeMark(7.0, 5.0, "age ↓")
    history.mark_change(mark)
    history.mark_change(mark, "here")
    assert history.changes == [mark, ChangeMark(7.0, 5.0, "here")]


def test_a_pickled_history_goes_on_as_the_original():
    history = ImportanceHistory(5, unit="€")
    for position in range(20):
        history.record(said({"a": float(position)}), position)
    again = pickle.loads(pickle.dumps(history))
    for one in (history, again):
        one.record(said({"a": 20.0, "b": 1.0}), 20)
    same(again.series("a"), history.series("a"))
    assert again.unit == "€"


@pytest.mark.parametrize(
    ("use", "says"),
    [
        *((lambda _, n=n: ImportanceHistory(n), r"^max_records must be") for n in (1, 2.5, True)),
        (lambda history: history.series("b"), r"feature must be one of \['a'\], got 'b'"),
        (lambda history: history.mark_change("here"), r"^change must be a number"),
        (
            lambda history: history.record(IncrementalPDP(lambda x: x["a"], grid_size=2)),
            r"^explainer must be one that has an importance",
        ),
    ],
)
def test_what_a_history_cannot_hold_or_give_is_refused(use, says):
    history = ImportanceHistory()
    history.record(said({"a": 1.0}), 1)
    with pytest.raises(InvalidParameterError, match=says):
        use(history)
