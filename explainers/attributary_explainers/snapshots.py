"""Objects as plain data to restore from."""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from .core.rows import Rows
from .errors import SnapshotError
from .typing import Array, Snapshot

_TYPE = "__type__"
"""Key of a dict that says what it is the data of."""
_PLAIN = frozenset((str, int, float, bool, bytes, type(None)))


class Stored:
    """An object whose attributes are its state.

    They are plain data, arrays, generators, collections and objects of such classes. What `_unstored` names is no part
    of the state: the class gives it to a restored object itself, by `_complete`.
    """

    __slots__ = ()
    _unstored: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **of_class: Any) -> None:
        super().__init_subclass__(**of_class)
        register(cls)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        names = [one.name for one in fields(self)] if is_dataclass(self) else vars(self)
        return attributes(self, [name for name in names if name not in self._unstored])

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the object that the snapshot was taken of."""
        made = object.__new__(cls)
        set_attributes(made, snapshot)
        made._complete()
        return made

    def _complete(self) -> None:
        """Give a restored object the attributes outside its state."""


def attributes(of: Any, names: Iterable[str]) -> Snapshot:
    """Return attributes of an object as plain data."""
    return {name: plain(getattr(of, name)) for name in names}


def set_attributes(of: Any, snapshot: Snapshot) -> None:
    """Give an object the attributes that `attributes` returned."""
    for name, value in snapshot.items():
        object.__setattr__(of, name, restored(value))  # of frozen objects, too


def plain(value: Any) -> Any:
    """Return a value as plain data, which shares nothing with it.

    Objects of classes that are not known stay as they are: labels may be of any type.

    Examples
    --------
    >>> restored(plain([1.5, (True, {"a": None}), Counter("aab")]))
    [1.5, (True, {'a': None}), Counter({'a': 2, 'b': 1})]
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return list(value if _PLAIN.issuperset(map(type, value)) else map(plain, value))
    if kind is dict and _TYPE not in value:
        return {key: plain(one) for key, one in value.items()}
    form = _FORMS.get(kind)
    return value if form is None else {_TYPE: form.name, "state": form.store(value)}


def restored(data: Any) -> Any:
    """Return the value that `plain` gave the data of.

    Raises
    ------
    SnapshotError
        It names a class that no snapshot is of.
    """
    kind = type(data)
    if kind in _PLAIN:
        return data
    if kind is list:
        return list(data if _PLAIN.issuperset(map(type, data)) else map(restored, data))
    if kind is not dict:
        return data
    if _TYPE not in data:
        return {key: restored(one) for key, one in data.items()}
    form = _BY_NAME.get(data[_TYPE])
    if form is None:
        raise SnapshotError(f"expected the data of a snapshot, got those of {data[_TYPE]!r}: begin without them")
    return form.load(data["state"])


class _Form(NamedTuple):
    name: str
    store: Callable[[Any], Any]
    load: Callable[[Any], Any]


_FORMS: dict[type, _Form] = {}
_BY_NAME: dict[str, _Form] = {}

_C = TypeVar("_C", bound=type)


def register(kind: _C) -> _C:
    """Store objects of a class by its `snapshot` and `from_snapshot`."""
    name = f"{kind.__module__.removeprefix('attributary_explainers.')}.{kind.__qualname__}"
    _add(kind, name, lambda value: value.snapshot(), lambda data: kind.from_snapshot(data))  # type: ignore[attr-defined]
    return kind


def _add(kind: type, name: str, store: Callable[[Any], Any], load: Callable[[Any], Any]) -> None:
    _FORMS[kind] = _BY_NAME[name] = _Form(name, store, load)


def unpack_numbers(kind: str, packed: Any) -> array[Any]:
    """Return numbers of a kind (`d` or `q`, eight bytes each) from bytes.

    Raises
    ------
    SnapshotError
        They are not such bytes.
    """
    if not (isinstance(packed, bytes) and len(packed) % 8 == 0):
        raise SnapshotError("stored values are not what an explainer has written: start a new explainer")
    return array(kind, packed)


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


def _generator_of(state: Any) -> np.random.Generator:
    rng = np.random.default_rng(0)
    rng.bit_generator.state = state
    return rng


_add(tuple, "tuple", lambda of: plain(list(of)), lambda data: tuple(restored(data)))
_add(dict, "dict", lambda of: plain(list(of.items())), lambda data: dict(restored(data)))
_add(np.ndarray, "array", pack, unpack)
_add(array, "numbers", lambda of: [of.typecode, of.tobytes()], lambda data: unpack_numbers(*data))
_add(deque, "deque", lambda of: [plain(list(of)), of.maxlen], lambda data: deque(restored(data[0]), data[1]))
_add(Counter, "counter", lambda of: plain(list(of.items())), lambda data: Counter(dict(restored(data))))
_add(np.random.Generator, "generator", lambda rng: rng.bit_generator.state, _generator_of)
register(Rows)
