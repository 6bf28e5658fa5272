"""Says what a format is, and what it makes of a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from attributary_topics import InvalidRecordError, find_header

from ..records import OriginRecord


@dataclass(slots=True, frozen=True)
class Decoded:
    """One object that a record's value gives.

    Attributes
    ----------
    value
        Plain data, as of JSON: what expressions read.
    kind
        "observation"; of `open-inference` "request" or "response".
    id, time, x
        What the format itself says of these roles, where the source does not: an id to join by, milliseconds since
        the epoch or text as RFC 3339 has it, and the features.
    """

    value: dict[str, Any]
    kind: str = "observation"
    id: str | int | None = None
    time: int | str | None = None
    x: dict[str, Any] | None = None


class Format(Protocol):
    """Makes objects of the values of one source's records. A record without a value is none and gives no object."""

    @property
    def is_waiting(self) -> bool:
        """Whether a schema cannot be fetched now: the metric `source_waiting_registry`."""
        ...

    async def start(self) -> None:
        """Ask whatever the format needs whether it is there; raises ConfigError where it is not."""
        ...

    def decode_now(self, record: OriginRecord) -> list[Decoded] | None:
        """Return the objects in a record; None where something has to be fetched first, which `decode` does.

        Raises
        ------
        InvalidRecordError
            The record cannot be used: it is a dead letter.
        """
        ...

    async def decode(self, record: OriginRecord) -> list[Decoded]:
        """Return the objects in a record, and fetch what is needed for it.

        Raises
        ------
        InvalidRecordError
            The record cannot be used: it is a dead letter.
        SchemaUnavailableError
            What is needed cannot be fetched now: ask again later, as `waiting.decode_patiently` does.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class OwnFormat:
    """Is the base of formats that need nothing from elsewhere: they decode at once."""

    is_waiting = False

    async def start(self) -> None:
        """Have nothing to ask for."""

    def decode_now(self, record: OriginRecord) -> list[Decoded]:
        """Return the objects in a record."""
        raise NotImplementedError

    async def decode(self, record: OriginRecord) -> list[Decoded]:
        """Return the objects in a record."""
        return self.decode_now(record)

    async def close(self) -> None:
        """Have nothing to close."""


def header(headers: Sequence[tuple[str, bytes | None]], name: str) -> str | None:
    """Return the text of a record's header, of which the last counts; None where it is not there or has no value."""
    value = find_header(headers, name)
    return None if value is None else value.decode("utf-8", "replace")


def as_object(value: Any, field: str = "value") -> dict[str, Any]:
    """Return the value; raises InvalidRecordError `wrong_type` where it is no object."""
    if not isinstance(value, dict):
        raise InvalidRecordError("wrong_type", field, "an object", value)
    return value
