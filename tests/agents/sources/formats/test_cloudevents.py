"""CloudEvents in binary and in structured mode; what makes none of a record."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from attributary_agents.sources.formats.base import Decoded
from attributary_agents.sources.formats.cloudevents import CloudEventsFormat
from attributary_topics import InvalidRecordError
from tests.agents.sources.formats.fake_registry import record

FORMAT = CloudEventsFormat()

# The example of the CloudEvents binding for Kafka, https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md
BINARY: list[tuple[str, bytes | None]] = [
    ("ce_specversion", b"1.0"),
    ("ce_type", b"com.example.someevent"),
    ("ce_source", b"/mycontext/subcontext"),
    ("ce_id", b"1234-1234-1234"),
    ("ce_time", b"2018-04-05T03:56:24Z"),
    ("content-type", b"application/json"),
]
STRUCTURED: list[tuple[str, bytes | None]] = [("content-type", b"application/cloudevents+json; charset=UTF-8")]
ENVELOPE: dict[str, Any] = {
    "specversion": "1.0",
    "type": "com.example.someevent",
    "source": "/mycontext/subcontext",
    "id": "1234-1234-1234",
    "time": "2018-04-05T03:56:24Z",
    "datacontenttype": "application/json",
}
DATA = {"age": 41, "job": None}
FOUND = [Decoded(DATA, id="1234-1234-1234", time="2018-04-05T03:56:24Z")]


def decoded(value: Any, headers: list[tuple[str, bytes | None]]) -> list[Decoded]:
    return FORMAT.decode_now(record(value if isinstance(value, bytes) else json.dumps(value).encode(), headers))


def test_binary_mode_has_attributes_in_headers() -> None:
    assert decoded(DATA, BINARY) == FOUND
    assert decoded(b'{"age": 41, "job": NaN}', BINARY) == FOUND


def test_structured_mode_has_them_around_the_data() -> None:
    assert decoded({**ENVELOPE, "data": DATA}, STRUCTURED) == FOUND
    in_base64 = base64.b64encode(json.dumps(DATA).encode()).decode()
    assert decoded({**ENVELOPE, "data_base64": in_base64}, STRUCTURED) == FOUND
    assert decoded({**ENVELOPE, "data": DATA}, [("Content-Type", b"application/cloudevents+json")]) == FOUND


def test_the_last_header_of_a_name_counts_and_time_may_be_missing() -> None:
    headers = [one for one in BINARY if one[0] != "ce_time"]
    assert decoded(DATA, [*headers, ("ce_id", b"2")]) == [Decoded(DATA, id="2")]


def test_an_event_without_data_is_no_observation() -> None:
    assert FORMAT.decode_now(record(None, BINARY)) == []
    assert decoded(ENVELOPE, STRUCTURED) == []


@pytest.mark.parametrize(
    ("value", "headers", "reason", "field"),
    [
        (DATA, [], "not_cloudevent", "headers"),
        (DATA, [("content-type", b"application/json")], "not_cloudevent", "headers"),
        (DATA, [one for one in BINARY if one[0] != "ce_id"], "not_cloudevent", "id"),
        (DATA, STRUCTURED, "not_cloudevent", "value"),
        ({**ENVELOPE, "id": 5}, STRUCTURED, "not_cloudevent", "id"),
        ({**ENVELOPE, "data_base64": "?"}, STRUCTURED, "not_cloudevent", "data_base64"),
        ([ENVELOPE], [("content-type", b"application/cloudevents-batch+json")], "not_cloudevent", "content-type"),
        (b"<xml/>", BINARY, "invalid_json", "value"),
        ([1], BINARY, "wrong_type", "data"),
        ({**ENVELOPE, "data": "text"}, STRUCTURED, "wrong_type", "data"),
        (b"{", STRUCTURED, "invalid_json", "value"),
    ],
)
def test_what_is_no_event_is_a_dead_letter(
    value: Any, headers: list[tuple[str, bytes | None]], reason: str, field: str
) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        decoded(value, headers)
    assert (caught.value.reason, caught.value.field) == (reason, field)
