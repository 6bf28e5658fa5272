"""Makes dead letters: the original record untouched, and headers that say where it was and why it was refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .events import Source

DEAD_LETTER_HEADER_PREFIX = "attributary-dlq-"
"""Prefix of the added headers, so that the original headers can be told apart and replayed as they were."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Holds a record that could not be used.

    Attributes
    ----------
    key, value, headers
        The original's, untouched; in a header's name, what is no UTF-8 has been escaped (`\\xff`).
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
    truncated_key_bytes, truncated_headers
        Bytes cut off the key's end, and headers left out, where it is too large even without a value.
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
    truncated_key_bytes: int = 0
    truncated_headers: int = 0

    def all_headers(self) -> list[tuple[str, bytes | None]]:
        """The original headers, then those that are added."""
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
        for name in ("truncated_bytes", "truncated_key_bytes", "truncated_headers"):
            if n := getattr(self, name):
                ours[name.replace("_", "-")] = str(n)
        encoded = [(DEAD_LETTER_HEADER_PREFIX + name, text.encode("utf-8", "replace")) for name, text in ours.items()]
        return [*self.headers, *encoded]


_FRAME_BYTES = 1024
"""Upper bound of the bytes that Kafka adds to a record and its batch."""


def fit_dead_letter(letter: DeadLetter, max_bytes: int) -> DeadLetter:
    """Return the letter if it fits into a record of `max_bytes`, else one with the end of its value cut off.

    Where key and headers alone are too large, the last headers and, if need be, the end of the key go too.

    Refusing the letter would stop the worker on a record that somebody else wrote: the cut one says how much is
    missing, and the source topic still has the original. Our own headers are never cut.
    """
    room = max_bytes - _FRAME_BYTES - _size(replace(letter, headers=[]).all_headers())
    original, key = letter.headers, letter.key or b""
    if len(key) + _size(original) > room:  # hardly ever: a key or headers as large as a whole record may be
        key = key[: max(room, 0)]
        left, kept = room - len(key), 0
        while kept < len(original) and (left := left - _size(original[kept : kept + 1])) >= 0:
            kept += 1
        letter = replace(
            letter,
            key=None if letter.key is None else key,
            headers=original[:kept],
            truncated_key_bytes=len(letter.key or b"") - len(key),
            truncated_headers=len(original) - kept,
        )
    room = max(room - len(key) - _size(letter.headers), 0)
    excess = len(letter.value or b"") - room
    if excess <= 0 or letter.value is None:
        return letter
    return replace(letter, value=letter.value[:room], truncated_bytes=excess)


def _size(headers: list[tuple[str, bytes | None]]) -> int:
    # Each header has two lengths of up to five bytes beside name and value.
    return sum(len(name.encode("utf-8", "replace")) + len(value or b"") + 10 for name, value in headers)
