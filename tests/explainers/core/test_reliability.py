"""Blocks of labelled predictions: their sums beside naive ones, and what ends them."""

from __future__ import annotations

import copy
import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers.core.probabilities import two_most_probable
from attributary_explainers.core.reliability import P_LEAST, Block, log_loss_of

EDGES = np.array([-3.0, -1.0, -1.0, 0.5])


def test_a_block_has_the_sums_of_its_rows() -> None:
    rng = np.random.default_rng(1)
    p, y = np.r_[rng.random(500), 0.0, 1.0], rng.random(502) < 0.3
    block = Block(EDGES)
    loss, excess = rng.normal(size=(2, 502))
    for i in range(502):
        block.add(p[i], y[i])
        block.book(loss[i], excess[i])
    p = np.clip(p, P_LEAST, 1.0 - P_LEAST)
    bins = np.searchsorted(EDGES, np.log(p / (1.0 - p)), side="right")
    assert block.table == pytest.approx(np.array([np.bincount(bins, of, 5) for of in (np.ones(502), p, y)]))
    assert [block.n, block.information, block.off] == pytest.approx([502, (p * (1 - p)).sum(), np.abs(y - p).sum()])
    assert block.books == pytest.approx([502, loss.sum(), (loss**2).sum(), excess.sum(), (excess**2).sum()])
    block.empty()
    assert not block.table.any()
    assert not block.books.any()
    assert [block.n, block.information, block.off] == [0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("ends", "rows", "full_at"),
    [
        ({"enough": 2.0}, [(0.5, True)] * 20, 8),
        ({"enough": 2.0, "least_rows": 12.0}, [(0.5, True)] * 20, 12),
        ({"enough": 99.0, "most_rows": 7.0}, [(0.5, True)] * 20, 7),
        ({"enough": 99.0, "flood": 3.5}, [(0.25, True)] * 20, 5),
        ({"enough": 99.0, "lacks": [2, 3]}, [(0.5, True), (0.5, False)] * 10, 6),
        ({"enough": 99.0, "lacks": [0, 0]}, [(0.5, True)], 1),
        ({"enough": 99.0}, [(0.5, True), (0.5, False)] * 10, None),
    ],
)
def test_a_block_ends_with_what_is_enough(ends: dict[str, float], rows: list[tuple[float, bool]], full_at: int) -> None:
    block = Block(EDGES)
    block.end_at(**{"least_rows": 0.0, **ends})
    twin = copy.deepcopy(block)
    assert next((i for i, row in enumerate(rows, 1) if block.add(*row)), None) == full_at
    assert next((i for i, row in enumerate(rows, 1) if twin.add(*row)), None) == full_at


def test_a_copy_of_a_block_goes_on_alike() -> None:
    block = Block(EDGES)
    block.end_at(3.0, 4.0, 90.0, 50.0, [1, 1])
    block.add(0.3, True)
    block.book(1.25, 0.5)
    twin = copy.deepcopy(block)
    assert block.books.tolist() == twin.books.tolist() == [1.0, 1.25, 1.5625, 0.5, 0.25]
    for row in ((0.9, True), (0.1, True), (0.2, True), (0.2, False)):
        assert block.add(*row) == twin.add(*row)
    assert block.snapshot() == twin.snapshot()


@given(st.dictionaries(st.text(max_size=2), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), max_size=6))
def test_the_two_most_probable_are_those_of_a_sort(predicted: dict[str, float]) -> None:
    expected = [*heapq.nlargest(2, predicted, key=predicted.__getitem__), None, None][:2]
    assert list(two_most_probable(predicted)) == expected


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5), st.integers(0, 6))
def test_loss_and_excess_are_as_written_down(values: list[float], label: int) -> None:
    predicted = dict(enumerate(values))
    loss, excess = log_loss_of(predicted, label)
    assert loss == pytest.approx(-math.log(max(predicted.get(label, 0.0), P_LEAST)))
    assert excess == pytest.approx(loss + sum(p * math.log(p) for p in values if p > 0.0), abs=1e-12)
