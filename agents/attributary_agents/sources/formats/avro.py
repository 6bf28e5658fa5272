"""Readers of Avro values as plain data.

Decimals become numbers, and times milliseconds. Schemas by which a few bytes become a huge value are refused, and of a
value that cannot be read the field is found.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any
from uuid import UUID

import orjson

from attributary_topics import InvalidRecordError

from .framing import HEAD_BYTES, Reader, scaled, wrong_schema
from .registry import RegisteredSchema

_KEPT = ("type", "name", "namespace", "symbols", "size", "precision", "scale")
"""What of a schema tells how bytes are read; defaults are for readers that have a schema of their own."""


def _decimal(unscaled: bytes, schema: Mapping[str, Any]) -> float:
    return scaled(int.from_bytes(unscaled, "big", signed=True), schema.get("scale", 0))


def _uuid(value: bytes, _schema: Mapping[str, Any]) -> str:
    return str(UUID(bytes=value))


def _days(value: int, _schema: Mapping[str, Any]) -> int:
    return value * 86_400_000


def _micros(value: int, _schema: Mapping[str, Any]) -> int:
    return value // 1000


def _nanos(value: int, _schema: Mapping[str, Any]) -> int:
    return value // 1_000_000


def _number(value: float, _schema: Mapping[str, Any]) -> float | None:
    return value if value == value else None


_LOGICAL: dict[tuple[str, str], Callable[[Any, Mapping[str, Any]], Any]] = {
    ("float", "nan"): _number,
    ("double", "nan"): _number,
    ("bytes", "decimal"): _decimal,
    ("fixed", "decimal"): _decimal,
    ("fixed", "uuid"): _uuid,
    ("int", "date"): _days,
    ("long", "time-micros"): _micros,
    ("long", "timestamp-micros"): _micros,
    ("long", "local-timestamp-micros"): _micros,
    ("long", "timestamp-nanos"): _nanos,
    ("long", "local-timestamp-nanos"): _nanos,
}
"""Logical types that are not read as they are written: those in milliseconds and texts are. `nan` is ours alone."""


@cache
def _fastavro() -> ModuleType:
    """Return fastavro, to which our logical types are known.

    They have names of their own, so that what else reads Avro in this process has its dates and decimals.
    """
    import fastavro
    from fastavro.read import LOGICAL_READERS

    for (kind, logical), change in _LOGICAL.items():

        def read(value: Any, writer: Any, _reader: Any = None, change: Any = change) -> Any:
            return change(value, writer)

        LOGICAL_READERS[f"{kind}-attributary-{logical}"] = read
    return fastavro


async def make_reader(schema: RegisteredSchema) -> Reader:
    """Return a function that reads the values written by a schema.

    Raises
    ------
    InvalidRecordError
        `wrong_schema`: it is no schema of Avro, or not one of a record.
    """
    fastavro = _fastavro()
    read_schemaless = fastavro.schemaless_reader
    named: dict[str, Any] = {}
    try:
        for text in schema.references.values():
            fastavro.parse_schema(_ours(orjson.loads(text)), named_schemas=named)
        parsed = fastavro.parse_schema(_ours(orjson.loads(schema.text)), named_schemas=named)
    except (
        fastavro.schema.SchemaParseException,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        why = f"{type(error).__name__}: {error}"
        raise wrong_schema(schema, f"is not one that Avro reads ({why})") from None
    if (path := find_endless(parsed, named)) is not None:
        raise wrong_schema(schema, f"has at {path} an array of nothing: a few bytes could say that it has any length")
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise wrong_schema(schema, "is not one of a record, and x has to come from an object")

    def read(value: bytes) -> dict[str, Any]:
        stream = io.BytesIO(value)
        stream.seek(HEAD_BYTES)
        try:
            found: dict[str, Any] = read_schemaless(stream, parsed, None)
        except Exception as error:  # fastavro raises many kinds on bytes that its schema did not write
            raise _fault(value, type(error).__name__) from error
        if stream.tell() != len(value):
            n = len(value) - stream.tell()
            message = f"value: {n} bytes are left behind what schema id {schema.id} says"
            raise InvalidRecordError("invalid_avro", "value", "the end of the value", value, message)
        return found

    def _fault(value: bytes, what: str) -> InvalidRecordError:
        def reads(cut: Any) -> bool:
            stream = io.BytesIO(value)
            stream.seek(HEAD_BYTES)
            try:
                read_schemaless(stream, fastavro.parse_schema(cut, named_schemas=dict(named)), None)
            except Exception:  # noqa: BLE001  # as above; that is the question
                return False
            return True

        field, kind = find_fault(parsed, named, reads)
        return InvalidRecordError("invalid_avro", field, f"{kind}, as schema id {schema.id} says ({what})", value)

    return read


def _ours(schema: Any) -> Any:
    """Return a schema reduced to its reading part, with our logical types.

    Ours stand in place of Avro's.
    """
    if isinstance(schema, list):
        return [_ours(one) for one in schema]
    if schema in ("float", "double"):
        return {"type": schema, "logicalType": "attributary-nan"}
    if not isinstance(schema, dict):
        return schema
    kind = schema["type"]
    if isinstance(kind, (dict, list)):
        return _ours(kind)
    found = {key: schema[key] for key in _KEPT if key in schema}
    if (kind, schema.get("logicalType")) in _LOGICAL:
        found["logicalType"] = f"attributary-{schema['logicalType']}"
    if kind in ("float", "double"):
        return _ours(kind)
    if kind in ("record", "error"):
        found["type"] = "record"
        found["fields"] = [{"name": field["name"], "type": _ours(field["type"])} for field in schema["fields"]]
    for inner in ("items", "values"):
        if inner in schema:
            found[inner] = _ours(schema[inner])
    return found


def find_endless(schema: Any, named: Mapping[str, Any]) -> str | None:
    """Return the path of an array whose items take no bytes, or None.

    Such items are nulls, for example.

    Of such an array the number of items alone is written, so that it may be larger than any memory.

    Parameters
    ----------
    named
        Types by their full names, as the schema refers to them.
    """
    for name, kind in [("value", schema), *named.items()]:
        if (path := _find(kind, named, name)) is not None:
            return path
    return None


def _find(kind: Any, named: Mapping[str, Any], path: str) -> str | None:
    if isinstance(kind, list):
        return next((found for one in kind if (found := _find(one, named, path))), None)
    if not isinstance(kind, dict):
        return None  # by its name: it is looked at by itself
    if kind["type"] == "array" and _takes_nothing(kind["items"], named, frozenset()):
        return path
    inner = [(path, kind[key]) for key in ("items", "values") if key in kind]
    inner += [(f"{path}.{field['name']}", field["type"]) for field in kind.get("fields", ())]
    return next((found for where, one in inner if (found := _find(one, named, where))), None)


def _takes_nothing(kind: Any, named: Mapping[str, Any], around: frozenset[str]) -> bool:
    """Return whether a value of a type is written without any byte.

    Of a union the branch is written, so that it takes a byte.
    """
    if isinstance(kind, str) and kind in named:
        if kind in around:  # no value of a type that must hold itself has an end
            return True
        return _takes_nothing(named[kind], named, around | {kind})
    if isinstance(kind, str):
        return kind == "null"
    if not isinstance(kind, dict):
        return False
    if kind["type"] == "record":
        return all(_takes_nothing(field["type"], named, around | {kind["name"]}) for field in kind["fields"])
    if kind["type"] == "fixed":
        return bool(kind["size"] == 0)
    return bool(kind["type"] == "null")


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
