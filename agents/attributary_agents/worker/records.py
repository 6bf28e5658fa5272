"""Records as they come and go, and the dead letter of one that cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from attributary_topics import DeadLetter, Source, fit_dead_letter

from ..config.settings import Config

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the observations or the models topic, as Kafka has it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()

    @property
    def source(self) -> Source:
        """Where it is."""
        return Source(self.topic, self.partition, self.offset)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to send."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def dead_letter(record: Record, stage: str, reason: str, error: Exception, config: Config) -> Outgoing:
    """The dead letter of a record, which is logged too."""
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
