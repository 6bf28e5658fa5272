"""Dead letters: the original record untouched, and headers that say where it was and why it is here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .events import Source

DEAD_LETTER_HEADER_PREFIX = "attributary-dlq-"
"""Ours start with this, so that the original headers can be told apart and replayed as they were."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be used.

    Attributes
    ----------
    key, value, headers
        The original's, untouched.
    stage
        Where it failed: `decode`, `predict`, `explain`, `learn` or `change`; `deploy` for a new version of a model.
    reason
        One of `REASONS`.
    error, message
        Class and text of the exception.
    timestamp_ms
        Kafka's timestamp of the original, milliseconds since the epoch.
    truncated_bytes
        Bytes cut off the value's end, where the original is larger than a dead letter can be.
    """

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    source: Source
    timestamp_ms: int
    stage: str
    reason: str
    error: str
    message: str
    attempts: int = 1
    truncated_bytes: int = 0

    def all_headers(self) -> list[tuple[str, bytes | None]]:
        """The original headers, then ours."""
        ours = {
            "id": f"{self.source.topic}:{self.source.partition}:{self.source.offset}",
            "stage": self.stage,
            "reason": self.reason,
            "error": self.error,
            "message": self.message,
            "topic": self.source.topic,
            "partition": str(self.source.partition),
            "offset": str(self.source.offset),
            "timestamp-ms": str(self.timestamp_ms),
            "attempts": str(self.attempts),
        }
        if self.truncated_bytes:
            ours["truncated-bytes"] = str(self.truncated_bytes)
        encoded = [(DEAD_LETTER_HEADER_PREFIX + name, text.encode("utf-8", "replace")) for name, text in ours.items()]
        return [*self.headers, *encoded]


def fit_dead_letter(letter: DeadLetter, max_bytes: int) -> DeadLetter:
    """The letter itself if it fits into a record of `max_bytes`, else with the end of its value cut off.

    Refusing the letter would stop the worker on a record that somebody else wrote: the cut one says how much is
    missing, and the source topic still has the original.
    """
    overhead = 1024 + len(letter.key or b"") + sum(len(k) + len(v or b"") for k, v in letter.all_headers())
    room = max(max_bytes - overhead, 0)
    excess = len(letter.value or b"") - room
    if excess <= 0 or letter.value is None:
        return letter
    return replace(letter, value=letter.value[:room], truncated_bytes=excess)
