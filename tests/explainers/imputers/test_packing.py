"""Rows that are packed for a snapshot come back as they were: values, types and the order of the keys."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers import make_reservoir
from attributary_explainers.imputers.packing import pack_rows, unpack_rows

VALUES = [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 5e-324, 2**53 + 1, -(10**40), 0, True, False, None, "red", ""]
values = st.one_of(st.sampled_from(VALUES), st.floats(), st.integers(), st.text(max_size=3), st.booleans())


def told_apart(rows):
    """Rows as what equality does not tell apart: types, bits of floats, the order of the keys."""
    return [[(k, type(v), struct.pack("d", v) if isinstance(v, float) else v) for k, v in row.items()] for row in rows]


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", 3, ("g", 1)]), values), max_size=6))
def test_rows_of_any_keys_come_back(rows):
    assert told_apart(unpack_rows(pack_rows(rows))) == told_apart(rows)


@given(st.lists(st.tuples(st.floats(), values, st.integers()), max_size=8))
def test_rows_of_the_same_keys_come_back(columns):
    rows = [{"b": b, "a": a, "c": c} for a, b, c in columns]
    packed = pack_rows(rows)
    assert told_apart(unpack_rows(packed)) == told_apart(rows)


@pytest.mark.parametrize("rows", [[], [{}], [{}, {}], [{"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}], [{"a": 1.0}, {}]])
def test_rows_without_columns_or_with_others_come_back(rows):
    assert told_apart(unpack_rows(pack_rows(rows))) == told_apart(rows)


def test_only_a_column_of_floats_is_bytes():
    rows = [{"float": 0.5, "int": 1, "mixed": 1.0, "flag": True}, {"float": -0.0, "int": 2, "mixed": 1, "flag": False}]
    columns = dict(zip(*(pack_rows(rows)[key] for key in ("names", "columns")), strict=True))
    assert columns == {"float": struct.pack("2d", 0.5, -0.0), "int": [1, 2], "mixed": [1.0, 1], "flag": [True, False]}


def test_what_was_packed_shares_nothing_with_the_rows():
    rows = [{"a": 1.0, "b": "x"}, {"b": "y"}]
    packed = pack_rows(rows)
    rows[0]["a"] = rows[1]["b"] = 7
    found = unpack_rows(packed)
    assert found == [{"a": 1.0, "b": "x"}, {"b": "y"}]
    found[0]["a"] = 8
    assert unpack_rows(packed) == [{"a": 1.0, "b": "x"}, {"b": "y"}]


def test_the_snapshot_of_a_reservoir_brings_strange_rows_back():
    rng = np.random.default_rng(1)
    reservoir, restored = make_reservoir("lagged", 6, 4, 9), make_reservoir("lagged", 6, 4, 9)
    for i in range(40):
        x = {"f": VALUES[i % 7], "v": VALUES[i % len(VALUES)]}
        reservoir.update(x if i % 3 else dict(reversed(x.items())), rng)
    restored.restore(reservoir.snapshot())
    assert told_apart(restored.rows) == told_apart(reservoir.rows)
    waiting = [unpack_rows(one.snapshot()["waiting"]["rows"]) for one in (restored, reservoir)]
    assert told_apart(waiting[0]) == told_apart(waiting[1])
    assert len(waiting[0]) == 3 + 3  # those of the gap, and a room of half of the size
