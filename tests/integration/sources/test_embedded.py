"""The mapper from one end to the other on the embedded broker, for `make test`; the other files here are on Kafka."""

from __future__ import annotations

import asyncio
import json

from support.kafka import create_topics, produce, read_all

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics as create_ours
from attributary_agents.sources.mappers.board import SourcesBoard
from attributary_agents.sources.mappers.service import map_once
from tests.integration.sources.rentals import configuration


def test_what_is_there_is_mapped_once_and_what_comes_later_by_the_next_run(embedded_broker: Broker) -> None:
    config = parse_config(configuration(embedded_broker.bootstrap))
    create_ours(config)
    prefix, topics = config.kafka.topic_prefix, config.kafka.topics
    create_topics(embedded_broker.bootstrap, {f"{prefix}-rentals": 2, f"{prefix}-returns": 1})

    def write(name: str, ts: int, partition: int, **more: object) -> None:
        value = {"id": "a", "ts": ts, "station": 1, "temp": 1.5, "hour": 2, "late": True, **more}
        produce(
            embedded_broker.bootstrap, f"{prefix}-{name}", [(None, json.dumps(value).encode(), [])], partition=partition
        )

    write("rentals", 1_700_000_000_300, 0)
    write("rentals", 1_700_000_000_100, 1)
    write("returns", 1_700_000_000_200, 0)
    write("returns", 1_700_000_000_400, 0, station=[])
    boards = [SourcesBoard(), SourcesBoard()]
    asyncio.run(map_once(config, boards[0]))
    write("rentals", 1_700_000_000_500, 1)
    asyncio.run(map_once(config, boards[1]))

    assert boards[0].total == {"mapped": 3, "dead": 1}
    assert boards[1].total == {"mapped": 1}
    found = read_all(embedded_broker.bootstrap, topics.observations)
    assert [json.loads(record.value)["time"] % 1000 for record in found] == [100, 200, 300, 500]
    assert {(record.key, json.loads(record.value)["x"]["temp"]) for record in found} == {(b"s1", 1.5)}
    origins = [dict(record.headers)["attributary-origin"].decode().removeprefix(prefix) for record in found]
    assert origins == ["-rentals:1:0:0:s:0", "-returns:0:0:0:s:0", "-rentals:0:0:0:s:0", "-rentals:1:1:0:s:1"]
    (letter,) = read_all(embedded_broker.bootstrap, topics.dead_letters)
    assert dict(letter.headers)["attributary-dlq-source"] == b"returns"
