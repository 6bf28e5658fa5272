"""Records as Faust's messages give them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from attributary_agents.worker.records import Record, record_of
from attributary_topics import Source


@pytest.mark.parametrize("headers", [None, [], {}, [("a", b"1"), ("a", None)], {"a": b"1"}])
@pytest.mark.parametrize(("timestamp", "milliseconds"), [(None, 0), (0.0, 0), (1_700_000_000.1239, 1_700_000_000_124)])
def test_a_record_has_what_the_message_has(headers: Any, timestamp: float | None, milliseconds: int) -> None:
    message = SimpleNamespace(
        topic="t", partition=3, offset=17, timestamp=timestamp, key=b"k", value=None, headers=headers
    )
    pairs = list(headers.items() if isinstance(headers, dict) else headers or [])
    assert record_of(message) == Record("t", 3, 17, milliseconds, b"k", None, pairs)


def test_the_source_of_a_record_is_its_place_and_made_once() -> None:
    record = Record("t", 3, 17, 0, b"k", None)
    assert record.source == Source("t", 3, 17)
    assert record.source is record.source
