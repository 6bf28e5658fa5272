"""Which changes are beyond noise: Holm's procedure against closed testing, on numbers by hand."""

import dataclasses
import math
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from attributary_explainers.ranking import holm
from tests.explainers.changes import change_of


def change(before, after, error=0.01, **fields):
    errors = dict.fromkeys((*before, *after), error)
    how = {"loss": "squared", "error": error, "after_error": error, "delta_std_error": errors}
    return change_of(before, after, **{**how, **fields})


def closed(p_values):
    """Closed testing: a feature is as significant as the weakest Bonferroni test of any set that it is in."""
    names = list(p_values)
    sets = [chosen for size in range(1, len(names) + 1) for chosen in combinations(names, size)]
    joint = {chosen: min(1.0, len(chosen) * min(p_values[name] for name in chosen)) for chosen in sets}
    return {name: max(p for chosen, p in joint.items() if name in chosen) for name in names}


def test_holm_is_what_it_is_by_hand():
    # Sorted .005, .01, .03, .04 times 4, 3, 2, 1: .02, .03, .06, .04; the last is raised to the one before.
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}) == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02}, rel=1e-12
    )
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}).keys() == {"a": 0, "b": 0, "c": 0, "d": 0}.keys()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"a": 0.03}, {"a": 0.03}),
        ({"a": 0.0, "b": 1.0}, {"a": 0.0, "b": 1.0}),
        ({"a": 0.02, "b": 0.02}, {"a": 0.04, "b": 0.04}),
        ({"a": 0.4, "b": 0.9, "c": 0.5}, {"a": 1.0, "b": 1.0, "c": 1.0}),
    ],
)
def test_holm_at_the_edges(given, expected):
    assert holm(given) == expected
    assert list(holm(given)) == list(given)


@given(st.lists(st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.01, 0.025, 0.05, 1.0])), max_size=7))
@example([0.01] * 7)
def test_holm_is_closed_testing(values):
    p_values = dict(enumerate(values))
    assert holm(p_values) == pytest.approx(closed(p_values), rel=1e-12, abs=0.0)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=7), st.randoms(use_true_random=False))
def test_holm_does_not_depend_on_the_order(values, random):
    named = list(enumerate(values))
    shuffled = list(named)
    random.shuffle(shuffled)
    assert holm(dict(shuffled)) == holm(dict(named))


def test_p_values_are_those_of_the_normal_test():
    made = change({"a": 0.0}, {"a": 0.025})
    assert made.p_values["a"] == pytest.approx(2 * stats.norm.sf(2.5), rel=1e-9)


def test_p_values_are_of_what_exceeds_the_margin():
    made = change({"a": 0.0, "b": 0.0}, {"a": 0.045, "b": -0.019}, margin=0.02)
    assert made.p_values == pytest.approx({"a": 2 * 2 * stats.norm.sf(2.5), "b": 1.0}, rel=1e-9)


def test_the_level_decides_what_is_significant():
    made = change({"a": 0.0}, {"a": 0.022})  # p = .0278
    assert made.significant() == ["a"]
    assert made.significant(0.02) == []


def test_features_that_one_side_lacks_count_as_0_there():
    made = change({"a": 0.3, "gone": 0.2}, {"a": 0.1, "new": 0.4})
    assert made.features == ["a", "gone", "new"]
    assert (made.before_ranks, made.after_ranks) == ({"a": 1, "gone": 2}, {"new": 1, "a": 2})
    assert made.delta == pytest.approx({"a": -0.2, "gone": -0.2, "new": 0.4})
    assert set(made.significant()) == {"new", "a", "gone"}
    # Shares .6, .4, 0 and .2, 0, .8.
    assert made.shift == pytest.approx(0.8)
    # Relevance .6, .4, 0 at the ranks 2, 3, 1, against the ranks 1, 2, 3.
    ideal = 0.6 + 0.4 / math.log2(3)
    assert made.ndcg == pytest.approx((0.6 / math.log2(3) + 0.4 / math.log2(4)) / ideal)


def test_without_features_nothing_is_significant():
    made = change({}, {})
    assert (made.features, made.delta, made.p_values, made.significant()) == ([], {}, {}, [])
    assert (made.shift, made.ndcg) == (0.0, 1.0)


def test_no_spread_and_no_change_is_none_and_no_spread_and_a_change_is_one():
    made = change({"a": 0.1, "b": 0.1}, {"a": 0.1, "b": 0.2}, error=0.0)
    assert made.p_values == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize("where", ["error", "after"])
def test_what_is_not_a_number_is_no_change(where):
    made = change({"a": 0.0, "b": 0.0}, {"a": 0.5, "b": 0.0})
    field = {"error": "delta_std_error", "after": "after"}[where]
    made = dataclasses.replace(made, **{field: {"a": math.nan, "b": 0.0}})
    assert made.p_values == {"a": 1.0, "b": 1.0}
    assert made.significant() == []


def test_an_infinite_error_is_no_change():
    assert change({"a": 0.0}, {"a": 1e300}, error=math.inf).p_values == {"a": 1.0}
