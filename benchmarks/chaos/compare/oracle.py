"""The undisturbed run: the same records handled in this process, without Kafka."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from aiokafka import ConsumerRecord
from support.kafka import read_all

from attributary_agents.config.settings import Config
from attributary_agents.worker.deployments import PartitionControl
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_explainers import ModelFailureWarning
from benchmarks.chaos.compare.stored import stored_deployments

Event = tuple[bytes | None, list[tuple[str, bytes | None]]]
"""Value and headers of a record."""


@dataclass
class Undisturbed:
    """What is sent, by topic and id, and what there is at the end."""

    sent: dict[str, dict[str, Event]]
    partitions: dict[int, Partition]


def event_id(headers: Iterable[tuple[str, bytes | None]]) -> str:
    """The id by which a reader of the topic sees a duplicate; empty where there is none."""
    by_name = dict(headers)
    return (by_name.get("ce_id") or by_name.get("attributary-dlq-id") or b"").decode()


def undisturbed(bootstrap: str, config: Config) -> Undisturbed:
    """Read the topics, and handle their records as one worker does that nobody disturbs.

    Two topics have no order between them: deployments come where the group says that it took them.
    """
    topics = config.kafka.topics
    run = Undisturbed({topic: {} for topic in (topics.importances, topics.changes, topics.dead_letters)}, {})
    records, controls = read_all(bootstrap, topics.observations), read_all(bootstrap, topics.models)
    afters = stored_deployments(config) if controls else {}
    logger = logging.getLogger("attributary_agents")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it says of every poisoned record that it is one
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelFailureWarning)
            for number in range(config.kafka.partitions):
                partition = run.partitions[number] = Partition(topics.observations, number, config, lambda _key: None)
                control = PartitionControl(topics.models, partition, lambda _key: None)
                waiting = [r for r in controls if r.partition == number]
                for r in (r for r in records if r.partition == number):
                    while waiting and afters.get((number, waiting[0].offset), -1) < r.offset:
                        _send(run, control.take(_record(waiting.pop(0)), -1).outgoing)
                    _send(run, partition.handle(_record(r)))
                for r in waiting:
                    _send(run, control.take(_record(r), -1).outgoing)
    finally:
        logger.setLevel(level)
    return run


def _send(run: Undisturbed, outgoing: Iterable[Outgoing]) -> None:
    for one in outgoing:
        run.sent[one.topic][event_id(one.headers)] = one.value, list(one.headers)


def _record(r: ConsumerRecord) -> Record:
    return Record(r.topic, r.partition, r.offset, r.timestamp, r.key, r.value, r.headers)
