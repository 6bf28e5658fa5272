"""Incidents: the newest revision of each is kept, whatever comes in whatever order, and lists are of a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest

from attributary_agents.serve.answers import IncidentRow
from attributary_agents.serve.store.rows import incident_row
from attributary_agents.serve.store.store import Store
from attributary_topics import event_time

from .events import T0, incident, n_records


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as store:
        yield store


LIFE = ("suspected", "confirmed", "over")


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_newest_revision_stays_whatever_comes_first(store: Store, order: tuple[int, ...]) -> None:
    revisions = [
        incident("a", T0 + n, n + 1, life=life, observation=5_100 + n, since=5_000 + n) for n, life in enumerate(LIFE)
    ]
    newest, n_told = -1, 0
    for n in (*order, *order):
        n_told += len(store.take([revisions[n]]))
        newest = max(newest, n)
        (found,) = store.incidents()
        assert (found.event["revision"], found.event["life"]) == (newest + 1, LIFE[newest])
        assert (found.time_ms, found.observation, found.is_open) == (T0 + newest, 5_100 + newest, newest < 2)
    assert n_told == len([n for at, n in enumerate(order) if n == max(order[: at + 1])])
    whole = store.incident("a")
    assert whole is not None
    assert whole.event == revisions[2].event
    assert n_records(store, "incident") == 1


def test_another_model_does_not_take_an_incident_over(store: Store) -> None:
    store.take([incident("a", T0), incident("a", T0, 2, model_id="bikes")])
    assert [(one.model_id, one.event["revision"]) for one in store.incidents()] == [("bank", 1)]


def test_lists_are_of_a_model_a_time_and_of_what_is_open(store: Store) -> None:
    at = lambda n: event_time(T0 + 1000 * n)  # noqa: E731
    store.take(
        [
            incident("first", T0 + 20_000, 3, time=at(10), life="over", since=100),
            incident("second", T0 + 40_000, time=at(30), since=300),
            incident("gone", T0 + 60_000, time=at(50), life="withdrawn", since=500),
            incident("other", T0 + 31_000, time=at(31), model_id="bikes"),
        ]
    )

    def ids(**wanted: Any) -> list[str]:
        found = [one.id for one in store.incidents(**wanted)]
        if "last" not in wanted:
            assert store.n_incidents(**wanted) == len(found)
        return found

    assert ids() == ["gone", "other", "second", "first"]
    assert ids(model_id="bank", last=2) == ["gone", "second"]
    assert ids(is_open=True) == ["other", "second"]
    assert ids(is_open=False, model_id="bank") == ["gone", "first"]
    # One that is open goes on until now, one that is over until it was told so.
    assert ids(start_ms=T0 + 15_000, end_ms=T0 + 25_000) == ["first"]
    assert ids(start_ms=T0 + 55_000) == ["gone", "other", "second"]
    assert ids(end_ms=T0 + 9_000) == []


def test_what_lists_do_not_show_is_read_of_one_incident_alone(store: Store) -> None:
    (record,) = [incident("a", T0, features=("age", "salary"))]
    store.take([record])
    (brief,), whole = store.incidents(), store.incident("a")
    assert whole is not None
    assert whole.event == record.event
    assert list(brief.event["features"]) == ["age", "salary"]
    assert len(json.dumps(brief.event)) < 0.6 * len(json.dumps(whole.event))
    assert incident_row(brief) == incident_row(whole)


def test_a_page_is_told_the_row_of_it(store: Store) -> None:
    (told,) = store.take([incident("a", T0, time=event_time(T0 - 5_000))])
    row = IncidentRow(**json.loads(told.data))
    assert (told.event, told.model_id, row.id, row.standing) == ("incident", "bank", "a", "bad")
    assert (row.time_ms, row.since.time_ms, row.since.observation) == (T0, T0 - 5_000, 5_002)
    assert (row.headline, row.features) == ("bank is worse", ["age"])
    found = store.incident("a")
    assert found is not None
    assert IncidentRow(**incident_row(found)) == row


@pytest.mark.parametrize(
    ("life", "severity", "standing"),
    [
        ("suspected", "info", "suspected"),
        ("suspected", "warning", "suspected"),
        ("suspected", "critical", "bad"),
        ("confirmed", "info", "open"),
        ("confirmed", "warning", "bad"),
        ("confirmed", "critical", "bad"),
        ("over", "critical", "over"),
        ("withdrawn", "critical", "over"),
    ],
)
def test_what_is_over_is_never_bad(store: Store, life: str, severity: str, standing: str) -> None:
    store.take([incident("a", T0, life=life, severity=severity)])
    assert [incident_row(one)["standing"] for one in store.incidents()] == [standing]


def test_an_incident_of_a_replay_has_no_time(store: Store) -> None:
    store.take([incident("a", None, time=event_time(T0))])
    (found,) = store.incidents()
    assert (found.time_ms, found.begun_ms) == (None, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 7},
        {"id": "x" * 5000},
        {"revision": "2"},
        {"revision": 2**60},
        {"features": {"age": {}}},
        {"since": None},
        {"since": {"observation": 1, "low": None, "high": 2, "time": "yesterday"}},
        {"explanation": {}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_is_no_incident_is_passed_over(store: Store, wrong: dict[str, Any]) -> None:
    record = incident("a", T0)
    assert store.take([type(record)(*(record.kind, 0, 0, "x", "bank", T0), {**record.event, **wrong})]) == []
    assert (store.incidents(), store.n_refused) == ([], 1)
