"""Observations as rows: the explained row of numbers, and stored rows."""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import Any

import numpy as np

from ..errors import SnapshotError
from ..validation import LARGEST
from .buffers import floats, integers

try:
    import cython
except ImportError:
    from . import _cython as cython


_EXACT = cython.declare(cython.double, 2.0**53)
"""Whole numbers below it are the same as floats."""
_FLOAT64: Any = np.float64


@cython.cclass
class Columns:
    """Writes observations with the same features to a row of float64.

    Parameters
    ----------
    names
        The features, in the order of their columns.
    codes
        By column a dict of texts to their codes, which may grow, or None where all values are numbers.
    numbers
        The types of numbers that are read here: of float, int, bool and numpy.float64. `Schema.encode` reads others.
    """

    row = cython.declare(object, visibility="readonly")
    """Shape (features,): the last observation that was read; written over by the next one."""
    _row: cython.double[::1]
    _names: tuple[Any, ...]
    _codes: list[Any]
    _n: cython.Py_ssize_t
    _integers: cython.bint
    _booleans: cython.bint
    _of_numpy: cython.bint

    def __init__(self, names: tuple[Any, ...], codes: list[Any], numbers: Any) -> None:
        self._names, self._codes, self._n = names, codes, len(names)
        self._integers, self._booleans, self._of_numpy = int in numbers, bool in numbers, _FLOAT64 in numbers
        self.row = np.zeros(len(names))
        self._row = self.row

    def __reduce__(self) -> Any:
        numbers = [float]
        for kind, is_plain in ((int, self._integers), (bool, self._booleans), (_FLOAT64, self._of_numpy)):
            if is_plain:
                numbers.append(kind)
        return Columns, (self._names, self._codes, numbers)

    def read(self, x: dict[Any, Any]) -> cython.bint:
        """Write the observation to `row` and return True, or return False.

        False is returned where it has other features, or a value that is no finite number of a known type that a float
        holds exactly, and in a column of codes no text that has a code.
        """
        j: cython.Py_ssize_t
        number: cython.double
        if len(x) != self._n:
            return False
        names: tuple[Any, ...] = self._names
        codes: list[Any] = self._codes
        for j in range(self._n):
            value: Any = x.get(names[j])
            kind: Any = type(value)
            if codes[j] is not None:
                if kind is not str:
                    return False
                value = codes[j].get(value)
                if value is None:
                    return False
                number = value
            elif kind is float or (kind is _FLOAT64 and self._of_numpy):
                number = value
                # NaN or infinite; the first test is only faster.
                if not -_EXACT < number < _EXACT and number - number != 0.0:
                    return False
            elif (kind is int and self._integers) or (kind is bool and self._booleans):
                if not -9007199254740992 < value < 9007199254740992:
                    return False
                number = value
            else:
                return False
            self._row[j] = number
        return True


_FLOAT = cython.declare(cython.int, 0)
_INTEGER = cython.declare(cython.int, 1)
_BOOLEAN = cython.declare(cython.int, 2)
_OBJECT = cython.declare(cython.int, 3)
_CODES = "dq?o"
_LARGEST = cython.declare(cython.double, LARGEST)
_LOOK_AFTER = 64
"""Rows that are written before all are looked at again, at least."""


@cython.cclass
class Form:
    """Names of a row's values, and the kind of each value.

    Parameters
    ----------
    names
        The features, in the order of the row.
    codes
        For each a letter: `d` a float, `q` an integer below 2**53, `?` a boolean, `o` anything else.
    is_beside
        Whether all values are kept as objects: those of a row with far more numbers than other rows.
    """

    names = cython.declare(tuple, visibility="readonly")
    codes = cython.declare(str, visibility="readonly")
    n_numbers = cython.declare(cython.Py_ssize_t, visibility="readonly")
    is_beside = cython.declare(cython.bint, visibility="readonly")
    _kinds: cython.longlong[::1]

    def __init__(self, names: tuple[Any, ...], codes: str, is_beside: bool = False) -> None:
        # One object for equal codes, wherever they come from: a pickle tells them apart.
        self.names, self.codes, self.is_beside = names, intern(codes), is_beside
        self._kinds = integers(max(len(names), 1))
        for i, code in enumerate(codes):
            self._kinds[i] = _OBJECT if is_beside else _CODES.index(code)
        self.n_numbers = 0 if is_beside else len(codes) - codes.count("o")

    @cython.cfunc
    def has(self, name: Any, i: cython.Py_ssize_t) -> cython.bint:
        """Return whether value i has this name; 1 and True are different names."""
        own: Any = self.names[i]
        if name is own:
            return True
        if type(name) is not type(own) or name != own:
            return False
        return type(name) is str or repr(name) == repr(own)


def form_of(x: dict[Any, Any]) -> tuple[tuple[Any, ...], str]:
    """Return the names and codes of an observation."""
    return tuple(x), "".join(_CODES[_kind(value)] for value in x.values())


@cython.cfunc
@cython.exceptval(check=False)
def _kind(value: Any) -> cython.int:
    kind: Any = type(value)
    if kind is float:
        return _FLOAT
    if kind is int:
        return _INTEGER if -9007199254740992 < value < 9007199254740992 else _OBJECT
    return _BOOLEAN if kind is bool else _OBJECT


@cython.cclass
class Rows:
    """Rows by slot, each returned as the dict that it was.

    A dict has its values, their types and their order again. The numbers are rows of one array, as wide as the rows of
    most slots need; rows with more are objects.
    """

    _forms: list[Form]
    _known: dict[Any, Any]
    """By names and codes the place of the form."""
    _of: cython.longlong[::1]
    """By row the place of its form."""
    _numbers: cython.double[:, ::1]
    _objects: list[Any] | None
    """By row its objects; None while no row has any."""
    _first: cython.Py_ssize_t
    """The row of slot 0: those before it have been dropped."""
    _n: cython.Py_ssize_t
    _width: cython.Py_ssize_t
    _latest: cython.Py_ssize_t
    """The place of the form of the row that was written last."""
    _until_look: cython.Py_ssize_t

    def __init__(self, rows: Any = ()) -> None:
        self._begin(-1, 0)
        self.extend(rows)

    def _begin(self, width: int, room: int) -> None:
        """Start with no rows; a width of -1 is set by the first row."""
        self._forms, self._known, self._objects = [], {}, None
        self._first = self._n = self._latest = 0
        self._width, self._until_look = width, _LOOK_AFTER
        self._of, self._numbers = integers(max(room, 1)), floats(max(room, 1), max(width, 1))

    # ------------------------------------------------------------ writing

    def append(self, x: Any) -> None:
        """Put an observation, which is copied, behind the last row."""
        self._make_room()
        self._write(self._n - 1, x)

    @cython.cfunc
    def _make_room(self) -> cython.bint:
        """Add a slot, for a row without values yet."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        room: cython.Py_ssize_t = self._of.shape[0]
        end: cython.Py_ssize_t = self._first + self._n
        if end == room:
            if self._first <= room // 16:
                room += room // 8 + 8
            of: cython.longlong[::1] = integers(room)
            numbers: cython.double[:, ::1] = floats(room, self._numbers.shape[1])
            for i in range(self._n):
                of[i] = self._of[self._first + i]
                for j in range(self._width):
                    numbers[i, j] = self._numbers[self._first + i, j]
            if self._objects is not None:
                del self._objects[: self._first]
            self._of, self._numbers, self._first = of, numbers, 0
        if self._objects is not None:
            self._objects.append(())
        self._n += 1
        return True

    def put(self, slot: int, x: Any) -> None:
        """Put an observation into a slot, or append it behind the last slot."""
        if slot == self._n:
            self.append(x)
        else:
            self._write(self._checked(slot), x)

    @cython.cfunc
    def _checked(self, slot: cython.Py_ssize_t) -> cython.Py_ssize_t:
        if slot < 0:
            slot += self._n
        if not 0 <= slot < self._n:
            raise IndexError("there is no such slot")
        return slot

    @cython.cfunc
    def _write(self, slot: cython.Py_ssize_t, given: Any) -> cython.bint:
        x: dict[Any, Any] = given if type(given) is dict else dict(given)
        number: cython.Py_ssize_t = self._latest
        if not self._forms or not self._fill(slot, self._forms[number], x):
            number = self._place_of(*form_of(x))
            if not self._fill(slot, self._forms[number], x):
                raise RuntimeError("a row is not of the form that was found for it")
        self._of[self._first + slot] = self._latest = number
        self._until_look -= 1
        if self._until_look <= 0:
            self._look()
        return True

    @cython.cfunc
    def _fill(self, slot: cython.Py_ssize_t, form: Form, x: dict[Any, Any]) -> cython.bint:
        """Write an observation's values; return False if its form is another."""
        at: cython.Py_ssize_t = self._first + slot
        i: cython.Py_ssize_t = 0
        j: cython.Py_ssize_t = 0
        kind: cython.longlong
        objects: Any = None
        if len(x) != len(form.names):
            return False
        for name, value in x.items():
            if not form.has(name, i):
                return False
            kind = form._kinds[i]
            if not form.is_beside and kind != _kind(value):
                return False
            if kind == _OBJECT:
                if objects is None:
                    objects = []
                objects.append(value)
            else:
                self._numbers[at, j] = value
                j += 1
            i += 1  # noqa: SIM113 - in C
        self._set_objects(slot, () if objects is None else tuple(objects))
        return True

    @cython.cfunc
    def _set_objects(self, slot: cython.Py_ssize_t, objects: tuple[Any, ...]) -> cython.bint:
        if self._objects is None:
            if not objects:
                return True
            self._objects = [()] * (self._first + self._n)
        self._objects[self._first + slot] = objects
        return True

    def _place_of(self, names: tuple[Any, ...], codes: str) -> int:
        n_numbers = len(codes) - codes.count("o")
        if self._width < 0:
            self._width, self._numbers = n_numbers, floats(self._of.shape[0], max(n_numbers, 1))
        is_beside = n_numbers > self._width
        key = names, codes, is_beside, "" if all(type(name) is str for name in names) else repr(names)
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = len(self._forms)
            self._forms.append(Form(names, codes, is_beside))
        return int(place)

    @cython.ccall
    def put_from(self, slot: cython.Py_ssize_t, other: Rows, its_slot: cython.Py_ssize_t) -> cython.bint:
        """Copy a row of other rows into a slot, or append it."""
        j: cython.Py_ssize_t
        at: cython.Py_ssize_t = other._first + other._checked(its_slot)
        form: Form = other._forms[other._of[at]]
        number: cython.Py_ssize_t = self._latest
        if slot == self._n:
            self._make_room()
        slot = self._checked(slot)
        if form.is_beside:
            return self._write(slot, other[its_slot])
        mine: Any = self._forms[number] if self._forms else None
        if mine is not form:
            number = self._place_of(form.names, form.codes)
            mine = self._forms[number]
            if mine.n_numbers < form.n_numbers:
                return self._write(slot, other[its_slot])
            self._forms[number] = form  # the same by its names and codes
        for j in range(form.n_numbers):
            self._numbers[self._first + slot, j] = other._numbers[at, j]
        self._set_objects(slot, () if other._objects is None else other._objects[at])
        self._of[self._first + slot] = self._latest = number
        self._until_look -= 1
        if self._until_look <= 0:
            self._look()
        return True

    def extend(self, rows: Any) -> None:
        """Put observations behind the last row."""
        for x in rows:
            self.append(x)

    def drop(self, slot: int) -> None:
        """Remove the row of a slot, and move the later rows up."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        at: cython.Py_ssize_t = self._first + self._checked(slot)
        for i in range(at, self._first + self._n - 1):
            self._of[i] = self._of[i + 1]
            for j in range(self._width):
                self._numbers[i, j] = self._numbers[i + 1, j]
        if self._objects is not None:
            del self._objects[at]
        self._n -= 1

    def drop_first(self, n: int) -> None:
        """Remove the rows of the first slots, and move the later rows up."""
        self._first, self._n = self._first + min(n, self._n), max(self._n - n, 0)

    def _look(self) -> None:
        """Forget unused forms, and set the width that half the rows fit in."""
        self._until_look = max(_LOOK_AFTER, 2 * self._n)
        if self._objects is not None and not any(self._objects):
            self._objects = None  # those that had some are gone
        if len(self._forms) < 2:
            return
        of = [self._of[self._first + slot] for slot in range(self._n)]
        needed = sorted(len(self._forms[i].codes) - self._forms[i].codes.count("o") for i in of)
        width = needed[(self._n - 1) // 2] if needed else 0
        if width == self._width and 2 * len(set(of)) > len(self._forms):
            return
        rows = list(self)
        self._begin(width, self._of.shape[0])
        self._until_look = max(_LOOK_AFTER, 2 * len(rows)) + len(rows)
        self.extend(rows)

    # ------------------------------------------------------------ reading

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, slot: Any) -> Any:
        """Return the row of a slot, or the rows of some, as new dicts."""
        if isinstance(slot, slice):
            return [self._row(i) for i in range(*slot.indices(self._n))]
        return self._row(self._checked(slot))

    def __iter__(self) -> Iterator[dict[Any, Any]]:
        return iter([self._row(slot) for slot in range(self._n)])

    @cython.cfunc
    def _row(self, slot: cython.Py_ssize_t) -> dict[Any, Any]:
        at: cython.Py_ssize_t = self._first + slot
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t = 0
        o: cython.Py_ssize_t = 0
        kind: cython.longlong
        form: Form = self._forms[self._of[at]]
        objects: Any = () if self._objects is None else self._objects[at]
        row: dict[Any, Any] = {}
        for i in range(len(form.names)):
            kind = form._kinds[i]
            if kind == _OBJECT:
                row[form.names[i]] = objects[o]
                o += 1
                continue
            number: Any = self._numbers[at, j]
            row[form.names[i]] = number if kind == _FLOAT else bool(number) if kind == _BOOLEAN else int(number)
            j += 1
        return row

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (Rows, list)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def means(self, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, step: cython.Py_ssize_t = 1) -> Any:
        """Return the names of some rows, and the mean of each (names,).

        They are the rows of the slots first, first + step, … before `stop`, added in this order. None where there is no
        such row or no value, where one has other names or another order than the first one, or a value that is neither
        a float nor an integer, or is NaN or too large (1e150).
        """
        slot: cython.Py_ssize_t
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        value: cython.double
        before: Any = None
        names: Any = None
        sums: cython.double[::1] = floats(max(self._width, 1))
        for slot in range(first, min(stop, self._n), step):
            form: Form = self._forms[self._of[self._first + slot]]
            if form is not before:
                if names is not None and form.names != names:
                    return None
                before, names = form, form.names
                if not names or form.n_numbers != len(names) or "?" in form.codes:
                    return None
            for j in range(form.n_numbers):
                value = self._numbers[self._first + slot, j]
                if not abs(value) < _LARGEST:
                    return None
                sums[j] += value
            n += 1
        if names is None:
            return None
        return names, np.array(sums)[: len(names)] / n

    @property
    def size(self) -> int:
        """Return how many numbers fit, plus the number of other values."""
        return int(self._of.shape[0] * self._numbers.shape[1] + sum(map(len, self._objects or ())))

    @property
    def n_forms(self) -> int:
        """How many forms are known."""
        return len(self._forms)

    def may_have(self, feature: Any) -> bool:
        """Return False only if no row has the feature."""
        return any(feature in form.names for form in self._forms)

    @property
    def most_features(self) -> int:
        """The largest number of features that a row may have."""
        return max((len(form.names) for form in self._forms), default=0)

    # ------------------------------------------------------------ snapshots

    def __reduce__(self) -> Any:
        return Rows.from_snapshot, (self.snapshot(),)

    def snapshot(self) -> dict[str, Any]:
        """Return the rows as plain data, which follow from the rows alone."""
        places: dict[Any, int] = {}
        forms: list[Any] = []
        shared: dict[str, str] = {}
        of, parts, objects = np.zeros(self._n, dtype="<u4"), [], []
        if len(self._forms) == 1 and not self._forms[0].is_beside:
            form = self._forms[0]
            forms = [[list(form.names), form.codes]]
            whole = np.asarray(self._numbers)[self._first : self._first + self._n, : form.n_numbers]
            parts, objects = [whole.tobytes()], self._objects[self._first :] if self._objects is not None else []
        else:
            for slot in range(self._n):
                x = self._row(slot)
                names, codes = form_of(x)
                key = names, codes, "" if all(type(name) is str for name in names) else repr(names)
                of[slot] = places.setdefault(key, len(forms))
                if places[key] == len(forms):
                    # One object for each text, wherever it is from: a pickle tells them apart.
                    forms.append([[shared.setdefault(n, n) if type(n) is str else n for n in names], intern(codes)])
                values = list(zip(x.values(), codes, strict=True))
                parts.append(np.array([value for value, code in values if code != "o"], dtype=np.float64).tobytes())
                objects.append(tuple([value for value, code in values if code == "o"]))
        return {
            "forms": forms if self._n else [],
            "of": of.tobytes(),
            "numbers": b"".join(parts),
            "objects": objects if any(objects) else None,
        }

    @staticmethod
    def from_snapshot(packed: Any) -> Rows:
        """Return the rows that the snapshot was taken of.

        Raises
        ------
        SnapshotError
            Numbers or objects of a row are not as its form says.
        """
        forms = [_checked_form(*form) for form in packed["forms"]]
        _check(type(packed["of"]) is type(packed["numbers"]) is bytes)
        _check(len(packed["of"]) % 4 == 0 and len(packed["numbers"]) % 8 == 0)
        of, numbers = np.frombuffer(packed["of"], dtype="<u4"), np.frombuffer(packed["numbers"], dtype="<f8")
        n, objects = len(of), packed["objects"]
        _check(n == 0 or int(of.max()) < len(forms))
        sizes = np.array([form.n_numbers for form in forms], dtype=np.intp)
        ends = np.cumsum(sizes[of]) if n else np.zeros(0, dtype=np.intp)
        _check(len(numbers) == (int(ends[-1]) if n else 0))
        _check(objects is None or (type(objects) is list and len(objects) == n))
        rows = Rows()
        if n:
            rows._take(forms, of, numbers, ends, objects, int(np.sort(sizes[of])[(n - 1) // 2]))
        return rows

    def _take(self, forms: Any, of: Any, numbers: Any, ends: Any, objects: Any, width: int) -> None:
        """Keep rows of these forms, whose numbers end at these places."""
        n = len(of)
        self._begin(width, n)
        self._n, self._until_look = n, max(_LOOK_AFTER, 2 * n)
        self._objects = None if objects is None else list(objects)
        places, array = np.asarray(self._of), np.asarray(self._numbers)
        for number, form in enumerate(forms):
            slots = np.flatnonzero(of == number)
            n_numbers, n_objects = form.n_numbers, form.codes.count("o")
            if objects is None:
                _check(n_objects == 0 or len(slots) == 0)
            else:
                _check(all(type(objects[i]) is tuple and len(objects[i]) == n_objects for i in slots.tolist()))
            if n_numbers <= width:
                places[slots] = self._place_of(form.names, form.codes)
                array[slots, :n_numbers] = numbers[(ends[slots] - n_numbers)[:, None] + np.arange(n_numbers)]
        for slot in np.flatnonzero(np.array([form.n_numbers for form in forms])[of] > width).tolist():
            form = forms[of[slot]]
            values = numbers[ends[slot] - form.n_numbers : ends[slot]].tolist()
            self._write(slot, _as_dict(form, values, () if objects is None else objects[slot]))
        self._latest = self._of[n - 1]


def _as_dict(form: Form, numbers: list[float], objects: tuple[Any, ...]) -> dict[Any, Any]:
    of_numbers, of_objects, row = iter(numbers), iter(objects), {}
    for name, code in zip(form.names, form.codes, strict=True):
        if code == "o":
            row[name] = next(of_objects)
        else:
            number = next(of_numbers)
            row[name] = number if code == "d" else bool(number) if code == "?" else int(number)
    return row


def _check(are_right: bool) -> None:
    if not are_right:
        raise SnapshotError("stored rows are not what an explainer has written: start a new explainer")


def _checked_form(names: Any, codes: Any) -> Form:
    _check(isinstance(codes, str) and set(codes) <= set(_CODES) and len(names) == len(codes))
    return Form(tuple(names), codes)
