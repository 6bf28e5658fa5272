"""Rentals of bicycles over six partitions, and their returns an hour later over three: made, in their order."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaProducer
from support.kafka import alter_topic, create_topics

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.kafka.topics import create_topics as create_ours

STATIONS, STEP_MS = 3, 12_000
PARTITIONS = {"rentals": 6, "returns": 3}

_numbers = itertools.count(1)


@dataclass
class Made:
    """What was made: the configuration, and what is on which topic."""

    raw: dict[str, Any]
    config: Config
    bootstrap: str
    n: dict[str, int]


def configuration(bootstrap: str, *, partitions: int = 4, **sections: Any) -> dict[str, Any]:
    """Two sources of the models of three stations, one model each."""
    name = f"sources{next(_numbers)}"
    model = {
        "model": {"class": "river.naive_bayes.GaussianNB"},
        "alpha": 0.01,
        "explainers": {"pfi": {"n_samples": 1}},
        "publish": {"every": 5000},
        "change": None,
    }
    common = {"model": "s{station}", "x": {"only": ["temp", "hour"]}, "id": "id", "time": "ts", "y": "late"}
    return {
        "kafka": {
            "brokers": [bootstrap],
            "group": name,
            "topic_prefix": name,
            "partitions": partitions,
            "session_timeout_s": 6.0,
        },
        "models": {f"s{number}": model for number in range(STATIONS)},
        "sources": {
            "rentals": {"topic": f"{name}-rentals", **common},
            "returns": {"topic": f"{name}-returns", **common},
        },
        "run": {"mapper": False},
        "checkpoint": {"interval_s": 1, "max_observations": 1000},
        **sections,
    }


def made(bootstrap: str, n: int, *, late: bool = False, **sections: Any) -> Made:
    """Create the topics and write n rentals and nearly as many returns, an hour later by their time.

    Parameters
    ----------
    late
        Whether returns are the labels of the rentals, in place of observations of their own.
    """
    raw = configuration(bootstrap, **sections)
    if late:
        returns = raw["sources"].pop("returns")
        del raw["sources"]["rentals"]["y"], returns["x"]
        raw["sources"]["rentals"]["x"] = {"only": ["temp", "hour"]}
        raw["labels"] = {"returns": {**returns, "ttl": "3h"}}
    config = parse_config(raw)
    create_ours(config)
    prefix = config.kafka.topic_prefix
    kept = {"retention.ms": "-1"}  # the made times are of weeks before now
    for name, count in PARTITIONS.items():
        create_topics(bootstrap, {f"{prefix}-{name}": count}, kept)
    alter_topic(bootstrap, config.kafka.topics.observations, kept)
    return Made(raw, config, bootstrap, asyncio.run(_write(bootstrap, prefix, n, late)))


async def _write(bootstrap: str, prefix: str, n: int, late: bool) -> dict[str, int]:
    rng = random.Random(1)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=20)
    await producer.start()
    begin_ms = round(time.time() * 1000) - n * STEP_MS - 4 * 3_600_000
    later: list[tuple[int, dict[str, Any]]] = []
    try:
        for i in range(n):
            at, station = begin_ms + i * STEP_MS, rng.randrange(STATIONS)
            rental = {
                "id": f"r{i}",
                "ts": at,
                "station": station,
                "temp": round(rng.gauss(12, 6), 2),
                "hour": i // 300 % 24,
            }
            rental["late"] = rental["temp"] + rng.gauss(0, 3) > 12
            await _send(producer, f"{prefix}-rentals", f"c{rng.randrange(500)}", rental)
            if rng.random() < 0.9:
                back = at + round(3_600_000 * rng.uniform(0.7, 1.3))
                later.append(
                    (back, {**rental, "id": f"r{i}" if late else f"b{i}", "ts": back, "temp": rental["temp"] + 1})
                )
        for _, back_again in sorted(later, key=lambda one: one[0]):
            await _send(producer, f"{prefix}-returns", back_again["id"], back_again)
    finally:
        await producer.stop()
    return {"rentals": n, "returns": len(later)}


async def _send(producer: AIOKafkaProducer, topic: str, key: str, value: dict[str, Any]) -> None:
    await producer.send(topic, json.dumps(value).encode(), key=key.encode(), timestamp_ms=value["ts"])
