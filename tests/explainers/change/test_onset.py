"""The onset against every split, and how often its interval holds."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers.change.verdicts import onset_of


@given(st.lists(st.integers(0, 9), min_size=4, max_size=30))
def test_it_is_the_split_that_leaves_the_least_squares(values):
    found = onset_of(values, range(1, len(values) + 1))

    def left(k):
        return sum((v - statistics.fmean(part)) ** 2 for part in (values[:k], values[k:]) for v in part)

    splits = range(2, len(values) - 1)
    least = min(map(left, splits))
    assert left(found.observation - 1) == pytest.approx(least, abs=1e-9)
    within = [k for k in splits if left(k) <= least + 7.0 * least / len(values) + 1e-9]
    assert found.high == within[-1] + 1 or math.isclose(left(found.high - 1), least * (1 + 7 / len(values)))
    assert found.low is None or found.low <= found.observation <= found.high


def test_where_a_split_leaves_nothing_rounding_leaves_an_onset():
    for a, b, k, m in itertools.product((0.0, 1.0, 7.0), (0.1, 3.0, 9.0), range(2, 20), range(2, 20)):
        found = onset_of([a] * k + [b] * m, range(1, k + m + 1))
        assert (found.observation, found.high) == (k + 1, k + 1)


def test_fewer_than_four_values_have_no_onset():
    assert onset_of([1.0, 2.0, 3.0], [1, 2, 3]) is None


def test_an_onset_at_the_beginning_may_be_earlier():
    assert onset_of([0.0, 0.0, *([1.0] * 60)], range(1, 63)).low is None


@pytest.mark.parametrize("jump", [0.5, 1.0, 2.0])
def test_the_interval_holds(jump):
    rng = np.random.default_rng(7)
    hits, misses = 0, []
    for _ in range(300):
        at = int(rng.integers(300, 700))
        values = rng.normal(size=1000) + jump * (np.arange(1, 1001) >= at)
        found = onset_of(values, range(1, 1001))
        hits += (found.low or 0) <= at <= found.high
        misses.append(abs(found.observation - at))
    assert hits >= 270  # 95 % of 300, less four standard errors
    assert statistics.median(misses) <= 12


def test_it_is_no_later_than_it_was_noticed():
    values = [0.0] * 40 + [0.4] * 40 + [1.0] * 40
    assert onset_of(values, range(1, 121)).observation == 81
    noticed = onset_of(values, range(1, 121), 60)
    assert 41 <= noticed.observation <= noticed.high <= 60
