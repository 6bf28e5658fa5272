"""Avro: what comes of each type, what a fault says, and that no bytes do harm."""

from __future__ import annotations

import asyncio
import datetime as dt
import io
import json
import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.registry import avro_bytes, framed

from attributary_agents.sources.formats.avro import make_reader
from attributary_agents.sources.formats.framing import Reader
from attributary_agents.sources.formats.registry import RegisteredSchema
from attributary_topics import InvalidRecordError
from tests.agents.sources.formats.fake_registry import FakeRegistry, decode_one

AT = dt.datetime(2026, 5, 1, 12, 30, 15, 123456, tzinfo=dt.UTC)
AT_MS = 1_777_638_615_123  # date -u -d 2026-05-01T12:30:15.123Z +%s%3N
DATE = {"type": "int", "logicalType": "date"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 5}

VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "age", "type": "int"},
        {"name": "job", "type": "string"},
        {"name": "balance", "type": "double"},
        {"name": "duration", "type": ["null", "int"], "default": None},
        {"name": "housing", "type": "boolean"},
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "bank",
    "fields": [
        {"name": "before", "type": ["null", VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}
ROW = {"id": 7, "age": 41, "job": "admin", "balance": 12.5, "duration": None, "housing": True}
EVENT = {"before": None, "after": ROW, "op": "c", "ts_ms": AT_MS}


def reader(schema: Any, references: dict[str, str] | None = None) -> Reader:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return asyncio.run(make_reader(RegisteredSchema(3, "AVRO", text, references or {})))


def of_one(kind: Any, value: Any) -> Any:
    """What comes of one value of a type, as fastavro writes it."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}
    return reader(schema)(framed(3, avro_bytes(schema, {"f": value})))["f"]


def refusal(read: Reader, value: bytes) -> InvalidRecordError:
    with pytest.raises(InvalidRecordError) as caught:
        read(value)
    return caught.value


def test_an_envelope_of_debezium_is_plain_data() -> None:
    read = reader(ENVELOPE)
    assert read(framed(3, avro_bytes(ENVELOPE, EVENT))) == EVENT


@pytest.mark.parametrize(
    ("kind", "written", "found"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, Decimal("-12.50"), -12.5),
        ({"type": "bytes", "logicalType": "decimal", "precision": 30}, Decimal(10**20), 1e20),
        (
            {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 10, "scale": 3},
            Decimal("0.125"),
            0.125,
        ),
        ({"type": "int", "logicalType": "date"}, dt.date(2026, 5, 1), 1_777_593_600_000),
        ({"type": "int", "logicalType": "date"}, dt.date(1969, 12, 31), -86_400_000),
        ({"type": "int", "logicalType": "time-millis"}, dt.time(0, 0, 1, 5000), 1005),
        ({"type": "long", "logicalType": "time-micros"}, dt.time(0, 0, 1, 5999), 1005),
        ({"type": "long", "logicalType": "timestamp-millis"}, AT, AT_MS),
        ({"type": "long", "logicalType": "timestamp-micros"}, AT, AT_MS),
        (["null", {"type": "long", "logicalType": "timestamp-micros"}], AT, AT_MS),
        (["null", {"type": "long", "logicalType": "timestamp-micros"}], None, None),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, AT.replace(tzinfo=None), AT_MS),
        ({"type": "long", "logicalType": "timestamp-nanos"}, AT_MS * 1_000_000 + 999, AT_MS),
        ({"type": "string", "logicalType": "uuid"}, UUID(int=5), str(UUID(int=5))),
        ({"type": "enum", "name": "E", "symbols": ["low", "high"]}, "high", "high"),
        (["null", "string", "double"], "text", "text"),
        (["null", "string", "double"], 1.5, 1.5),
        ("bytes", b"\xff\x00", b"\xff\x00"),
        ("float", 0.5, 0.5),
        ("double", math.inf, math.inf),
        ("double", math.nan, None),
        (["null", "float"], math.nan, None),
        ({"type": "array", "items": {"type": "double"}}, [1.0, math.nan], [1.0, None]),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": DATE}, {"a": dt.date(1970, 1, 2)}, {"a": 86_400_000}),
        ({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}, 5000, 5000),
        ({"type": "string", "avro.java.string": "String"}, "s", "s"),
    ],
)
def test_each_type_becomes_plain_data(kind: Any, written: Any, found: Any) -> None:
    result = of_one(kind, written)
    assert result == found
    assert type(result) is type(found)


def test_times_and_decimals_beyond_what_python_has_are_numbers_all_the_same() -> None:
    forever = 2**63 - 1  # how databases write infinity
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": "long"}]}
    typed = {**schema, "fields": [{"name": "f", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}
    assert reader(typed)(framed(3, avro_bytes(schema, {"f": forever}))) == {"f": forever // 1000}
    huge = {**schema, "fields": [{"name": "f", "type": "bytes"}]}
    typed["fields"][0]["type"] = {"type": "bytes", "logicalType": "decimal", "precision": 500, "scale": 1}  # type: ignore[index]
    assert reader(typed)(framed(3, avro_bytes(huge, {"f": b"\x7f" * 200}))) == {"f": math.inf}
    assert reader(typed)(framed(3, avro_bytes(huge, {"f": b"\x80" + b"\0" * 200}))) == {"f": -math.inf}


def test_others_that_read_avro_in_this_process_have_their_own_dates() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": {"type": "int", "logicalType": "date"}}]}
    reader(schema)
    stream = io.BytesIO(avro_bytes(schema, {"f": dt.date(2026, 5, 1)}))
    assert fastavro.schemaless_reader(stream, schema, None) == {"f": dt.date(2026, 5, 1)}


def test_types_of_other_schemas_are_read() -> None:
    day = {"type": "record", "name": "Day", "namespace": "n", "fields": [{"name": "at", "type": DATE}]}
    fields = [{"name": "day", "type": "Day"}, {"name": "n", "type": "int"}]
    row = {"type": "record", "name": "Row", "namespace": "n", "fields": fields}
    read = reader(row, {"n.Day": json.dumps(day)})
    assert read(framed(3, b"\x02\x0a")) == {"day": {"at": 86_400_000}, "n": 5}
    error = refusal(read, framed(3, b"\x02"))
    assert (error.reason, error.field) == ("invalid_avro", "n")


@pytest.mark.parametrize(
    ("kept", "field", "kind"),
    [
        (0, "before.id", "long"),
        (1, "after.id", "long"),
        (2, "after.id", "long"),
        (3, "after.age", "int"),
        (4, "after.job", "string"),
        (7, "after.job", "string"),
        (10, "after.balance", "double"),
        (18, "after.duration", "null or int"),
        (19, "after.housing", "boolean"),
        (20, "op", "string"),
        (22, "ts_ms", "null or long"),
        (25, "ts_ms", "null or long"),
    ],
)
def test_a_value_that_is_cut_names_the_field_that_is_not_there(kept: int, field: str, kind: str) -> None:
    whole = avro_bytes(ENVELOPE, EVENT)
    # before, after: one byte each for the branch; id, age: one; job: length and 5; balance: 8; then one each.
    assert whole[:4] == b"\x00\x02\x0e\x52"
    assert whole[20:22] == b"\x02c"
    error = refusal(reader(ENVELOPE), framed(3, whole[:kept]))
    assert (error.reason, error.field) == ("invalid_avro", field)
    assert str(error).startswith(f"{field}: expected {kind}, as schema id 3 says (")


def test_what_the_schema_does_not_say_is_named() -> None:
    read = reader(ENVELOPE)
    whole = avro_bytes(ENVELOPE, EVENT)
    assert refusal(read, framed(3, b"\x08" + whole[1:])).field == "before.id"  # a branch that the union has not
    not_text = whole.replace(b"admin", b"\xff\xfe\xfd\xfc\xfb")
    assert refusal(read, framed(3, not_text)).field == "after.job"
    assert str(refusal(read, framed(3, whole + b"more"))) == "value: 4 bytes are left behind what schema id 3 says"
    wide = {"type": "record", "name": "R", "fields": [{"name": f"f{i}", "type": "boolean"} for i in range(100)]}
    for cut in (0, 1, 50, 99):
        assert refusal(reader(wide), framed(3, b"\x01" * cut)).field == f"f{cut}"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("no JSON", "schema id 3 is not one that Avro reads ("),
        ({"type": "record", "name": "R"}, "schema id 3 is not one that Avro reads ("),
        ({**VALUE, "fields": [{"name": "f", "type": "Other"}]}, "schema id 3 is not one that Avro reads ("),
        ("[" * 5000 + '"int"' + "]" * 5000, "schema id 3 is not one that Avro reads ("),
        ('"string"', "schema id 3 is not one of a record, and x has to come from an object"),
        (["null", VALUE], "schema id 3 is not one of a record, and x has to come from an object"),
    ],
)  # fmt: skip
def test_a_schema_by_which_nothing_can_be_read_is_named(schema: Any, said: str) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        reader(schema)
    assert caught.value.reason == "wrong_schema"
    assert str(caught.value).startswith(said)


NOTHING = {"type": "record", "name": "Nothing", "fields": [{"name": "n", "type": "null"}]}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ([{"name": "f", "type": {"type": "array", "items": "null"}}], "value.f"),
        ([{"name": "f", "type": ["null", {"type": "array", "items": {"type": "null"}}]}], "value.f"),
        ([{"name": "f", "type": {"type": "map", "values": {"type": "array", "items": NOTHING}}}], "value.f"),
        ([{"name": "a", "type": NOTHING}, {"name": "f", "type": {"type": "array", "items": "Nothing"}}], "value.f"),
        ([{"name": "f", "type": {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}}], "value.f"),
        ([{"name": "f", "type": {"type": "array", "items": "R"}}], None),
        ([{"name": "f", "type": {"type": "array", "items": ["null", "int"]}}], None),
        ([{"name": "f", "type": {"type": "array", "items": ["null"]}}], None),
    ],
)
def test_no_schema_lets_a_few_bytes_become_a_value_of_any_size(fields: list[dict[str, Any]], path: str | None) -> None:
    schema = {"type": "record", "name": "R", "fields": fields}
    try:
        reader(schema)
        said = None
    except InvalidRecordError as error:
        said = str(error)
    expected = f"schema id 3 has at {path} an array of nothing: a few bytes could say that it has any length"
    assert said == (path and expected)


ANY = reader(
    {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "a", "type": ["null", "string", "double", {"type": "array", "items": "string"}]},
            {"name": "b", "type": {"type": "map", "values": MONEY}},
            {"name": "c", "type": {"type": "enum", "name": "E", "symbols": ["x"]}},
            {"name": "d", "type": ["null", "R"]},
            {"name": "e", "type": {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}},
        ],
    }
)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_a_dead_letter(body: bytes) -> None:
    try:
        found: Any = set(ANY(framed(3, body)))
    except InvalidRecordError as error:
        found = error.reason
    assert found in ({"a", "b", "c", "d", "e"}, "invalid_avro")


def test_a_field_that_is_added_is_read_from_the_records_that_have_it() -> None:
    more = {**VALUE, "fields": [*VALUE["fields"], {"name": "region", "type": "string", "default": "north"}]}
    with FakeRegistry() as registry:
        registry.put(1, VALUE)
        registry.put(2, more)

        async def both() -> list[dict[str, Any]]:
            values = [framed(1, avro_bytes(VALUE, ROW)), framed(2, avro_bytes(more, {**ROW, "region": "south"}))]
            return [await decode_one(registry.format("avro"), value) for value in values]

        assert asyncio.run(both()) == [ROW, {**ROW, "region": "south"}]
