"""Readers of Protobuf messages as plain data.

Integers stay as they are, and enums become their names. Schemas are compiled in a process of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from attributary_topics import InvalidRecordError

from ...errors import SchemaUnavailableError
from .framing import HEAD_BYTES, Reader, scaled, wrong_schema
from .registry import RegisteredSchema

_Change = Callable[[Any], Any]

_MOST_INDEXES = 100
_LARGEST_SCALE = 1000
_WITH_NAN = (1, 2)  # double and float


async def make_reader(schema: RegisteredSchema) -> Reader:
    """Return a function that reads the values written by a schema.

    Raises
    ------
    InvalidRecordError
        `wrong_schema`: it cannot be compiled.
    SchemaUnavailableError
        The compiler has not finished in time.
    """
    return _Messages(schema, await compile_schema(schema)).read


class _Messages:
    """Reader of the messages of a Protobuf file.

    The type of a value stands behind the id of the schema.
    """

    def __init__(self, schema: RegisteredSchema, descriptors: bytes) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, message

        self._schema = schema
        self._error: type[Exception] = message.DecodeError
        self._pool = descriptor_pool.DescriptorPool()
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
        for file in files:
            self._pool.AddSerializedFile(file.SerializeToString())
        self._file = files[-1]
        self._types: dict[bytes, tuple[Any, _Change, str]] = {}

    def read(self, value: bytes) -> dict[str, Any]:
        """Return the message that a value holds."""
        start = HEAD_BYTES + 1 if value[HEAD_BYTES : HEAD_BYTES + 1] == b"\0" else self._end_of_indexes(value)
        made = self._types.get(value[HEAD_BYTES:start])
        if made is None:
            made = self._types[value[HEAD_BYTES:start]] = self._type(value, start)
        kind, change, name = made
        try:
            found = change(kind.FromString(value[start:]))
        except (self._error, UnicodeDecodeError):
            expected = f"a message {name}, as schema id {self._schema.id} says"
            raise InvalidRecordError("invalid_protobuf", "value", expected, value) from None
        if not isinstance(found, dict):
            raise InvalidRecordError("wrong_type", "value", "an object", found)
        return found

    def _end_of_indexes(self, value: bytes) -> int:
        """Return where the message begins, behind its list of indexes.

        A number of indexes comes first, and then so many of them.
        """
        n, at = self._varint(value, HEAD_BYTES)
        if not 0 <= n <= _MOST_INDEXES:
            raise self._not_framed(value)
        for _ in range(n):
            _, at = self._varint(value, at)
        return at

    def _varint(self, value: bytes, at: int) -> tuple[int, int]:
        found = 0
        for i, byte in enumerate(value[at : at + 5]):
            found |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1), at + i + 1
        raise self._not_framed(value)

    def _not_framed(self, value: bytes) -> InvalidRecordError:
        expected = "behind the schema id the number of a message in its schema"
        return InvalidRecordError("not_framed", "value", expected, value)

    def _type(self, value: bytes, start: int) -> tuple[Any, _Change, str]:
        from google.protobuf import message_factory

        n, at = self._varint(value, HEAD_BYTES)
        indexes = []
        for _ in range(n):
            index, at = self._varint(value, at)
            indexes.append(index)
        name, inner = self._file.package, list(self._file.message_type)
        for index in indexes or [0]:
            if not 0 <= index < len(inner):
                raise wrong_schema(self._schema, f"has no message {indexes}, which a record says that it is")
            name = f"{name}.{inner[index].name}".lstrip(".")
            # Those of maps stand in no text, so that nobody counts them.
            inner = [one for one in inner[index].nested_type if not one.options.map_entry]
        descriptor = self._pool.FindMessageTypeByName(name)
        return message_factory.GetMessageClass(descriptor), _changes(descriptor, {}), name


def _changes(descriptor: Any, known: dict[str, _Change]) -> _Change:
    """Return a function that makes plain data of a type's messages."""
    if (special := _SPECIAL.get(descriptor.full_name)) is not None:
        return special
    if descriptor.full_name in known:
        return known[descriptor.full_name]
    fields: list[tuple[str, bool, _Change | None]] = []

    def change(message: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, has_presence, one in fields:
            if has_presence and not message.HasField(name):
                found[name] = None
            else:
                value = getattr(message, name)
                found[name] = value if one is None else one(value)
        return found

    known[descriptor.full_name] = change  # before its fields: a type may hold itself
    for field in descriptor.fields:
        fields.append((field.name, field.has_presence, _change_of(field, known)))
    return change


def _change_of(field: Any, known: dict[str, _Change]) -> _Change | None:
    """Return a function that makes a field's value plain; None if it is."""
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        value = _single(inner.fields_by_name["value"], known)
        return lambda found: {_key(key): _applied(value, found[key]) for key in found}
    one = _single(field, known)
    if not field.is_repeated:
        return one
    return list if one is None else lambda found: [one(value) for value in found]


def _single(field: Any, known: dict[str, _Change]) -> _Change | None:
    if field.message_type is not None:
        return _changes(field.message_type, known)
    if field.enum_type is not None:
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return lambda number: names.get(number, number)
    return _number if field.type in _WITH_NAN else None


def _number(value: float) -> float | None:
    return value if value == value else None


def _applied(change: _Change | None, value: Any) -> Any:
    return value if change is None else change(value)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _milliseconds(message: Any) -> int:
    return int(message.seconds) * 1000 + int(message.nanos) // 1_000_000


def _wrapped(message: Any) -> Any:
    return _number(message.value)


def _decimal(message: Any) -> float:
    scale = message.scale
    if not -_LARGEST_SCALE <= scale <= _LARGEST_SCALE:  # it comes with the record: a power of it may take for ever
        raise InvalidRecordError("invalid_protobuf", "scale", f"at most {_LARGEST_SCALE} digits", scale)
    return scaled(int.from_bytes(message.value, "big", signed=True), scale)


def _as_json(message: Any) -> Any:
    from google.protobuf import json_format

    return json_format.MessageToDict(message)


_SPECIAL: dict[str, _Change] = {
    "google.protobuf.Timestamp": _milliseconds,
    "google.protobuf.Duration": _milliseconds,
    "google.protobuf.Struct": _as_json,
    "google.protobuf.Value": _as_json,
    "google.protobuf.ListValue": _as_json,
    "confluent.type.Decimal": _decimal,
    **{
        f"google.protobuf.{kind}Value": _wrapped
        for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
    },
}


WITHIN_S = 60.0
_MAIN = "attributary_main.proto"
_OUT = "attributary_descriptors"

_OPTIONS = "".join(
    f"extend google.protobuf.{of}Options {{ Meta {name}_meta = 1088; }}\n"
    for of, name in {
        "File": "file",
        "Message": "message",
        "Field": "field",
        "Enum": "enum",
        "EnumValue": "enum_value",
    }.items()
)
_WARNING = re.compile(r"^(WARNING: |[IW]\d{4} |.*\bwarning: ).*")
"""Lines of the compiler that say nothing of why it ends."""

KNOWN = {
    "confluent/meta.proto": 'syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";\n'
    "message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }\n" + _OPTIONS,
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type;\n'
    "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }\n",
}
"""Files that Kafka Connect's schemas import and that no registry has: every client brings them along."""


async def compile_schema(schema: RegisteredSchema) -> bytes:
    """Return the FileDescriptorSet of a schema and its imports, itself last.

    Raises
    ------
    InvalidRecordError
        `wrong_schema`: the compiler refuses it; the message has its words.
    SchemaUnavailableError
        The compiler has not finished in time.
    """
    files = {**KNOWN, **schema.references, _MAIN: schema.text}
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or path.name in ("", _OUT) or "\0" in name:
            raise wrong_schema(schema, f"refers to {name!r}, which is no name of a file")
    with tempfile.TemporaryDirectory(prefix="attributary-proto-") as made:
        folder = Path(made)
        await asyncio.to_thread(_write, folder, files)
        status, said = await _protoc(folder, schema)
        if status != 0:
            why = next(filter(None, (_WARNING.sub("", line).strip() for line in said.splitlines())), f"status {status}")
            raise wrong_schema(
                schema, f"cannot be compiled: {why.replace(f'{folder}/', '').replace(f'{_MAIN}:', 'line ')}"
            )
        return await asyncio.to_thread((folder / _OUT).read_bytes)


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


async def _protoc(folder: Path, schema: RegisteredSchema) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        # Not in the folder: it holds files whose names and contents come from the registry.
        *(sys.executable, "-P", "-m", "grpc_tools.protoc", f"-I{folder}"),
        *(f"--descriptor_set_out={folder / _OUT}", "--include_imports", str(folder / _MAIN)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            _, said = await process.communicate()
    except TimeoutError:
        message = f"schema id {schema.id}: it was not compiled within {WITHIN_S:g} s"
        raise SchemaUnavailableError(message) from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode or 0, said.decode("utf-8", "replace")
