"""Replay of dead letters as the original records, to their topics."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from ...config.settings import Config
from ...errors import UnsentError
from ..clients import client_fault, producer
from .dead_letters import Place, ReadLetter, Wanted, read_letters

WINDOW = 500
"""Records under way before the first of them is awaited."""

WINDOW_BYTES = 16_000_000
"""Bytes of their values, beyond which the first is awaited, too."""

SILENT_S = 60.0
"""Longest wait for the acknowledgement of a record."""

_NO_RECORD = ("batch_too_large", "unreadable_batch")


@dataclass
class Plan:
    """Says which dead letters are to be sent again, and which cannot be.

    Attributes
    ----------
    places
        Where they stand in the topic of dead letters.
    to
        How many go to which topic.
    n_done
        How many are left out because a worker has handled them again already, and would drop them.
    refused
        Id to why it cannot be sent again.
    """

    places: set[Place] = field(default_factory=set)
    to: Counter[str] = field(default_factory=Counter)
    n_done: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    begins_ms: int | None = None

    def take(self, config: Config, read: ReadLetter, *, to_origin: bool) -> None:
        """Add a dead letter."""
        if why := why_not(config, read, to_origin=to_origin):
            self.refused[read.letter.id] = why
            return
        self.places.add(read.place)
        self.to[read.letter.source.topic] += 1
        self.begins_ms = read.time_ms if self.begins_ms is None else min(self.begins_ms, read.time_ms)


def why_not(config: Config, read: ReadLetter, *, to_origin: bool) -> str:
    """Say why a dead letter cannot be sent again; empty where it can.

    Parameters
    ----------
    to_origin
        Whether it is to go to a topic that is not ours, from which it was mapped, and not to one of ours.
    """
    letter, kafka = read.letter, config.kafka
    topic = letter.source.topic
    if lacks := letter.lacks:
        return f"it was too large for a dead letter, and lacks {lacks}: its topic may still have the original"
    if letter.reason in _NO_RECORD:
        return "it stands for a batch that could not be read, and has no record"
    if topic == kafka.shards:
        return "it was written by a worker for workers: what it said is outdated"
    is_ours = topic in (kafka.topics.observations, kafka.topics.models)
    if to_origin and is_ours:
        return f"it comes from {topic}, which is ours: leave --to origin out"
    if not to_origin and not is_ours:
        return f"it comes from {topic}, which is not ours, and has not been mapped: send it there with --to origin"
    return ""


async def plan_replay(config: Config, wanted: Wanted, is_done: Callable[[str], bool], *, to_origin: bool) -> Plan:
    """Plan which of the wanted dead letters can be sent again, and where to.

    Parameters
    ----------
    is_done
        Whether a worker has handled the dead letter of this id again.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    plan = Plan()
    async for read in read_letters(config, wanted):
        if not to_origin and is_done(read.letter.id):
            plan.n_done += 1
            continue
        plan.take(config, read, to_origin=to_origin)
    return plan


class Replaying:
    """Sender of the planned dead letters as their original records.

    Key, value and headers are the original's; a further header names the dead letter. Each goes to the partition from
    which it came, in the order of the dead letters.

    Parameters
    ----------
    progress
        Called with the number of records acknowledged so far.

    Attributes
    ----------
    acknowledged
        How many records the brokers have acknowledged.
    refused
        Id to why the brokers, or the number of partitions, refuse it.
    """

    def __init__(self, config: Config, plan: Plan, progress: Callable[[int], None] = lambda _: None) -> None:
        self._config, self._plan, self._progress = config, plan, progress
        self._under_way: deque[tuple[str, int, asyncio.Future[object]]] = deque()
        self._n_bytes = 0
        self.acknowledged = 0
        self.refused: dict[str, str] = {}

    async def send(self) -> None:
        """Send them.

        Raises
        ------
        PreflightError
            The brokers cannot be reached, or refuse.
        UnsentError
            They acknowledge nothing any more.
        """
        kafka = self._config.kafka
        topics = ", ".join(sorted(self._plan.to))
        partitions: dict[str, set[int]] = {}
        async with producer(kafka, topics, linger_ms=5, max_request_size=kafka.max_record_bytes) as client:
            async for read in self._planned():
                source = read.letter.source
                if source.topic not in partitions:
                    partitions[source.topic] = set(await client.partitions_for(source.topic))
                if source.partition not in partitions[source.topic]:
                    self.refused[read.letter.id] = f"{source.topic} has no partition {source.partition} any more"
                    continue
                try:
                    await self._hand_over(client, read)
                except MessageSizeTooLargeError:
                    self.refused[read.letter.id] = f"it is larger than kafka.max_record_bytes, {kafka.max_record_bytes}"
                while len(self._under_way) >= WINDOW or self._n_bytes > WINDOW_BYTES:
                    await self._first_settled()
            while self._under_way:
                await self._first_settled()

    async def _planned(self) -> AsyncIterator[ReadLetter]:
        async for read in read_letters(self._config, Wanted(since_ms=self._plan.begins_ms)):
            if read.place in self._plan.places:
                yield read

    async def _hand_over(self, client: AIOKafkaProducer, read: ReadLetter) -> None:
        letter = read.letter
        future: asyncio.Future[Any] = await client.send(
            letter.source.topic,
            letter.value,
            letter.key,
            letter.source.partition,
            headers=letter.replayed_headers(),
        )
        n_bytes = len(letter.value or b"")
        self._under_way.append((letter.id, n_bytes, future))
        self._n_bytes += n_bytes

    async def _first_settled(self) -> None:
        letter_id, n_bytes, future = self._under_way[0]
        try:
            async with asyncio.timeout(SILENT_S):
                await asyncio.shield(future)
        except TimeoutError:
            told = f"the brokers have acknowledged nothing for {SILENT_S:.0f} s"
            raise UnsentError(told, self.acknowledged, len(self._under_way)) from None
        except KafkaError as error:
            if error.retriable:
                raise await client_fault(self._config.kafka, error) from None
            self.refused[letter_id] = f"a broker refuses it: {type(error).__name__}"
        else:
            self.acknowledged += 1
        self._under_way.popleft()
        self._n_bytes -= n_bytes
        self._progress(self.acknowledged)
