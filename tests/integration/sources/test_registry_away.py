"""Mappers whose schema registry does not answer, at their start or later: partitions wait, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.kafka import create_topics, produce, read_all
from support.registry import SchemaRegistry, avro_bytes, framed
from support.waiting import wait_for

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics as create_ours
from attributary_topics import decode_json
from tests.integration.sources.process import MapperProcess
from tests.integration.sources.rentals import configuration

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.registry]

N, PARTITIONS, STATIONS = 300, 3, 3
BEGIN_MS = 1_770_000_000_000
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "string"},
    {"name": "ts", "type": "long"},
    {"name": "station", "type": "int"},
    {"name": "temp", "type": "double"},
    {"name": "hour", "type": "int"},
    {"name": "late", "type": "boolean"},
]
OLD = {"type": "record", "name": "Rental", "fields": FIELDS}
NEW = {**OLD, "fields": [*FIELDS, {"name": "operator", "type": "string", "default": "city"}]}


def rental(i: int) -> dict[str, Any]:
    return {
        "id": f"r{i}",
        "ts": BEGIN_MS + i * 1000,
        "station": i % STATIONS,
        "temp": float(i % 7),
        "hour": i % 24,
        "late": i % 2 == 0,
    }


def write(broker: Broker, topic: str, schema_id: int, schema: dict[str, Any], first: int, n: int) -> None:
    for partition in range(PARTITIONS):
        rows = [rental(i) | {"operator": "port"} for i in range(first, first + n) if i % PARTITIONS == partition]
        values = [framed(schema_id, avro_bytes(schema, row)) for row in rows]
        produce(broker.bootstrap, topic, [(b"k", value, []) for value in values], partition=partition)


def waits(mapper: MapperProcess) -> bool:
    name = "attributary_source_waiting_registry"
    return mapper.metrics(name).get(name) == {(("source", "rentals"),): 1.0}


def mapped(broker: Broker, topic: str) -> Counter[str]:
    """Return how often each rental is on our topic, by its id."""
    return Counter(decode_json(one.value)["id"] for one in read_all(broker.bootstrap, topic))


def test_partitions_wait_for_a_registry_that_is_away_through_a_stop_and_another_start(
    kafka_broker: Broker, mortal_registry: SchemaRegistry, tmp_path: Path
) -> None:
    raw = configuration(kafka_broker.bootstrap)
    del raw["sources"]["returns"]
    raw["sources"]["rentals"] |= {"format": "avro", "merge_wait": "30s"}
    raw["kafka"]["schema_registry"] = {"url": mortal_registry.url}
    config = parse_config(raw)
    create_ours(config)
    topic, ours = raw["sources"]["rentals"]["topic"], config.kafka.topics.observations
    create_topics(kafka_broker.bootstrap, {topic: PARTITIONS}, {"retention.ms": "-1"})
    old = mortal_registry.register("rentals-value", OLD)
    write(kafka_broker, topic, old, OLD, 0, N)

    mapper = MapperProcess(raw, tmp_path)
    mapper.wait_until_it_maps()
    wait_for("the first are mapped", lambda: len(mapped(kafka_broker, ours)) == N, 120)
    new = mortal_registry.register("rentals-value", NEW)
    mortal_registry.kill()
    write(kafka_broker, topic, old, OLD, N, N)  # their schema is known: they are mapped although nobody answers
    wait_for("those of a known schema are mapped", lambda: len(mapped(kafka_broker, ours)) == 2 * N, 120)
    write(kafka_broker, topic, new, NEW, 2 * N, N)
    wait_for("it waits, and says so", lambda: waits(mapper), 120)
    assert "waits for its schema" in mapper.said
    assert mapper.stop() == 0, mapper.said

    # One that starts while nobody answers: it knows no schema at all.
    write(kafka_broker, topic, old, OLD, 3 * N, N)
    mapper = MapperProcess(raw, tmp_path)
    wait_for("it waits, too", lambda: waits(mapper) or mapper.child.poll() is not None, 120)
    assert mapper.child.poll() is None, mapper.said
    assert len(mapped(kafka_broker, ours)) == 2 * N
    mortal_registry.start()
    wait_for("all are mapped", lambda: len(mapped(kafka_broker, ours)) == 4 * N, 120)
    wait_for("nothing waits any more", lambda: not waits(mapper), 60)
    assert mapper.stop() == 0, mapper.said
    assert "Traceback" not in mapper.said
    assert mapped(kafka_broker, ours) == {f"r{i}": 1 for i in range(4 * N)}
    assert read_all(kafka_broker.bootstrap, config.kafka.topics.dead_letters) == []
