"""Finds the field at which a value ceases to be what its Avro schema says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_Path = tuple[str, ...]


def find_fault(schema: dict[str, Any], reads: Callable[[Any], bool]) -> tuple[str, str]:
    """Return the path of the first field that cannot be read, and what should be there.

    A value is read from its beginning, so a schema that is cut behind a field can be read by as long as the fault is
    further behind: the first field whose cut schema cannot be read by is found by halving.

    Parameters
    ----------
    reads
        Whether the value can be read by a schema.
    """
    paths = [path for path, _ in _leaves(schema)]
    kinds = dict(_leaves(schema))
    low, high = 0, len(paths)
    while low < high:
        middle = (low + high) // 2
        if reads(_cut(schema, paths[middle])):
            low = middle + 1
        else:
            high = middle
    if low == len(paths):  # all fields can be read: nothing is left to blame one for
        return "value", "an Avro record"
    return ".".join(paths[low]), _words(kinds[paths[low]])


def _leaves(schema: dict[str, Any], before: _Path = ()) -> Iterator[tuple[_Path, Any]]:
    """Yield the fields in the order in which they are written; of a record within, its fields."""
    for field in schema["fields"]:
        path = (*before, field["name"])
        inner = _record(field["type"])
        if inner is None or not inner["fields"]:
            yield path, field["type"]
        else:
            yield from _leaves(inner, path)


def _record(kind: Any) -> dict[str, Any] | None:
    """Return the record that a type defines, by itself or as the only one of a union."""
    found = [one for one in (kind if isinstance(kind, list) else [kind]) if isinstance(one, dict)]
    records = [one for one in found if one["type"] == "record"]
    return records[0] if len(records) == 1 else None


def _cut(schema: dict[str, Any], path: _Path) -> dict[str, Any]:
    """Return the schema up to the field of a path, and that as well."""
    name, *rest = path
    names = [field["name"] for field in schema["fields"]]
    *kept, last = schema["fields"][: names.index(name) + 1]
    if rest:
        inner = _record(last["type"])
        assert inner is not None
        cut = _cut(inner, tuple(rest))
        whole = last["type"]
        last = {**last, "type": [cut if one is inner else one for one in whole] if isinstance(whole, list) else cut}
    return {**schema, "fields": [*kept, last]}


def _words(kind: Any) -> str:
    if isinstance(kind, list):
        return " or ".join(map(_words, kind))
    if isinstance(kind, dict):
        logical = str(kind.get("logicalType", "")).removeprefix("attributary-")
        return logical or str(kind.get("name") or kind["type"])
    return str(kind)
