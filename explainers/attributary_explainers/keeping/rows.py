"""Many observations as they are kept, with their numbers in one array, and as plain data for a snapshot."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from typing import Any, NamedTuple, Self, overload

import numpy as np
import numpy.typing as npt

from ..errors import SnapshotError
from ..typing import Array, Snapshot
from .kept import CODES, Kept, Layout, layout_of

_LOOK_AFTER = 8
"""Rows that are put before all are looked at again, at least."""
_BESIDE = 120
"""Bytes that a row beside the array takes, over those of its numbers."""


class AsKept(NamedTuple):
    """Holds the numbers of rows as they are kept.

    Attributes
    ----------
    names
        The features, in the order of the columns.
    floats, integers
        Shape (rows, columns): their bytes, as the ones and as the others.
    kinds, are_integers
        Shapes (rows,) and (kinds, columns): by the kind of a row, as which each of its columns is to be read.
    """

    names: tuple[Any, ...]
    floats: Array
    integers: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint32]
    are_integers: npt.NDArray[np.bool_]


class Rows(Sequence[dict[Any, Any]]):
    """Rows that are kept, by slot, each of which is a dict when it is asked for.

    Their numbers are bytes of one array, in which each slot has the same length: thousands of small objects would take
    twice the memory, and most of the time in which they are stored and loaded. What is longer stands beside the array.
    """

    def __init__(self, rows: Iterable[Kept] = ()) -> None:
        self._dicts: dict[int, dict[Any, Any]] = {}
        """By slot the rows that have been asked for: of stored rows that no fast path reads from an array, all."""
        kept = list(rows)
        self._fill(kept, Counter(row.layout.length for row in kept))

    def _fill(self, rows: Iterable[Kept], lengths: Counter[int]) -> None:
        """Keep these rows and no others, in slots of the length with which they take the least memory.

        Parameters
        ----------
        lengths
            By length of the numbers, in bytes, how many of the rows have it.
        """
        n = lengths.total()
        self._length = _best_length(lengths)
        """Bytes that each slot has."""
        self._data = bytearray(n * self._length)
        self._only: Layout | None = None
        """The layout of all rows, where that is one, of the length of a slot and without objects."""
        self._layouts: list[Layout] = []
        self._numbers: dict[Layout, int] = {}
        """By layout its place in `_layouts`."""
        self._as_numbers: tuple[int, npt.NDArray[np.bool_] | None] = 0, None
        """Of how many layouts it has been found which columns are integers, and these; None where some are neither."""
        self._of = array("I", bytes(4 * n))
        """By slot the place of its layout."""
        self._beside: list[tuple[Any, ...]] | None = None
        """By slot the values that are objects; where the numbers are longer than a slot, these and the objects. None:
        no slot has any."""
        self._until_look = max(_LOOK_AFTER, 2 * n) + n
        """Rows that are put before all are looked at again, for others may take other lengths."""
        for slot, row in enumerate(rows):
            self._set(slot, row)

    def append(self, row: Kept) -> None:
        """Put a row behind the last one."""
        if row.layout is self._only:  # as nearly always: each observation is put into several of these
            self._of.append(0)
            self._data += row.data
            return
        if not self._of:
            self._fill([row], Counter([row.layout.length]))
            return
        number = self._numbers.get(row.layout)
        if number is not None and row.layout.length == self._length and self._beside is None and not row.objects:
            self._of.append(number)
            self._data += row.data
            self._until_look = left = self._until_look - 1
            if left <= 0:
                self._look_at_all()
            return
        self._of.append(0)
        self._data += bytes(self._length)
        if self._beside is not None:
            self._beside.append(())
        self._set(len(self._of) - 1, row)

    def extend(self, rows: Sequence[Kept]) -> None:
        """Put rows behind the last one."""
        only = self._only
        if only is not None and all(row.layout is only for row in rows):
            self._of.frombytes(bytes(4 * len(rows)))
            self._data += b"".join([row.data for row in rows])
            return
        known, numbers = self._numbers, list[int]()
        if self._of and self._beside is None:
            for row in rows:
                number = known.get(row.layout)
                if number is None or row.layout.length != self._length or row.objects:
                    break
                numbers.append(number)
        if len(numbers) < len(rows):
            for row in rows:
                self.append(row)
            return
        self._of.extend(numbers)
        self._data += b"".join([row.data for row in rows])
        self._until_look = left = self._until_look - len(rows)
        if left <= 0:
            self._look_at_all()

    def put(self, slot: int, row: Kept) -> None:
        """Put a row into a slot, in place of the one that it has, or into the one behind the last one."""
        if slot == len(self._of):
            self.append(row)
            return
        slot = range(len(self._of))[slot]
        if self._dicts:
            self._dicts.pop(slot, None)
        layout = row.layout
        number = self._numbers.get(layout)
        if number is None or layout.length != self._length or self._beside is not None or row.objects:
            self._set(slot, row)
            return
        self._of[slot] = number  # as nearly always
        at = slot * layout.length
        self._data[at : at + layout.length] = row.data
        self._until_look = left = self._until_look - 1
        if left <= 0:
            self._look_at_all()

    def _set(self, slot: int, row: Kept) -> None:
        layout, length = row.layout, self._length
        number = self._numbers.get(layout)
        if number is None:
            number = self._numbers[layout] = len(self._layouts)
            self._layouts.append(layout)
            self._only = layout if number == 0 and layout.length == length and not layout.places else None
        self._of[slot] = number
        beside = row.objects
        if layout.length <= length:
            at = slot * length
            self._data[at : at + layout.length] = row.data
        else:
            beside = (row.data, beside)
        if self._beside is not None:
            self._beside[slot] = beside
        elif beside:
            self._beside = [()] * len(self._of)
            self._beside[slot] = beside
        self._count_put()

    def _count_put(self) -> None:
        self._until_look -= 1
        if self._until_look <= 0:
            self._look_at_all()

    def _look_at_all(self) -> None:
        """Forget the layouts that no row has any more, and choose the length of a slot anew."""
        self._until_look = max(_LOOK_AFTER, 2 * len(self))
        if self._only is not None:
            return
        used = Counter(self._of)
        lengths = self._lengths(used, self._layouts)
        if len(used) < len(self._layouts) or _best_length(lengths) != self._length:
            self._fill(list(self.all_kept()), lengths)

    @staticmethod
    def _lengths(used: Mapping[int, int], layouts: Sequence[Layout]) -> Counter[int]:
        """Return by length how many rows have it, of how many rows have which layout."""
        lengths: Counter[int] = Counter()
        for number, n in used.items():
            lengths[layouts[number].length] += n
        return lengths

    def pop(self, slot: int) -> Kept:
        """Take a row out, and move those behind it up."""
        if self._beside is not None or slot < 0:
            row = self.kept(slot)
            self.drop(slot)
            return row
        layout = self._layouts[self._of.pop(slot)]
        if self._dicts:
            self._dicts.clear()
        data, length = self._data, self._length
        at = slot * length
        numbers = bytes(data[at : at + layout.length])
        del data[at : at + length]
        return Kept(layout, numbers)

    def drop(self, slot: int) -> None:
        """Forget the row of a slot, and move those behind it up."""
        slot = range(len(self._of))[slot]
        if self._dicts:
            self._dicts.clear()
        del self._of[slot], self._data[slot * self._length : (slot + 1) * self._length]
        if self._beside is not None:
            del self._beside[slot]

    def drop_first(self, n: int) -> None:
        """Forget the rows of the first slots, and move those behind them up."""
        self._dicts.clear()
        del self._of[:n], self._data[: n * self._length]
        if self._beside is not None:
            del self._beside[:n]

    def kept(self, slot: int) -> Kept:
        """Return the row of a slot as it is kept."""
        slot = range(len(self._of))[slot]
        layout = self._layouts[self._of[slot]]
        beside = () if self._beside is None else self._beside[slot]
        if layout.length > self._length:
            return Kept(layout, *beside)
        at = slot * self._length
        return Kept(layout, bytes(self._data[at : at + layout.length]), beside)

    def all_kept(self) -> Iterator[Kept]:
        """Return an iterator over the rows as they are kept."""
        return map(self.kept, range(len(self)))

    def numbers_as_kept(self, names: KeysView[Any]) -> AsKept | None:
        """Return the numbers of all rows as they are kept, where all have these features, in one order, and no others.

        None where that is not so, or a value is neither a float nor an integer. It is not to be held: rows cannot be
        put as long as it is there.
        """
        layouts = self._layouts
        if not layouts or layouts[0].name_set != names:
            return None
        order, (n_known, are_integers) = layouts[0].names, self._as_numbers
        if n_known != len(layouts):
            are_integers = self._find_integers(order)
            self._as_numbers = len(layouts), are_integers
        if are_integers is None:
            return None
        floats: Array = np.frombuffer(self._data, dtype=np.float64).reshape(-1, len(order))
        return AsKept(order, floats, floats.view(np.int64), np.frombuffer(self._of, dtype=np.uint32), are_integers)

    def _find_integers(self, order: tuple[Any, ...]) -> npt.NDArray[np.bool_] | None:
        """Return by layout which columns are integers; None where not all layouts are numbers in this order."""
        layouts, length = self._layouts, self._length
        if not all(one.are_numbers and one.length == length and one.names == order for one in layouts):
            return None
        return np.array([one.are_integers for one in layouts])

    def may_have(self, feature: Any) -> bool:
        """Return whether some row may have a feature; none has it where it is False."""
        return any(feature in layout.name_set for layout in self._layouts)

    @property
    def most_features(self) -> int:
        """The largest number of features that a row may have."""
        return max((len(layout.names) for layout in self._layouts), default=0)

    def __len__(self) -> int:
        return len(self._of)

    @overload
    def __getitem__(self, slot: int) -> dict[Any, Any]: ...
    @overload
    def __getitem__(self, slot: slice) -> list[dict[Any, Any]]: ...
    def __getitem__(self, slot: int | slice) -> dict[Any, Any] | list[dict[Any, Any]]:
        """Return the row of a slot, the same dict each time, which is only read; or new dicts of some."""
        if isinstance(slot, slice):
            return [self.kept(i).row() for i in range(*slot.indices(len(self)))]
        slot = range(len(self._of))[slot]
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
        if self._only is not None and self._of:
            only = [list(self._only.names), self._only.codes]
            return {"layouts": [only], "of": bytes(4 * len(self)), "numbers": bytes(self._data), "objects": None}
        used = list(dict.fromkeys(self._of))
        layouts = [self._layouts[number] for number in used]
        number = {of: i for i, of in enumerate(used)}
        has_objects = any(layout.places for layout in layouts)
        return {
            "layouts": [[list(layout.names), layout.codes] for layout in layouts],
            "of": np.array([number[of] for of in self._of], dtype="<u4").tobytes(),
            "numbers": b"".join(row.data for row in self.all_kept()),
            "objects": [row.objects for row in self.all_kept()] if has_objects else None,
        }

    @classmethod
    def from_snapshot(cls, packed: Snapshot) -> Self:
        """Return the rows that the snapshot was taken of.

        Raises
        ------
        SnapshotError
            Numbers or objects of a row are not as its layout says.
        """
        layouts = [_checked_layout(names, codes) for names, codes in packed["layouts"]]
        of, numbers, objects = packed["of"], packed["numbers"], packed["objects"]
        _check(type(of) is type(numbers) is bytes and len(of) % 4 == 0)
        n = len(of) // 4
        if len(layouts) == 1 and objects is None:
            rows, layout = cls(), layouts[0]
            _check(of.count(0) == len(of) and len(numbers) == n * layout.length and not layout.places)
            rows._layouts, rows._numbers, rows._of = layouts, {layout: 0}, array("I", of)
            rows._length, rows._data, rows._only = layout.length, bytearray(numbers), layout if n else None
            return rows
        used = Counter(array("I", of))
        _check(max(used, default=-1) < len(layouts))
        _check(len(numbers) == sum(n_of * layouts[number].length for number, n_of in used.items()))
        _check(objects is None or (type(objects) is list and len(objects) == n))
        rows = cls()
        rows._fill(_unpacked(array("I", of), layouts, numbers, objects), cls._lengths(used, layouts))
        return rows


def _unpacked(
    of: array[int], layouts: Sequence[Layout], numbers: bytes, objects: Sequence[Any] | None
) -> Iterator[Kept]:
    begin = 0
    for slot, number in enumerate(of):
        layout = layouts[number]
        of_row = () if objects is None else objects[slot]
        _check(type(of_row) is tuple and len(of_row) == len(layout.places))
        yield Kept(layout, numbers[begin : begin + layout.length], of_row)
        begin += layout.length


def _best_length(lengths: Mapping[int, int]) -> int:
    """Return the length of slots with which rows take the least memory, the shortest of several; 0 without rows."""
    n, beside, best = sum(lengths.values()), 0, (0, 0)
    for i, length in enumerate(sorted(lengths, reverse=True)):
        taken = n * length + beside, length
        best = taken if i == 0 else min(best, taken)
        beside += lengths[length] * (length + _BESIDE)
    return best[1]


def _check(are_right: bool) -> None:
    if not are_right:
        raise SnapshotError("stored rows are not what an explainer has written: start a new explainer")


def _checked_layout(names: Any, codes: Any) -> Layout:
    if not (isinstance(codes, str) and set(codes) <= {"o", *CODES.values()} and len(names) == len(codes)):
        raise SnapshotError("the layout of stored rows is not what an explainer has written: start a new explainer")
    return layout_of(tuple(names), codes)
