"""Stored rows, draws and locality equal what they reproduce: orders, strata and means made in Python.

That the rows are those made as dicts is proved by `fast_paths/test_explainers.py`: draws and walks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers.core.reservoir import ReplacedRows, Uniforms
from attributary_explainers.core.rows import Rows
from attributary_explainers.evaluation.schema import NotEncodableError, Schema
from attributary_explainers.incremental.slowness import Locality
from attributary_explainers.removal.imputer import StoredRows
from attributary_explainers.removal.strata import SlotOrder, row_key, strata

from ..largest import largest_numbers

values = st.sampled_from([-1.5, -1.0, 0.0, -0.0, 0.5, 1.0, 2.0])
categories = st.sampled_from(["b", "a", "", "c", 1, 0, 2.5, True, "10", "9", -3])
stored_rows = st.lists(st.tuples(st.integers(0, 4), categories, values), min_size=1, max_size=30)


@settings(max_examples=60)
@given(operations=stored_rows)
def test_stored_rows_follow_the_reservoir(operations: list[tuple[int, Any, float]]) -> None:
    """Categories in the order of their names whatever their codes; what cannot be encoded is waited out."""
    schema = Schema(("k", "n"), ["k"])
    stored, rows = StoredRows(schema, 5, []), []
    for wanted, k, number in operations:
        slot, row = min(wanted, len(rows)), {"k": k, "n": number}
        rows[slot : slot + 1] = [row]
        stored.put(slot, row)
        if stored.is_stale:
            stored = StoredRows(schema, 5, rows)
        types: dict[Any, set[type]] = {}
        for one in schema.values(0):
            types.setdefault(one, set()).add(type(one))
        holds = all(type(row["k"]) in types.get(row["k"], ()) for row in rows)
        assert stored.is_complete == holds
        if not holds:
            continue
        assert stored.n == len(rows)
        for j, feature in enumerate(schema.features):
            order = SlotOrder()
            for i, one in enumerate(rows):
                order.put(i, row_key(one, (feature,)))
            assert stored.order[j, : stored.n].tolist() == order.slots()
        decoded = [schema.decode(one, ("k", "n")) for one in stored.matrix[: stored.n]]
        assert decoded == rows
        anew = StoredRows(schema, 5, rows)
        assert np.array_equal(anew.order[:, : anew.n], stored.order[:, : stored.n])


def test_spread_slots_are_the_strata_of_the_order() -> None:
    rng = np.random.default_rng(5)
    for n_stored in (1, 2, 3, 7, 50):
        for n in (1, 2, 5, 10):
            k, seed = 4, int(rng.integers(1000))
            order = np.array([rng.permutation(n_stored) for _ in range(k + 1)], dtype=np.int32)
            columns = rng.permutation(k + 1)[:k]
            expected = strata(n_stored, n, np.random.default_rng(seed), (k,))
            drawn = ReplacedRows(columns, n, np.zeros((n_stored, k + 1)), order)
            drawn.draw(Uniforms(np.random.default_rng(seed)), n_stored)
            for i in range(k):
                assert drawn.slots[i].tolist() == order[columns[i]][expected[i]].tolist()
    drawn = ReplacedRows(np.array([0]), 3, np.zeros((3, 1)), np.array([[2, 0, 1]], dtype=np.int32))
    drawn.draw(Uniforms(largest_numbers()), 3)
    assert drawn.slots.tolist() == [[2, 1, 1]], "never beyond the last one"


@pytest.mark.parametrize("value", [2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**54, 1e300, math.inf, math.nan])
def test_a_row_is_stored_where_floats_hold_its_numbers(value: float) -> None:
    schema, row = Schema("ab"), {"a": value, "b": 0.5}
    stored = StoredRows(schema, 2, [{"a": 1, "b": 2.0}])
    stored.put(1, row)
    try:
        expected = schema.encode(row).tolist()
    except NotEncodableError:
        assert not stored.is_complete
    else:
        assert stored.is_complete
        assert stored.matrix[1].tolist() == expected


def test_rows_of_numbers_are_read_as_those_of_dicts() -> None:
    """What stands in a slot, and how alike it is to what replaces it, to the last bit; large integers by the dicts."""
    rng = np.random.default_rng(7)
    for largest, is_mixed in ((50, False), (50, True), (2**60, False)):
        x = {"a": 1, "b": -2.5, "c": 0.5}
        rows = [
            {"a": int(a), "b": 0 if is_mixed and b < 0.0 else b, "c": c}
            for a, (b, c) in zip(rng.integers(largest, size=120), rng.normal(size=(120, 2)).tolist(), strict=True)
        ]
        kept_rows = Rows(rows)
        assert (kept_rows.means(0, len(rows)) is None) == (largest > 50)
        schema = Schema("cab")
        stored = StoredRows(schema, 5, [])
        for slot, row in enumerate(rows[:5]):
            stored.put(slot, row)
            assert stored.is_complete == (row["a"] <= 2**53)
            assert not stored.is_complete or stored.matrix[slot].tolist() == schema.encode(row).tolist()
        by_numbers, by_dicts = Locality(0.05), Locality(0.05)
        by_dicts._take_numbers = lambda *_: False  # type: ignore[method-assign]
        for one in (by_numbers, by_dicts):
            one.count(one.until_look - 1)
            assert one.update(x, kept_rows)
        assert by_numbers.snapshot() == by_dicts.snapshot()


def test_stored_values_that_are_too_large_do_not_cancel() -> None:
    rows = Rows([{"a": 1e200}, {"a": -1e200}, {"a": 3.0}, {"a": 4.0}])
    by_numbers, by_dicts = Locality(0.05), Locality(0.05)
    for one, stored in ((by_numbers, rows), (by_dicts, list(rows))):
        one.count(one.until_look - 1)
        assert one.update({"a": 1.0}, stored)
    assert by_numbers.snapshot() == by_dicts.snapshot()
    assert by_numbers._moments[2].tolist() == [3.5]
