"""Readers of Avro values as plain data.

Decimals become numbers, and times milliseconds.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any
from uuid import UUID

import orjson

from attributary_topics import InvalidRecordError

from .avro_bombs import find_endless
from .avro_faults import find_fault
from .decimals import scaled
from .framing import HEAD_BYTES, Reader, wrong_schema
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
