"""Records as Faust's messages give them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from faust.transport.drivers.aiokafka import Consumer
from faust.types import TP

from attributary_agents.kafka.batches import MARK, UnreadBatch
from attributary_agents.worker.records import Record, record_from_client, record_of
from attributary_topics import Source


@pytest.mark.parametrize("headers", [None, [], {}, [("a", b"1"), ("a", None)], {"a": b"1"}])
@pytest.mark.parametrize(("timestamp", "milliseconds"), [(None, 0), (0.0, 0), (1_700_000_000.1239, 1_700_000_000_124)])
def test_a_record_has_what_the_message_has(headers: Any, timestamp: float | None, milliseconds: int) -> None:
    message = SimpleNamespace(
        topic="t", partition=3, offset=17, timestamp=timestamp, key=b"k", value=None, headers=headers
    )
    pairs = list(headers.items() if isinstance(headers, dict) else headers or [])
    assert record_of(message) == Record("t", 3, 17, milliseconds, b"k", None, pairs)


@pytest.mark.parametrize(
    "headers", [(), (("a", b"1"), ("a", None)), ((MARK, UnreadBatch()),), (("a", b""), (MARK, b""))]
)
@pytest.mark.parametrize("timestamp", [None, 0, -1, 1_700_000_000_123, 2**51 - 1])
@pytest.mark.parametrize(("key", "value"), [(b"k", b"v"), (None, None)])
def test_a_record_of_the_client_is_that_of_the_message_that_faust_makes_of_it(
    headers: Any, timestamp: Any, key: bytes | None, value: bytes | None
) -> None:
    fetched = ConsumerRecord("t", 3, 17, timestamp, 0, key, value, None, 1, 1, headers)
    message = Consumer._to_message(SimpleNamespace(app=SimpleNamespace(consumer_generation_id=1)), TP("t", 3), fetched)
    found, expected = record_from_client(fetched), record_of(message)
    assert list(found.headers) == list(expected.headers)
    assert replace(found, headers=[]) == replace(expected, headers=[])
    assert (found.unread is None) == all(type(mark) is not UnreadBatch for _, mark in headers)


def test_the_source_of_a_record_is_its_place_and_made_once() -> None:
    record = Record("t", 3, 17, 0, b"k", None)
    assert record.source == Source("t", 3, 17)
    assert record.source is record.source
