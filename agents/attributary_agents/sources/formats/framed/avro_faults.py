"""Search for the field at which a value departs from its Avro schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

_Path = tuple[str, ...]
_Named = Mapping[str, dict[str, Any]]


def find_fault(schema: dict[str, Any], named: _Named, reads: Callable[[Any], bool]) -> tuple[str, str]:
    """Return the path and expected type of the first unreadable field.

    A value is read from its beginning, so a schema that is cut behind a field can be read by as long as the fault is
    further behind: the first field whose cut schema cannot be read by is found by halving.

    Parameters
    ----------
    schema
        Of a record, with the full names of types.
    named
        Types by their full names.
    reads
        Whether the value can be read by a schema, to which all of `named` are known.
    """
    kinds = dict(_leaves(schema, named, (), frozenset()))
    paths = list(kinds)
    low, high = 0, len(paths)
    while low < high:
        middle = (low + high) // 2
        if reads(_cut(schema, named, paths[middle])):
            low = middle + 1
        else:
            high = middle
    if low == len(paths):  # all fields can be read: nothing is left to blame one for
        return "value", "an Avro record"
    return ".".join(paths[low]), _words(kinds[paths[low]])


def _leaves(
    schema: dict[str, Any], named: _Named, before: _Path, around: frozenset[str]
) -> Iterator[tuple[_Path, Any]]:
    """Yield the fields in writing order, with nested records flattened."""
    around |= {schema["name"]}
    for field in schema["fields"]:
        path = (*before, field["name"])
        inner = _record(field["type"], named)
        if inner is None or not inner["fields"] or inner["name"] in around:  # a type may hold itself
            yield path, field["type"]
        else:
            yield from _leaves(inner, named, path, around)


def _record(kind: Any, named: _Named) -> dict[str, Any] | None:
    """Return the record in a type: itself, or the only record of a union."""
    found = [named.get(one) if isinstance(one, str) else one for one in (kind if isinstance(kind, list) else [kind])]
    records = [one for one in found if isinstance(one, dict) and one["type"] == "record"]
    return records[0] if len(records) == 1 else None


def _cut(schema: dict[str, Any], named: _Named, path: _Path) -> dict[str, Any]:
    """Return a schema of the fields up to that of a path."""
    names = [field["name"] for field in schema["fields"]]
    *kept, last = [
        {"name": field["name"], "type": _by_name(field["type"], named)}
        for field in schema["fields"][: names.index(path[0]) + 1]
    ]
    if path[1:]:
        inner = _record(last["type"], named)
        assert inner is not None
        cut, whole = _cut(inner, named, path[1:]), last["type"]
        parts = [
            cut if _record(one, named) is inner else one for one in (whole if isinstance(whole, list) else [whole])
        ]
        last["type"] = parts if isinstance(whole, list) else cut
    return {"type": "record", "name": f"attributary.Cut{len(path)}", "fields": [*kept, last]}


def _by_name(kind: Any, named: _Named) -> Any:
    """Return a type in which named types are references, as in Avro.

    So nothing is defined twice.
    """
    if isinstance(kind, list):
        return [_by_name(one, named) for one in kind]
    if not isinstance(kind, dict):
        return kind
    if kind.get("name") in named:
        return kind["name"]
    return {key: _by_name(value, named) if key in ("items", "values") else value for key, value in kind.items()}


def _words(kind: Any) -> str:
    if isinstance(kind, list):
        return " or ".join(map(_words, kind))
    if isinstance(kind, dict):
        logical = str(kind.get("logicalType", "")).removeprefix("attributary-")
        return (logical if logical != "nan" else "") or str(kind.get("name") or kind["type"])
    return str(kind)
