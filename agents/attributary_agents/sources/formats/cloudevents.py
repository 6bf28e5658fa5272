"""CloudEvents 1.0 of Kafka, in binary and in structured mode.

In binary mode the attributes are headers.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, NamedTuple

from attributary_topics import InvalidRecordError
from attributary_topics.codec import decode_json

from ..records import OriginRecord
from .base import Decoded, OwnFormat, as_object, header

STRUCTURED = "application/cloudevents"
"""Beginning of the content types of events that are in the value as a whole."""


class Event(NamedTuple):
    """The attributes of an event that are used, and its data."""

    id: str | None
    type: str | None
    time: str | None
    data: Any
    """Bytes in binary mode; decoded in structured mode."""


def content_type(record: OriginRecord) -> str:
    """Return a record's content type in lower case; empty where it has none."""
    for name, value in record.headers:
        if value is not None and name.lower() == "content-type":
            return value.decode("utf-8", "replace").lower()
    return ""


def read_event(record: OriginRecord) -> Event | None:
    """Return the event in a record with a value; None if it is no event.

    Raises
    ------
    InvalidRecordError
        It says that it is one, and cannot be read.
    """
    if header(record.headers, "ce_specversion") is not None:
        event_id, kind, time = (header(record.headers, f"ce_{name}") for name in ("id", "type", "time"))
        return Event(event_id, kind, time, record.value)
    content = content_type(record)
    if not content.startswith(STRUCTURED):
        return None
    if not content.startswith(f"{STRUCTURED}+json"):
        raise InvalidRecordError("not_cloudevent", "content-type", f"one event as {STRUCTURED}+json", content)
    event = decode_json(record.value or b"", nan_is_null=True)
    if not isinstance(event, dict) or "specversion" not in event:
        raise InvalidRecordError("not_cloudevent", "value", "an object with specversion", event)
    event_id, kind, time = (_text(event, name) for name in ("id", "type", "time"))
    return Event(event_id, kind, time, _data(event))


def _text(event: dict[str, Any], name: str) -> str | None:
    value = event.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidRecordError("not_cloudevent", name, "text", value)
    return value


def _data(event: dict[str, Any]) -> Any:
    if (encoded := event.get("data_base64")) is None:
        return event.get("data")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise InvalidRecordError("not_cloudevent", "data_base64", "text in base64", encoded) from None


class CloudEventsFormat(OwnFormat):
    """Format of CloudEvents whose data is a JSON object.

    The id and time of the event are those of the observation.
    """

    def decode_now(self, record: OriginRecord) -> list[Decoded]:
        """Return the data of the event."""
        if not record.value:
            return []
        event = read_event(record)
        if event is None:
            where = [name for name, _ in record.headers]
            expected = f"a CloudEvent: a header ce_specversion, or content-type {STRUCTURED}+json"
            raise InvalidRecordError("not_cloudevent", "headers", expected, where)
        if event.id is None:
            raise InvalidRecordError("not_cloudevent", "id", "an id, which every CloudEvent has", None)
        data = decode_json(event.data, nan_is_null=True) if isinstance(event.data, bytes) else event.data
        if data is None:
            return []
        return [Decoded(as_object(data, "data"), id=event.id, time=event.time)]
