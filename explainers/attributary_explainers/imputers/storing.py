"""An observation that is given to a reservoir by compiled code: counted, drawn for, and stored where it is chosen.

It does what `LaggedReservoir.update` and `MarginalImputer.update` do, to the last bit, where observations are numbers
that have been seen as integers and floats in the same places before, and the reservoir is full. All else is left to
these.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from ..compiled import array_at, call_for_double, compiled
from ..evaluation.schema import LARGEST_EXACT
from ..keeping.rows import Rows
from ..objects import (
    addresses_of,
    append,
    attribute,
    bytes_at,
    called_with,
    delete,
    dict_size,
    element,
    extend,
    first_of,
    has,
    has_failed,
    hold,
    is_a,
    is_equal,
    item,
    list_size,
    next_entry,
    number,
    number_at,
    release,
    set_attribute,
    set_item,
    set_number_at,
    set_whole_at,
    set_whole_of,
    size_of,
    type_of,
    whole,
    whole_at,
    whole_of,
)
from .generators import CFunctions
from .kernels import put, put_in_half
from .marginal import MarginalImputer
from .reservoirs import LaggedReservoir
from .strata import prediction_key

_WORDS, _HERE, _GOES_ON, _KEY, _VALUE, _SLOT, _IMPUTER, _RESERVOIR, _NEXT_DOUBLE, _STATE = range(10)
"""How many entries `known` has, and the address of the third one; numbers for `next_entry`; the slot of a row that has
just been stored; addresses of objects, of a C function and of its state."""

_F, _WAITING, _ROWS, _OF_WAITING, _OF_ROWS, _N_WAITING, _N_ROWS = range(10, 17)
"""How many features observations have, 0 where none are stored here; addresses of the rows that wait and of those that
are stored, and of the lists of their layouts; how many layouts these have."""

_ROW, _ROW_BYTES, _ONE_WHOLE, _ONE_SHORT, _NOTE_OF = range(17, 22)
"""Addresses of a bytearray for one observation and of its bytes, of arrays of one number, and of `prediction_key`."""

_MIRROR, _MATRIX, _KEYS, _ORDER, _MATRIX_DATA, _KEYS_DATA, _ORDER_DATA, _ROOM = range(22, 30)
"""Addresses of the stored rows as an array, 0 without one, of its arrays and of what they hold; for how many rows."""

_HALVES, _HALVES_KEYS, _SLOTS, _HALVES_KEYS_DATA, _SLOTS_DATA, _HALVES_ROOM = range(30, 36)
"""Addresses of the halves by age, 0 without them, of their arrays and of what they hold; for how many rows."""

_NAMES = addresses_of(
    "reservoir", "n_seen", "_due", "size", "_within", "_waiting", "rows", "_layouts", "_of", "_data", "_only",
    "_beside", "_dicts", "_until_look", "_length", "_numbers_waiting", "_notes_waiting", "_n_behind", "gap", "notes",
    "numbers", "_newest", "_newest_slot", "_by_age", "stored", "_strange", "matrix", "_keys", "order", "n",
    "by_prediction", "in_halves", "_halves", "_slots", "_n", "_classes", "_by_features",
    None, True, False, float, int, str, dict, bytearray,
)  # fmt: skip
(
    _RESERVOIR_AT, _N_SEEN, _DUE, _SIZE, _WITHIN, _WAITING_AT, _ROWS_AT, _LAYOUTS, _OF, _DATA, _ONLY,
    _BESIDE, _DICTS, _UNTIL_LOOK, _LENGTH, _NUMBERS_WAITING, _NOTES_WAITING, _N_BEHIND, _GAP, _NOTES,
    _NUMBERS, _NEWEST, _NEWEST_SLOT, _BY_AGE, _STORED, _STRANGE, _MATRIX_AT, _KEYS_AT, _ORDER_AT, _N,
    _BY_PREDICTION, _IN_HALVES, _HALVES_AT, _SLOTS_AT, _N_SLOTS, _CLASSES, _BY_FEATURES,
    _NONE, _TRUE, _FALSE, _FLOAT, _INT, _STR, _DICT, _BYTEARRAY, _LAYOUTS_OF,
) = range(36, 82)  # fmt: skip
"""Addresses of names of attributes, of constants and types; and where the layouts begin, those of the rows that wait,
then those of the stored ones: of each which places have integers, as bits. The addresses of the names of the features
follow, and for each column of the array its place among them."""

_MOST_LAYOUTS, _MOST_FEATURES = 8, 62
_END = _LAYOUTS_OF + 2 * _MOST_LAYOUTS

LEFT, STORED, NOT_CHOSEN, CHOSEN, MOVED = range(5)
"""What has become of an observation: nothing; all is done; it is counted and drawn for, and the rest is left to
`update_counted`; it is taken in, and a row that has waited is in `slot` now: that is left to `follow`."""

_SURE = 2**40
"""Integers below it, and what is made of them here, are exact floats."""
_LOOK_EVERY = 64


class Storing:
    """What compiled code has to know to give observations to a reservoir; it holds the objects whose addresses it has.

    Parameters
    ----------
    imputer, reservoir
        For which `can_be` is True.
    generator
        The explainer's.
    """

    def __init__(self, imputer: MarginalImputer, reservoir: LaggedReservoir, generator: np.random.Generator) -> None:
        functions = CFunctions(generator)
        self._imputer, self._reservoir = imputer, reservoir
        self._always_held, self._held = functions, list[Any]()
        self._n_left = 0
        known = self._known = np.zeros(_END + 2 * _MOST_FEATURES, np.int64)
        known[_WORDS], known[_HERE] = len(known), known.ctypes.data + 8 * _GOES_ON
        known[_IMPUTER : _STATE + 1] = id(imputer), id(reservoir), functions.next_double, functions.state
        known[_RESERVOIR_AT:_LAYOUTS_OF] = _NAMES
        self.address = int(known.ctypes.data)
        self._look()

    @staticmethod
    def can_be(imputer: Any) -> bool:
        """Return whether compiled code may give observations to the reservoir of an imputer."""
        if type(imputer) is not MarginalImputer or type(imputer.reservoir) is not LaggedReservoir:
            return False
        return imputer.reservoir.gap > 1  # one that is stored at once may be at hand as an array

    @property
    def slot(self) -> int:
        """The slot of the row that compiled code has just stored."""
        return int(self._known[_SLOT])

    def look_again(self) -> None:
        """Look from time to time whether what was left to Python can be done here from now on."""
        n = self._n_left = self._n_left + 1
        if n % _LOOK_EVERY == 0 or n & (n - 1) == 0:
            self._look()

    def _look(self) -> None:
        """Find what the observations that are stored have in common, and where they are in memory."""
        known, imputer, reservoir = self._known, self._imputer, self._reservoir
        waiting, rows = reservoir._waiting, reservoir.rows
        layouts = [*waiting._layouts, *rows._layouts]
        known[_F] = 0
        names = layouts[0].names if layouts else ()
        if not (0 < len(names) <= _MOST_FEATURES and _are_alike(waiting, names) and _are_alike(rows, names)):
            return
        row, of_whole, of_short = bytearray(8 * len(names)), array("q", [0]), array("I", [0])
        self._held = [waiting, rows, waiting._layouts, rows._layouts, names, row, of_whole, of_short]
        known[[_WAITING, _ROWS]] = id(waiting), id(rows)
        known[[_OF_WAITING, _OF_ROWS]] = id(waiting._layouts), id(rows._layouts)
        known[[_N_WAITING, _N_ROWS]] = len(waiting._layouts), len(rows._layouts)
        known[[_ROW, _ONE_WHOLE, _ONE_SHORT]] = id(row), id(of_whole), id(of_short)
        known[_ROW_BYTES] = np.frombuffer(row, np.uint8).ctypes.data
        for i, of in enumerate((waiting._layouts, rows._layouts)):
            start = _LAYOUTS_OF + i * _MOST_LAYOUTS
            known[start : start + len(of)] = [_bits(layout.codes) for layout in of]
        known[_END : _END + len(names)] = [*map(id, names)]
        is_noted = imputer.by_prediction and imputer.sampling == "stratified"
        known[_NOTE_OF] = id(prediction_key) if is_noted else 0
        self._find_mirror(names, is_noted)
        known[_F] = len(names)

    def _find_mirror(self, names: tuple[Any, ...], is_noted: bool) -> None:
        """Find the stored rows as an array, and the halves by age."""
        known, imputer = self._known, self._imputer
        stored, halves = imputer.stored, imputer._halves
        known[[_MIRROR, _HALVES]] = 0
        if stored is None or not stored.schema.plain >= {int, float} or stored.schema.codes:
            return
        if stored.schema.keys != set(names) or (imputer.by_prediction and not (is_noted and imputer.in_halves)):
            return
        arrays = stored.matrix, stored._keys, stored.order
        of_halves = halves._keys, halves._slots
        if not all(one.flags.c_contiguous for one in (*arrays, *of_halves)) or stored.order.dtype != np.int32:
            return
        self._held += [stored, halves, arrays, of_halves]
        known[[_MATRIX, _KEYS, _ORDER]] = [*map(id, arrays)]
        known[[_MATRIX_DATA, _KEYS_DATA, _ORDER_DATA]] = [one.ctypes.data for one in arrays]
        known[_END + len(names) : _END + 2 * len(names)] = [*map(names.index, stored.schema.features)]
        known[[_MIRROR, _ROOM]] = id(stored), len(stored.matrix)
        if imputer.by_prediction:
            known[[_HALVES_KEYS, _SLOTS]] = [*map(id, of_halves)]
            known[[_HALVES_KEYS_DATA, _SLOTS_DATA]] = [one.ctypes.data for one in of_halves]
            known[[_HALVES, _HALVES_ROOM]] = id(halves), halves._keys.shape[1]


def _are_alike(rows: Rows, names: tuple[Any, ...]) -> bool:
    """Return whether all rows are integers and floats of these features, which are texts, and side by side."""
    if rows._beside is not None or len(rows._layouts) > _MOST_LAYOUTS or rows._length != 8 * len(names):
        return False
    return all(
        layout.are_numbers and layout.names == names and layout.are_texts and set(layout.codes) <= {"d", "q"}
        for layout in rows._layouts
    )


def _bits(codes: str) -> int:
    """Return which places have integers, as bits."""
    return sum(1 << place for place, code in enumerate(codes) if code == "q")


@compiled(reads_objects=True)
def store(address: int, x: int, y_pred: int) -> int:
    """Count an observation, draw whether a reservoir chooses it, and store what is to be; return what has become of it.

    Parameters
    ----------
    address
        That of the entries of a `Storing`.
    x, y_pred
        The addresses of the observation and of the prediction for it.
    """
    known = array_at(address, (array_at(address, (1,), np.int64)[0],), np.int64)
    reservoir = known[_RESERVOIR]
    if not has(known[_IMPUTER], known[_RESERVOIR_AT], reservoir):
        return LEFT
    n_seen, size = whole_at(reservoir, known[_N_SEEN]) + 1, whole_at(reservoir, known[_SIZE])
    within, due = whole_at(reservoir, known[_WITHIN]), number_at(reservoir, known[_DUE])
    if has_failed() or n_seen > _SURE or size > _SURE or within > _SURE:
        return LEFT
    set_whole_at(reservoir, known[_N_SEEN], n_seen)
    of_size, chosen_of = 3 * size, max(min(2 * within, 3 * n_seen), 3 * size)
    if _drawn(known) * float(chosen_of) < float(of_size):
        if not _are_as_before(known) or not _takes(known, x, y_pred, n_seen):
            return CHOSEN
        due = number_at(reservoir, known[_DUE])
    if n_seen < due:
        return STORED
    if not _are_as_before(known) or not _can_move(known, size):
        return NOT_CHOSEN
    return _move(known, n_seen, size, max(within, size))


@compiled(reads_objects=True)
def _drawn(known: Any) -> float:
    """Return a uniform number, as `Generator.random` does."""
    u: float = call_for_double(known[_NEXT_DOUBLE], known[_STATE])
    return u


@compiled(reads_objects=True)
def _are_as_before(known: Any) -> bool:
    """Return whether rows wait and are stored where they did, in layouts that are known and side by side."""
    reservoir, F = known[_RESERVOIR], known[_F]
    if F == 0 or whole_at(reservoir, known[_GAP]) < 1:
        has_failed()
        return False
    if not (has(reservoir, known[_WAITING_AT], known[_WAITING]) and has(reservoir, known[_ROWS_AT], known[_ROWS])):
        return False
    for i in range(2):
        rows, layouts = known[_WAITING + i], known[_OF_WAITING + i]
        if not has(rows, known[_LAYOUTS], layouts) or list_size(layouts) != known[_N_WAITING + i]:
            return False
        if not has(rows, known[_BESIDE], known[_NONE]) or whole_at(rows, known[_LENGTH]) != 8 * F:
            return False
        dicts = attribute(rows, known[_DICTS])
        n_dicts = dict_size(dicts)
        release(dicts)
        if n_dicts != 0 or whole_at(rows, known[_UNTIL_LOOK]) <= 1:
            return False
    return not has_failed()


@compiled(reads_objects=True)
def _layout_of(bits: int, known: Any, i: int) -> int:
    """Return which layout has integers in these places, of rows that wait (0) or are stored (1); -1 for none."""
    for j in range(known[_N_WAITING + i]):
        if known[_LAYOUTS_OF + i * _MOST_LAYOUTS + j] == bits:
            return j
    return -1


@compiled(reads_objects=True)
def _packed(known: Any, x: int) -> int:
    """Write the bytes of an observation as `keep` does; return which places have integers, -1 where it is unlike."""
    F = known[_F]
    if type_of(x) != known[_DICT] or dict_size(x) != F:
        return -1
    floats = array_at(known[_ROW_BYTES], (F,), np.float64)
    integers = array_at(known[_ROW_BYTES], (F,), np.int64)
    bits = 0
    known[_GOES_ON] = 0
    for i in range(F):
        if not next_entry(x, known[_HERE]):
            return -1
        key, name = known[_KEY], known[_END + i]
        if key != name and not (type_of(key) == known[_STR] and is_equal(key, name)):
            return -1
        value = known[_VALUE]
        kind = type_of(value)
        if kind == known[_FLOAT]:
            floats[i] = number(value)
        elif kind == known[_INT]:
            integers[i] = whole(value)
            bits |= 1 << i
        else:
            return -1
    return -1 if has_failed() else bits


@compiled(reads_objects=True)
def _takes(known: Any, x: int, y_pred: int, n_seen: int) -> bool:
    """Let an observation that is chosen wait; return whether it was done, and if not nothing is."""
    reservoir, waiting = known[_RESERVOIR], known[_WAITING]
    bits = _packed(known, x)
    layout = -1 if bits < 0 else _layout_of(bits, known, 0)
    if layout < 0:
        return False
    if known[_NOTE_OF] == 0:
        note = known[_NONE]
        hold(note)
    else:
        note = called_with(known[_NOTE_OF], y_pred)
    numbers, notes = attribute(reservoir, known[_NUMBERS_WAITING]), attribute(reservoir, known[_NOTES_WAITING])
    of, data = attribute(waiting, known[_OF]), attribute(waiting, known[_DATA])
    is_fine = not has_failed() and note != 0 and size_of(of) > 0 and bytes_at(data, known[_BYTEARRAY]) != 0
    if is_fine:
        extend(data, known[_ROW])
        set_whole_of(known[_ONE_SHORT], 0, layout)
        extend(of, known[_ONE_SHORT])
        set_whole_of(known[_ONE_WHOLE], 0, n_seen)
        extend(numbers, known[_ONE_WHOLE])
        append(notes, note)
        if has(waiting, known[_ONLY], known[_NONE]):
            set_whole_at(waiting, known[_UNTIL_LOOK], whole_at(waiting, known[_UNTIL_LOOK]) - 1)
        if size_of(numbers) == whole_at(reservoir, known[_N_BEHIND]) + 1:
            set_whole_at(reservoir, known[_DUE], _when_behind(whole_at(reservoir, known[_GAP]), n_seen))
    release(note)
    release(numbers)
    release(notes)
    release(of)
    release(data)
    return is_fine and not has_failed()


@compiled(reads_objects=True)
def _when_behind(gap: int, number: int) -> int:
    """Return what the function of this name in `reservoirs` does."""
    return number - 1 + min(gap, number)


@compiled(reads_objects=True)
def _can_move(known: Any, size: int) -> bool:
    """Return whether a row that has waited can be stored here: in place of another one, and in a layout known there."""
    reservoir = known[_RESERVOIR]
    for j in range(known[_N_WAITING]):
        if _layout_of(known[_LAYOUTS_OF + j], known, 1) < 0:
            return False
    numbers = attribute(reservoir, known[_NUMBERS])
    n_stored = size_of(numbers)
    release(numbers)
    if n_stored != size or not has(reservoir, known[_BY_AGE], known[_NONE]):
        return False
    is_fine = True
    for i in range(2):
        data = attribute(known[_WAITING + i], known[_DATA])
        is_fine = is_fine and bytes_at(data, known[_BYTEARRAY]) != 0
        release(data)
    return not has_failed() and is_fine


@compiled(reads_objects=True)
def _move(known: Any, n_seen: int, size: int, within: int) -> int:
    """Do what `update_counted` does when one is due: store a row that has waited, where more wait than have room."""
    reservoir = known[_RESERVOIR]
    numbers = attribute(reservoir, known[_NUMBERS_WAITING])
    n_behind, n_waiting = whole_at(reservoir, known[_N_BEHIND]), size_of(numbers)
    gap, due = whole_at(reservoir, known[_GAP]), np.inf
    while n_behind < n_waiting:
        one = _when_behind(gap, whole_of(numbers, n_behind))
        if one > n_seen:
            due = float(one)
            break
        n_behind += 1
    if due == np.inf:
        set_number_at(reservoir, known[_DUE], due)
    else:
        set_whole_at(reservoir, known[_DUE], int(due))
    if n_behind <= size * min(n_seen, within) // (2 * within):
        set_whole_at(reservoir, known[_N_BEHIND], n_behind)
        release(numbers)
        return STORED
    leaving = int(_drawn(known) * float(n_behind))
    set_whole_at(reservoir, known[_N_BEHIND], n_behind - 1)
    slot = int(_drawn(known) * float(size))
    number = whole_of(numbers, leaving)
    delete(numbers, leaving, leaving + 1)
    release(numbers)
    bits = _move_row(known, leaving, slot)
    notes, kept = attribute(reservoir, known[_NOTES_WAITING]), attribute(reservoir, known[_NOTES])
    note = item(notes, leaving)
    hold(note)
    delete(notes, leaving, leaving + 1)
    set_item(kept, slot, note)
    release(kept)
    release(notes)
    numbers = attribute(reservoir, known[_NUMBERS])
    set_whole_of(numbers, slot, number)
    release(numbers)
    set_attribute(reservoir, known[_NEWEST], known[_NONE])
    set_whole_at(reservoir, known[_NEWEST_SLOT], slot)
    known[_SLOT] = slot
    is_followed = _follows(known, bits, note, number)
    release(note)
    return STORED if is_followed and not has_failed() else MOVED


@compiled(reads_objects=True)
def _move_row(known: Any, leaving: int, slot: int) -> int:
    """Move a row that has waited to a slot, and leave it in the room for one; return which places have integers."""
    F, waiting, rows = known[_F], known[_WAITING], known[_ROWS]
    of, data = attribute(waiting, known[_OF]), attribute(waiting, known[_DATA])
    bits: int = known[_LAYOUTS_OF + whole_of(of, leaving)]
    before = array_at(bytes_at(data, known[_BYTEARRAY]) + 8 * F * leaving, (F,), np.int64)
    row = array_at(known[_ROW_BYTES], (F,), np.int64)
    for i in range(F):
        row[i] = before[i]
    delete(of, leaving, leaving + 1)
    delete(data, 8 * F * leaving, 8 * F * (leaving + 1))
    release(of)
    release(data)
    of, data = attribute(rows, known[_OF]), attribute(rows, known[_DATA])
    set_whole_of(of, slot, _layout_of(bits, known, 1))
    after = array_at(bytes_at(data, known[_BYTEARRAY]) + 8 * F * slot, (F,), np.int64)
    for i in range(F):
        after[i] = row[i]
    release(of)
    release(data)
    set_whole_at(rows, known[_UNTIL_LOOK], whole_at(rows, known[_UNTIL_LOOK]) - 1)
    return bits


@compiled(reads_objects=True)
def _follows(known: Any, bits: int, note: int, of_stream: int) -> bool:
    """Do what `MarginalImputer.follow` does; return whether it was done, and if not nothing is."""
    imputer, mirror, F, slot = known[_IMPUTER], known[_MIRROR], known[_F], known[_SLOT]
    if mirror == 0 or not has(imputer, known[_STORED], mirror) or not has(mirror, known[_STRANGE], known[_NONE]):
        return False
    if not (has(mirror, known[_MATRIX_AT], known[_MATRIX]) and has(mirror, known[_KEYS_AT], known[_KEYS])):
        return False
    orders = attribute(imputer, known[_BY_FEATURES])
    n_orders, n = dict_size(orders), whole_at(mirror, known[_N])
    release(orders)
    if n_orders != 0 or not has(mirror, known[_ORDER_AT], known[_ORDER]) or slot >= n or n > known[_ROOM]:
        return False
    of_class, by_prediction = -1, known[_HALVES] != 0
    if not has(imputer, known[_BY_PREDICTION], known[_TRUE] if by_prediction else known[_FALSE]):
        return False
    if by_prediction:
        of_class = _class_of(known, note)
        if of_class < 0:
            return False
    row = np.empty(F)
    floats = array_at(known[_ROW_BYTES], (F,), np.float64)
    integers = array_at(known[_ROW_BYTES], (F,), np.int64)
    for j in range(F):
        place = known[_END + F + j]
        row[j] = float(integers[place]) if (bits >> place) & 1 else floats[place]
        if not abs(row[j]) < LARGEST_EXACT:
            return False
    room = known[_ROOM]
    matrix = array_at(known[_MATRIX_DATA], (room, F), np.float64)
    keys = array_at(known[_KEYS_DATA], (F, room), np.float64)
    put(slot, n, row, row, matrix, keys, array_at(known[_ORDER_DATA], (F, room), np.int32))
    if by_prediction:
        room, last = known[_HALVES_ROOM], element(note, size_of(note) - 1)
        keys = array_at(known[_HALVES_KEYS_DATA], (2, room), np.float64)
        slots = array_at(known[_SLOTS_DATA], (4, room), np.int64)
        n = whole_at(known[_HALVES], known[_N_SLOTS])
        put_in_half(slot, n, of_stream, of_class, number(last), keys, slots)
        release(last)
    return True


@compiled(reads_objects=True)
def _class_of(known: Any, note: int) -> int:
    """Return the place of a note's class in the halves by age; -1 where it is new, or the halves are not as before."""
    imputer, halves, n = known[_IMPUTER], known[_HALVES], size_of(note)
    if n < 1 or not (has(imputer, known[_IN_HALVES], known[_TRUE]) and has(imputer, known[_HALVES_AT], halves)):
        has_failed()
        return -1
    if not (has(halves, known[_KEYS_AT], known[_HALVES_KEYS]) and has(halves, known[_SLOTS_AT], known[_SLOTS])):
        return -1
    last, of_class, classes = element(note, n - 1), first_of(note, n - 1), attribute(halves, known[_CLASSES])
    found = -1
    if is_a(last, known[_FLOAT]) and known[_SLOT] < whole_at(halves, known[_N_SLOTS]):
        for i in range(list_size(classes)):
            if found < 0 and is_equal(item(classes, i), of_class):
                found = i
    release(last)
    release(of_class)
    release(classes)
    return -1 if has_failed() else found
