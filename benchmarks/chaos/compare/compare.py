"""Whether what a disturbed group has left equals what an undisturbed worker leaves; how far it has committed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from support.fingerprint import differences, of_state
from support.kafka import read_all, read_committed
from support.states import stored
from support.undisturbed import Event, Undisturbed, event_id, undisturbed

from attributary_agents.config.settings import Config
from attributary_topics import DEAD_LETTER_HEADER_PREFIX
from benchmarks.chaos.lab.lab import Check


def positions(bootstrap: str, config: Config, topic: str) -> dict[int, tuple[int, int]]:
    """Partition of the topic to the group's committed offset (0 before the first) and the partition's end."""
    found = asyncio.run(_positions(bootstrap, config.kafka.group, [topic], config.kafka.partitions))
    return {tp.partition: place for tp, place in found.items()}


def is_read(bootstrap: str, group: str, topic: str, n: int) -> bool:
    """Whether a group has committed all of the n partitions of a topic; False while no broker answers."""
    try:
        found = asyncio.run(_positions(bootstrap, group, [topic], n))
    except (KafkaError, OSError, TimeoutError):
        return False
    return all(committed == end for committed, end in found.values())


def is_drained(bootstrap: str, config: Config) -> bool:
    """Whether the group has committed all of the observations and models topics; False while no broker answers."""
    kafka = config.kafka
    names = [kafka.topics.observations, kafka.topics.models]
    try:
        found = asyncio.run(_positions(bootstrap, kafka.group, names, kafka.partitions))
    except (KafkaError, OSError, TimeoutError):
        return False
    return all(committed == end for committed, end in found.values())


async def _positions(
    bootstrap: str, group: str, topics: Sequence[str], n: int
) -> dict[TopicPartition, tuple[int, int]]:
    partitions = [TopicPartition(topic, number) for topic in topics for number in range(n)]
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=5000)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, request_timeout_ms=5000)
    try:
        async with asyncio.timeout(15):
            await admin.start()
            await consumer.start()
            committed = await admin.list_consumer_group_offsets(group)
            ends = await consumer.end_offsets(partitions)
    finally:
        await admin.close()
        await consumer.stop()
    return {tp: (max(committed[tp].offset, 0) if tp in committed else 0, ends[tp]) for tp in partitions}


_STAGE_HEADER = DEAD_LETTER_HEADER_PREFIX + "stage"


def compare(bootstrap: str, config: Config, afters: Mapping[tuple[int, int], int] | None = None) -> Iterator[Check]:
    """All that is promised (docs/delivery.md), check by check; `afters` as in `undisturbed`.

    The topic of statuses is left out: it follows the clock. So are dead letters of records of other topics: our topic
    does not tell of them.
    """
    expected = undisturbed(bootstrap, config, afters)
    assert config.kafka.topics.status not in expected.sent
    for topic, sent in expected.sent.items():
        found = read_committed(bootstrap, topic) if config.is_exact else read_all(bootstrap, topic)
        ours = [record for record in found if not is_of_mapper(record)]
        yield events(topic, ours, sent, once=config.is_exact)
    if any(model.change for model in config.models.values()):
        yield _incidents_were_sent(config, expected)
    yield from _counters(bootstrap, config, expected)
    yield offsets(bootstrap, config)
    yield states(config, expected)


def is_of_mapper(record: Any) -> bool:
    """Whether a record is the dead letter of one that could not be mapped."""
    return any(name == _STAGE_HEADER and value == b"map" for name, value in record.headers)


def events(topic: str, records: Iterable[Any], sent: dict[str, Event], *, once: bool = False) -> Check:
    """Whether the topic's records are those that should have been sent, each at least once, or exactly once."""
    found: dict[str, Event] = {}
    faults, n = [], 0
    for record in records:
        n += 1
        event = record.value, [tuple(header) for header in record.headers]
        name = event_id(event[1])
        if once and name in found:
            faults.append(f"{name} is committed twice")
        if found.setdefault(name, event) != event:
            faults.append(f"{name} came twice with other bytes")
    faults += [f"{name} is missing" for name in sent.keys() - found.keys()]
    faults += [f"{name} should not be" for name in found.keys() - sent.keys()]
    faults += [f"{name} differs" for name in sent.keys() & found.keys() if sent[name] != found[name]]
    text = f"{len(sent)} by id, value and headers; {n - len(found)} duplicates, equal in every byte"
    return Check(topic.split(".", 1)[-1], not faults, _said(faults, text))


def _incidents_were_sent(config: Config, expected: Undisturbed) -> Check:
    n = len(expected.sent[config.kafka.topics.incidents])
    return Check("the stream has changed models", n > 0, f"{n} revisions of incidents")


def _counters(bootstrap: str, config: Config, expected: Undisturbed) -> Iterator[Check]:
    found = stored(config).checkpoints
    wanted = {n: (partition.counters, partition.offset) for n, partition in expected.partitions.items()}
    faults = [f"partition {n}: {found[n]}, expected {wanted[n]}" for n in wanted if found[n] != wanted[n]]
    total = sum(counters.consumed for counters, _ in wanted.values())
    yield Check("counters and offsets of the checkpoints", not faults, _said(faults, f"{total} observations consumed"))
    topic, counters = config.kafka.topics.observations, [counted for counted, _ in found.values()]
    consumed, explained = sum(c.consumed for c in counters), sum(c.used for c in counters)
    dead = sum(c.dead_letters.total() for c in counters)
    letters = [name for name in expected.sent[config.kafka.topics.dead_letters] if name.startswith(topic)]
    repeats = sum(c.replayed.n_repeats + c.origins.n_dropped for c in counters)
    holds = consumed == explained + dead + repeats and dead == len(letters)
    yield Check(
        "in = explained + dead letters + repeats",
        holds,
        f"{consumed} = {explained} + {dead} + {repeats}, {len(letters)} on the topic",
    )


def offsets(bootstrap: str, config: Config) -> Check:
    """Whether the group has committed all observations."""
    found = positions(bootstrap, config, config.kafka.topics.observations)
    faults = [f"partition {n}: {one} of {end}" for n, (one, end) in found.items() if one != end]
    return Check(
        "committed offsets = ends", not faults, _said(faults, ", ".join(str(end) for _, end in found.values()))
    )


def states(config: Config, expected: Undisturbed, names: set[str] | None = None) -> Check:
    """Whether the stored states of these models, or of all, are those of the undisturbed run."""
    ended = {name: state for partition in expected.partitions.values() for name, state in partition.models.items()}
    found = {name: of_state(state) for name, state in stored(config).models.items() if names is None or name in names}
    wanted = {name: of_state(state) for name, state in ended.items() if names is None or name in names}
    faults = list(islice(differences(found, wanted), 20))
    text = f"{len(wanted)} models: weights, explainers, change, counts and position, to the last bit"
    return Check("final states", not faults, _said(faults, text))


def _said(faults: list[str], otherwise: str) -> str:
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return "; ".join(faults[:3]) + more if faults else otherwise
