"""Streams on which it does not matter what is drawn, so that shards and one worker say the same."""

from __future__ import annotations

import json
from typing import Any

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_agents.worker.shards import PartitionMerges
from tests.agents.stand_ins import TOPIC

PLAIN = 1e-16
"""An alpha so small that each observation counts the same."""

TIME_MS = 1_700_000_000_000


class PairClassifier:
    """Says True where `a` and `b` are a pair: with a stored row in the place of one of them they never are."""

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        p = 0.9 if x["a"] == x["b"] else 0.2
        return {False: 1.0 - p, True: p}

    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        raise AssertionError("it does not learn")


def pair_classifier() -> PairClassifier:
    return PairClassifier()


def sharded_config(**model: Any) -> Config:
    return parse_config(sharded(**model))


def sharded(**model: Any) -> dict[str, Any]:
    """A configuration with the sharded model `m`, on four partitions."""
    chosen = {
        "factory": "tests.agents.worker.sharing.streams:pair_classifier",
        "learn": False,
        "sharded": True,
        "alpha": PLAIN,
        "loss": "brier",
        "features": {"a": "number", "b": "number", "c": "number"},
        "publish": {"every": 50},
        "max_jump": None,
    }
    return {"models": {"m": {**chosen, **model}}}


def pair(i: int) -> bytes:
    """The i-th observation, which has the numbers of no other: the label decides what it adds to the importances."""
    return json.dumps({"x": {"a": i, "b": i, "c": i % 5}, "y": i * 37 % 101 < 60 + i % 30}).encode()


def record(partition: int, offset: int, value: bytes) -> Record:
    return Record(TOPIC, partition, offset, TIME_MS + offset, b"m", value)


class Broker:
    """Hands shards' records to the partition that merges, in the order in which they are sent."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.table: dict[bytes, bytes] = {}
        self.sent: list[bytes] = []
        self.events: list[Outgoing] = []
        self.merges = self.owner()

    def owner(self) -> PartitionMerges:
        """The next owner of the partition that merges, from what is stored."""
        merges = PartitionMerges(Partition(TOPIC, 2, self.config, lambda _key: None), self.table.get)
        merges.restore("m")
        return merges

    def deliver(self, offset: int, *, stores: bool = True) -> list[Outgoing]:
        """Deliver one record of the topic of shards; what its handling is to store is lost in a crash."""
        value = self.sent[offset]
        taken = self.merges.take(Record(self.config.kafka.shards, 2, offset, 0, b"m", value))
        self.events += taken.outgoing
        if stores:
            self.table.update(taken.writes)
        return taken.outgoing

    def send(self, outgoing: list[Outgoing]) -> None:
        """Send what follows from an observation, and deliver it at once."""
        for one in outgoing:
            assert one.topic == self.config.kafka.shards, one.topic
            assert one.key == b"m"
            self.sent.append(one.value or b"")
            self.deliver(len(self.sent) - 1)
