"""Which revisions of an incident somebody is told of, and what is no incident."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from attributary_agents.serve.webhooks.events import Noteworthy, rank, read_event
from attributary_explainers.incidents.words import DID_TOGETHER
from attributary_topics import SEVERITIES, WHATS
from tests.agents.serve.webhooks.made import event, record

INFO, WARNING, CRITICAL = range(3)


@pytest.mark.parametrize(
    ("revisions", "told"),
    [
        (["suspected info", "confirmed warning", "over warning"], [None, WARNING, WARNING]),
        (["suspected warning", "withdrawn warning noise"], [None, None]),
        (["suspected warning", "over warning returned"], [None, None]),
        (["suspected critical", "withdrawn critical noise"], [CRITICAL, CRITICAL]),
        (["suspected critical", "over critical returned"], [CRITICAL, CRITICAL]),
        (["confirmed warning", "confirmed warning lasts", "confirmed warning lasts"], [WARNING, None, None]),
        (["confirmed warning", "confirmed warning raised", "over info"], [WARNING, None, WARNING]),
        (
            ["confirmed info", "confirmed critical raised", "confirmed critical raised", "over warning"],
            [INFO, CRITICAL, None, CRITICAL],
        ),
        (["suspected critical", "confirmed critical", "over critical"], [CRITICAL, CRITICAL, CRITICAL]),
    ],
)
def test_who_is_woken_is_told_how_it_ends_and_nobody_twice_of_the_same(
    revisions: list[str], told: list[int | None]
) -> None:
    noteworthy = Noteworthy()
    found = []
    for revision in revisions:
        life, severity, reason = (*revision.split(), revision.split()[0])[:3]
        found.append(noteworthy.take(event(life=life, severity=severity, reason=reason)))
    assert found == told


def test_of_an_incident_that_is_not_known_somebody_may_have_been_told() -> None:
    over, raised = event(life="over", reason="returned"), event(severity="critical", reason="raised")
    assert Noteworthy().take(over) == WARNING
    assert Noteworthy().take(raised) == CRITICAL
    noteworthy = Noteworthy()
    assert [noteworthy.take(one) for one in (raised, raised)] == [CRITICAL, None]
    noteworthy.forget([raised])
    assert noteworthy.take(raised) == CRITICAL, "it comes again"


def test_two_incidents_are_two_stories() -> None:
    noteworthy = Noteworthy()
    assert noteworthy.take(event(1, life="suspected")) is None
    assert noteworthy.take(event(2, life="over", reason="settled")) == WARNING


def test_each_thing_that_can_happen_has_words_for_several_models() -> None:
    assert DID_TOGETHER.keys() == WHATS.keys()


def test_a_severity_of_a_later_release_is_as_bad_as_can_be() -> None:
    assert [rank(one) for one in (*SEVERITIES, "fatal", None)] == [0, 1, 2, 2, 2]


def test_an_event_has_the_attributes_of_its_headers() -> None:
    one = record(7, incident_id="first")
    one.headers += [
        ("ce_source", b"/attributary/obs"),
        ("ce_type", b"attributary.incident.v1"),
        ("ce_subject", b"b"),
        ("ce_time", b"t"),
    ]
    found = read_event(one)
    assert found is not None
    assert dataclasses.astuple(found)[:5] == ("bank:obs:0:7:1", "/attributary/obs", "attributary.incident.v1", "b", "t")
    assert (found.incident, found.headline) == ("first", "bank is worse")


def test_an_event_without_headers_is_known_by_its_place() -> None:
    one = record(7)
    one.headers = []
    found = read_event(one)
    assert found is not None
    assert (found.id, found.type, found.subject) == ("incidents:0:7", "attributary.incident.v1", "bank")
    assert found.time is None


def test_what_somebody_else_has_written_is_no_event() -> None:
    for value in (None, b"", b"{", b"[]", b"{}", b'{"event": 3}', b'{"event": "incident", "x": NaN}', b"\xff"):
        assert read_event(SimpleNamespace(**{**vars(record(1)), "value": value})) is None, value
