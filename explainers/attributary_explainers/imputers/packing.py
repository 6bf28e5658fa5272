"""Rows and arrays as plain data for a snapshot, and rows as they are kept meanwhile: numbers are bytes.

A dict of nine numbers takes 570 bytes, the same as bytes 170. What several explainers keep of one observation is one
object, which a pickle of their snapshots holds once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import is_
from struct import Struct, error
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from ..errors import SnapshotError
from ..typing import Array, Features, Snapshot

_CODES: dict[type, str] = {float: "d", int: "q", bool: "?"}
"""Types of values that are bytes, with their codes in `struct`; any other value is an object, whose code is `o`."""


_TYPES = {code: kind for kind, code in _CODES.items()}


class _Layout:
    """Says how the values of rows with the same names and types are kept; there is one object for each."""

    __slots__ = ("are_texts", "codes", "names", "packing", "places", "types")

    def __init__(self, names: tuple[Any, ...], codes: str, _exactly: str = "") -> None:
        self.names, self.codes = names, codes
        self.packing = Struct("<" + codes.replace("o", ""))
        self.places = [i for i, code in enumerate(codes) if code == "o"]
        """Of the values that are objects."""
        self.types: tuple[type, ...] | None = None if self.places else tuple(_TYPES[code] for code in codes)
        """Of the values, where the codes say all of them."""
        self.are_texts = all(type(name) is str for name in names)

    def __reduce__(self) -> Any:
        return _layout, (self.names, self.codes)  # of a copy too there is one object for each


_cached_layout = lru_cache(maxsize=4096)(_Layout)


def _layout(names: tuple[Any, ...], codes: str) -> _Layout:
    found = _cached_layout(names, codes)
    # The names 1 and True are equal, and not the same.
    return found if found.are_texts else _cached_layout(names, codes, repr(names))


@lru_cache(maxsize=4096)
def _layout_of(names: tuple[Any, ...], types: tuple[type, ...]) -> _Layout:
    return _layout(names, _codes(types))


def _codes(types: Iterable[type]) -> str:
    return "".join(_CODES.get(kind, "o") for kind in types)


class Kept:
    """A row as it is kept: its numbers are bytes, and it never changes. Made by `keep`."""

    __slots__ = ("_data", "_layout", "_objects")

    def __init__(self, layout: _Layout, data: bytes, objects: tuple[Any, ...] = ()) -> None:
        self._layout, self._data, self._objects = layout, data, objects

    def row(self) -> dict[Any, Any]:
        """Return the row, as a new dict with the same values, types and order of the keys."""
        layout = self._layout
        values: Iterable[Any] = layout.packing.unpack(self._data)
        if layout.places:
            values = list(values)
            for place, value in zip(layout.places, self._objects, strict=True):
                values.insert(place, value)
        return dict(zip(layout.names, values, strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kept):
            return NotImplemented
        return self._layout is other._layout and (self._data, self._objects) == (other._data, other._objects)

    __hash__ = None  # type: ignore[assignment]  # objects may have none

    def __reduce__(self) -> Any:
        return _kept, (self._layout.names, self._layout.codes, self._data, self._objects)


def _kept(names: tuple[Any, ...], codes: str, data: bytes, objects: tuple[Any, ...]) -> Kept:
    return Kept(_layout(names, codes), data, objects)


_latest: tuple[tuple[Any, ...], tuple[Any, ...], Kept] = ((), (), Kept(_layout((), ""), b""))
"""Names and values of the row that was kept last, and as what."""
_latest_apart = _layout((), "")


def keep(x: Features) -> Kept:
    """Return a row as it is kept: the same object where the row before had the same values, as objects."""
    global _latest
    names, values = tuple(x), tuple(x.values())
    of_latest, latest, kept = _latest
    # By identity: values may be of any type, and some raise where they are compared.
    is_same = len(values) == len(latest) and all(map(is_, values, latest))
    if is_same and names == of_latest and kept._layout.are_texts:
        return kept
    kept = _made(names, values, kept._layout)
    _latest = names, values, kept
    return kept


def keep_apart(x: Features) -> Kept:
    """Return a row as it is kept, which nobody else keeps: so that what `keep` was given last stays the last one."""
    global _latest_apart
    kept = _made(tuple(x), tuple(x.values()), _latest_apart)
    _latest_apart = kept._layout
    return kept


def _made(names: tuple[Any, ...], values: tuple[Any, ...], likely: _Layout) -> Kept:
    types = tuple(map(type, values))
    if types == likely.types and names == likely.names and likely.are_texts:  # without a hash of them all
        return _packed(likely, values)
    layout = _layout_of(names, types)
    if not layout.are_texts:
        layout = _layout(names, layout.codes)
    return _packed(layout, values)


def _packed(layout: _Layout, values: tuple[Any, ...]) -> Kept:
    try:
        return _packed_by(layout, values)
    except error:  # an integer beyond 64 bits
        return _packed_by(_layout(layout.names, layout.codes.replace("q", "o")), values)


def _packed_by(layout: _Layout, values: tuple[Any, ...]) -> Kept:
    if not layout.places:
        return Kept(layout, layout.packing.pack(*values))
    numbers = [value for value, code in zip(values, layout.codes, strict=True) if code != "o"]
    return Kept(layout, layout.packing.pack(*numbers), tuple([values[place] for place in layout.places]))


class Rows(Sequence[dict[Any, Any]]):
    """Rows that are kept, by slot, each of which is a dict when it is asked for.

    Columns of bytes, layouts and objects take half the memory of objects for each row, and are what a snapshot holds.
    """

    def __init__(self, rows: Iterable[Kept] = ()) -> None:
        kept = list(rows)
        self._data = [row._data for row in kept]
        self._layouts = [row._layout for row in kept]
        self._objects = [row._objects for row in kept]
        self._dicts: dict[int, dict[Any, Any]] = {}
        """By slot the rows that have been asked for: of stored rows that no fast path reads from an array, all."""

    def append(self, row: Kept) -> None:
        """Put a row behind the last one."""
        self._data.append(row._data)
        self._layouts.append(row._layout)
        self._objects.append(row._objects)

    def put(self, slot: int, row: Kept) -> None:
        """Put a row into a slot, in place of the one that it has, or into the one behind the last one."""
        if slot == len(self._data):
            self.append(row)
            return
        self._data[slot], self._layouts[slot], self._objects[slot] = row._data, row._layout, row._objects
        if self._dicts:
            self._dicts.pop(slot, None)

    def pop(self, slot: int) -> Kept:
        """Take a row out, and move those behind it up."""
        row = self.kept(slot)
        self.drop(slot)
        return row

    def drop(self, slot: int) -> None:
        """Forget the row of a slot, and move those behind it up."""
        if self._dicts:
            self._dicts.clear()
        del self._layouts[slot], self._data[slot], self._objects[slot]

    def kept(self, slot: int) -> Kept:
        """Return the row of a slot as it is kept."""
        return Kept(self._layouts[slot], self._data[slot], self._objects[slot])

    def all_kept(self) -> Iterator[Kept]:
        """Return an iterator over the rows as they are kept."""
        return map(Kept, self._layouts, self._data, self._objects)

    def __len__(self) -> int:
        return len(self._data)

    @overload
    def __getitem__(self, slot: int) -> dict[Any, Any]: ...
    @overload
    def __getitem__(self, slot: slice) -> list[dict[Any, Any]]: ...
    def __getitem__(self, slot: int | slice) -> dict[Any, Any] | list[dict[Any, Any]]:
        """Return the row of a slot, the same dict each time, which is only read; or new dicts of some."""
        if isinstance(slot, slice):
            return [self.kept(i).row() for i in range(*slot.indices(len(self)))]
        found = self._dicts.get(slot)
        if found is None:
            found = self._dicts[slot] = self.kept(slot).row()
        return found

    def __iter__(self) -> Iterator[dict[Any, Any]]:
        return (row.row() for row in self.all_kept())

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Rows | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def snapshot(self) -> Snapshot:
        """Return the rows as plain data: values, types and the order of the keys."""
        layouts = list(dict.fromkeys(self._layouts))
        number = {layout: i for i, layout in enumerate(layouts)}
        return {
            "layouts": [[list(layout.names), layout.codes] for layout in layouts],
            "of": [number[layout] for layout in self._layouts] if len(layouts) > 1 else None,
            "numbers": list(self._data),
            "objects": list(self._objects) if any(layout.places for layout in layouts) else None,
        }

    @classmethod
    def from_snapshot(cls, packed: Snapshot) -> Self:
        """Return the rows that the snapshot was taken of.

        Raises
        ------
        SnapshotError
            Numbers or objects of a row are not as its layout says.
        """
        rows, n = cls(), len(packed["numbers"])
        layouts = [_checked_layout(names, codes) for names, codes in packed["layouts"]]
        rows._data = list(packed["numbers"])
        rows._layouts = n * layouts[:1] if packed["of"] is None else [layouts[i] for i in packed["of"]]
        rows._objects = n * [()] if packed["objects"] is None else list(packed["objects"])
        are_right = n == len(rows._layouts) == len(rows._objects)
        are_right = are_right and set(map(type, rows._data)) <= {bytes} and set(map(type, rows._objects)) <= {tuple}
        if are_right:
            found = set(zip(rows._layouts, map(len, rows._data), map(len, rows._objects), strict=True))
            are_right = all((of.packing.size, len(of.places)) == (size, n_objects) for of, size, n_objects in found)
        if not are_right:
            raise SnapshotError("stored rows are not what an explainer has written: start a new explainer")
        return rows


def pack_rows(rows: Iterable[Features]) -> Snapshot:
    """Return rows as plain data that `unpack_rows` makes the same rows of: values, types and the order of the keys."""
    return Rows(map(keep, rows)).snapshot()


def unpack_rows(packed: Snapshot) -> list[dict[Any, Any]]:
    """Return the rows that were packed. Errors are those of `Rows.from_snapshot`."""
    return list(Rows.from_snapshot(packed))


def _checked_layout(names: Any, codes: Any) -> _Layout:
    if not (isinstance(codes, str) and set(codes) <= {"o", *_CODES.values()} and len(names) == len(codes)):
        raise SnapshotError("the layout of stored rows is not what an explainer has written: start a new explainer")
    return _layout(tuple(names), codes)


def pack_values(values: Collection[Any]) -> bytes | list[Any]:
    """Return values as plain data that `unpack_values` makes the same values of: bytes where all are floats."""
    if set(map(type, values)) == {float}:
        return np.array(list(values), dtype=np.float64).tobytes()
    return list(values)


def unpack_values(packed: bytes | Sequence[Any]) -> list[Any]:
    """Return the values that were packed."""
    return np.frombuffer(packed, dtype=np.float64).tolist() if isinstance(packed, bytes) else list(packed)


def pack(array: npt.NDArray[Any]) -> Snapshot:
    """Return an array as plain data."""
    return {"type": array.dtype.str, "shape": list(array.shape), "bytes": array.tobytes()}


def unpack(packed: Snapshot) -> npt.NDArray[Any]:
    """Return the array that was packed, as a copy that can be changed."""
    return np.frombuffer(packed["bytes"], dtype=packed["type"]).reshape(packed["shape"]).copy()


def pack_symmetric(matrix: Array) -> Snapshot:
    """Return a matrix as plain data of which the lower triangle says all."""
    return pack(matrix[np.tril_indices(len(matrix))])


def unpack_symmetric(packed: Snapshot) -> Array:
    """Return the matrix that was packed, with zeros above the diagonal."""
    values = unpack(packed)
    n = int((np.sqrt(8.0 * len(values) + 1.0) - 1.0) / 2.0 + 0.5)
    matrix = np.zeros((n, n))
    matrix[np.tril_indices(n)] = values
    return matrix
