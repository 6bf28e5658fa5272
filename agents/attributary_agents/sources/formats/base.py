"""Interface of formats, and the objects that they decode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from attributary_topics import InvalidRecordError, find_header
from attributary_topics.codec import decode_json

from ..records import OriginRecord


@dataclass(slots=True, frozen=True)
class Decoded:
    """A single object decoded from a record's value.

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
    """Decoder of the values of a single source's records.

    A record without a value gives no object.
    """

    @property
    def is_waiting(self) -> bool:
        """Whether a schema cannot be fetched now.

        It is the metric `source_waiting_registry`.
        """
        ...

    async def start(self) -> None:
        """Check that all services the format needs answer; else raise ConfigError."""
        ...

    def decode_now(self, record: OriginRecord) -> list[Decoded] | None:
        """Return the objects in a record; None if `decode` must fetch a schema.

        Raises
        ------
        InvalidRecordError
            The record cannot be used: it is a dead letter.
        """
        ...

    async def decode(self, record: OriginRecord) -> list[Decoded]:
        """Return the objects in a record, fetching its schema if needed.

        Raises
        ------
        InvalidRecordError
            The record cannot be used: it is a dead letter.
        SchemaUnavailableError
            What is needed cannot be fetched now: ask again later, as `mapper.decode_patiently` does.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class OwnFormat:
    """Base of formats that need no service: they decode at once."""

    is_waiting = False

    async def start(self) -> None:
        """Do nothing: no service is needed."""

    def decode_now(self, record: OriginRecord) -> list[Decoded]:
        """Return the objects in a record."""
        raise NotImplementedError

    async def decode(self, record: OriginRecord) -> list[Decoded]:
        """Return the objects in a record."""
        return self.decode_now(record)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


class JsonFormat(OwnFormat):
    """Reads JSON; NaN in it, as Python's `json` writes it, is null."""

    def decode_now(self, record: OriginRecord) -> list[Decoded]:
        """Return the JSON object in a record's value."""
        if not record.value:
            return []
        try:
            value = orjson.loads(record.value)
        except orjson.JSONDecodeError:
            value = decode_json(record.value, nan_is_null=True)
        return [Decoded(as_object(value))]


def header(headers: Sequence[tuple[str, bytes | None]], name: str) -> str | None:
    """Return a header's text; None if it is missing or has no value.

    Of several headers of the name the last counts.
    """
    value = find_header(headers, name)
    return None if value is None else value.decode("utf-8", "replace")


def as_object(value: Any, field: str = "value") -> dict[str, Any]:
    """Return the value; raise InvalidRecordError `wrong_type` if no object."""
    if not isinstance(value, dict):
        raise InvalidRecordError("wrong_type", field, "an object", value)
    return value
