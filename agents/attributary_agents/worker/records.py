"""Records as they come in and go out, and the dead letter of one that cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from attributary_topics import DeadLetter, Source, fit_dead_letter

from ..config.settings import Config

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Record:
    """One record of the observations or the models topic, as Kafka has it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()

    @cached_property
    def source(self) -> Source:
        """The record's place, as the events that follow from it name it."""
        return Source(self.topic, self.partition, self.offset)


def record_of(message: Any) -> Record:
    """Return the record that Faust's message stands for."""
    headers = message.headers
    pairs = headers.items() if hasattr(headers, "items") else headers or []
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=round(message.timestamp * 1000) if message.timestamp else 0,
        key=message.key,
        value=message.value,
        headers=[(name, value) for name, value in pairs],
    )


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to send."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def dead_letter(record: Record, stage: str, reason: str, error: Exception, config: Config) -> Outgoing:
    """Log that a record cannot be used, and return its dead letter."""
    where = f"{record.topic}[{record.partition}]@{record.offset}"
    logger.warning("dead letter %s: %s at %s: %s", where, reason, stage, error)
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
    return Outgoing(config.kafka.topics.dead_letters, letter.key, letter.value, letter.all_headers())
