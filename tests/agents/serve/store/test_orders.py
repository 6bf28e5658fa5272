"""Shares and ranks of many importances at once are those of `attributary_explainers.ranking`."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.serve.store import orders
from attributary_explainers.ranking import ranks, shares

NAMES = ("a", "b", "c", "d")
ROWS = st.lists(st.lists(st.floats(-1e6, 1e6) | st.sampled_from((0.0, -0.0, 1.0)), min_size=4, max_size=4), min_size=1)


@given(ROWS)
def test_equal_to_those_of_one_at_a_time(rows: list[list[float]]) -> None:
    found_shares, found_ranks = orders.shares(np.array(rows)), orders.ranks(np.array(rows))
    for at, row in enumerate(rows):
        one = dict(zip(NAMES, row, strict=True))
        np.testing.assert_allclose(found_shares[at], [shares(one)[name] for name in NAMES], rtol=1e-12)
        assert found_ranks[at].tolist() == [ranks(one)[name] for name in NAMES]


def test_what_is_not_known_has_no_rank_and_takes_no_share() -> None:
    found = np.array([[math.nan, 3.0, 1.0]])
    np.testing.assert_equal(orders.shares(found), [[math.nan, 0.75, 0.25]])
    assert orders.ranks(found).tolist() == [[0, 1, 2]]
