"""Shares, ranks, shift and NDCG: closed forms, bounds, symmetry."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers import ndcg, ranks, shares, shift

importances = st.dictionaries(st.sampled_from("abcdef"), st.floats(-1e6, 1e6), max_size=6)
positive = st.dictionaries(st.sampled_from("abcdef"), st.floats(1e-3, 1e6), min_size=1, max_size=6)
ROUNDING = 1e-12  # six terms, none above 1


def test_ranks_begin_at_1_and_equals_go_by_name():
    assert ranks({"b": 0.5, "a": 0.5, "c": 2.0, "d": -1.0}) == {"c": 1, "a": 2, "b": 3, "d": 4}
    assert ranks({2: 0.0, "1": 0.0}) == {"1": 1, 2: 2}
    assert ranks({}) == {}


@given(importances)
def test_ranks_are_a_permutation_in_falling_order(importance):
    ranked = ranks(importance)
    assert sorted(ranked.values()) == list(range(1, len(importance) + 1))
    order = sorted(ranked, key=ranked.__getitem__)
    assert [importance[f] for f in order] == sorted(importance.values(), reverse=True)
    assert ranks(dict(reversed(importance.items()))) == ranked


def test_shares_count_negatives_as_0():
    assert shares({"a": 3.0, "b": 1.0, "c": -8.0}) == {"a": 0.75, "b": 0.25, "c": 0.0}
    assert shares({"a": -1.0, "b": 0.0}) == {"a": 0.0, "b": 0.0}
    assert shares({}) == {}


@given(importances, st.floats(0.1, 10.0))
def test_shares_sum_to_1_or_are_all_0_and_ignore_the_unit(importance, unit):
    found = shares(importance)
    assert set(found) == set(importance)
    assert all(0.0 <= share <= 1.0 for share in found.values())
    if any(value > 0 for value in importance.values()):
        assert sum(found.values()) == pytest.approx(1.0, abs=ROUNDING)
    else:
        assert not any(found.values())
    if all(value == 0 or abs(value) > 1e-200 for value in importance.values()):
        scaled = shares({f: value * unit for f, value in importance.items()})
        assert scaled == pytest.approx(found, abs=ROUNDING)


def test_shift_in_closed_form():
    assert shift({"a": 3.0, "b": 1.0}, {"a": 1.0, "b": 3.0}) == 0.5
    assert shift({"a": 1.0}, {"b": 1.0}) == 1.0
    assert shift({"a": 1.0, "b": 1.0}, {"a": 2.0, "b": 2.0}) == 0.0  # twice as important, in the same parts
    assert shift({"a": 1.0}, {"a": 1.0, "b": 1.0}) == 0.5
    assert shift({"a": 1.0}, {"a": -1.0}) == shift({"a": 0.0}, {"a": 1.0}) == 1.0
    assert shift({}, {}) == shift({"a": -1.0}, {"b": 0.0}) == 0.0


@given(importances, importances, importances)
def test_shift_is_a_bounded_symmetric_distance(a, b, c):
    assert shift(a, a) == 0.0
    assert 0.0 <= shift(a, b) <= 1.0 + ROUNDING
    assert shift(a, b) == pytest.approx(shift(b, a), abs=ROUNDING)
    assert shift(a, c) <= shift(a, b) + shift(b, c) + ROUNDING


def test_ndcg_in_closed_form():
    # Relevance 3/4 and 1/4; swapped, the gains are 1/4 at rank 1 and 3/4 at rank 2.
    second = 1.0 / math.log2(3)
    expected = (0.25 + 0.75 * second) / (0.75 + 0.25 * second)
    assert ndcg({"a": 3.0, "b": 1.0}, {"a": 1.0, "b": 3.0}) == pytest.approx(expected, abs=ROUNDING)
    assert ndcg({"a": 3.0, "b": 1.0}, {"a": 9.0, "b": 8.0}) == 1.0
    assert ndcg({"a": 1.0}, {"b": 1.0}) == pytest.approx(second, abs=ROUNDING)  # a, gone, is second of two
    assert ndcg({}, {"a": 1.0}) == ndcg({"a": -1.0}, {"a": 1.0}) == 1.0


@given(importances, importances)
def test_ndcg_is_bounded_and_1_for_the_same_ranking(before, after):
    value = ndcg(before, after)
    assert 0.0 < value <= 1.0 + ROUNDING
    assert ndcg(before, before) == pytest.approx(1.0, abs=ROUNDING)


@given(positive)
def test_ndcg_is_least_for_the_reversed_ranking(before):
    reverse = {f: -v for f, v in before.items()}
    worst = ndcg(before, reverse)
    for feature in before:
        moved = {**reverse, feature: 1.0}  # one feature brought to the front of the worst ranking
        assert ndcg(before, moved) >= worst - ROUNDING


def test_of_ten_equal_features_one_dying_is_seen_by_shift_alone():
    before = {f"f{i}": 1.0 for i in range(10)}
    after = {**before, "f3": 0.0}
    assert ndcg(before, after) == pytest.approx(1.0, abs=ROUNDING)
    assert shift(before, after) == pytest.approx(0.1, abs=ROUNDING)
