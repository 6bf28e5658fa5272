"""Protobuf: what comes of each type of field, which message a value is, and what a fault says.

Values are written by the code that protoc generates, which the format does without.
"""

from __future__ import annotations

import asyncio
import math
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.registry import framed

from attributary_agents.errors import SchemaUnavailableError
from attributary_agents.sources.formats import protobuf
from attributary_agents.sources.formats.framing import Reader
from attributary_agents.sources.formats.protobuf import make_reader
from attributary_agents.sources.formats.registry import RegisteredSchema
from attributary_topics import InvalidRecordError
from tests.agents.sources.formats.generated import generated

SCHEMA = """
syntax = "proto3";
package bank;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";

message Other { int32 n = 1; }

message Row {
  option (confluent.message_meta) = { doc: "a row" };
  enum Level { LOW = 0; HIGH = 1; }
  message Part { string name = 1; repeated Part parts = 2; }
  string id = 1;
  int32 age = 2;
  int64 large = 3;
  uint64 largest = 4;
  double balance = 5;
  float rate = 6;
  bool owner = 7;
  bytes raw = 8;
  Level level = 9;
  optional bool subscribed = 10;
  optional int64 visits = 11;
  repeated int64 amounts = 12;
  repeated Level levels = 13;
  map<string, Part> named = 14;
  map<int32, Level> numbered = 15;
  Part part = 16;
  google.protobuf.Timestamp at = 17;
  google.protobuf.Duration took = 18;
  google.protobuf.Int64Value boxed = 19;
  google.protobuf.Struct free = 20;
  confluent.type.Decimal money = 21;
  oneof choice { string text = 22; sint32 number = 23; }
  map<bool, double> flags = 24;
}

message Third { message First { int32 a = 1; } message Second { message Deep { string d = 1; } } }
"""

UP = "/".join(("..", "..", "a.proto"))
EMPTY = 'syntax = "proto3";'

DEFAULTS: dict[str, Any] = {
    "id": "", "age": 0, "large": 0, "largest": 0, "balance": 0.0, "rate": 0.0, "owner": False, "raw": b"",
    "level": "LOW", "subscribed": None, "visits": None, "amounts": [], "levels": [], "named": {}, "numbered": {},
    "part": None, "at": None, "took": None, "boxed": None, "free": None, "money": None, "text": None, "number": None,
    "flags": {},
}  # fmt: skip


def made(text: str, references: dict[str, str] | None = None) -> Reader:
    return asyncio.run(make_reader(RegisteredSchema(3, "PROTOBUF", text, references or {})))


def refusal(read: Reader, value: bytes) -> InvalidRecordError:
    with pytest.raises(InvalidRecordError) as caught:
        read(value)
    return caught.value


@pytest.fixture(scope="module")
def read() -> Reader:
    return made(SCHEMA)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    files = {**protobuf.KNOWN, "bank_of_tests.proto": SCHEMA}
    return generated(tmp_path_factory.mktemp("proto"), files)


def value(message: Any, indexes: bytes = b"\x02\x02") -> bytes:
    """Of the second message of the schema, if nothing else is said: one index, which is 1; both zigzag."""
    return framed(3, indexes + message.SerializeToString())


def test_fields_that_are_not_set_have_their_default_where_they_are_not_optional(read: Reader, rows: ModuleType) -> None:
    assert read(value(rows.Row())) == DEFAULTS


def test_each_type_becomes_plain_data(read: Reader, rows: ModuleType) -> None:
    row = rows.Row(
        id="a", age=-41, large=2**53 + 1, largest=2**64 - 1, balance=2.5, rate=0.5, owner=True, raw=b"\xff", level=1,
        subscribed=False, visits=0, amounts=[1, -(2**63)], levels=[0, 1, 7], number=-3,
    )  # fmt: skip
    row.named["x"].name = "X"
    row.named["x"].parts.add(name="inner")
    row.numbered[-5] = 1
    row.part.SetInParent()
    row.at.seconds, row.at.nanos = 1_777_638_615, 123_999_999
    row.took.seconds, row.took.nanos = 2, 500_000_000
    row.boxed.value = 9
    row.free.update({"a": [1, {"b": None}]})
    row.money.value, row.money.scale = b"\xfb\x1e", 2  # -1250
    row.flags[True] = 0.25
    assert read(value(row)) == {
        "id": "a", "age": -41, "large": 2**53 + 1, "largest": 2**64 - 1, "balance": 2.5, "rate": 0.5, "owner": True,
        "raw": b"\xff", "level": "HIGH", "subscribed": False, "visits": 0, "amounts": [1, -(2**63)],
        "levels": ["LOW", "HIGH", 7], "named": {"x": {"name": "X", "parts": [{"name": "inner", "parts": []}]}},
        "numbered": {"-5": "HIGH"}, "part": {"name": "", "parts": []}, "at": 1_777_638_615_123, "took": 2500,
        "boxed": 9, "free": {"a": [1.0, {"b": None}]}, "money": -12.5, "text": None, "number": -3,
        "flags": {"true": 0.25},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("indexes", "body", "found"),
    [
        (b"\0", b"\x08\x05", {"n": 5}),  # 0 alone is the first message
        (b"\x02\x00", b"\x08\x05", {"n": 5}),  # and so is one index, 0
        (b"\x04\x04\x00", b"\x08\x05", {"a": 5}),  # two: the third message, in it the first
        (b"\x06\x04\x02\x00", b"\x0a\x01x", {"d": "x"}),  # three
        (b"\x04\x02\x00", b"\x0a\x01x", {"name": "x", "parts": []}),  # in Row the first: entries of maps do not count
    ],
)
def test_which_message_a_value_is_stands_behind_the_schema(
    read: Reader, indexes: bytes, body: bytes, found: dict[str, Any]
) -> None:
    assert read(framed(3, indexes + body)) == found


@pytest.mark.parametrize(
    ("rest", "reason", "said"),
    [
        (b"", "not_framed", "value: expected behind the schema id the number of a message in its schema, got "),
        (b"\xff\xff\xff\xff\xff\xff", "not_framed", "value: expected behind the schema id the number of a message"),
        (b"\x01", "not_framed", "value: expected behind the schema id the number of a message"),  # -1 of them
        (b"\x02\x80", "not_framed", "value: expected behind the schema id the number of a message"),
        (b"\x02\x08", "wrong_schema", "schema id 3 has no message [4], which a record says that it is"),
        (b"\x04\x00\x00", "wrong_schema", "schema id 3 has no message [0, 0], which a record says that it is"),
        (b"\x02\x01", "wrong_schema", "schema id 3 has no message [-1], which a record says that it is"),
        (b"\0\x08", "invalid_protobuf", "value: expected a message bank.Other, as schema id 3 says, got "),
        (b"\x02\x02\x0a\x05ab", "invalid_protobuf", "value: expected a message bank.Row, as schema id 3 says, got "),
        (b"\x02\x02\x0a\x01\xff", "invalid_protobuf", "value: expected a message bank.Row, as schema id 3 says, got "),
    ],
)
def test_what_is_no_message_is_a_dead_letter(read: Reader, rest: bytes, reason: str, said: str) -> None:
    error = refusal(read, framed(3, rest))
    assert error.reason == reason
    assert str(error).startswith(said)


def test_nan_is_null(read: Reader, rows: ModuleType) -> None:
    row = rows.Row(balance=math.nan, rate=math.inf)
    row.flags[False] = math.nan
    found = read(value(row))
    assert (found["balance"], found["rate"], found["flags"]) == (None, math.inf, {"false": None})


def test_the_scale_of_a_decimal_is_bounded(read: Reader, rows: ModuleType) -> None:
    row = rows.Row()
    row.money.value, row.money.scale = b"\x01", -(2**31)
    error = refusal(read, value(row))
    assert (error.reason, error.field) == ("invalid_protobuf", "scale")
    row.money.scale = -400
    assert read(value(row))["money"] == float("inf")


@given(rest=st.binary(max_size=80))
def test_any_bytes_are_an_object_or_a_dead_letter(read: Reader, rest: bytes) -> None:
    try:
        found: Any = type(read(framed(3, rest)))
    except InvalidRecordError as error:
        found = error.reason
    assert found in (dict, "not_framed", "wrong_schema", "invalid_protobuf")


def test_imports_come_from_what_the_schema_refers_to() -> None:
    shared = 'syntax = "proto3"; package shared; message Money { int64 cents = 1; }'
    text = 'syntax = "proto3"; import "shared/money.proto"; message Order { shared.Money price = 1; }'
    assert made(text, {"shared/money.proto": shared})(framed(3, b"\0\x0a\x02\x08\x07")) == {"price": {"cents": 7}}


@pytest.mark.parametrize(
    ("text", "references", "said"),
    [
        ("message", {}, "schema id 3 cannot be compiled: line 1:8: Expected message name."),
        ('syntax = "proto3"; import "a.proto";', {}, "schema id 3 cannot be compiled: a.proto: File not found."),
        (EMPTY, {UP: ""}, f"schema id 3 refers to '{UP}', which is no name of a file"),
        (EMPTY, {"/a.proto": ""}, "schema id 3 refers to '/a.proto', which is no name of a file"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_compiled_is_named(text: str, references: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        made(text, references)
    assert (caught.value.reason, str(caught.value)) == ("wrong_schema", said)


def test_a_compiler_that_takes_too_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf, "WITHIN_S", 0.0)
    with pytest.raises(SchemaUnavailableError, match="schema id 3: it was not compiled within 0 s"):
        made(SCHEMA)
