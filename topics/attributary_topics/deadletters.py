"""Dead letters: making and reading.

A dead letter is the original record untouched, with headers that say where it was and why it is refused.

One that is sent again is the original record and a header that names the dead letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .errors import InvalidRecordError
from .events import Source
from .origins import find_header

DEAD_LETTER_HEADER_PREFIX = "attributary-dlq-"
"""Prefix of the added headers, so that the original headers can be told apart and replayed as they were."""


REPLAYED_HEADER = "attributary-replayed"
"""Header of a record that has been a dead letter and is sent again: the id of the dead letter."""

_CUT = {
    "truncated_bytes": "bytes of its value",
    "truncated_key_bytes": "bytes of its key",
    "truncated_headers": "headers",
}


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

    @property
    def id(self) -> str:
        """Id of the letter: topic, partition and offset of its record.

        It is the same for every dead letter of the same record."""
        return f"{self.source.topic}:{self.source.partition}:{self.source.offset}"

    @property
    def lacks(self) -> str:
        """Words for the cut of the original; empty where it is whole."""
        counted = {name: getattr(self, name) for name in _CUT}
        return ", ".join(f"{n} {_CUT[name]}" for name, n in counted.items() if n)

    def replayed_headers(self) -> list[tuple[str, bytes | None]]:
        """Headers of the original as it is sent again, with this letter's id."""
        kept = [(name, value) for name, value in self.headers if name != REPLAYED_HEADER]
        return [*kept, (REPLAYED_HEADER, self.id.encode("utf-8", "replace"))]

    def all_headers(self) -> list[tuple[str, bytes | None]]:
        """Original headers, then the added headers."""
        ours = {
            "id": self.id,
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
        for name in _CUT:
            if n := getattr(self, name):
                ours[name.replace("_", "-")] = str(n)
        encoded = [(DEAD_LETTER_HEADER_PREFIX + name, text.encode("utf-8", "replace")) for name, text in ours.items()]
        return [*self.headers, *encoded]


def decode_dead_letter(
    key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]
) -> DeadLetter:
    """Read a record of the topic of dead letters.

    Raises
    ------
    InvalidRecordError
        It is no dead letter: a header of ours is missing, or is no number where there has to be one.
    """
    # The last of each name: an original that has been a dead letter before, and was copied as it is, has them, too.
    ours = {
        name.removeprefix(DEAD_LETTER_HEADER_PREFIX): (text or b"").decode("utf-8", "replace")
        for name, text in headers
        if name.startswith(DEAD_LETTER_HEADER_PREFIX)
    }
    return DeadLetter(
        key=key,
        value=value,
        headers=[(name, text) for name, text in headers if not name.startswith(DEAD_LETTER_HEADER_PREFIX)],
        source=Source(_text(ours, "topic"), _number(ours, "partition"), _number(ours, "offset")),
        timestamp_ms=_number(ours, "timestamp-ms"),
        stage=_text(ours, "stage"),
        reason=_text(ours, "reason"),
        error=_text(ours, "error"),
        message=_text(ours, "message"),
        attempts=_number(ours, "attempts"),
        **{name: _number(ours, name.replace("_", "-"), 0) for name in _CUT},
    )


def replayed_id(headers: Sequence[tuple[str, bytes | None]]) -> bytes | None:
    """Return the id of the dead letter that a record has been, or None."""
    return find_header(headers, REPLAYED_HEADER)


def _text(ours: dict[str, str], name: str) -> str:
    if name not in ours:
        raise InvalidRecordError("wrong_type", DEAD_LETTER_HEADER_PREFIX + name, "a header of a dead letter", None)
    return ours[name]


def _number(ours: dict[str, str], name: str, default: int | None = None) -> int:
    if default is not None and name not in ours:
        return default
    try:
        return int(_text(ours, name))
    except ValueError:
        raise InvalidRecordError("wrong_type", DEAD_LETTER_HEADER_PREFIX + name, "an integer", ours[name]) from None


_FRAME_BYTES = 1024
"""Upper bound of the bytes that Kafka adds to a record and its batch."""


def fit_dead_letter(letter: DeadLetter, max_bytes: int) -> DeadLetter:
    """Return the letter, cut so that it fits into a record of `max_bytes`.

    The end of its value is cut off where it is too long.

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
