"""Lists of incidents, those that began together, one incident, and the annotations that Grafana draws."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.serve.views.incidents import annotation_list, incidents, lines_of
from attributary_agents.serve.views.incidents import incident as one_incident
from attributary_agents.serve.views.words import NotFoundError

from .stores import HOUR, MINUTE, NOW, Arrived, config_of, importance, incident, status, store_of

CONFIG = config_of({"bank": {}, "bikes": {}})


def story() -> list[Arrived]:
    """What can be told of a model and another one."""
    return [
        incident("bank", NOW, 600, "first", life="suspected", severity="warning"),
        incident("bank", NOW, 600, "first", 2, life="over", severity="warning", observation=1500),
        incident("bank", NOW + 3 * HOUR, 1800, "chance", 2, life="withdrawn", severity="info"),
        incident("bank", NOW + 4 * HOUR, 2000, "now", what="inputs"),
        incident("bikes", NOW + 5 * HOUR, 50, "maybe", life="suspected", severity="warning"),
    ]


def test_incidents_are_listed_as_their_newest_revisions_say() -> None:
    with store_of(story()) as store:
        of_bank = incidents(store, CONFIG, "bank")
        two = incidents(store, CONFIG, last=2)
        is_open = incidents(store, CONFIG, is_open=True)
        part = incidents(store, CONFIG, start_ms=NOW - HOUR, end_ms=NOW + HOUR)
    assert [(one.id, one.standing) for one in of_bank.incidents] == [
        ("now", "bad"),
        ("chance", "over"),
        ("first", "over"),
    ]
    assert of_bank.n == 3
    assert ([one.id for one in two.incidents], two.n) == (["maybe", "now"], 4)
    assert ([one.id for one in is_open.incidents], is_open.n) == (["maybe", "now"], 2)
    assert [one.id for one in part.incidents] == ["first"]
    first = part.incidents[0]
    assert (first.revision, first.life, first.what, first.observation) == (2, "over", "worse", 1500)
    assert (first.since.observation, first.since.time_ms, first.time_ms) == (600, NOW, NOW + MINUTE)
    assert (first.headline, first.features) == ("bank is worse", ["age"])


def test_one_incident_has_the_event_of_its_newest_revision() -> None:
    records = story()
    with store_of(records) as store:
        found = one_incident(store, "first")
        assert found.event == records[1].event
        assert (found.row.id, found.row.revision, found.until) == ("first", 2, 1500)
        assert found.compare is not None
        assert (found.compare.a, found.compare.b) == ("bank@#594", "bank@#1500")


@pytest.mark.parametrize(
    ("since", "low", "before"), [(600, 590, "bank@#589"), (600, None, "bank@#599"), (1, None, None)]
)
def test_before_an_incident_is_before_all_of_which_it_may_have_begun(
    since: int, low: int | None, before: str | None
) -> None:
    with store_of(incident("bank", NOW, since, "a", low=low)) as store:
        found = one_incident(store, "a").compare
    assert (None if found is None else found.a) == before


def test_one_that_is_over_names_the_one_that_is_open() -> None:
    with store_of(story()) as store:
        over, now, maybe = (one_incident(store, id_) for id_ in ("first", "now", "maybe"))
    assert over.other is not None
    assert (over.other.id, over.other.headline) == ("now", now.row.headline)
    assert now.other is None
    assert maybe.other is None, "what is open is another model's"


def test_what_is_open_goes_on_until_the_model_s_latest_observation() -> None:
    told = incident("bank", NOW, 600, "a")
    with store_of(told) as store:
        assert one_incident(store, "a").until == 700
    with store_of(told, importance("bank", NOW, 900, {"a": 1.0})) as store:
        assert one_incident(store, "a").until == 900
    with store_of(told, status("bank", NOW, n_observations=990)) as store:
        assert one_incident(store, "a").until == 990


def test_an_incident_that_is_not_there_may_be_too_old() -> None:
    with store_of(story()) as store, pytest.raises(NotFoundError) as missing:
        one_incident(store, "attributary.observations.v1:0:5:1")
    assert missing.value.detail.startswith("No incident 'attributary.observations.v1:0:5:1'. It may be older")
    assert (missing.value.title, missing.value.suggestion) == ("No such incident", "")


def test_a_model_without_incidents_has_none_and_an_unknown_one_is_named() -> None:
    with store_of(importance("other", NOW, 1, {"a": 1.0})) as store:
        assert incidents(store, CONFIG, "bank").incidents == []
        assert incidents(store, CONFIG, "other").n == 0
        with pytest.raises(NotFoundError, match="Did you mean 'bikes'"):
            incidents(store, CONFIG, "bike")


def lines(*records: Arrived, **templates: str | None) -> list[tuple[str, str | None, str, int]]:
    with store_of(*records) as store:
        found = incidents(store, CONFIG, last=500).incidents
    return [(line.headline, line.feature, line.standing, line.n) for line in lines_of(found, templates)]


def stores(n: int, apart_ms: int | None = MINUTE, **more: Any) -> list[Arrived]:
    """Incidents of several stores, one after the other."""
    given = {"what": "changed", "features": ("price", "rain"), **more}
    return [
        incident(f"s{i}", None if apart_ms is None else NOW + i * apart_ms, 500 + 50 * i, **given) for i in range(n)
    ]


def test_models_that_changed_in_the_same_way_within_one_window_are_one_line() -> None:
    of_stores = {f"s{i}": "store-*" for i in range(8)}
    assert lines(*stores(8), **of_stores) == [("8 stores changed together", "price", "bad", 8)]
    assert lines(*stores(8)) == [("8 models changed together", "price", "bad", 8)]
    assert lines(*stores(3, None)) == [("3 models changed together", "price", "bad", 3)], "by observations"
    assert lines(*stores(2, 11 * MINUTE)) == [("s1 is changed", None, "bad", 1), ("s0 is changed", None, "bad", 1)]
    # Ten minutes after the first of them it is another line.
    assert [n for *_, n in lines(*stores(8, 3 * MINUTE))] == [4, 4]


def test_what_differs_is_a_line_of_its_own() -> None:
    (one,) = stores(1)
    assert len(lines(one, incident("x", NOW, 500, what="worse", features=("price",)))) == 2
    assert len(lines(one, incident("x", NOW, 500, what="changed", features=("rain", "price")))) == 2
    assert len(lines(one, incident("s0", NOW + 1, 501, what="changed", features=("price",)))) == 2, "of the same model"
    assert len(lines(one, incident("x", NOW, 500, what="changed", features=("price",)))) == 1


def test_a_line_stands_as_the_worst_of_its_models_and_the_worst_come_first() -> None:
    told = [
        *stores(2),
        incident("s1", NOW + MINUTE, 550, revision=2, what="changed", features=("price",), life="over"),
        incident("a", NOW - 5 * HOUR, 1, life="over"),
        incident("b", NOW - 6 * HOUR, 1, severity="warning"),
        incident("c", NOW, 1, severity="info"),
        incident("d", NOW, 1, severity="info", life="suspected", features=("z",)),
        incident("e", NOW - 9 * HOUR, 1),
    ]
    assert lines(*told) == [
        ("2 models changed together", "price", "bad", 2),
        ("e is worse", None, "bad", 1),
        ("b is worse", None, "bad", 1),
        ("d is worse", None, "suspected", 1),
        ("c is worse", None, "open", 1),
        ("a is worse", None, "over", 1),
    ]


def test_grafana_is_given_regions_from_their_beginning_to_their_end() -> None:
    with store_of(story()) as store:
        found = annotation_list(store, CONFIG, end_ms=NOW + 20 * HOUR)
        of_bank = annotation_list(store, CONFIG, model_id="bank", last=1)
    assert [(one["id"], one["time"] - NOW, one["timeEnd"] - NOW) for one in found] == [
        ("maybe", 5 * HOUR, 20 * HOUR),  # still open: up to the end of the window
        ("now", 4 * HOUR, 20 * HOUR),
        ("first", 0, MINUTE),
    ]
    assert found[-1] == {
        "id": "first",
        "time": NOW,
        "timeEnd": NOW + MINUTE,
        "title": "bank is worse",
        "text": "bank is worse. Act now: train it again. It began at observation 600.",
        "tags": ["bank", "worse", "over", "warning"],
    }
    assert [(one["id"], one["timeEnd"] - NOW) for one in of_bank] == [("now", 4 * HOUR)]


def test_incidents_without_a_time_are_no_annotations() -> None:
    with store_of(incident("bank", None, 900)) as store:
        assert annotation_list(store, CONFIG) == []
        assert incidents(store, CONFIG, "bank").incidents[0].time_ms is None
