"""Python objects read by kernels: what each gives, that nothing crashes, and that no reference is lost or kept."""

from __future__ import annotations

import ctypes
import math
import sys
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from river.utils import VectorDict

from attributary_explainers import compiled, objects
from attributary_explainers.compiled import is_compiling
from attributary_explainers.meanwhile import waiting

pytestmark = pytest.mark.skipif(not is_compiling(), reason="kernels are not compiled")


@pytest.fixture(autouse=True)
def compiled_at_once() -> Iterator[None]:
    with waiting():
        yield
    _held.clear()
    assert not objects.has_failed()


_held: list[Any] = []


def at(one: Any) -> int:
    """The address of an object, which is held for as long as the test runs."""
    _held.append(one)
    return id(one)


class Owner:
    def __init__(self) -> None:
        self.number, self.whole, self.name = 1.5, 7, "some text"


class Slots:
    __slots__ = ("number",)


def test_attributes_and_entries_are_those_of_python() -> None:
    owner, entries = Owner(), [1.0, 2.5, None]
    number, whole = sys.intern("number"), sys.intern("whole")
    assert objects.number_at(at(owner), at(number)) == 1.5
    assert objects.whole_at(at(owner), at(whole)) == 7
    assert objects.has(at(owner), at(number), at(owner.number))
    assert not objects.has(at(owner), at(number), at(owner.whole))
    assert objects.item(at(entries), 1) == at(entries[1])
    assert objects.number(at(entries[1])) == 2.5
    assert objects.number(at(3)) == 3.0
    assert objects.number(at(True)) == 1.0
    assert objects.list_size(at(entries)) == 3
    assert objects.dict_size(at({"a": 1})) == 1
    assert objects.has_element(at(entries), 2, at(None))
    assert objects.has_element(at((owner,)), 0, at(owner))
    columns = {"a": 3}
    assert objects.value_of(at(columns), at("a")) == at(3)
    assert objects.value_of(at(columns), at("b")) == 0
    found = objects.entry_of(at(columns), at("a"))
    assert found == at(3)
    objects.release(found)
    assert objects.is_equal(at("".join(["n", "ba"])), at("nba"))
    assert not objects.is_equal(at("nb"), at("nba"))
    assert objects.is_a(at(1.0), at(float))
    assert not objects.is_a(at(True), at(int))
    assert objects.is_subset(at({"a"}), at(columns.keys()))
    assert not objects.is_subset(at({"a", "b"}), at(columns.keys()))


def test_all_entries_of_a_dict_come_in_their_order() -> None:
    held = {"b": 1.0, "a": 2.0, 3: "c"}
    entry = np.zeros(3, np.int64)
    found = []
    while objects.next_entry(at(held), entry.ctypes.data):
        found.append((int(entry[1]), int(entry[2])))
    assert found == [(at(key), at(value)) for key, value in held.items()]


def test_attributes_and_lists_are_changed_as_python_does() -> None:
    owner, value, entries = Owner(), 12345.25, [1, 2, 3]
    objects.set_attribute(at(owner), at(sys.intern("number")), at(value))
    objects.set_whole_at(at(owner), at(sys.intern("whole")), 10**15)
    assert owner.number is value
    assert owner.whole == 10**15
    objects.append(at(entries), at(value))
    objects.set_item(at(entries), 0, at(value))
    assert entries == [value, 2, 3, value]
    assert entries[0] is value
    objects.cut(at(entries), 1)
    objects.cut(at(entries), 5)
    assert entries == [value]


def test_lists_and_tuples_are_made() -> None:
    value = 12345.25
    held, before = {"b": value, "a": 2.0}, sys.getrefcount(value)
    makes: tuple[tuple[Callable[[], int], Any], ...] = (
        (lambda: objects.values_of(at(held)), [value, 2.0]),
        (lambda: objects.list_of(at((value, None))), [value, None]),
        (lambda: objects.triple(at(value), at(None), at("c")), (value, None, "c")),
    )
    for make, expected in makes:
        made = make()
        found = ctypes.cast(made, ctypes.py_object).value
        assert found == expected
        assert type(found) is type(expected)
        assert sys.getrefcount(found) == 3, "its own, that of this name and the argument's"
        del found
        objects.release(made)
    del makes, make, expected
    _held.clear()
    assert sys.getrefcount(value) == before
    assert objects.triple(at(value), 0, at("c")) == 0
    assert objects.values_of(0) == objects.list_of(0) == 0


def test_no_reference_is_lost_or_kept() -> None:
    owner, value, entries = Owner(), 12345.25, list[Any]()
    owner.number = value
    name = at(sys.intern("number"))
    of_owner, of_value, of_list, pair, kind = at(owner), at(value), at(entries), at((value,)), at(float)
    weights = at(VectorDict({"number": value}))
    before = sys.getrefcount(value), sys.getrefcount(owner)
    for _ in range(100):
        objects.number_at(of_owner, name)
        objects.has(of_owner, name, of_value)
        objects.has_element(pair, 0, of_value)
        objects.set_attribute(of_owner, name, of_value)
        objects.append(of_list, of_value)
        objects.set_item(of_list, 0, of_value)
        objects.cut(of_list, 0)
        objects.is_a(of_value, kind)
        objects.release(objects.attribute(of_owner, name))
        objects.release(objects.entry_of(weights, name))
    assert (sys.getrefcount(value), sys.getrefcount(owner)) == before


_WRONG = object()


@pytest.mark.parametrize(
    "call",
    [
        lambda: objects.number_at(at(_WRONG), at(sys.intern("number"))),
        lambda: objects.number_at(at(Slots()), at(sys.intern("number"))),  # a slot that has not been filled
        lambda: objects.number(at("text")),
        lambda: objects.whole(at("text")),
        lambda: objects.whole(at(2**70)),
        lambda: objects.item(at((1.0,)), 0),
        lambda: objects.item(at([1.0]), 1),
        lambda: objects.item(at([1.0]), -1),
        lambda: objects.list_size(at(None)),
        lambda: objects.element(at({}), 0),
        lambda: objects.element(at([]), 0),
        lambda: objects.dict_size(at([])),
        lambda: objects.value_of(at([]), at("a")),
        lambda: objects.value_of(at({}), at([])),  # no key at all
        lambda: objects.entry_of(at({}), at("a")),
        lambda: objects.entry_of(at(_WRONG), at("a")),
        lambda: objects.set_attribute(at(_WRONG), at(sys.intern("number")), at(None)),
        lambda: objects.append(at(()), at(None)),
        lambda: objects.set_item(at([]), 0, at(None)),
        lambda: objects.is_subset(at(_WRONG), at({})),
        lambda: objects.values_of(at([])),
        lambda: objects.list_of(at(None)),
    ],
)
def test_what_cannot_be_read_fails_with_an_error_and_crashes_nothing(call: Callable[[], Any]) -> None:
    with pytest.raises(SystemError, match="exception set"):  # a kernel that asks `has_failed` goes on
        call()


def test_what_is_not_there_is_none_of_anything() -> None:
    name = at(sys.intern("number"))
    assert objects.attribute(0, name) == 0
    assert objects.item(0, 0) == 0
    assert objects.element(0, 0) == 0
    assert math.isnan(objects.number(0))
    assert objects.whole(0) == 0
    assert objects.value_of(0, at("a")) == 0
    assert objects.entry_of(0, at("a")) == 0
    assert objects.list_size(0) == -1
    assert objects.dict_size(0) == -1
    assert not objects.next_entry(0, 0)
    assert not objects.is_a(0, at(float))
    assert not objects.is_equal(0, 0)
    assert not objects.next_entry(at([]), np.zeros(3, np.int64).ctypes.data)
    objects.release(0)
    assert not objects.has_failed()


def test_names_are_held() -> None:
    array = objects.addresses_of("number", None)
    assert array.tolist() == [at(sys.intern("number")), at(None)]


def test_where_a_function_is_not_found_python_reads() -> None:
    """A process that called it would end."""
    try:
        compiled.c_function("PyList_NoSuchFunction", "p", "p")
        assert compiled.compiled(reads_objects=True)(lambda one: one)(1) == 0
    finally:
        compiled._not_found.clear()
    assert compiled.compiled(reads_objects=True)(lambda one: one)(1) == 1
    compiled._kernels.pop()


def test_sequences_are_changed_as_python_changes_them() -> None:
    numbers, data, entries = array("q", [1, 2, 3]), bytearray(b"abcd"), [1, 2, 3]
    objects.extend(at(numbers), at(array("q", [9])))
    objects.extend(at(data), at(b"xy"))
    objects.set_whole_of(at(numbers), 1, 7)
    for one in (numbers, data, entries):
        objects.delete(at(one), 0, 1)
    assert (numbers, data, entries) == (array("q", [7, 3, 9]), bytearray(b"bcdxy"), [2, 3])
    assert objects.size_of(at(numbers)) == 3
    assert objects.whole_of(at(numbers), 2) == 9
    assert objects.bytes_at(at(data), at(bytearray)) != 0 == objects.bytes_at(at(b"no"), at(bytearray))
    given, before = at(entries), sys.getrefcount(entries)
    found = objects.called_with(at(len), given)
    assert objects.whole(found) == 2
    objects.release(found)
    assert sys.getrefcount(entries) == before
