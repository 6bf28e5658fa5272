"""The distance between two samples of a feature: enumerated intervals, counted shares, and what chance gives."""

import math
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers.loss_shift.distance import kuiper, kuiper_quantile, moved

LEVEL = 0.01
few_numbers = st.lists(st.sampled_from([-math.inf, -2.0, -1.0, 0.0, 0.5, 1.0, 3.0, math.inf]), min_size=1, max_size=9)


def over_all_intervals(before, after):
    edges = [-math.inf, *np.unique([*before, *after]).tolist()]
    shares = [
        [np.mean([low <= v <= high for v in of]) for of in (before, after)]
        for i, low in enumerate(edges)
        for high in edges[i:]
    ]
    return max(abs(a - b) for a, b in shares)


@given(few_numbers, few_numbers)
def test_the_distance_of_numbers_is_that_of_the_interval_that_differs_most(before, after):
    found = kuiper(np.sort(before), len(before), np.sort(after), len(after))
    assert found == pytest.approx(over_all_intervals(before, after), abs=1e-12)


def test_the_quantile_is_that_of_published_tables():
    # Critical values of Kuiper's V, by n large: 1.620 at 10 %, 1.747 at 5 %, 2.001 at 1 % (Stephens, 1970).
    assert [kuiper_quantile(level) for level in (0.1, 0.05, 0.01)] == pytest.approx([1.620, 1.747, 2.001], abs=0.002)


def test_shares_of_text_by_hand():
    before, after = ["red"] * 500 + ["blue"] * 500, ["red"] * 900 + ["green"] * 100
    spread = 2 / 1000
    expected = sum(math.sqrt(p * (1 - p) * spread) for p in (0.7, 0.25, 0.05)) / 2
    chance = math.sqrt(math.log(2 / LEVEL) * spread / 2)
    assert moved(before, after, LEVEL) == pytest.approx(0.5 - expected - chance, rel=1e-12)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([1.0] * 200, [None] * 200),
        ([1.0] * 200, [math.nan] * 200),
        ([1, 2] * 100, [10**400, -(10**400)] * 100),
        ([True, False] * 100, [1, 0] * 100),
        (["1"] * 200, [1] * 200),
        ([[1]] * 200, [[2]] * 200),
        ([Decimal(1)] * 200, [Decimal(3)] * 200),
        ([0.0, 1.0] * 100, [-1.0, 2.0] * 100),
    ],
)
def test_other_values_have_moved(before, after):
    assert moved(before, after, LEVEL) > 0.3
    assert moved(before, before, LEVEL) == moved(after, after, LEVEL) == 0.0


def test_equal_values_of_other_types_have_not_moved():
    assert moved([None, 1.0] * 100, [math.nan, 1] * 100, LEVEL) == 0.0
    assert moved([np.float64(2.0), np.int64(1)] * 100, [Decimal(2), 1] * 100, LEVEL) == 0.0


def test_names_that_come_once_have_not_moved():
    assert moved([f"id {i}" for i in range(500)], [f"id {i}" for i in range(500, 1000)], LEVEL) == 0.0


def test_without_values_nothing_has_moved():
    assert moved([], [1.0], LEVEL) == moved([1.0], [], LEVEL) == 0.0


@pytest.mark.parametrize("kind", ["numbers", "rounded", "text", "missing"])
def test_chance_alone_moves_as_rarely_as_promised(kind):
    rng = np.random.default_rng(5)

    def draw():
        if kind == "text":
            return rng.choice(["a", "b", "c", "d"], 150, p=[0.5, 0.3, 0.19, 0.01]).tolist()
        values = rng.normal(size=150)
        if kind == "rounded":
            return np.round(values).tolist()
        return [None if kind == "missing" and rng.random() < 0.3 else value for value in values.tolist()]

    above = sum(moved(draw(), draw(), 0.05) > 0.0 for _ in range(400))
    assert above <= 20 + 3 * math.sqrt(19)  # 400 trials at 5 %, and three standard deviations


@pytest.mark.parametrize("scale", [2.0, 3.0])
def test_a_wider_spread_is_seen_as_well_as_a_shift(scale):
    rng = np.random.default_rng(0)
    sds = sorted(moved(rng.normal(size=n).tolist(), (scale * rng.normal(size=n)).tolist(), LEVEL) for n in (500, 5000))
    assert all(0.0 < a < b for a, b in pairwise(sds))
    # The shares within both points where the densities are equal differ by this: the total variation distance.
    cut = math.sqrt(2 * math.log(scale) / (1 - scale**-2))
    truth = math.erf(cut / math.sqrt(2)) - math.erf(cut / scale / math.sqrt(2))
    assert sds[-1] == pytest.approx(truth, abs=0.06)
