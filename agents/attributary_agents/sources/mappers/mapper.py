"""Mapper of a unit of sources: read, merge by time, map, send, commit.

Only positions are committed whose records are acknowledged.

A run ends with the first send that fails. What it has committed is true then, and the next run begins there; what was
sent beyond that is sent again, and taken once (`state/deduplication.py`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from attributary_topics import InvalidRecordError

from ...config.settings import Config
from ...config.sources import SourceConfig
from ...errors import SchemaUnavailableError
from ...kafka.batches import unread_batch
from ...kafka.clients import producer
from ...kafka.observations import MOST_BYTES
from ...kafka.topics.origins import ask_retention_ms
from ..formats.base import Decoded, Format
from ..formats.factory import new_format
from ..mapping import Mapping
from ..records import OriginRecord
from .board import SectionBoard, SourcesBoard
from .positions import Position
from .reader import Merge, Reader
from .sender import Encoded, Sender, encoded
from .units import Unit

logger = logging.getLogger(__name__)

SETTLE_EVERY, SETTLE_S = 5000, 1.0
"""Records, and seconds, after which what was sent is waited for and positions are committed."""

LOOK_S = 10.0
"""Seconds between two looks at whether a topic has got partitions, or is another one."""

RENEW_S = 3600.0
"""Seconds after which positions are committed that have not moved: brokers forget those of a week without a commit."""

_SLICE_S = 0.003
"""How long records are mapped before others of this process have their turn."""


class _Section:
    def __init__(self, name: str, format_: Format, mapping: Mapping, at: str, board: SectionBoard) -> None:
        self.name, self.format, self.mapping, self.at, self.board = name, format_, mapping, at, board

    async def start(self) -> None:
        """Start the format, which asks for the services that it needs.

        Until it has answered, the board keeps showing the state of the run before.
        """
        try:
            await self.format.start()
        finally:
            self.board.is_waiting = lambda: self.format.is_waiting


class Mapper:
    """A single run of the mapping of a unit.

    Parameters
    ----------
    once
        Whether it ends when all that there is at its beginning is mapped.
    progress
        Called with how many offsets have been mapped in this run, and how many there were at its beginning.
    """

    def __init__(
        self,
        config: Config,
        unit: Unit,
        board: SourcesBoard,
        *,
        once: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._config, self._unit, self._once, self._progress = config, unit, once, progress
        self._sections = {
            name: _Section(
                name, new_format(section.format, config.kafka), Mapping(name, section, config),
                f"{'sources' if isinstance(section, SourceConfig) else 'labels'}.{name}", board.open(name),
            )
            for name, section in unit.sections.items()
        }  # fmt: skip
        self._of_topic = {
            topic: [self._sections[name] for name in unit.readers_of(topic)]
            for topics in unit.readers.values()
            for topic in topics
        }
        self._merge: Merge[TopicPartition, ConsumerRecord] = Merge(unit.merge_wait_s)
        self._decoded: dict[TopicPartition, list[tuple[_Section, list[Decoded] | InvalidRecordError]]] = {}
        self._most_bytes = min(config.max_observation_bytes, MOST_BYTES - 4096)
        self._news = asyncio.Event()
        self._readers: dict[str, Reader] = {}
        self._reader_of: dict[TopicPartition, Reader] = {}
        self._n_mapped = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Map until `stop` is set, or all present records are mapped.

        The second only where `once` is set.

        Raises
        ------
        OriginFaultError, OriginsChangedError, PreflightError, KafkaError
            Why the run has ended.
        """
        async with AsyncExitStack() as stack:
            for section in self._sections.values():
                stack.push_async_callback(section.format.close)
                await section.start()
            for name, topics in self._unit.readers.items():
                section = self._sections[name]
                reader = self._readers[name] = Reader(self._config, section.at, self._unit.sections[name], topics)
                stack.push_async_callback(reader.stop)
                await reader.start()
                for told in reader.said:
                    logger.warning("%s", told)
            starts = {place: at for reader in self._readers.values() for place, at in reader.starts.items()}
            ends = {place: end for reader in self._readers.values() for place, end in reader.ends.items()}
            self._reader_of = {place: reader for reader in self._readers.values() for place in reader.starts}
            for place, at in starts.items():
                self._merge.add(place, at.offset, ends[place])
            topic = self._config.kafka.topics.observations
            client = await stack.enter_async_context(
                producer(
                    self._config.kafka,
                    topic,
                    linger_ms=5,
                    max_batch_size=131_072,
                    max_request_size=self._config.kafka.max_record_bytes,
                )
            )
            n_targets = len(await client.partitions_for(topic))
            retention_ms = await ask_retention_ms(client.client, topic)
            sender = Sender(self._config, client, n_targets, starts, retention_ms)
            logger.info("%s: mapping begins, of %d partitions", self._what, len(starts))
            pumps = [asyncio.ensure_future(reader.pump(self._merge, self._news)) for reader in self._readers.values()]
            try:
                await self._go_on(sender, starts, ends, stop, pumps)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)

    @property
    def _what(self) -> str:
        return ", ".join(section.at for section in self._sections.values())

    async def _go_on(
        self,
        sender: Sender,
        starts: dict[TopicPartition, Position],
        ends: dict[TopicPartition, int],
        stop: asyncio.Event,
        pumps: Sequence[asyncio.Future[None]],
    ) -> None:
        now = time.monotonic
        settled = looked = renewed = now()
        positions = dict(starts)
        total = sum(max(ends[place] - at.offset, 0) for place, at in starts.items())
        while not stop.is_set():
            await self._map_slice(sender, partial(self._settle, sender, positions))
            if sender.n_under_way >= SETTLE_EVERY or now() - settled >= SETTLE_S:
                await self._settle(sender, positions)
                settled = now()
                if self._progress is not None:
                    self._progress(self._n_mapped, total)
            for pump in pumps:
                if pump.done():
                    pump.result()
            if now() - looked >= LOOK_S:
                looked = now()
                for reader in self._readers.values():
                    await reader.check_unchanged()
            if now() - renewed >= RENEW_S:
                renewed = now()
                await self._commit(positions)
            if self._once and self._merge.is_read_to(ends):
                break
            if self._merge.untimed:
                await asyncio.sleep(0)
                continue
            waits_s = self._merge.waits_s(now())
            if waits_s == 0:
                await asyncio.sleep(0)
            else:
                await self._wait(min(waits_s or SETTLE_S, SETTLE_S), stop)
        await self._settle(sender, positions)

    async def _wait(self, seconds: float, stop: asyncio.Event) -> None:
        self._news.clear()
        waiting = [asyncio.ensure_future(self._news.wait()), asyncio.ensure_future(stop.wait())]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    async def _map_slice(self, sender: Sender, settle: Callable[[], Awaitable[None]]) -> None:
        """Map the records that may be taken now, for at most a moment."""
        merge, began = self._merge, time.perf_counter()
        while time.perf_counter() - began < _SLICE_S:
            for place in merge.untimed:
                await self._decode(place, settle)
            if merge.waits_s(time.monotonic()) != 0:
                return
            place, raw = merge.pop()
            await self._map(sender, place, raw)

    async def _decode(self, place: TopicPartition, settle: Callable[[], Awaitable[None]]) -> None:
        """Decode a partition's first record for all its sections; set its time."""
        raw = self._merge.head(place)
        record = _origin_record(raw)
        found: list[tuple[_Section, list[Decoded] | InvalidRecordError]] = []
        unread = unread_batch(raw.headers)
        time_ms: int | None = None
        for section in self._of_topic[place.topic]:
            try:
                if unread is not None:
                    raise unread.error()
                decoded = section.format.decode_now(record)
                if decoded is None:
                    decoded = await decode_patiently(section.format, record, before=settle)
                found.append((section, decoded))
                if time_ms is None and decoded:
                    time_ms = section.mapping.time_of(record, decoded)
            except InvalidRecordError as error:
                found.append((section, error))
        self._decoded[place] = found
        self._merge.set_time(place, time_ms)

    async def _map(self, sender: Sender, place: TopicPartition, raw: ConsumerRecord) -> None:
        record = _origin_record(raw)
        made: list[Encoded] = []
        is_dead = False
        for section, decoded in self._decoded.pop(place):
            try:
                if isinstance(decoded, InvalidRecordError):
                    raise decoded
                own = [encoded(mapped, self._most_bytes) for mapped in section.mapping.map(record, decoded)]
                section.board.counts["mapped" if own else "filtered"] += 1
                made += own
                if own:
                    section.board.last_time_ms = own[-1].time_ms
            except InvalidRecordError as error:
                section.board.counts["dead"] += 1
                is_dead = True
                await sender.send_dead_letter(place, record, section.at, error)
        self._n_mapped += 1
        if made:
            await sender.send(place, record, made)
        elif not is_dead:
            sender.pass_over(place, record)

    async def _settle(self, sender: Sender, positions: dict[TopicPartition, Position]) -> None:
        done = await sender.settle()
        positions.update(done)
        await self._commit(done)
        self._show_lags()

    async def _commit(self, positions: dict[TopicPartition, Position]) -> None:
        for reader in self._readers.values():
            await reader.commit({place: at for place, at in positions.items() if self._reader_of[place] is reader})

    def _show_lags(self) -> None:
        for name, reader in self._readers.items():
            lags = {(place.topic, place.partition): self._merge.lag(place) for place in reader.starts}
            self._sections[name].board.lags = lags


def _origin_record(raw: ConsumerRecord) -> OriginRecord:
    headers = () if not raw.headers or unread_batch(raw.headers) is not None else raw.headers
    return OriginRecord(raw.topic, raw.partition, raw.offset, raw.timestamp or 0, raw.key, raw.value, headers)


async def ends_quietly(task: asyncio.Future[Any], within_s: float) -> None:
    """Wait for a task that was told to end, and cancel it if it is late."""
    with suppress(Exception, asyncio.CancelledError):
        async with asyncio.timeout(within_s):
            await asyncio.shield(task)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=within_s)


FAILURES = (KafkaError, OSError, TimeoutError)
"""What a run may end with because of brokers."""


async def _do_nothing() -> None:
    pass


async def decode_patiently(
    format_: Format,
    record: OriginRecord,
    *,
    before: Callable[[], Awaitable[None]] = _do_nothing,
    first_s: float = 0.2,
    longest_s: float = 10.0,
) -> list[Decoded]:
    """Return the objects in a record, however long its schema takes.

    Meanwhile the record's partition waits.

    Parameters
    ----------
    before
        Called once where it has to be waited for, before that: whoever waits may be stopped meanwhile.
    first_s, longest_s
        Seconds between two attempts, at first and at last; up to a second is added at random, so that not all
        partitions and processes ask at the same time.

    Raises
    ------
    InvalidRecordError
        The record cannot be used: it is a dead letter.
    """
    found = format_.decode_now(record)
    if found is not None:
        return found
    import stamina
    from stamina.instrumentation import set_on_retry_hooks

    # Its own hooks would write a line for each attempt, and count in a registry of metrics that nobody reads.
    set_on_retry_hooks(())
    attempts = stamina.retry_context(
        on=SchemaUnavailableError,
        attempts=None,
        timeout=None,
        wait_initial=first_s,
        wait_max=longest_s,
        wait_jitter=min(1.0, longest_s),
    )
    where = f"{record.topic}, partition {record.partition}, offset {record.offset}"
    async for attempt in attempts:
        with attempt:
            try:
                found = await format_.decode(record)
            except SchemaUnavailableError as error:
                if attempt.num == 1:
                    logger.warning("%s waits for its schema: %s; it is asked for again", where, error)
                    await before()
                raise
            if attempt.num > 1:
                logger.info("%s waits no longer, after %d attempts", where, attempt.num)
            return found
    raise AssertionError("attempts end with the answer alone")
