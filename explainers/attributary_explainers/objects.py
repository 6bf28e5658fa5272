"""Python objects as kernels read them: by their addresses, with functions of the interpreter's C interface.

What learning has just written is read in a fifth of the time that Python takes for it: most of that goes to code and
objects of the interpreter, which learning has driven out of the cache.

The caller holds the objects whose addresses it passes. A function that fails, or that is given the address 0, which
stands for what is not there, gives a number of no meaning; `has_failed` tells afterwards, and the caller does without.
Where kernels are not compiled, one that is marked `reads_objects` answers 0, and Python is to read.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from .compiled import c_function, compiled

_get_attribute = c_function("PyObject_GetAttr", "p", "pp")
_set_attribute = c_function("PyObject_SetAttr", "i", "ppp")
_as_double = c_function("PyFloat_AsDouble", "d", "p")
_as_whole = c_function("PyLong_AsLongLong", "l", "p")
_list_size = c_function("PyList_Size", "p", "p")
_list_item = c_function("PyList_GetItem", "p", "pp")
_set_item = c_function("PyList_SetItem", "i", "ppp")
_sequence_item = c_function("PySequence_GetItem", "p", "pp")
_append = c_function("PyList_Append", "i", "pp")
_set_slice = c_function("PyList_SetSlice", "i", "pppp")
_dict_size = c_function("PyDict_Size", "p", "p")
_dict_next = c_function("PyDict_Next", "i", "pppp")
_set_dict_item = c_function("PyDict_SetItem", "i", "ppp")
_dict_item = c_function("PyDict_GetItemWithError", "p", "pp")
_entry_of = c_function("PyObject_GetItem", "p", "pp")
_compare = c_function("PyObject_RichCompareBool", "i", "ppi")
_type = c_function("PyObject_Type", "p", "p")
_call = c_function("PyObject_CallObject", "p", "pp")
_from_double = c_function("PyFloat_FromDouble", "p", "d")
_from_whole = c_function("PyLong_FromLongLong", "p", "l")
_hold = c_function("Py_IncRef", "v", "p")
_release = c_function("Py_DecRef", "v", "p")
_in_place_concat = c_function("PySequence_InPlaceConcat", "p", "pp")
_del_slice = c_function("PySequence_DelSlice", "i", "ppp")
_set_element = c_function("PySequence_SetItem", "i", "ppp")
_bytes = c_function("PyByteArray_AsString", "p", "p")
_sequence_size = c_function("PySequence_Size", "p", "p")
_tuple_slice = c_function("PyTuple_GetSlice", "p", "ppp")
_new_tuple = c_function("PyTuple_New", "p", "p")
_set_tuple_item = c_function("PyTuple_SetItem", "i", "ppp")
_error = c_function("PyErr_Occurred", "p", "")
_clear = c_function("PyErr_Clear", "v", "")
_dict_values = c_function("PyDict_Values", "p", "p")
_as_list = c_function("PySequence_List", "p", "p")

_LESS_OR_EQUAL, _EQUAL = 1, 2


_held: list[Any] = []


def addresses_of(*objects: Any) -> Any:
    """Return the addresses of objects, names of attributes most often; they are held while the process lasts."""
    # The very strings by which the interpreter knows attributes are found fastest.
    held = [sys.intern(one) if type(one) is str else one for one in objects]
    _held.append(held)
    return np.array([*map(id, held)], np.int64)


@compiled(reads_objects=True)
def attribute(one: int, name: int) -> int:
    """Return an attribute, which is to be released; 0 where there is none."""
    return _get_attribute(one, name) if one != 0 else 0


@compiled(reads_objects=True)
def release(one: int) -> None:
    """Give back what `attribute` or `element` has returned."""
    if one != 0:
        _release(one)


@compiled(reads_objects=True)
def number(one: int) -> float:
    """Return a number as a float."""
    return _as_double(one) if one != 0 else math.nan


@compiled(reads_objects=True)
def whole(one: int) -> int:
    """Return a whole number."""
    return _as_whole(one) if one != 0 else 0


@compiled(reads_objects=True)
def number_at(one: int, name: int) -> float:
    """Return an attribute that is a number."""
    found = attribute(one, name)
    value = number(found)
    release(found)
    return value


@compiled(reads_objects=True)
def whole_at(one: int, name: int) -> int:
    """Return an attribute that is a whole number."""
    found = attribute(one, name)
    value = whole(found)
    release(found)
    return value


@compiled(reads_objects=True)
def has(one: int, name: int, other: int) -> bool:
    """Return whether an attribute is this very object."""
    found = attribute(one, name)
    release(found)
    return found == other


@compiled(reads_objects=True)
def set_attribute(one: int, name: int, value: int) -> None:
    """Set an attribute."""
    _set_attribute(one, name, value)


@compiled(reads_objects=True)
def list_size(one: int) -> int:
    """Return the length of a list; -1 where it is none."""
    return _list_size(one) if one != 0 else -1


@compiled(reads_objects=True)
def item(one: int, i: int) -> int:
    """Return an entry of a list, which the list holds; 0 where there is none."""
    return _list_item(one, i) if one != 0 else 0


@compiled(reads_objects=True)
def set_item(one: int, i: int, value: int) -> None:
    """Replace an entry of a list."""
    _hold(value)
    _set_item(one, i, value)


@compiled(reads_objects=True)
def element(one: int, i: int) -> int:
    """Return an entry of a list or tuple, which is to be released; 0 where there is none."""
    return _sequence_item(one, i) if one != 0 else 0


@compiled(reads_objects=True)
def has_element(one: int, i: int, other: int) -> bool:
    """Return whether an entry of a list or tuple is this very object."""
    found = element(one, i)
    release(found)
    return found == other


@compiled(reads_objects=True)
def dict_size(one: int) -> int:
    """Return the length of a dict; -1 where it is none."""
    return _dict_size(one) if one != 0 else -1


@compiled(reads_objects=True)
def next_entry(one: int, at: int) -> bool:
    """Return whether a dict has one more entry, and write it; the dict holds it.

    Parameters
    ----------
    at
        The address of three integers: where the dict goes on, 0 at first, and, written, the addresses of a key and of
        its value.
    """
    return one != 0 and _dict_next(one, at, at + 8, at + 16) != 0


@compiled(reads_objects=True)
def value_of(one: int, key: int) -> int:
    """Return the value of a key, which the dict holds; 0 where there is none."""
    return _dict_item(one, key) if one != 0 and key != 0 else 0


@compiled(reads_objects=True)
def is_equal(one: int, other: int) -> bool:
    """Return whether two objects are equal."""
    return bool(one != 0 and other != 0 and _compare(one, other, _EQUAL) == 1)


@compiled(reads_objects=True)
def is_subset(one: int, other: int) -> bool:
    """Return whether a set has nothing that another one, or the keys of a dict, have not."""
    return bool(one != 0 and other != 0 and _compare(one, other, _LESS_OR_EQUAL) == 1)


@compiled(reads_objects=True)
def type_of(one: int) -> int:
    """Return the type of an object, which is not to be released: the object holds it."""
    if one == 0:
        return 0
    found: int = _type(one)
    _release(found)
    return found


@compiled(reads_objects=True)
def is_a(one: int, kind: int) -> bool:
    """Return whether an object is of this very type."""
    return one != 0 and type_of(one) == kind


@compiled(reads_objects=True)
def append(one: int, value: int) -> None:
    """Put an object behind the last entry of a list."""
    _append(one, value)


@compiled(reads_objects=True)
def cut(one: int, n: int) -> None:
    """Leave a list only its first entries."""
    size = list_size(one)
    if size > n:
        _set_slice(one, n, size, 0)


@compiled(reads_objects=True)
def set_number_at(one: int, name: int, value: float) -> None:
    """Set an attribute to a float."""
    made = _from_double(value)
    if made != 0:
        _set_attribute(one, name, made)
        _release(made)


@compiled(reads_objects=True)
def set_whole_at(one: int, name: int, value: int) -> None:
    """Set an attribute to an int."""
    made = _from_whole(value)
    if made != 0:
        _set_attribute(one, name, made)
        _release(made)


@compiled(reads_objects=True)
def set_number_of(one: int, key: int, value: float) -> None:
    """Set the value of a key of a dict to a float."""
    made = _from_double(value)
    if made != 0:
        _set_dict_item(one, key, made)
        _release(made)


@compiled(reads_objects=True)
def has_called(function: int, arguments: int) -> bool:
    """Return whether a function could be called with the arguments of a tuple; what it returns is released."""
    found = _call(function, arguments) if function != 0 and arguments != 0 else 0
    release(found)
    return found != 0


@compiled(reads_objects=True)
def has_failed() -> bool:
    """Return whether a function has failed since the last call."""
    if _error() == 0:
        return False
    _clear()
    return True


@compiled(reads_objects=True)
def entry_of(one: int, key: int) -> int:
    """Return what an object has in brackets for a key, which is to be released; 0 where there is none."""
    return _entry_of(one, key) if one != 0 and key != 0 else 0


@compiled(reads_objects=True)
def values_of(one: int) -> int:
    """Return a list of the values of a dict, which is to be released; 0 where it is none."""
    return _dict_values(one) if one != 0 else 0


@compiled(reads_objects=True)
def list_of(one: int) -> int:
    """Return a list of the entries of a list or tuple, which is to be released; 0 where it is none."""
    return _as_list(one) if one != 0 else 0


@compiled(reads_objects=True)
def triple(first: int, second: int, third: int) -> int:
    """Return a tuple of three objects, which is to be released."""
    made = _new_tuple(3)
    if made == 0 or first == 0 or second == 0 or third == 0:
        release(made)
        return 0
    _hold(first)
    _hold(second)
    _hold(third)
    _set_tuple_item(made, 0, first)
    _set_tuple_item(made, 1, second)
    _set_tuple_item(made, 2, third)
    return made  # type: ignore[no-any-return]


@compiled(reads_objects=True)
def size_of(one: int) -> int:
    """Return the length of a list, tuple or array; -1 where it has none."""
    return _sequence_size(one) if one != 0 else -1


@compiled(reads_objects=True)
def whole_of(one: int, i: int) -> int:
    """Return an entry of a list, tuple or array that is a whole number."""
    found = element(one, i)
    value = whole(found)
    release(found)
    return value


@compiled(reads_objects=True)
def set_whole_of(one: int, i: int, value: int) -> None:
    """Replace an entry of a list or array by an int."""
    made = _from_whole(value)
    if made != 0:
        _set_element(one, i, made)
        _release(made)


@compiled(reads_objects=True)
def extend(one: int, other: int) -> None:
    """Put the entries of a sequence of the same type behind those of a list or array, or bytes behind a bytearray."""
    release(_in_place_concat(one, other))


@compiled(reads_objects=True)
def delete(one: int, start: int, end: int) -> None:
    """Take entries out of a list, array or bytearray, and move those behind them up."""
    _del_slice(one, start, end)


@compiled(reads_objects=True)
def bytes_at(one: int, kind: int) -> int:
    """Return the address of the bytes of a bytearray, which holds until its length changes; `kind` is that type."""
    return _bytes(one) if is_a(one, kind) else 0


@compiled(reads_objects=True)
def first_of(one: int, n: int) -> int:
    """Return a tuple with the first entries of a tuple, which is to be released; 0 where there is none."""
    return _tuple_slice(one, 0, n) if one != 0 else 0


@compiled(reads_objects=True)
def called_with(function: int, argument: int) -> int:
    """Return what a function returns for one argument, which is to be released; 0 where it fails."""
    arguments = _new_tuple(1)
    if arguments == 0 or function == 0 or argument == 0:
        release(arguments)
        return 0
    _hold(argument)
    _set_tuple_item(arguments, 0, argument)
    found: int = _call(function, arguments)
    _release(arguments)
    return found


@compiled(reads_objects=True)
def hold(one: int) -> None:
    """Hold an object until `release`."""
    if one != 0:
        _hold(one)
