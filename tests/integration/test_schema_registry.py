"""Avro and Protobuf through a real schema registry, from records on real Kafka; and the registry killed meanwhile."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from support.kafka import create_topics, produce, read_all
from support.registry import SchemaRegistry, avro_bytes, framed

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.errors import ConfigError, SchemaUnavailableError
from attributary_agents.sources.formats.base import Format
from attributary_agents.sources.formats.factory import new_format
from attributary_agents.sources.mappers.mapper import decode_patiently
from attributary_agents.sources.records import OriginRecord
from attributary_topics import InvalidRecordError

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.registry]

AT = dt.datetime(2026, 5, 1, 12, 30, 15, 123000, tzinfo=dt.UTC)
AT_MS = 1_777_638_615_123
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "age", "type": "int"},
    {"name": "job", "type": "string"},
    {"name": "opened", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "subscribed", "type": ["null", "boolean"], "default": None},
]
ROW = {"type": "record", "name": "Row", "namespace": "bank", "fields": FIELDS}
MORE = {**ROW, "fields": [*FIELDS, {"name": "region", "type": "string", "default": "north"}]}
PROTO = """
syntax = "proto3";
package bank;
import "money.proto";
message Ignored { int32 n = 1; }
message Row { int64 id = 1; int32 age = 2; shared.Money balance = 3; optional bool subscribed = 4; }
"""
MONEY = 'syntax = "proto3"; package shared; message Money { int64 cents = 1; }'


def row(i: int) -> dict[str, Any]:
    return {"id": i, "age": 20 + i % 50, "job": "admin", "opened": AT, "subscribed": [None, True, False][i % 3]}


def plain(i: int) -> dict[str, Any]:
    return {**row(i), "opened": AT_MS}


def format_at(registry: SchemaRegistry, name: str) -> Format:
    models = {"m": {"model": {"class": "river.naive_bayes.GaussianNB"}}}
    return new_format(name, parse_config({"models": models, "kafka": {"schema_registry": {"url": registry.url}}}).kafka)


def through_kafka(broker: Broker, topic: str, values: list[bytes | None]) -> list[OriginRecord]:
    """The values as records that a consumer has of a topic with one partition."""
    create_topics(broker.bootstrap, {topic: 1})
    produce(broker.bootstrap, topic, [(b"k", value, []) for value in values])

    def as_origin(one: ConsumerRecord) -> OriginRecord:
        return OriginRecord(one.topic, one.partition, one.offset, one.timestamp, one.key, one.value, one.headers)

    return [as_origin(one) for one in read_all(broker.bootstrap, topic)]


async def decoded(format_: Format, records: list[OriginRecord]) -> list[Any]:
    """What comes of each record: its object, nothing, or the reason why it is a dead letter."""
    found: list[Any] = []
    await format_.start()
    for record in records:
        try:
            now = format_.decode_now(record)
            objects = await format_.decode(record) if now is None else now
            found.append(objects[0].value if objects else None)
        except InvalidRecordError as error:
            found.append((error.reason, error.field))
    await format_.close()
    return found


def test_avro_with_a_field_that_is_added_and_records_that_are_none(
    kafka_broker: Broker, schema_registry: SchemaRegistry
) -> None:
    old, new = (schema_registry.register("applications-value", schema) for schema in (ROW, MORE))
    assert old != new
    values: list[bytes | None] = [framed(old, avro_bytes(ROW, row(i))) for i in range(20)]
    values += [framed(new, avro_bytes(MORE, {**row(i), "region": "south"})) for i in range(20, 30)]
    whole = avro_bytes(ROW, row(30))
    values += [framed(old, whole[:2]), None, framed(999_999, whole), b'{"age": 41}', framed(old, whole)]
    records = through_kafka(kafka_broker, "applications", values)
    assert asyncio.run(decoded(format_at(schema_registry, "avro"), records)) == [
        *(plain(i) for i in range(20)),
        *({**plain(i), "region": "south"} for i in range(20, 30)),
        ("invalid_avro", "job"),
        None,
        ("unknown_schema", "value"),
        ("not_framed", "value"),
        plain(30),
    ]


def test_a_schema_of_avro_that_refers_to_others(kafka_broker: Broker, schema_registry: SchemaRegistry) -> None:
    schema_registry.register("row", ROW)
    envelope = {
        "type": "record",
        "name": "Envelope",
        "namespace": "bank",
        "fields": [{"name": "before", "type": ["null", "Row"]}, {"name": "after", "type": ["null", "bank.Row"]}],
    }
    schema_id = schema_registry.register("envelope", envelope, references=[("bank.Row", "row", 1)])
    values: list[bytes | None] = [framed(schema_id, b"\x00\x02" + avro_bytes(ROW, row(i))) for i in range(5)]
    records = through_kafka(kafka_broker, "envelopes", values)
    assert asyncio.run(decoded(format_at(schema_registry, "avro"), records)) == [
        {"before": None, "after": plain(i)} for i in range(5)
    ]


def test_protobuf_with_an_import(kafka_broker: Broker, schema_registry: SchemaRegistry) -> None:
    schema_registry.register("money", MONEY, "PROTOBUF")
    schema_id = schema_registry.register("rows-value", PROTO, "PROTOBUF", [("money.proto", "money", 1)])
    avro_id = schema_registry.register("others-value", ROW)
    row_of_two = b"\x08\x07\x10\x29\x1a\x03\x08\xac\x02\x20\x01"  # by hand: id 7, age 41, balance {cents 300}, true
    values: list[bytes | None] = [
        framed(schema_id, b"\x02\x02" + row_of_two),
        framed(schema_id, b"\x02\x02"),
        framed(schema_id, b"\x00\x08\x05"),
        framed(schema_id, b"\x02\x02\x1a\x05"),
        framed(avro_id, b"\x00"),
    ]
    records = through_kafka(kafka_broker, "rows", values)
    assert asyncio.run(decoded(format_at(schema_registry, "protobuf"), records)) == [
        {"id": 7, "age": 41, "balance": {"cents": 300}, "subscribed": True},
        {"id": 0, "age": 0, "balance": None, "subscribed": None},
        {"n": 5},
        ("invalid_protobuf", "value"),
        ("wrong_schema", "value"),
    ]


def test_a_registry_that_is_killed_is_waited_for_and_nothing_is_a_dead_letter(
    kafka_broker: Broker, mortal_registry: SchemaRegistry
) -> None:
    old, new = (mortal_registry.register("applications-value", schema) for schema in (ROW, MORE))
    values: list[bytes | None] = [framed(old, avro_bytes(ROW, row(i))) for i in range(3)]
    values.append(framed(new, avro_bytes(MORE, {**row(3), "region": "south"})))
    first, *known, later = through_kafka(kafka_broker, "while-it-is-away", values)
    format_ = format_at(mortal_registry, "avro")

    async def decode() -> list[dict[str, Any]]:
        found = await format_.decode(first)
        mortal_registry.kill()
        for record in known:  # the schema is known: nobody has to be asked
            found += format_.decode_now(record) or []
        with pytest.raises(SchemaUnavailableError, match=f"^{mortal_registry.url}: connection refused$"):
            await format_.decode(later)
        assert format_.is_waiting
        waiting = asyncio.create_task(decode_patiently(format_, later, first_s=0.05, longest_s=0.2))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        mortal_registry.start()  # from this thread: the process ends with the thread that has started it
        found += await waiting
        assert not format_.is_waiting
        await format_.close()
        return [one.value for one in found]

    assert asyncio.run(decode()) == [plain(0), plain(1), plain(2), {**plain(3), "region": "south"}]


def test_an_address_that_is_none_of_a_registry_is_said_at_the_start(schema_registry: SchemaRegistry) -> None:
    models = {"m": {"model": {"class": "river.naive_bayes.GaussianNB"}}}
    url = schema_registry.url.removesuffix("/apis/ccompat/v7")  # where Apicurio has its pages
    config = parse_config({"models": models, "kafka": {"schema_registry": {"url": url}}}).kafka

    async def start() -> None:
        format_ = new_format("avro", config)
        try:
            await format_.start()
        finally:
            await format_.close()

    with pytest.raises(ConfigError, match=rf"^{url}.*; is schema_registry.url right\?$"):
        asyncio.run(start())
