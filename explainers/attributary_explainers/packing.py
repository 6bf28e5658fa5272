"""Values and arrays as they are kept and stored: numbers as bytes."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, MutableSequence, Sequence
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from .errors import SnapshotError
from .typing import Array, Snapshot


def pack(values: npt.NDArray[Any]) -> Snapshot:
    """Return an array as plain data."""
    return {"type": values.dtype.str, "shape": list(values.shape), "bytes": values.tobytes()}


def unpack(packed: Snapshot) -> npt.NDArray[Any]:
    """Return the array that was packed, as a copy that can be changed."""
    return np.frombuffer(packed["bytes"], dtype=packed["type"]).reshape(packed["shape"]).copy()


def pack_symmetric(matrix: Array) -> Snapshot:
    """Return a symmetric matrix as plain data, by its lower triangle."""
    return pack(matrix[np.tril_indices(len(matrix))])


def unpack_symmetric(packed: Snapshot) -> Array:
    """Return the matrix that was packed, with zeros above the diagonal."""
    values = unpack(packed)
    n = int((np.sqrt(8.0 * len(values) + 1.0) - 1.0) / 2.0 + 0.5)
    matrix = np.zeros((n, n))
    matrix[np.tril_indices(n)] = values
    return matrix


class Values(MutableSequence[Any]):
    """Any values, at eight bytes each while all of them are floats."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._values: array[float] | list[Any] = array("d")
        self.extend(values)

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> Self: ...
    def __getitem__(self, i: int | slice) -> Any:
        """Return a value, or some as values."""
        return type(self)(self._values[i]) if isinstance(i, slice) else self._values[i]

    @overload
    def __setitem__(self, i: int, value: Any) -> None: ...
    @overload
    def __setitem__(self, i: slice, value: Iterable[Any]) -> None: ...
    def __setitem__(self, i: Any, value: Any) -> None:
        """Replace a value."""
        if isinstance(i, slice):
            raise TypeError("only single values can be replaced")
        self._take_in(value)[i] = value

    def __delitem__(self, i: int | slice) -> None:
        """Remove values, and move the later values up."""
        del self._values[i]

    def insert(self, i: int, value: Any) -> None:
        """Insert a value before position `i`."""
        self._take_in(value).insert(i, value)

    def append(self, value: Any) -> None:
        """Append a value."""
        self._take_in(value).append(value)

    def extend(self, values: Iterable[Any]) -> None:
        """Append values."""
        added = list(values)
        if type(self._values) is not list and set(map(type, added)) - {float}:
            self._values = list(self._values)
        self._values.extend(added)

    def pop(self, i: int = -1) -> Any:
        """Remove and return a value, and move the later values up."""
        return self._values.pop(i)

    def _take_in(self, value: Any) -> array[Any] | list[Any]:
        if type(value) is not float and type(self._values) is not list:
            self._values = list(self._values)
        return self._values

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Values | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def snapshot(self) -> bytes | list[Any]:
        """Return the values as plain data."""
        return pack_values(self._values)

    @classmethod
    def from_snapshot(cls, packed: bytes | Sequence[Any]) -> Self:
        """Return the values that the snapshot was taken of.

        Raises
        ------
        SnapshotError
            It is not what `snapshot` gives.
        """
        values = cls()
        if isinstance(packed, bytes):
            values._values = unpack_numbers("d", packed)
        elif isinstance(packed, list):
            values.extend(packed)
        else:
            raise SnapshotError(_FORGED)
        return values


_FORGED = "stored values are not what an explainer has written: start a new explainer"


def unpack_numbers(kind: str, packed: Any) -> array[Any]:
    """Return numbers of a kind (`d` or `q`, eight bytes each) from bytes.

    Raises
    ------
    SnapshotError
        They are not such bytes.
    """
    if not (isinstance(packed, bytes) and len(packed) % 8 == 0):
        raise SnapshotError(_FORGED)
    return array(kind, packed)


def pack_values(values: Collection[Any]) -> bytes | list[Any]:
    """Return plain data for `unpack_values`: bytes if all are floats."""
    if isinstance(values, array):
        return values.tobytes() if values else []
    return array("d", values).tobytes() if set(map(type, values)) == {float} else list(values)


def unpack_values(packed: bytes | Sequence[Any]) -> list[Any]:
    """Return the values that were packed."""
    return np.frombuffer(packed, dtype=np.float64).tolist() if isinstance(packed, bytes) else list(packed)
