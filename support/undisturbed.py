"""The undisturbed run: the records of the topics, handled in this process as one worker does that nobody disturbs."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from aiokafka import ConsumerRecord

from attributary_agents.config.settings import Config
from attributary_agents.worker.deployments import PartitionControl
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_explainers import ModelFailureWarning
from support.fingerprint import differences, of_state
from support.kafka import read_all
from support.states import stored, stored_deployments

Event = tuple[bytes | None, list[tuple[str, bytes | None]]]
"""Value and headers of a record."""


@dataclass
class Undisturbed:
    """What is sent, by topic and id, and what there is at the end."""

    sent: dict[str, dict[str, Event]]
    partitions: dict[int, Partition]


def undisturbed(bootstrap: str, config: Config, afters: Mapping[tuple[int, int], int] | None = None) -> Undisturbed:
    """Read the topics, and handle their records as one worker does that nobody disturbs.

    Parameters
    ----------
    afters
        Two topics have no order between them, so this gives it: partition and offset of each control record, to the
        offset of the observation after which it comes. Without it they come where the group has stored that it took
        them.
    """
    topics = config.kafka.topics
    outputs = topics.importances, topics.changes, topics.incidents, topics.dead_letters
    run = Undisturbed({topic: {} for topic in outputs}, {})
    records, controls = read_all(bootstrap, topics.observations), read_all(bootstrap, topics.models)
    if afters is None:
        afters = stored_deployments(config) if controls else {}
    with _quiet():
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
    return run


def check_equal(bootstrap: str, config: Config, afters: Mapping[tuple[int, int], int] | None = None) -> Undisturbed:
    """Assert that events, dead letters, counters and states on the broker are those of an undisturbed run; return it.

    Events and dead letters are compared by their ids, with every byte of value and headers.
    """
    expected = undisturbed(bootstrap, config, afters)
    for topic, sent in expected.sent.items():
        assert events_by_id(read_all(bootstrap, topic)) == sent, f"{topic} differs"
    found = stored(config)
    for number, partition in expected.partitions.items():
        assert found.checkpoints[number] == (partition.counters, partition.offset)
        for model_id, other in partition.models.items():
            assert [*differences(of_state(found.models[model_id]), of_state(other))] == [], model_id
    return expected


def event_id(headers: Iterable[tuple[str, bytes | None]]) -> str:
    """The id by which a reader of the topic sees a duplicate; empty where there is none."""
    by_name = dict(headers)
    return (by_name.get("ce_id") or by_name.get("attributary-dlq-id") or b"").decode()


def events_by_id(records: Iterable[ConsumerRecord]) -> dict[str, Event]:
    """The records of a topic by their ids; assert that duplicates have the same bytes and headers."""
    found: dict[str, Event] = {}
    for record in records:
        event = record.value, [tuple(header) for header in record.headers]
        name = event_id(event[1])
        assert found.setdefault(name, event) == event, f"{name} came twice with other bytes"
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop what the worker's code says of every poisoned record and failing model."""
    logger = logging.getLogger("attributary_agents")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelFailureWarning)
            yield
    finally:
        logger.setLevel(level)


def _send(run: Undisturbed, outgoing: Iterable[Outgoing]) -> None:
    for one in outgoing:
        run.sent[one.topic][event_id(one.headers)] = one.value, list(one.headers)


def _record(r: ConsumerRecord) -> Record:
    return Record(r.topic, r.partition, r.offset, r.timestamp, r.key, r.value, r.headers)
