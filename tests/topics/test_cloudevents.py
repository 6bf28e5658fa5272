"""An event's id and headers follow from its source record alone."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attributary_topics import Source, event_headers, event_id

SOURCE = Source("attributary.observations.v1", 3, 17)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_the_id_is_model_topic_partition_offset_and_number():
    assert event_id("credit", SOURCE) == "credit:attributary.observations.v1:3:17"
    assert event_id("credit", SOURCE, 0) == "credit:attributary.observations.v1:3:17:0"
    assert event_id("credit", SOURCE, 1) == "credit:attributary.observations.v1:3:17:1"


def test_different_events_have_different_ids():
    sources = [Source(topic, p, o) for topic in ("a.v1", "b.v1") for p in (0, 1, 11) for o in (0, 1, 10, 11)]
    ids = [event_id(model, source, n) for model in ("m", "n", "m:n") for source in sources for n in (0, 1, 11)]
    assert len(set(ids)) == len(ids)


def test_the_headers_are_cloudevents_1_0_in_binary_mode():
    headers = event_headers("change", "krédit", SOURCE, 1_700_000_000_123, 2)
    assert headers == [
        ("ce_specversion", b"1.0"),
        ("ce_id", "krédit:attributary.observations.v1:3:17:2".encode()),
        ("ce_source", b"/attributary/attributary.observations.v1"),
        ("ce_type", b"attributary.change.v1"),
        ("ce_subject", "krédit".encode()),
        ("ce_time", b"2023-11-14T22:13:20.123Z"),
        ("content-type", b"application/json"),
    ]


@given(st.integers(0, 253_402_300_799_999))
@example(1_700_000_000_001)
@example(253_402_300_799_999)
def test_the_time_is_the_source_records_to_the_millisecond(timestamp_ms):
    time = dict(event_headers("change", "m", SOURCE, timestamp_ms))["ce_time"].decode()
    parsed = datetime.fromisoformat(time)
    assert time.endswith("Z")
    assert (parsed - EPOCH) // timedelta(milliseconds=1) == timestamp_ms  # integers: exact


@pytest.mark.parametrize("timestamp_ms", [-1, 1_700_000_000_000_000, 1_700_000_000_000_000_000, 2**63 - 1, -(2**63)])
def test_a_timestamp_that_is_no_time_does_not_stop_the_event(timestamp_ms):
    # Producers set timestamps: microseconds for milliseconds are common, and Kafka takes any 64 bits. -1 is "none".
    headers = dict(event_headers("change", "m", SOURCE, timestamp_ms))
    assert headers["ce_id"] == b"m:attributary.observations.v1:3:17"
