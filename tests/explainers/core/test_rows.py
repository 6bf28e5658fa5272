"""Rows that are packed for a snapshot come back as they were: values, types and the order of the keys."""

import copy
import math
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers import SnapshotError, make_reservoir
from attributary_explainers.core.rows import Rows
from attributary_explainers.packing import Values

VALUES = [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 5e-324, 2**53 + 1, -(10**40), 0, True, False, None, "red", ""]
values = st.one_of(st.sampled_from(VALUES), st.floats(), st.integers(), st.text(max_size=3), st.booleans())


def pack_rows(rows):
    return Rows(rows).snapshot()


def unpack_rows(packed):
    return list(Rows.from_snapshot(packed))


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


def test_numbers_are_bytes_and_all_else_is_as_it_was():
    rows = [{"float": 0.5, "int": 1, "flag": True, "text": "red"}]
    rows.append({"float": 1, "int": 10**40, "flag": None, "text": ""})
    packed = pack_rows(rows)
    names = ["float", "int", "flag", "text"]
    assert packed["forms"] == [[names, "dq?o"], [names, "qooo"]]
    assert packed["numbers"] == struct.pack("<dddd", 0.5, 1.0, 1.0, 1.0)
    assert packed["objects"] == [("red",), (10**40, None, "")]


def test_names_that_are_equal_and_not_the_same_stay_apart():
    rows = [{1: 0.5}, {True: 0.5}, {1.0: 0.5}, {1: 0.5}]
    found = [name for row in unpack_rows(pack_rows(rows)) for name in row]
    assert list(map(type, found)) == [int, bool, float, int]


def test_names_of_which_one_is_no_text_are_those_of_another_process():
    rows = Rows([{1: 0.25, "no": 0.75}])
    restored = pickle.loads(pickle.dumps(rows))
    for one in (rows, restored):
        one.append({1: 0.5, "".join(["n", "o"]): 0.5})
        one.append({("g", 1): 0.5})
        one.append({("g", True): 0.5})
        assert list(one)[1:] == [{1: 0.5, "no": 0.5}, {("g", 1): 0.5}, {("g", True): 0.5}]
        assert [repr(name) for row in list(one)[2:] for name in row] == ["('g', 1)", "('g', True)"]


def test_values_that_are_equal_and_not_the_same_are_kept_apart():
    rows = Rows({"a": value} for value in (1, True, 1.0, -0.0, 0.0, 0, 2**53, 2**53 - 1, 1 - 2**53))
    assert [repr(row["a"]) for row in rows] == [
        "1", "True", "1.0", "-0.0", "0.0", "0", "9007199254740992", "9007199254740991", "-9007199254740991",
    ]  # fmt: skip


widths = st.sampled_from([0, 1, 2, 3, 40, 300])
changes = st.tuples(
    st.sampled_from(["append", "extend", "put", "drop", "drop first", "move", "store"]),
    st.integers(0, 10**6),
    widths,
    values,
)


@given(st.integers(0, 200), st.lists(changes, max_size=60))
def test_rows_of_many_lengths_are_those_of_a_list(n_alike, steps):
    rows, expected = Rows(), []
    for i in range(n_alike):  # enough that all are looked at again
        expected.append({"a": float(i)})
        rows.append(expected[-1])
    for what, place, width, value in steps:
        row = {f"n{i}": value if i == 0 else 0.5 * i for i in range(width)}
        if what == "store":
            rows = Rows.from_snapshot(rows.snapshot())
        elif what == "extend":
            rows.extend([row, {"a": 0.5}, row])
            expected += [row, {"a": 0.5}, row]
        elif what == "drop first":
            rows.drop_first(place % 5)
            del expected[: place % 5]
        elif what == "append" or not expected:
            rows.append(row)
            expected.append(row)
        elif what == "put":
            rows.put(place % len(expected), row)
            expected[place % len(expected)] = row
        elif what == "move":
            other = Rows([{"a": 0.5}, row, row])
            slot = place % (len(expected) + 1)
            rows.put_from(slot, other, 1)
            expected[slot : slot + 1] = [row]
        else:
            rows.drop(place % len(expected))
            del expected[place % len(expected)]
    assert told_apart(rows) == told_apart(expected)
    assert told_apart([rows[i] for i in range(len(rows))]) == told_apart(expected)
    stored = rows.snapshot()
    assert pickle.dumps(Rows.from_snapshot(stored).snapshot()) == pickle.dumps(pickle.loads(pickle.dumps(stored)))


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_a_few_wide_rows_do_not_widen_the_others(first):
    wide, narrow = {f"n{i}": 0.5 for i in range(1000)}, {"a": 0.5}
    rows = Rows()
    for i in range(1000):
        rows.append(wide if i == (0 if first else 500) else narrow)
    assert (rows[0], rows[500], rows[999]) == ((wide, narrow, narrow) if first else (narrow, wide, narrow))
    assert told_apart([rows[0], rows[500]]) == told_apart([wide, narrow] if first else [narrow, wide])
    assert rows.size < 20_000
    for i in range(3100):
        rows.put(i % 1000, {"b": 1})
    assert rows.snapshot()["forms"] == [[["b"], "q"]]
    assert rows.n_forms == 1, "nothing is left of rows that are gone"


def test_after_thousands_of_other_names_a_restored_reservoir_is_stored_as_one_that_was_never_stopped():
    first, running = {"a": 1.0, "b": 2.0}, Rows()
    for i in range(5000):
        running.append(first)
        running.put(0, {f"other{i}": 1.0})
        running.put(0, first)
        if i > 10:
            running.drop(0)
    restored = Rows.from_snapshot(running.snapshot())
    for rows in (running, restored):
        rows.append(first)
    assert running.snapshot() == restored.snapshot()
    assert len(running.snapshot()["forms"]) == 1


def test_a_slot_may_be_counted_from_the_end_and_none_beyond_it():
    rows = Rows([{"a": float(i)} for i in range(4)])
    assert (rows[-1], rows[-2], len(rows)) == ({"a": 3.0}, {"a": 2.0}, 4)
    rows.drop(-2)
    rows.drop(-1)
    rows.put(-1, {"a": 7.0})
    rows.append({"a": 8.0})
    assert list(rows) == [{"a": 0.0}, {"a": 7.0}, {"a": 8.0}]
    for wrong in (lambda: rows[3], lambda: rows[-4], lambda: rows.drop(3), lambda: rows.put(-4, {})):
        with pytest.raises(IndexError):
            wrong()


@given(st.lists(st.one_of(st.floats(), values)))
def test_values_are_those_of_a_list(given_values):
    made = Values()
    for value in given_values[:3]:
        made.append(value)
    made.extend(given_values[3:])
    for i, value in enumerate(given_values[:3]):
        made[-1 - i] = value
        given_values[-1 - i] = value
    del made[:2], given_values[:2]
    if given_values:
        assert told_apart([{0: made.pop(0)}]) == told_apart([{0: given_values.pop(0)}])
    for one in (made, Values.from_snapshot(made.snapshot()), Values(given_values)):
        assert told_apart([dict(enumerate(one))]) == told_apart([dict(enumerate(given_values))])
    assert isinstance(made.snapshot(), bytes) == (set(map(type, given_values)) == {float})


def test_floats_take_eight_bytes_each():
    assert Values([0.5, 1.5])._values.itemsize == 8
    assert len(Values([0.5, 1.5]).snapshot()) == 16
    restored = Values.from_snapshot(Values().snapshot())
    restored.append(0.5)
    assert restored.snapshot() == struct.pack("d", 0.5)


@pytest.mark.parametrize("forged", [5, "text", b"1234567", None])
def test_forged_values_are_refused(forged):
    with pytest.raises(SnapshotError, match="not what an explainer has written"):
        Values.from_snapshot(forged)


def test_a_row_that_is_changed_afterwards_is_kept_as_it_was():
    row, rows = {"a": 1.0}, Rows()
    rows.append(row)
    row["a"] = 2.0
    row["b"] = 1
    rows.append(row)
    assert list(rows) == [{"a": 1.0}, {"a": 2.0, "b": 1}]


@pytest.mark.parametrize(
    "change",
    [
        {"numbers": b"1234567812345678"[:-1]},
        {"numbers": "1234567812345678"},
        {"of": 2},
        {"of": b"\0\0\0\0\1\0\0\0"},
        {"of": b"\0\0\0\0\0"},
        {"of": b"\0\0\0\0"},
        {"forms": [[["a"], "Z"]]},
        {"forms": [[["a", "b"], "d"]]},
        {"objects": [(), ("more",)]},
        {"objects": [(), []]},
    ],
    ids=[
        "short",
        "text",
        "number",
        "unknown form",
        "torn",
        "fewer rows",
        "unknown code",
        "more names",
        "more objects",
        "list",
    ],
)
def test_forged_rows_are_refused(change):
    packed = pack_rows([{"a": 1.0}, {"a": 2.0}])
    with pytest.raises(SnapshotError, match="not what an explainer has written"):
        unpack_rows({**packed, **change})


def test_a_copy_of_stored_rows_is_as_they_are_and_goes_on_by_itself():
    rows = Rows([{"a": 1.0}, {"a": 2.0, "b": "red"}])
    for copied in (copy.deepcopy(rows), pickle.loads(pickle.dumps(rows))):
        assert (copied == rows, copied.snapshot() == rows.snapshot()) == (True, True)
        copied.put(0, {"a": 3.0})
        assert (copied[0], rows[0]) == ({"a": 3.0}, {"a": 1.0})


def test_means_are_those_of_rows_with_the_same_numbers():
    rows = Rows([{"b": 1.5, "a": 2}, {"b": 3, "a": -4.5}, {"b": 0.0, "a": 1}, {"b": 2.5, "a": 7}])
    rows.drop_first(1)
    for chosen, expected in (
        ((0, 3), [5.5 / 3, 3.5 / 3]),
        ((0, 2), [1.5, -1.75]),
        ((0, 3, 2), [2.75, 1.25]),
        ((2, 9), [2.5, 7.0]),
    ):
        names, means = rows.means(*chosen)
        assert (names, means.tolist()) == (("b", "a"), expected)
    for other in ({"a": 1.0, "b": 1.0}, {"b": True, "a": 1.0}, {"b": 1.0}, {"b": "x", "a": 1.0}, {"b": None, "a": 1.0}):
        assert Rows([*rows, other]).means(0, 4) is None
        assert Rows([*rows, other]).means(0, 3) is not None, "it is not among these"
    for large in (math.nan, math.inf, 1e150, -1e200):
        assert Rows([*rows, {"b": large, "a": 1.0}, {"b": -large, "a": 1.0}]).means(0, 5) is None
    assert (rows.means(3, 9), Rows().means(0, 1), Rows([{}]).means(0, 1)) == (None, None, None)


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
