"""Measure what mapping a record costs, beside a loop that copies it and does nothing else.

    python -m benchmarks.copying           # a minute, with an Apache Kafka of its own
    python -m benchmarks.copying --quick

The copying loop has the same client and settings: it reads, sends under the same key, waits, and commits. The mapper
also decodes, merges six partitions by time, maps, encodes, and says of each record where it comes from. Processor time
of the process, in turns, the best round of each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from support.kafka import create_topics, produce

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.kafka.topics import create_topics as create_ours
from attributary_agents.sources.mappers.board import SourcesBoard
from attributary_agents.sources.mappers.reader import FETCH_BYTES
from attributary_agents.sources.mappers.service import map_once

PARTITIONS = 6
MODEL = {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}
X: dict[str, Any] = {
    "plain paths": {"all_but": ["station"]},
    "JMESPath": {
        "temp": "to_number(to_string(temp))",
        "hum": "hum || `0`",
        "wind": "[wind][0]",
        "hour": "hour || `0`",
        "weather": "join('', [weather])",
    },
}


def configuration(bootstrap: str, number: int, x: dict[str, Any]) -> Config:
    """Return the configuration of one round: the mapper begins anew in a group of its own."""
    roles = {"model": "s{station}", "id": "id", "time": "ts", "y": "count", "x": x}
    return parse_config(
        {
            "kafka": {"brokers": [bootstrap], "group": f"copying{number}", "topic_prefix": "copying"},
            "models": {f"s{station}": MODEL for station in range(3)},
            "sources": {"rentals": {"topic": "rentals", **roles}},
        }
    )


def rentals(n: int) -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    """Return records as a producer writes them: flat JSON of ten fields."""
    rng, begin_ms = random.Random(1), round(time.time() * 1000) - n * 1000
    made: list[tuple[bytes, bytes, list[tuple[str, bytes]]]] = []
    for i in range(n):
        value = {
            "id": f"r{i}", "ts": begin_ms + i * 1000, "station": i % 3, "temp": round(rng.gauss(12, 6), 2),
            "hum": round(rng.random(), 3), "wind": round(rng.random() * 9, 2), "hour": i // 300 % 24, "holiday": False,
            "weather": rng.choice(["clear", "rain", "mist"]), "count": rng.randrange(60),
        }  # fmt: skip
        made.append((f"c{i % 500}".encode(), json.dumps(value).encode(), []))
    return made


async def copy(config: Config) -> int:
    """Copy the topic, and do nothing else; return how many records."""
    kafka, n = config.kafka, 0
    consumer = AIOKafkaConsumer(
        bootstrap_servers=kafka.brokers,
        group_id=f"{kafka.group}-bare",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=FETCH_BYTES,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=kafka.brokers, enable_idempotence=True, linger_ms=5, max_batch_size=131_072
    )
    async with consumer, producer:
        places = [TopicPartition("rentals", number) for number in range(PARTITIONS)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        while any([await consumer.position(place) < end for place, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=200, max_records=5000)).values():
                for record in records:
                    await producer.send("copies", record.value, key=record.key, timestamp_ms=record.timestamp)
                n += len(records)
            await producer.flush()
            await consumer.commit()
    return n


async def mapped(config: Config) -> int:
    """Map the topic; return how many records."""
    board = SourcesBoard()
    await map_once(config, board)
    return int(board.total["mapped"])


def main(argv: Sequence[str] | None = None) -> int:
    """Print what a record costs each; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="Fewer records, one round.")
    quick = parser.parse_args(argv).quick
    logging.getLogger("attributary_agents").setLevel(logging.ERROR)
    n, rounds = (10_000, 1) if quick else (40_000, 3)
    subjects = {"copying alone": (copy, {}), **{f"mapper, {name}": (mapped, x) for name, x in X.items()}}
    best: dict[str, float] = {}
    broker = KafkaBroker()
    broker.start()
    with broker:
        create_topics(broker.bootstrap, {"rentals": PARTITIONS, "copies": 4})
        create_ours(configuration(broker.bootstrap, 0, X["plain paths"]))
        produce(broker.bootstrap, "rentals", rentals(n))
        number = 0
        for _ in range(rounds):
            for name, (work, x) in subjects.items():
                number += 1
                config = configuration(broker.bootstrap, number, x or X["plain paths"])
                began = time.process_time()
                done = asyncio.run(work(config))
                took = (time.process_time() - began) / n * 1e6
                assert done == n, f"{name}: {done} of {n}"
                best[name] = min(took, best.get(name, took))
    alone = best["copying alone"]
    print(f"{n} records of {PARTITIONS} partitions, µs of processor time for each, and over copying alone:")
    for name, took in best.items():
        print(f"{name:24}{took:8.1f}{took / alone:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
