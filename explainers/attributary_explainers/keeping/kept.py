"""An observation as it is kept: its numbers are bytes.

A dict of nine numbers takes 570 bytes, the same as bytes of its own 170, and in one array with others 76 (`Rows`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache
from operator import is_
from struct import Struct, error
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..typing import Features

CODES: dict[type, str] = {float: "d", int: "q", bool: "?"}
"""Types of values that are bytes, with their codes in `struct`; any other value is an object, whose code is `o`."""


_TYPES = {code: kind for kind, code in CODES.items()}


class Layout:
    """Says how the values of rows with the same names and types are kept; there is one object for each."""

    __slots__ = (
        "__weakref__",
        "are_integers",
        "are_numbers",
        "are_texts",
        "codes",
        "length",
        "name_set",
        "names",
        "packing",
        "places",
        "types",
    )

    def __init__(self, names: tuple[Any, ...], codes: str) -> None:
        self.names, self.codes = names, codes
        self.name_set = frozenset(names)
        self.packing = Struct("<" + codes.replace("o", ""))
        self.length = self.packing.size
        """Bytes of the numbers."""
        self.places = [i for i, code in enumerate(codes) if code == "o"]
        """Of the values that are objects."""
        self.types: tuple[type, ...] | None = None if self.places else tuple(_TYPES[code] for code in codes)
        """Of the values, where the codes say all of them."""
        self.are_integers = np.array([code == "q" for code in codes], dtype=np.bool_)
        """Which of the values are integers."""
        self.are_numbers = bool(codes) and set(codes) <= {"d", "q"} and sys.byteorder == "little"
        """Whether all values are floats or integers, whose bytes numpy reads as they are."""
        self.are_texts = all(type(name) is str for name in names)

    def __reduce__(self) -> Any:
        return layout_of, (self.names, self.codes)  # of a copy too there is one object for each


_layouts: WeakValueDictionary[tuple[tuple[Any, ...], str, str], Layout] = WeakValueDictionary()
"""Those in use: rows are alike where their layouts are the same object."""


def layout_of(names: tuple[Any, ...], codes: str) -> Layout:
    """Return the layout of rows with these names, and by name the code of its value's type."""
    # The names 1 and True are equal, and not the same.
    key = names, codes, "" if all(type(name) is str for name in names) else repr(names)
    found = _layouts.get(key)
    return _layouts.setdefault(key, Layout(names, codes)) if found is None else found


@lru_cache(maxsize=4096)
def _layout_of_types(names: tuple[Any, ...], types: tuple[type, ...]) -> Layout:
    return layout_of(names, _codes(types))


def _codes(types: Iterable[type]) -> str:
    return "".join(CODES.get(kind, "o") for kind in types)


class Kept:
    """A row as it is kept: its numbers are bytes, and it never changes. Made by `keep`."""

    __slots__ = ("data", "layout", "objects")

    def __init__(self, layout: Layout, data: bytes, objects: tuple[Any, ...] = ()) -> None:
        self.layout, self.data, self.objects = layout, data, objects

    def row(self) -> dict[Any, Any]:
        """Return the row, as a new dict with the same values, types and order of the keys."""
        layout = self.layout
        values: Iterable[Any] = layout.packing.unpack(self.data)
        if layout.places:
            values = list(values)
            for place, value in zip(layout.places, self.objects, strict=True):
                values.insert(place, value)
        return dict(zip(layout.names, values, strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kept):
            return NotImplemented
        return self.layout is other.layout and (self.data, self.objects) == (other.data, other.objects)

    __hash__ = None  # type: ignore[assignment]  # objects may have none

    def __reduce__(self) -> Any:
        return _kept, (self.layout.names, self.layout.codes, self.data, self.objects)


def _kept(names: tuple[Any, ...], codes: str, data: bytes, objects: tuple[Any, ...]) -> Kept:
    return Kept(layout_of(names, codes), data, objects)


_latest: tuple[tuple[Any, ...], tuple[Any, ...], Kept] = ((), (), Kept(layout_of((), ""), b""))
"""Names and values of the row that was kept last, and as what."""
_latest_apart = layout_of((), "")


def keep(x: Features) -> Kept:
    """Return a row as it is kept: the same object where the row before had the same values, as objects."""
    global _latest
    names, values = tuple(x), tuple(x.values())
    of_latest, latest, kept = _latest
    # By identity: values may be of any type, and some raise where they are compared.
    is_same = len(values) == len(latest) and all(map(is_, values, latest))
    if is_same and names == of_latest and kept.layout.are_texts:
        return kept
    kept = _made(names, values, kept.layout)
    _latest = names, values, kept
    return kept


def keep_apart(x: Features) -> Kept:
    """Return a row as it is kept, which nobody else keeps: so that what `keep` was given last stays the last one."""
    global _latest_apart
    kept = _made(tuple(x), tuple(x.values()), _latest_apart)
    _latest_apart = kept.layout
    return kept


def keep_all(rows: Iterable[Features]) -> list[Kept]:
    """Return rows as they are kept, each as `keep_apart` does: quick where most have the same names and types."""
    known: dict[tuple[type, ...], Layout] = {}
    found = []
    for x in rows:
        names, values = tuple(x), tuple(x.values())
        types = tuple(map(type, values))
        layout = known.get(types)
        if layout is None or not _has_names(layout, names):
            kept = keep_apart(x)
            known[types if kept.layout.types == types else ()] = kept.layout
        else:
            try:
                kept = Kept(layout, layout.packing.pack(*values))
            except error:
                kept = _packed(layout, values)
        found.append(kept)
    return found


def _has_names(layout: Layout, names: tuple[Any, ...]) -> bool:
    # Names that are no texts, as classes are, by identity.
    return names == layout.names if layout.are_texts else all(map(is_, names, layout.names))


def _made(names: tuple[Any, ...], values: tuple[Any, ...], likely: Layout) -> Kept:
    types = tuple(map(type, values))
    if types == likely.types and _has_names(likely, names):  # without a hash of them all
        try:
            return Kept(likely, likely.packing.pack(*values))
        except error:
            return _packed(likely, values)
    layout = _layout_of_types(names, types)
    if not layout.are_texts:
        layout = layout_of(names, layout.codes)
    return _packed(layout, values)


def _packed(layout: Layout, values: tuple[Any, ...]) -> Kept:
    try:
        return _packed_by(layout, values)
    except error:  # an integer beyond 64 bits
        return _packed_by(layout_of(layout.names, layout.codes.replace("q", "o")), values)


def _packed_by(layout: Layout, values: tuple[Any, ...]) -> Kept:
    if not layout.places:
        return Kept(layout, layout.packing.pack(*values))
    numbers = [value for value, code in zip(values, layout.codes, strict=True) if code != "o"]
    return Kept(layout, layout.packing.pack(*numbers), tuple([values[place] for place in layout.places]))
