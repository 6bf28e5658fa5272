"""Which kinds of events fall under which word, and what is no event."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import attributary_topics.changes as changes
import attributary_topics.loss_shifts as loss_shifts
from attributary_agents.serve.webhooks.events import WORDS, read_event
from tests.agents.serve.webhooks.made import event, record


def test_every_kind_that_workers_write_falls_under_a_word() -> None:
    kinds = {
        field.default
        for module in (changes, loss_shifts)
        for found in vars(module).values()
        if dataclasses.is_dataclass(found)
        for field in dataclasses.fields(found)
        if field.name == "event" and field.default
    }
    assert kinds == set(WORDS)


def test_a_kind_of_a_later_release_is_a_change() -> None:
    assert event(kind="alarm").word == "alarm"
    assert event(kind="of_tomorrow").word == "change"


def test_an_event_has_the_attributes_of_its_headers() -> None:
    one = record(7, "alarm")
    one.headers += [
        ("ce_source", b"/attributary/obs"),
        ("ce_type", b"attributary.change.v1"),
        ("ce_subject", b"b"),
        ("ce_time", b"t"),
    ]
    found = read_event(one)
    assert found is not None
    assert dataclasses.astuple(found)[:5] == ("bank:obs:0:7:1", "/attributary/obs", "attributary.change.v1", "b", "t")
    assert (found.kind, found.sentence) == ("alarm", "bank: 7")


def test_an_event_without_headers_is_known_by_its_place() -> None:
    one = record(7)
    one.headers = []
    found = read_event(one)
    assert found is not None
    assert (found.id, found.subject, found.time) == ("changes:0:7", "bank", None)


def test_what_somebody_else_has_written_is_no_event() -> None:
    for value in (None, b"", b"{", b"[]", b"{}", b'{"event": 3}', b'{"event": "alarm", "x": NaN}', b"\xff"):
        assert read_event(SimpleNamespace(**{**vars(record(1)), "value": value})) is None, value
