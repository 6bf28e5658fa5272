"""JSON: what becomes of a value, and what it cannot be."""

from __future__ import annotations

import asyncio

import pytest

from attributary_agents.sources.formats.base import Decoded, JsonFormat
from attributary_topics import InvalidRecordError
from tests.agents.sources.formats.fake_registry import record

FORMAT = JsonFormat()


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b'{"a": 1, "b": {"c": [true, null, "x"]}}', {"a": 1, "b": {"c": [True, None, "x"]}}),
        (b'{"a": NaN, "b": "NaN"}', {"a": None, "b": "NaN"}),
        (b"{}", {}),
    ],
)
def test_an_object_is_what_it_is(value: bytes, found: object) -> None:
    assert FORMAT.decode_now(record(value)) == [Decoded(found)]  # type: ignore[arg-type]
    assert asyncio.run(FORMAT.decode(record(value))) == [Decoded(found)]  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, b""])
def test_a_record_without_a_value_is_none(value: bytes | None) -> None:
    assert FORMAT.decode_now(record(value)) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"[1]", "wrong_type"),
        (b"null", "wrong_type"),
        (b'"text"', "wrong_type"),
        (b"{poison", "invalid_json"),
        (b"\0\0\0\0\x01\x02", "invalid_json"),
        (b'{"a": Infinity}', "not_finite"),
    ],
)
def test_what_is_no_object_is_a_dead_letter(value: bytes, reason: str) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        FORMAT.decode_now(record(value))
    assert caught.value.reason == reason


def test_nothing_has_to_be_there_for_it() -> None:
    asyncio.run(FORMAT.start())
    assert not FORMAT.is_waiting
    asyncio.run(FORMAT.close())
