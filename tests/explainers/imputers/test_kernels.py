"""Kernels of the imputers equal what they reproduce: draws and orders made in Python.

That the rows are those made as dicts is proved by `fast_paths/test_explainers.py`: draws and walks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.imputers import kernels
from attributary_explainers.imputers.stored import StoredRows
from attributary_explainers.imputers.strata import SlotOrder, row_key, strata
from attributary_explainers.keeping.kept import keep

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
        stored.put(slot, keep(row))
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
            order = np.array([rng.permutation(n_stored) for _ in range(k + 1)])
            columns = rng.permutation(k + 1)[:k]
            expected = strata(n_stored, n, np.random.default_rng(seed), (k,))
            u, slots = np.random.default_rng(seed).random((k, n)), np.full((k, n), -1)
            kernels.spread_slots(u, n_stored, columns, order, slots)
            for i in range(k):
                assert slots[i].tolist() == order[columns[i]][expected[i]].tolist()
    slots = np.full((1, 3), -1)
    kernels.spread_slots(np.full((1, 3), 1.0), 3, np.array([0]), np.array([[2, 0, 1]]), slots)
    assert slots.tolist() == [[0, 1, 1]], "never beyond the last one"
