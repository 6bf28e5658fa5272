"""Kernels of the imputers equal what they reproduce: rows made as dicts, draws and orders made in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.imputers import kernels
from attributary_explainers.imputers.requests import walked_coalitions
from attributary_explainers.imputers.rows import keep, replace
from attributary_explainers.imputers.stored import StoredRows
from attributary_explainers.imputers.strata import SlotOrder, row_key, strata

values = st.sampled_from([-1.5, -1.0, 0.0, -0.0, 0.5, 1.0, 2.0])
operations = st.lists(st.tuples(st.integers(0, 5), values, values), min_size=1, max_size=40)


@settings(max_examples=60)
@given(operations=operations)
def test_slots_stay_in_the_order_of_their_values(operations: list[tuple[int, float, float]]) -> None:
    size = 6
    matrix, order = np.zeros((size, 2)), np.zeros((2, size), dtype=np.int64)
    orders = [SlotOrder(), SlotOrder()]
    n = 0
    for wanted, *row in operations:
        slot = min(wanted, n)
        new = slot == n
        encoded = np.array(row)
        kernels.put(slot, new, n, encoded, encoded, matrix, matrix, order)
        n += new
        for j, of_feature in enumerate(orders):
            of_feature.put(slot, (row[j],))
            assert order[j, :n].tolist() == of_feature.slots()
        assert matrix[slot].tolist() == row


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


def test_spread_draws() -> None:
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


def test_rows() -> None:
    rng = np.random.default_rng(6)
    schema = Schema("abcd")
    rows = [{name: float(rng.normal()) for name in "dacb"} for _ in range(6)]
    x, reservoir = rows[0], rows[1:]
    matrix = schema.encode_many(reservoir)
    players = {name: (name,) for name in "cadb"}
    columns = np.array([schema.position[name] for name in players])
    slots = rng.integers(5, size=(4, 3))
    X = np.full((20, 4), 7.0)
    X[0] = schema.encode(x)
    kernels.replaced(4, columns, slots, matrix, X)
    expected = [replace(x, (name,), reservoir[s]) for name, of in zip(players, slots, strict=True) for s in of]
    assert np.array_equal(X[4:16], schema.encode_many(expected))
    assert (X[1:4] == 7.0).all()
    assert (X[16:] == 7.0).all()

    u, order = rng.random((4, 3)), np.array([rng.permutation(5) for _ in range(4)])
    again, found, at_once = np.zeros((4, 3), np.int64), np.zeros((4, 3), np.int64), X.copy()
    kernels.spread_slots(u, 5, columns, order, again)
    kernels.replaced(2, columns, again, matrix, X)
    kernels.spread_and_replaced(u, 5, columns, order, found, 2, matrix, at_once)
    assert np.array_equal(found, again)
    assert np.array_equal(X, at_once)

    orders, shared = np.array([rng.permutation(4) for _ in range(2)]), rng.integers(5, size=3)
    X = np.full((22, 4), 7.0)
    X[0] = schema.encode(x)
    kernels.kept(2, orders, columns, shared, matrix, X)
    expected = [
        keep(x, coalition, reservoir[s], players)
        for coalition in walked_coalitions(list(players), orders)
        for s in shared
    ]
    assert np.array_equal(X[2:20], schema.encode_many(expected))
    assert (X[20:] == 7.0).all()
    assert (X[1] == 7.0).all()
