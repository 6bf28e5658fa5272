"""Dead letters, read from their topic and replayed as original records."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from attributary_topics import DeadLetter, InvalidRecordError, decode_dead_letter

from ..config.settings import Config
from ..errors import UnsentError
from .clients import client_fault, producer
from .readers import topic_reader

WINDOW = 500
"""Records under way before the first of them is awaited."""

WINDOW_BYTES = 16_000_000
"""Bytes of their values, beyond which the first is awaited, too."""

SILENT_S = 60.0
"""Longest wait for the acknowledgement of a record."""

_NO_RECORD = ("batch_too_large", "unreadable_batch")

Place = tuple[int, int]
"""Partition and offset in the topic of dead letters."""


@dataclass(frozen=True)
class Wanted:
    """Filter of dead letters by reason, model, id and time.

    A dead letter is wanted where all of it applies; an empty part applies to all.

    Attributes
    ----------
    since_ms, until_ms
        When they became dead letters, in milliseconds since the epoch: from the first on, and before the second.
    """

    reasons: Collection[str] = ()
    models: Collection[str] = ()
    ids: Collection[str] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def takes(self, letter: ReadLetter) -> bool:
        """Return whether a dead letter is wanted."""
        return (
            (not self.reasons or letter.letter.reason in self.reasons)
            and (not self.models or letter.model_id in self.models)
            and (not self.ids or letter.letter.id in self.ids)
            and (self.since_ms is None or letter.time_ms >= self.since_ms)
            and (self.until_ms is None or letter.time_ms < self.until_ms)
        )


@dataclass(frozen=True)
class ReadLetter:
    """A dead letter, its place, and when it became that, in epoch ms."""

    letter: DeadLetter
    place: Place
    time_ms: int

    @property
    def model_id(self) -> str:
        """Text of the record's key, which is the model id where it has any."""
        return (self.letter.key or b"").decode("utf-8", "backslashreplace")


async def read_letters(
    config: Config, wanted: Wanted, passed_over: Callable[[int], None] = lambda _: None
) -> AsyncGenerator[ReadLetter]:
    """Yield the dead letters of the topic, each record's only once.

    They come in the order of each partition. The topic may have one twice after a crash; its first is taken.

    Parameters
    ----------
    passed_over
        Called at the end with the number of records that are no dead letters.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    seen: set[str] = set()
    n_others = 0
    async with topic_reader(config.kafka, config.kafka.topics.dead_letters) as reader:
        if wanted.since_ms is not None:
            await reader.begin_at_time(wanted.since_ms)
        async for batch in reader.present():
            for record in batch:
                try:
                    letter = decode_dead_letter(record.key, record.value, record.headers)
                except InvalidRecordError:
                    n_others += 1
                    continue
                read = ReadLetter(letter, (record.partition, record.offset), record.timestamp)
                if letter.id not in seen:
                    seen.add(letter.id)
                    if wanted.takes(read):
                        yield read
    passed_over(n_others)


@dataclass
class Plan:
    """Dead letters that are to be sent again, and others that cannot be.

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


class Replay:
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
