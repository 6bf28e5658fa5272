"""Origin of a mapped record: the header that says where it comes from.

Says where a mapped record comes from, and which records on our topic are no observations.

A mapper copies records of topics that are not ours to the observations topic. Its header tells the worker enough to
take each of them once, whatever mappers are killed, repeated or woken (go-back-N): see `Origin`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_LONGEST_TOPIC = 300
"""Longest name of a topic, 249, and the run behind it."""

ORIGIN_HEADER = "attributary-origin"
RECORD_HEADER = "attributary-record"

OBSERVATION, LABEL, REQUEST, RESPONSE = "observation", "label", "request", "response"
RECORD_KINDS = (OBSERVATION, LABEL, REQUEST, RESPONSE)
"""What a record of the observations topic can be; without the header it is an observation."""


class OriginPlace(NamedTuple):
    """Origin partition: topic and number.

    A run that reads the topic again stands behind `@` in the topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a mapped record, and the record its mapper sent before it.

    Attributes
    ----------
    n
        Which of the records made of that one: an observation can be for several models, a record of several rows.
    is_first
        Whether the mapper's run has sent nothing before from this origin partition to this partition of ours.
    previous
        Where it is the first: the offset at which the run began. Else the offset that it sent before this one.
    previous_n
        Which of the records made of that offset was sent before this one.
    """

    topic: str
    partition: int
    offset: int
    n: int
    is_first: bool
    previous: int
    previous_n: int = 0

    @property
    def place(self) -> OriginPlace:
        """The origin partition."""
        return OriginPlace(self.topic, self.partition)

    def encode(self) -> bytes:
        """Return the header's value."""
        kind = "s" if self.is_first else "r"
        before = f"{self.previous}.{self.previous_n}" if self.previous_n else f"{self.previous}"
        return f"{self.topic}:{self.partition}:{self.offset}:{self.n}:{kind}:{before}".encode()


def decode_origin(value: bytes) -> Origin:
    """Read the value of the header `attributary-origin`.

    Raises
    ------
    ValueError
        It is none.
    """
    try:
        topic, partition, offset, n, kind, previous = value.decode().rsplit(":", 5)
        before, dot, before_n = previous.partition(".")
        if not topic or len(topic) > _LONGEST_TOPIC or kind not in ("s", "r"):
            raise ValueError
        return Origin(
            topic,
            _number(partition),
            _number(offset),
            _number(n),
            kind == "s",
            _number(before),
            _number(before_n) if dot else 0,
        )
    except ValueError:
        raise ValueError("expected topic:partition:offset:n:s or r:previous") from None


def _number(text: str) -> int:
    # int() alone takes signs, blanks and underscores; an offset has at most 19 digits.
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise ValueError
    return int(text)


def find_header(headers: Sequence[tuple[str, bytes | None]], name: str) -> bytes | None:
    """Return the value of the last header of this name, or None."""
    return next((value for known, value in reversed(headers) if known == name), None)
