"""Measure what decoding a record costs in each format, beside JSON.

    python -m benchmarks.formats        # seconds

The same row of nine columns in every format, its schema known already; processor time, the best of five rounds.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import Callable
from typing import Any

from support.registry import avro_bytes, framed

from attributary_agents.config.registry import RegistryConfig
from attributary_agents.sources.formats.avro import make_reader as make_avro_reader
from attributary_agents.sources.formats.base import Format, JsonFormat
from attributary_agents.sources.formats.cloudevents import CloudEventsFormat
from attributary_agents.sources.formats.framing import FramedFormat
from attributary_agents.sources.formats.inference import OpenInferenceFormat
from attributary_agents.sources.formats.protobuf import make_reader as make_protobuf_reader
from attributary_agents.sources.formats.registry import RegisteredSchema, Registry
from attributary_agents.sources.records import OriginRecord

ROW: dict[str, Any] = {
    "id": 7,
    "age": 41,
    "job": "admin",
    "balance": 12.5,
    "duration": 200,
    "housing": True,
    "opened": 1_777_638_615_123,
    "campaign": 3,
    "subscribed": False,
}
AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "age", "type": "int"},
        {"name": "job", "type": "string"},
        {"name": "balance", "type": "double"},
        {"name": "duration", "type": ["null", "int"]},
        {"name": "housing", "type": "boolean"},
        {"name": "opened", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "campaign", "type": "int"},
        {"name": "subscribed", "type": ["null", "boolean"]},
    ],
}
PROTOBUF = """
syntax = "proto3";
message Row {
  int64 id = 1; int32 age = 2; string job = 3; double balance = 4; optional int32 duration = 5; bool housing = 6;
  int64 opened = 7; int32 campaign = 8; optional bool subscribed = 9;
}
"""
N, ROUNDS = 20_000, 5


class Known(Registry):
    """Has one schema, under whatever id."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(RegistryConfig(url="http://127.0.0.1"))
        self._only = RegisteredSchema(1, kind, text)

    async def schema(self, schema_id: int) -> RegisteredSchema:
        return self._only


def main() -> None:
    """Print a line for each format."""
    print("format                     bytes   µs a record   over JSON")
    json_us = 0.0
    for name, n_bytes, decode in _subjects():
        decode()
        us = min(_timed(decode) for _ in range(ROUNDS))
        json_us = json_us or us
        print(f"{name:25}  {n_bytes:5}   {us:11.2f}   {us / json_us:8.1f}x")


def _timed(decode: Callable[[], Any]) -> float:
    began = time.process_time()
    for _ in range(N):
        decode()
    return (time.process_time() - began) / N * 1e6


def _subjects() -> list[tuple[str, int, Callable[[], Any]]]:
    plain = json.dumps(ROW).encode()
    event: list[tuple[str, bytes | None]] = [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"e58f1edd-43bc-42f6-a10a-d1adb5cab831"),
        ("ce_type", b"org.kubeflow.serving.inference.request"),
        ("ce_source", b"http://localhost:9081/"),
        ("ce_time", b"2026-05-01T00:00:00Z"),
        ("content-type", b"application/json"),
    ]
    tensors = [
        {"name": name, "shape": [1], "datatype": _datatype(value), "data": [value]} for name, value in ROW.items()
    ]
    request = json.dumps({"inputs": tensors}).encode()
    names = {"parameters": {"names": list(ROW)}}
    one = [{"name": "row", "shape": [1, len(ROW)], "datatype": "BYTES", "data": list(ROW.values()), **names}]
    matrix = json.dumps({"inputs": one}).encode()
    avro = framed(1, avro_bytes(AVRO, {**ROW, "opened": ROW["opened"] * 1000}))
    protobuf = framed(2, b"\0" + _in_protobuf())
    return [
        ("json", len(plain), _with(JsonFormat(), plain)),
        ("avro", len(avro), _with(FramedFormat("AVRO", Known(json.dumps(AVRO), "AVRO"), make_avro_reader), avro)),
        (
            "protobuf",
            len(protobuf),
            _with(FramedFormat("PROTOBUF", Known(PROTOBUF, "PROTOBUF"), make_protobuf_reader), protobuf),
        ),
        ("cloudevents", len(plain), _with(CloudEventsFormat(), plain, event)),
        ("open-inference, 1 tensor", len(matrix), _with(OpenInferenceFormat(), matrix, event)),
        ("open-inference, 9 tensors", len(request), _with(OpenInferenceFormat(), request, event)),
    ]


def _datatype(value: Any) -> str:
    return {str: "BYTES", bool: "BOOL", float: "FP64"}.get(type(value), "INT64")


def _in_protobuf() -> bytes:
    """Return the row as a message: by hand, each field behind its number and kind."""
    ints = {1: 7, 2: 41, 5: 200, 6: 1, 7: ROW["opened"], 8: 3, 9: 0}
    found = b"".join(_varint(number << 3) + _varint(value) for number, value in ints.items())
    return found + b"\x1a\x05admin" + b"\x21" + struct.pack("<d", ROW["balance"])


def _varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def _with(format_: Format, value: bytes, headers: list[tuple[str, bytes | None]] | None = None) -> Callable[[], Any]:
    record = OriginRecord("t", 0, 0, 0, None, value, headers or [])
    (found,) = asyncio.run(format_.decode(record))
    assert ROW in (found.value, found.x), found
    return lambda: format_.decode_now(record)


if __name__ == "__main__":
    main()
