"""Progress of the mapping by brokers and checkpoints, and its reset."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaError, for_code

from attributary_explainers.wording import did_you_mean, show_names
from attributary_topics.origins import OriginPlace

from ...config.settings import Config
from ...config.sources import Attached
from ...errors import AttributaryError, ConfigError, StateError
from ...kafka.admin import with_admin
from ...kafka.clients import client_fault, client_options
from ...kafka.topics.origins import OriginTopic, ask_with_ids, no_such_topic
from ...kafka.topics.specs import MAPPERS
from ...kafka.upstream.aiokafka_consumer import client_of
from ...state.admin import read_records, store_of
from ...state.checkpoints import load_checkpoint
from ...state.names import checkpoint_copy_key, checkpoint_key
from .positions import Bounds, Position, committed_positions, first_offsets
from .units import claims_group, positions_group, units_of

T = TypeVar("T")

_WITHIN_S = 30.0


class Place(NamedTuple):
    """Progress of a single origin partition.

    Attributes
    ----------
    committed
        Up to there it is mapped; None where nothing is.
    time_lag_s
        Age of the first record that is not mapped, by Kafka's timestamp; None where all is.
    taken
        Offset of the last record that a worker's checkpoint has; None where none has one.
    """

    topic: str
    partition: int
    committed: int | None
    end: int
    time_lag_s: float | None = None
    taken: int | None = None

    @property
    def lag(self) -> int | None:
        """Number of offsets that are not mapped; None if nothing is mapped."""
        return None if self.committed is None else max(self.end - self.committed, 0)


class _Opened(NamedTuple):
    client: AIOKafkaConsumer
    topics: dict[str, OriginTopic]
    bounds: dict[TopicPartition, Bounds]
    committed: dict[TopicPartition, Position]


@dataclass(frozen=True)
class SourceStatus:
    """Progress of a single section.

    Attributes
    ----------
    mapper
        Who maps it now: host and client; empty where nobody does.
    run
        How often it was set back.
    """

    name: str
    mapper: str
    run: int
    places: list[Place]


def _sections(config: Config) -> dict[str, tuple[Attached, list[str]]]:
    """Return the sections with topics to read, each with these topics."""
    return {name: (unit.sections[name], topics) for unit in units_of(config) for name, topics in unit.readers.items()}


def find_status(config: Config) -> list[SourceStatus]:
    """Return the mapping progress of each section.

    Raises
    ------
    PreflightError
        The brokers cannot be reached, or refuse.
    """
    mappers = with_admin(config.kafka, lambda admin: _members(admin, config))
    return asyncio.run(_bounded(config, _find(config, mappers)))


async def _bounded(config: Config, work: Coroutine[None, None, T]) -> T:
    try:
        async with asyncio.timeout(_WITHIN_S):
            return await work
    except (KafkaError, OSError, TimeoutError) as error:
        raise await client_fault(config.kafka, error) from None


async def _members(admin: AIOKafkaAdminClient, config: Config) -> dict[int, str]:
    """Return the owner of each partition of the sources topic."""
    try:
        answers = await admin.describe_consumer_groups([claims_group(config.kafka.group)])
    except GroupCoordinatorNotAvailableError:  # the first group of a new cluster
        return {}
    found: dict[int, str] = {}
    for code, *_, members in (group[:6] for answer in answers for group in answer.groups):
        if code:
            raise for_code(code)(claims_group(config.kafka.group))
        for _, client_id, host, _, assigned in members:
            if assigned:
                said = ConsumerProtocolMemberAssignment.decode(assigned)
                who = f"{client_id} at {host.lstrip('/')}"
                found.update({number: who for _, numbers in said.assignment for number in numbers})
    return found


@asynccontextmanager
async def _client(config: Config, name: str, topics: list[str]) -> AsyncIterator[_Opened]:
    """Lend a consumer of a section's positions, with partitions and ends."""
    client = AIOKafkaConsumer(
        **client_options(config.kafka),
        group_id=positions_group(config.kafka.group, name),
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    try:
        await client.start()
        found = await ask_with_ids(client_of(client), topics)
        for topic in topics:
            if topic not in found:
                key = f"{'sources' if name in config.sources else 'labels'}.{name}.topic"
                raise ConfigError(no_such_topic(config.kafka, key, topic, await client.topics()))
        places = [TopicPartition(topic.name, number) for topic in found.values() for number in topic.partitions]
        client.assign(places)
        client.pause(*places)
        ends = await client.end_offsets(places)
        begins = await client.beginning_offsets(places)
        bounds = {place: Bounds(begins[place], ends[place]) for place in places}
        yield _Opened(client, found, bounds, await committed_positions(client, places))
    finally:
        await client.stop()


async def _find(config: Config, mappers: Mapping[int, str]) -> list[SourceStatus]:
    taken = await _taken(config)
    of_section = {name: unit for unit in units_of(config) for name in unit.sections}
    found = []
    for name, (_, topics) in _sections(config).items():
        async with _client(config, name, topics) as opened:
            places = []
            for place, bound in sorted(opened.bounds.items()):
                at = opened.committed.get(place)
                last = None if at is None else taken.get(OriginPlace(at.name(place.topic), place.partition))
                late = None if at is None else await _time_lag_s(opened.client, place, at, bound)
                places.append(
                    Place(place.topic, place.partition, None if at is None else at.offset, bound.end, late, last)
                )
            run = max((at.run for at in opened.committed.values()), default=0)
            mapper = mappers.get(of_section[name].place(MAPPERS), "")
            found.append(SourceStatus(name, mapper, run, places))
    return found


async def _time_lag_s(client: AIOKafkaConsumer, place: TopicPartition, at: Position, bound: Bounds) -> float | None:
    """Return the age in seconds of the first record that is not mapped."""
    if max(at.offset, bound.begin) >= bound.end:
        return None
    client.seek(place, max(at.offset, bound.begin))
    client.resume(place)
    try:
        for records in (await client.getmany(place, timeout_ms=3000, max_records=1)).values():
            return float(max(time.time() - records[0].timestamp / 1000, 0.0))
        return None
    finally:
        client.pause(place)


async def _taken(config: Config) -> dict[OriginPlace, int]:
    """Return the largest offset of each origin partition in checkpoints."""
    async with AIOKafkaConsumer(**client_options(config.kafka)) as client:
        if not await ask_with_ids(client_of(client), [config.kafka.changelog]):
            return {}  # a client that reads a topic that is not there goes on asking for it
    try:
        records = await read_records(config)
    except (AttributaryError, KafkaError):  # no worker has run yet
        return {}
    found: dict[OriginPlace, int] = {}
    for number in range(config.kafka.partitions):
        store = store_of(config, records, number)
        try:
            counters, _, _ = load_checkpoint(store.load, checkpoint_key(number), checkpoint_copy_key(number))
        except StateError:
            continue
        for place, last in counters.origins.last.items():
            found[place] = max(last.offset, found.get(place, -1))
    return found


def reset(config: Config, name: str) -> list[Place]:
    """Set a section back to its `start` as a new run; return its positions.

    Raises
    ------
    ConfigError
        No topic is read for a section of this name.
    AttributaryError
        A mapper runs.
    PreflightError
        The brokers cannot be reached, or refuse.
    """
    sections = _sections(config)
    if name not in sections:
        reads = next((other for other, (one, _) in sections.items() if _shares(config, name, one)), None)
        if reads is not None:
            raise ConfigError(f"{name} reads its topic together with {reads}: reset that, which reads it for both")
        raise ConfigError(f"no source or labels {name!r}{did_you_mean(name, sections) or _there_are(sections)}")
    if mappers := sorted(set(with_admin(config.kafka, lambda admin: _members(admin, config)).values())):
        raise AttributaryError(
            f"mappers run ({', '.join(mappers)}): stop them, and the workers that map, and run it again in a moment"
        )
    section, topics = sections[name]
    found: list[Place] = asyncio.run(_bounded(config, _reset(config, name, section, topics)))
    return found


def _shares(config: Config, name: str, other: Attached) -> bool:
    section = config.sources.get(name) or config.labels.get(name)
    return section is not None and bool(set(section.topic) & set(other.topic))


def _there_are(sections: Mapping[str, object]) -> str:
    return f"; there are {show_names(sections)}"


async def _reset(config: Config, name: str, section: Attached, topics: list[str]) -> list[Place]:
    async with _client(config, name, topics) as opened:
        run = max((at.run for at in opened.committed.values()), default=0) + 1
        first = await first_offsets(opened.client, section.start, list(opened.bounds), opened.bounds)
        new = {place: Position(offset, opened.topics[place.topic].id, run) for place, offset in first.items()}
        await opened.client.commit({place: (at.offset, at.text) for place, at in new.items()})
        return [
            Place(place.topic, place.partition, at.offset, opened.bounds[place].end)
            for place, at in sorted(new.items())
        ]
