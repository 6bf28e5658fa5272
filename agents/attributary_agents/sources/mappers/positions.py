"""First offsets of a source's partitions, kept as committed offsets.

They are committed in a consumer group.

A commit has a text beside the offset: the id of the topic, by which another topic of the same name is told apart, and
the run, the number of times that the source was set back on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition

from ...errors import AttributaryError
from ...kafka.topics.origins import OriginTopic
from ...kafka.upstream.aiokafka_consumer import committed_with_notes


class OriginFaultError(AttributaryError):
    """A source's topic is missing or was replaced.

    The source stops, and the message says how to go on.
    """


@dataclass(frozen=True)
class Position:
    """Where a partition is read from.

    Attributes
    ----------
    run
        How often it has been set back on purpose; the origin's name has it, so that what comes again is no repeat.
    """

    offset: int
    topic_id: str
    run: int

    @property
    def text(self) -> str:
        """Text that is committed beside the offset."""
        return orjson.dumps({"topic_id": self.topic_id, "run": self.run}).decode()

    def name(self, topic: str) -> str:
        """Return the topic as origins name it."""
        return f"{topic}@{self.run}" if self.run else topic


def decode_position(offset: int, text: str | None) -> Position:
    """Read a committed position; a text of other tools is ignored."""
    try:
        said = orjson.loads(text or "{}")
        return Position(offset, str(said.get("topic_id", "")), int(said.get("run", 0)))
    except (ValueError, TypeError, AttributeError):
        return Position(offset, "", 0)


async def committed_positions(client: AIOKafkaConsumer, places: list[TopicPartition]) -> dict[TopicPartition, Position]:
    """Return the committed positions of the client's group, where it has any."""
    committed = await committed_with_notes(client, places)
    return {place: decode_position(offset, note) for place, (offset, note) in committed.items()}


class Bounds(NamedTuple):
    """Where a partition begins and ends."""

    begin: int
    end: int


def _check_same(section: str, topic: OriginTopic, position: Position, bounds: Bounds, number: int) -> None:
    if position.topic_id and topic.id and position.topic_id != topic.id:
        raise OriginFaultError(
            f"{section}: topic {topic.name} was deleted and made again: `attributary sources reset "
            f"{section.partition('.')[2]}` reads the new one from its beginning"
        )
    if position.offset > bounds.end:
        raise OriginFaultError(
            f"{section}: {topic.name}[{number}] ends at offset {bounds.end}, and is mapped up to {position.offset}: it "
            f"was made again, or has lost records; `attributary sources reset {section.partition('.')[2]}` reads it "
            "from its beginning"
        )


async def find_starts(
    client: AIOKafkaConsumer, section: str, start: str, topics: Mapping[str, OriginTopic]
) -> tuple[dict[TopicPartition, Position], dict[TopicPartition, Bounds], list[str]]:
    """Return each partition's position and bounds, and warnings to log.

    A topic of which no position is known begins at `start`; a partition that has come to a known topic at its
    beginning.

    Parameters
    ----------
    section
        The key of the configuration, such as `sources.rentals`.

    Raises
    ------
    OriginFaultError
        A topic was made again, or ends before its position.
    """
    places = [TopicPartition(topic.name, number) for topic in topics.values() for number in topic.partitions]
    known = await committed_positions(client, places)
    begins, ends = await client.beginning_offsets(places), await client.end_offsets(places)
    bounds = {place: Bounds(begins[place], ends[place]) for place in places}
    runs = {name: max((at.run for place, at in known.items() if place.topic == name), default=0) for name in topics}
    new = [place for place in places if place not in known]
    fresh = [place for place in new if not any(other.topic == place.topic for other in known)]
    first = await first_offsets(client, start, fresh, bounds)
    found: dict[TopicPartition, Position] = {}
    said: list[str] = []
    for place in places:
        topic = topics[place.topic]
        if place in known:
            at = known[place]
            _check_same(section, topic, at, bounds[place], place.partition)
            if at.offset < bounds[place].begin:
                n = bounds[place].begin - at.offset
                said.append(f"{section}: {n} offsets of {topic.name}[{place.partition}] are gone, and never mapped")
            offset = max(at.offset, bounds[place].begin)
        else:
            offset = first.get(place, bounds[place].begin)
        found[place] = Position(offset, topic.id, runs[place.topic])
    return found, bounds, said


async def first_offsets(
    client: AIOKafkaConsumer, start: str, places: list[TopicPartition], bounds: Mapping[TopicPartition, Bounds]
) -> dict[TopicPartition, int]:
    """Return the offsets that `start` means for these partitions."""
    if start == "earliest" or not places:
        return {place: bounds[place].begin for place in places}
    if start == "latest":
        return {place: bounds[place].end for place in places}
    at_ms = round(datetime.fromisoformat(start).timestamp() * 1000)
    found: dict[TopicPartition, Any] = await client.offsets_for_times(dict.fromkeys(places, at_ms))
    return {place: bounds[place].end if found[place] is None else found[place].offset for place in places}
