"""An observation of the form of the one before, read, drawn for and copied into rows by one call of compiled code.

It does what `Steady.read`, `redraw` and `fill` of its explainers do, to the last bit, where every value is a plain
number and the requests are the usual ones. All else is left to Python.

Every kernel here reads `known`, whose entries are named below: numbers of its own, and addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from ..compiled import array_at, call_for_double, call_for_uint32, compiled, is_compiling
from ..evaluation.schema import LARGEST_EXACT
from ..imputers.generators import CFunctions
from ..imputers.kernels import kept, spread_and_replaced, spread_over_halves
from ..imputers.requests import ReplaceRequest, WalkRequest
from ..objects import (
    addresses_of,
    dict_size,
    has,
    has_called,
    has_failed,
    is_equal,
    next_entry,
    number,
    set_attribute,
    type_of,
    whole_at,
)

_GOES_ON, _KEY, _VALUE = range(3)
"""Numbers for `next_entry`."""

_WORDS, _HERE, _F, _R, _N_ROWS, _X, _ROW, _FUNCTION, _SCHEMA, _FLOAT, _INT, _BOOL, _NUMPY = range(3, 16)
"""How many entries there are, and the address of the first one; how many features, requests and rows; addresses of the
rows, and of room for one; of the function and its schema; of the types that values may have, 0 for none."""

_NAMES = addresses_of(
    "_schema", "_evaluator", "_is_doubted", "_faulty", "stored", "is_complete", "matrix", "order", "n", "_rng", "_x",
    "_slots", "_n", dict, str, None, True, False,
)  # fmt: skip
(
    _SCHEMA_AT, _EVALUATOR, _IS_DOUBTED, _FAULTY, _STORED, _IS_COMPLETE, _MATRIX, _ORDER, _N_STORED, _RNG, _OBSERVATION,
    _SLOTS_AT, _N_SLOTS, _DICT, _STR, _NONE, _TRUE, _FALSE,
) = range(16, 34)  # fmt: skip
"""Addresses of names of attributes, types and constants."""

_FEATURES = 34
"""Where the names of the features begin, in the order of the observation; the columns of these follow, and then a part
for each request, whose entries are named below."""

(
    _EXPLAINER, _GENERATOR, _REQUEST, _IMPUTER, _OF_STORED, _OF_MATRIX, _OF_ORDER, _NEXT_DOUBLE, _STATE, _START, _K, _N,
    _SIZE, _COLUMNS, _U, _SLOTS, _MATRIX_DATA, _ORDER_DATA, _IS_WALK, _ORDERS_DATA, _SHUFFLE, _SHUFFLED,
    _HALVES, _OF_SLOTS, _SLOTS_DATA, _ROOM, _IS_STRATIFIED, _NEXT_UINT32, _N_ORDERS, _PART,
) = range(30)  # fmt: skip
"""Addresses of objects; of a C function and its state; the first row, how many players, draws and slots; addresses of
what arrays hold; and what walks alone have, a C function by which they are shuffled, too, or 0: `shuffle` is called."""

_PROVED_NUMPY = ("2.0", "2.1", "2.2", "2.3", "2.4")
"""Series of numpy whose `Generator.shuffle` is known to draw as `_shuffle` does: which it may change."""

_SURE = LARGEST_EXACT / 2.0
"""A sum of floats below it is below `LARGEST_EXACT`, however it was rounded."""


class Known:
    """What compiled code has to know of observations of one form; it holds the objects whose addresses it has.

    Parameters
    ----------
    function, schema
        The fast path, and what encodes its rows.
    names
        The features in the order of the observation.
    plain
        The types of plain numbers.
    asked
        The explainers with their requests.
    X
        Room for the rows.
    """

    def __init__(
        self, function: Any, schema: Any, names: Sequence[Any], plain: frozenset[type], asked: Sequence[Any], X: Any
    ) -> None:
        self._requests = [request for _, request in asked]
        self._arrays = list(map(_arrays_of, self._requests))
        row, F = np.empty(len(names)), len(names)
        self._held: list[Any] = [function, schema, names, asked, X, row]
        types = [id(kind) if kind in plain else 0 for kind in (float, int, bool, np.float64)]
        head = [F, len(asked), len(X), X.ctypes.data, row.ctypes.data, id(function), id(schema), *types]
        found = [*head, *_NAMES.tolist(), *map(id, names), *map(schema.position.__getitem__, names)]
        start = 1
        for (explainer, request), arrays in zip(asked, self._arrays, strict=True):
            found += self._part(explainer, request, arrays, start)
            start += request.n_rows
        known = self._known = np.zeros(_HERE + 1 + len(found), np.int64)
        known[_WORDS], known[_HERE], known[_HERE + 1 :] = len(known), known.ctypes.data, found
        self.address = int(known[_HERE])

    @classmethod
    def of(cls, function: Any, schema: Any, names: Sequence[Any], plain: Any, asked: Any, X: Any) -> Known | None:
        """Return what compiled code has to know; None where it cannot do it."""
        if schema.codes or not is_compiling() or not all(_is_usual(*one) for one in asked):
            return None
        return cls(function, schema, names, plain, asked, X)

    @property
    def is_outdated(self) -> bool:
        """Whether stored rows, or their order, are in other memory by now."""
        now = map(_arrays_of, self._requests)
        return not all(all(map(is_, one, two)) for one, two in zip(now, self._arrays, strict=True))

    def _part(self, explainer: Any, request: Any, arrays: tuple[Any, ...], start: int) -> list[int]:
        matrix, order, *of_halves = arrays
        generator, (k, n) = explainer._rng, (len(request._columns), request.slots.shape[-1])
        c_functions, is_walk = CFunctions(generator), isinstance(request, WalkRequest)
        self._held += [arrays, explainer.imputer, generator, c_functions]
        part = [id(one) for one in (explainer, generator, request, explainer.imputer, request._stored, matrix, order)]
        part += [c_functions.next_double, c_functions.state, start, k, n, len(matrix)]
        part += [one.ctypes.data for one in (request._columns, request._u, request.slots, matrix, order)]
        part.append(is_walk)
        if is_walk:
            orders, halves, shuffled, shuffle = request.orders, request._halves, (request.orders[0],), generator.shuffle
            (slots,) = of_halves
            self._held += [orders, halves, shuffled, shuffle]
            part += [orders.ctypes.data, id(shuffle), id(shuffled), id(halves)]
            part += [id(slots), slots.ctypes.data, slots.shape[1], request._stratified]
            part += [c_functions.next_uint32 if _can_shuffle() else 0, len(orders)]
        return part + [0] * (_PART - len(part))


def _arrays_of(request: Any) -> tuple[Any, ...]:
    """Return the arrays that a request draws from, which may be others later."""
    stored = request._stored
    if type(request) is WalkRequest and request._halves is not None:
        return stored.matrix, stored.order, request._halves._slots
    return stored.matrix, stored.order


def _can_shuffle() -> bool:
    """Return whether `_shuffle` is known to draw as numpy does."""
    return np.__version__.rpartition(".")[0] in _PROVED_NUMPY


def _is_usual(explainer: Any, request: Any) -> bool:
    """Return whether an explainer draws for this request as compiled code does."""
    if not type(explainer).redraw.__module__.startswith(f"{__package__}."):  # one of the user's
        return False
    if request._u is None:
        return False
    stored, slots, orders = request._stored, [], []
    if type(request) is WalkRequest and request._halves is not None:
        slots, orders = [request._halves._slots], [request.orders]
    elif type(request) is not ReplaceRequest:
        return False
    floats, integers = [request._u, stored.matrix], [request._columns, request.slots, *orders, *slots]
    kinds = [(floats, np.float64), (integers, np.int64), ([stored.order], np.int32)]
    return (
        stored is explainer.imputer.stored
        and all(len(one) == 1 or _can_shuffle() for one in orders)
        and all(one.dtype == dtype and one.flags.c_contiguous for of_kind, dtype in kinds for one in of_kind)
    )


@compiled(reads_objects=True)
def take(x: int, address: int) -> int:
    """Take an observation, draw for it and fill the rows; return 0, and nothing is done, where Python is to do it.

    Parameters
    ----------
    x
        The address of the observation.
    address
        That of what is known.
    """
    known = array_at(address, (array_at(address + 8 * _WORDS, (1,), np.int64)[0],), np.int64)
    is_fine = _is_as_before(known) and _is_read(x, known)
    if has_failed() or not is_fine:
        return 0
    F, parts = known[_F], _FEATURES + 2 * known[_F]
    X = array_at(known[_X], (known[_N_ROWS], F), np.float64)
    row = array_at(known[_ROW], (F,), np.float64)
    for i in range(F):
        X[0, known[_FEATURES + F + i]] = row[i]
    for r in range(known[_R]):
        part = known[parts + r * _PART : parts + (r + 1) * _PART]
        set_attribute(part[_REQUEST], known[_OBSERVATION], x)
        is_fine = _fill_walk(part, known, X) if part[_IS_WALK] else _fill_replaced(part, known, X)
        if not is_fine:  # there is no memory for it, as Python will be told, too
            has_failed()
            return 0
    return 1


@compiled(reads_objects=True)
def _is_as_before(known: Any) -> bool:
    """Return whether `FastFunction.schema_at_hand` and what is drawn from, and by, are what they were."""
    function, true, false = known[_FUNCTION], known[_TRUE], known[_FALSE]
    if not (has(function, known[_IS_DOUBTED], false) and has(function, known[_FAULTY], false)):
        return False
    if has(function, known[_EVALUATOR], known[_NONE]) or not has(function, known[_SCHEMA_AT], known[_SCHEMA]):
        return False
    parts = _FEATURES + 2 * known[_F]
    for r in range(known[_R]):
        part = known[parts + r * _PART : parts + (r + 1) * _PART]
        stored = part[_OF_STORED]
        if not (has(part[_EXPLAINER], known[_RNG], part[_GENERATOR]) and has(part[_IMPUTER], known[_STORED], stored)):
            return False
        if not (has(stored, known[_IS_COMPLETE], true) and has(stored, known[_MATRIX], part[_OF_MATRIX])):
            return False
        if not (has(stored, known[_ORDER], part[_OF_ORDER]) and 0 < whole_at(stored, known[_N_STORED]) <= part[_SIZE]):
            return False
        if part[_IS_WALK] and not _are_halves_as_before(part, known):
            return False
    return True


@compiled(reads_objects=True)
def _are_halves_as_before(part: Any, known: Any) -> bool:
    """Return whether walks draw from the same halves."""
    halves = part[_HALVES]
    return has(halves, known[_SLOTS_AT], part[_OF_SLOTS]) and 0 < whole_at(halves, known[_N_SLOTS]) <= part[_ROOM]


@compiled(reads_objects=True)
def _is_read(x: int, known: Any) -> bool:
    """Read the values of an observation; return whether it has the features of before, and plain numbers."""
    F, text = known[_F], known[_STR]
    if type_of(x) != known[_DICT] or dict_size(x) != F:
        return False
    row = array_at(known[_ROW], (F,), np.float64)
    total = 0.0
    known[_GOES_ON] = 0
    for i in range(F):
        if not next_entry(x, known[_HERE]):
            return False
        key, value, name = known[_KEY], known[_VALUE], known[_FEATURES + i]
        # Others than texts may run code of their own where they are compared.
        if key != name and not (type_of(key) == text and type_of(name) == text and is_equal(key, name)):
            return False
        kind = type_of(value)
        if kind != known[_FLOAT] and kind != known[_INT] and kind != known[_BOOL] and kind != known[_NUMPY]:
            return False
        row[i] = number(value)
        total += abs(row[i])
    return total < _SURE


@compiled(reads_objects=True)
def _draw(part: Any, n: int) -> Any:
    """Return n uniform numbers, as `Generator.random` of numpy writes them to `u`."""
    u = array_at(part[_U], (n,), np.float64)
    for i in range(n):
        u[i] = call_for_double(part[_NEXT_DOUBLE], part[_STATE])
    return u


@compiled(reads_objects=True)
def _shuffle(next_uint32: int, state: int, order: Any) -> None:
    """Shuffle an array as `Generator.shuffle` of numpy does: each place from the last one on, with one up to it.

    Where that one is, is said by as many bits as the largest place has, drawn until they are no more than it.
    """
    for i in range(len(order) - 1, 0, -1):
        bits = 1
        while bits < i:
            bits = 2 * bits + 1
        j = call_for_uint32(next_uint32, state) & bits
        while j > i:
            j = call_for_uint32(next_uint32, state) & bits
        order[i], order[j] = order[j], order[i]


@compiled(reads_objects=True)
def _fill_replaced(part: Any, known: Any, X: Any) -> bool:
    """Do what `redraw` and `fill` do for a `ReplaceRequest`."""
    k, n, size, F = part[_K], part[_N], part[_SIZE], X.shape[1]
    _draw(part, k * n)
    u = array_at(part[_U], (k, n), np.float64)
    columns = array_at(part[_COLUMNS], (k,), np.int64)
    slots = array_at(part[_SLOTS], (k, n), np.int64)
    order = array_at(part[_ORDER_DATA], (F, size), np.int32)
    matrix = array_at(part[_MATRIX_DATA], (size, F), np.float64)
    n_stored = whole_at(part[_OF_STORED], known[_N_STORED])
    spread_and_replaced(u, n_stored, columns, order, slots, part[_START], matrix, X)
    return True


@compiled(reads_objects=True)
def _fill_walk(part: Any, known: Any, X: Any) -> bool:
    """Do what `redraw` and `fill` do for a `WalkRequest`; return whether that was possible."""
    k, n, F = part[_K], part[_N], X.shape[1]
    orders = array_at(part[_ORDERS_DATA], (part[_N_ORDERS], k), np.int64)
    for p in range(len(orders)):
        for i in range(k):
            orders[p, i] = orders[p - 1, k - 1 - i] if p % 2 else i
        if p % 2 == 0 and part[_NEXT_UINT32] != 0:
            _shuffle(part[_NEXT_UINT32], part[_STATE], orders[p])
    if part[_NEXT_UINT32] == 0 and not has_called(part[_SHUFFLE], part[_SHUFFLED]):  # of one order
        return False
    u = _draw(part, n)
    slots, columns = array_at(part[_SLOTS], (n,), np.int64), array_at(part[_COLUMNS], (k,), np.int64)
    halves = array_at(part[_SLOTS_DATA], (4, part[_ROOM]), np.int64)
    n_slots = whole_at(part[_HALVES], known[_N_SLOTS])
    n_older = n_slots // 2
    older, younger = halves[0, :n_older], halves[1, : n_slots - n_older]
    spread_over_halves(u, older, younger, part[_IS_STRATIFIED] != 0, slots)
    matrix = array_at(part[_MATRIX_DATA], (part[_SIZE], F), np.float64)
    kept(part[_START], orders, columns, slots, matrix, X)
    return not has_failed()
