"""Writer of mapped records to our topics, in order, with acknowledgement."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from aiokafka import AIOKafkaProducer, TopicPartition

from attributary_topics import DeadLetter, InvalidRecordError, Source, fit_dead_letter
from attributary_topics.deadletters import DEAD_LETTER_HEADER_PREFIX
from attributary_topics.origins import ORIGIN_HEADER, RECORD_HEADER, Origin

from ...config.settings import Config
from ...kafka.observations import default_partition
from ..records import Mapped, OriginRecord
from .positions import Position

logger = logging.getLogger(__name__)

_MOST_TARGETS = 100_000
"""Model ids whose partition is remembered."""


class Encoded(NamedTuple):
    """A record of our topic as it is sent."""

    model_id: str
    kind: str
    time_ms: int
    value: bytes


def encoded(mapped: Mapped, most_bytes: int) -> Encoded:
    """Return a record as it is sent.

    Raises
    ------
    InvalidRecordError
        It is longer than an observation may be.
    """
    try:
        value = orjson.dumps(mapped.fields)
    except orjson.JSONEncodeError:  # an integer beyond 64 bits, half a surrogate pair
        value = json.dumps(mapped.fields).encode()
    if len(value) > most_bytes:
        raise InvalidRecordError("too_large", "value", f"at most {most_bytes} bytes when it is mapped", len(value))
    return Encoded(mapped.model_id, mapped.kind, mapped.time_ms, value)


class Sender:
    """Sender for a single run of the mapper; a failed send ends the run.

    Every origin record says what its run has sent before it from the same origin partition to the same partition of
    ours, by which a worker takes it once (`state/deduplication.py`).

    Parameters
    ----------
    n_targets
        Partitions of our topic.
    starts
        Where this run has begun.
    retention_ms
        After how long brokers delete records of our topic; None: never.
    """

    def __init__(
        self,
        config: Config,
        producer: AIOKafkaProducer,
        n_targets: int,
        starts: dict[TopicPartition, Position],
        retention_ms: int | None = None,
    ) -> None:
        self._config, self._producer, self._n_targets = config, producer, n_targets
        self._topic, self._letters = config.kafka.topics.observations, config.kafka.topics.dead_letters
        self._starts = starts
        self._names = {place: at.name(place.topic) for place, at in starts.items()}
        self._sent: dict[tuple[TopicPartition, int], tuple[int, int]] = {}
        self._targets: dict[str, int] = {}
        self._under_way: list[asyncio.Future[Any]] = []
        self._done: dict[TopicPartition, int] = {}
        self._said: set[tuple[str, str]] = set()
        self._retention_ms = retention_ms

    @property
    def n_under_way(self) -> int:
        """Records that have been sent since the last `settle`."""
        return len(self._under_way)

    def _target(self, record: OriginRecord, model_id: str) -> int:
        if model_id in self._config.sharded:  # its observations may lie anywhere: spread, and the same in every run
            return (record.partition + record.offset) % self._n_targets
        target = self._targets.get(model_id)
        if target is None:
            if len(self._targets) >= _MOST_TARGETS:
                self._targets.clear()
            target = self._targets[model_id] = default_partition(model_id, self._n_targets)
        return target

    async def send(self, place: TopicPartition, record: OriginRecord, made: Sequence[Encoded]) -> None:
        """Send the records made of an origin record, in order."""
        # A broker refuses what is more than an hour ahead of it.
        now_ms = round(time.time() * 1000)
        timestamp_ms = min(max(record.timestamp_ms, 0), now_ms)
        if made and self._retention_ms is not None and timestamp_ms < now_ms - self._retention_ms:
            self._warn_of_retention(place)
        for n, mapped in enumerate(made):
            target = self._target(record, mapped.model_id)
            before = self._sent.get((place, target))
            first = before is None
            previous, previous_n = (self._starts[place].offset, 0) if before is None else before
            origin = Origin(self._names[place], place.partition, record.offset, n, first, previous, previous_n)
            self._sent[place, target] = (record.offset, n)
            headers = [(ORIGIN_HEADER, origin.encode()), (RECORD_HEADER, mapped.kind.encode())]
            self._follow(
                await self._producer.send(
                    self._topic,
                    mapped.value,
                    key=mapped.model_id.encode(),
                    partition=target,
                    timestamp_ms=timestamp_ms,
                    headers=headers,
                )
            )
        self._done[place] = record.offset + 1

    def _follow(self, sent: asyncio.Future[Any]) -> None:
        # The first failure ends the run; asyncio would log each of the others.
        sent.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        self._under_way.append(sent)

    def _warn_of_retention(self, place: TopicPartition) -> None:
        logger.warning(
            "records of %s are older than retention.ms of %s, %d: brokers may delete them before a worker reads them; "
            "set that to -1, or to more than their age, until they are read (docs/attach/mapper.md)",
            place.topic, self._topic, self._retention_ms,
        )  # fmt: skip
        self._retention_ms = None  # said once in a run

    async def send_dead_letter(
        self, place: TopicPartition, record: OriginRecord, section: str, error: InvalidRecordError
    ) -> None:
        """Send the dead letter of a record that cannot be mapped.

        It has the id of the record's place, so that it is the same when it is sent twice.
        """
        if (section, error.reason) not in self._said:
            self._said.add((section, error.reason))
            logger.warning(
                "%s: a record becomes a dead letter (%s; further ones of this reason are counted only): %s[%d]@%d: %s",
                section, error.reason, record.topic, record.partition, record.offset, error,
            )  # fmt: skip
        letter = fit_dead_letter(
            DeadLetter(
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                source=Source(record.topic, record.partition, record.offset),
                timestamp_ms=record.timestamp_ms,
                stage="map",
                reason=error.reason,
                error=type(error).__name__,
                message=str(error)[:1000],
            ),
            self._config.kafka.max_record_bytes - 1024,
        )
        name = section.partition(".")[2]
        headers = [*letter.all_headers(), (DEAD_LETTER_HEADER_PREFIX + "source", name.encode())]
        value = b"" if letter.key is None and letter.value is None else letter.value
        self._follow(await self._producer.send(self._letters, value, key=letter.key, headers=headers))
        self._done[place] = record.offset + 1

    def pass_over(self, place: TopicPartition, record: OriginRecord) -> None:
        """Note that nothing is made of a record."""
        self._done[place] = record.offset + 1

    async def settle(self) -> dict[TopicPartition, Position]:
        """Wait for all acknowledgements; return the positions to commit.

        Raises
        ------
        KafkaError
            Something was not acknowledged: none of it may be committed.
        """
        under_way, self._under_way = self._under_way, []
        done, self._done = self._done, {}
        if under_way:
            await self._producer.flush()
            for sent in under_way:
                sent.result()
        return {
            place: Position(offset, self._starts[place].topic_id, self._starts[place].run)
            for place, offset in done.items()
        }
