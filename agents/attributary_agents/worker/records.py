"""Records in and out, and the dead letters of unusable records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from attributary_topics import (
    ORIGIN_HEADER,
    DeadLetter,
    Source,
    SourceOrigin,
    decode_origin,
    event_time,
    find_header,
    fit_dead_letter,
)

from ..config.settings import Config
from ..kafka.batches import UnreadBatch, unread_batch


@dataclass(slots=True)
class Record:
    """Record of the observations or models topic, not to be changed.

    Its fields are as Kafka has them.

    Not frozen: one is made for each observation, and setting the fields of a frozen one takes four times as long.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    unread: UnreadBatch | None = None
    """What it stands for, where it is not a record but the end of a batch that cannot be read."""
    time_ms: int | None = None
    """Its time as it says itself, once it has been read; None where it says none."""
    _source: Source | None = field(default=None, init=False, repr=False, compare=False)

    def check_read(self) -> None:
        """Raise InvalidRecordError if the record is an unreadable batch.

        Such a record stands for a batch that cannot be read.
        """
        if self.unread is not None:
            raise self.unread.error()

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"

    @property
    def source(self) -> Source:
        """The record's place, as the events that follow from it name it."""
        if self._source is not None:
            return self._source
        if self.time_ms is None and not self.headers:
            self._source = Source(self.topic, self.partition, self.offset)
        else:
            time = None if self.time_ms is None else event_time(self.time_ms)
            origin = _origin(self.headers) if self.headers else None
            self._source = Source(self.topic, self.partition, self.offset, origin=origin, event_time=time)
        return self._source


def _origin(headers: Sequence[tuple[str, bytes | None]]) -> SourceOrigin | None:
    """Return where a mapped record comes from, or None.

    None where it was written to our topic by its producer, or where the header cannot be read.
    """
    value = find_header(headers, ORIGIN_HEADER)
    try:
        origin = None if value is None else decode_origin(value)
    except ValueError:
        return None
    return None if origin is None else SourceOrigin(origin.topic, origin.partition, origin.offset)


def record_of(message: Any) -> Record:
    """Return the record that Faust's message stands for."""
    headers = message.headers
    pairs = list(headers.items() if hasattr(headers, "items") else headers or [])
    unread = unread_batch(pairs)
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=round(message.timestamp * 1000) if message.timestamp else 0,
        key=message.key,
        value=message.value,
        headers=[] if unread is not None else pairs,
        unread=unread,
    )


def record_from_client(record: Any) -> Record:
    """Convert a record of Kafka's client that Faust has not seen yet.

    The result is the same that `record_of` makes of it after Faust.

    Parameters
    ----------
    record
        aiokafka's `ConsumerRecord`: its timestamp is in milliseconds, its headers are a tuple of pairs.
    """
    headers = record.headers
    unread = unread_batch(headers) if headers else None
    return Record(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp or 0,
        record.key,
        record.value,
        () if unread is not None or not headers else headers,
        unread,
    )


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Record to be sent."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    offset: int = field(default=-1, compare=False)
    """Offset of the record that it follows from."""
    model_id: str | None = field(default=None, compare=False)
    """The model whose state contains that record and has it skipped when it is repeated; None where no state does."""


def dead_letter(
    record: Record, stage: str, reason: str, error: Exception, config: Config, model_id: str | None = None
) -> Outgoing:
    """Return the dead letter of a record that cannot be used.

    Parameters
    ----------
    model_id
        The model whose state contains the record, if one does.
    """
    letter = fit_dead_letter(
        DeadLetter(
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            source=record.source,
            timestamp_ms=record.timestamp_ms,
            stage=stage,
            reason=reason,
            error=type(error).__name__,
            message=str(error)[:1000],
        ),
        config.kafka.max_record_bytes,
    )
    # aiokafka sends no record without both: Kafka takes one, from other producers, and a batch has neither.
    value = b"" if letter.key is None and letter.value is None else letter.value
    return Outgoing(config.kafka.topics.dead_letters, letter.key, value, letter.all_headers(), record.offset, model_id)
