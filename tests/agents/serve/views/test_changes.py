"""Lists of changes, one change with all that belongs to it, and the annotations that Grafana draws."""

from __future__ import annotations

import pytest

from attributary_agents.serve.views.annotations import annotation_list
from attributary_agents.serve.views.changes import change as change_view
from attributary_agents.serve.views.changes import changes, recent_rows
from attributary_agents.serve.views.errors import NotFoundError

from .stores import HOUR, NOW, Arrived, change, config_of, explanation, importance, moved, store_of

CONFIG = config_of({"bank": {}, "bikes": {}})


def story() -> list[Arrived]:
    """What can be told of a model and another one, in the order of time."""
    onset = {"observation": 620, "low": 601, "high": 640}
    return [
        change("alarm", "bank", NOW, 700, "alarm", due_at=900),
        explanation(
            "bank",
            NOW + 1 * HOUR,
            900,
            "told",
            change_id="alarm",
            detected_at=700,
            onset=onset,
            model_version_before="1",
            importances=moved(salary=-0.22, age=0.1),
        ),
        change("alarm", "bank", NOW + 2 * HOUR, 1100, "false"),
        change("not_confirmed", "bank", NOW + 3 * HOUR, 1300, "never mind", change_id="false", verdict="equal"),
        change("importance_shift", "bank", NOW + 4 * HOUR, 1500, "shift", feature="age", direction="rose", route=None),
        change("importance_shift_released", "bank", NOW + 5 * HOUR, 1600, "back", change_id="shift", feature="age"),
        change(
            "loss_shift", "bikes", NOW + 6 * HOUR, 50, "loss", kind="worse", onset={"observation": 41}, detected_at=50
        ),
        change(
            "loss_shift_explained",
            "bikes",
            NOW + 7 * HOUR,
            70,
            "why",
            change_id="loss",
            kind="worse",
            onset={"observation": 41},
            detected_at=50,
            features={"hour": {"delta": 0.5, "significant": True}},
        ),
        change("recovered", "bikes", NOW + 8 * HOUR, 90, "again", mode="mirror"),
        change("alarm", "bikes", NOW + 9 * HOUR, 95, "open", due_at=120),
    ]


def test_changes_are_listed_the_newest_first_and_counted() -> None:
    with store_of(story()) as store:
        of_bank = changes(store, CONFIG, "bank")
        two = changes(store, CONFIG, last=2)
        part = changes(store, CONFIG, "bank", start_ms=NOW + HOUR, end_ms=NOW + 3 * HOUR)
        explained = changes(store, CONFIG, events=["explanation"])
    assert [one.id for one in of_bank.changes] == ["back", "shift", "never mind", "false", "told", "alarm"]
    assert of_bank.n == 6
    assert ([one.id for one in two.changes], two.n) == (["open", "again"], 10)
    assert [one.id for one in part.changes] == ["never mind", "false", "told"]
    assert [one.id for one in explained.changes] == ["told"]
    row = explained.changes[0]
    assert (row.event, row.model_id, row.model_version_before, row.route) == ("explanation", "bank", "1", "detector")
    assert (row.verdict, row.feature, row.time_ms, row.observation) == ("followed", None, NOW + HOUR, 900)
    assert (row.sentence, row.is_open, row.mode) == ("bank explanation at 900", False, None)
    assert {one.id for one in changes(store_of(story()), CONFIG).changes if one.is_open} == {"open", "loss"}


def test_a_shift_of_the_loss_has_its_kind_as_the_verdict_and_a_shift_of_importance_its_feature() -> None:
    with store_of(story()) as store:
        rows = {one.id: one for one in changes(store, CONFIG).changes}
    assert rows["loss"].verdict == "worse"
    assert rows["shift"].feature == "age"
    assert rows["again"].mode == "mirror"


def test_the_last_changes_of_the_fleet_leave_out_alarms_of_which_it_is_known_what_they_were() -> None:
    with store_of(story()) as store:
        assert [one.id for one in recent_rows(store, 10)] == ["open", "again", "why", "loss", "back", "shift", "told"]
        assert [one.id for one in recent_rows(store, 2)] == ["open", "again"]


@pytest.mark.parametrize(
    ("change_id", "chain"),
    [
        ("alarm", ["alarm", "told"]),
        ("told", ["alarm", "told"]),
        ("never mind", ["false", "never mind"]),
        ("shift", ["shift", "back"]),
        ("loss", ["loss", "why"]),
        ("why", ["loss", "why"]),
        ("again", ["again"]),
        ("open", ["open"]),
    ],
)
def test_a_change_has_all_that_belongs_to_it(change_id: str, chain: list[str]) -> None:
    records = {one.id: one for one in story()}
    with store_of(story()) as store:
        found = change_view(store, change_id)
    assert found.row.id == change_id
    assert found.event == records[change_id].event
    assert [one.id for one in found.chain] == chain
    assert found.events == [records[one].event for one in chain]


@pytest.mark.parametrize(
    ("change_id", "pair"),
    [
        ("told", ("bank@#600", "bank@#900")),
        ("alarm", ("bank@#600", "bank@#900")),
        ("why", ("bikes@#40", "bikes@#70")),
        ("again", None),
        ("open", None),
        ("never mind", None),
    ],
)
def test_a_change_names_what_to_compare_before_and_after_it(change_id: str, pair: tuple[str, str] | None) -> None:
    with store_of(story()) as store:
        found = change_view(store, change_id).compare
    assert (None if found is None else (found.a, found.b)) == pair


def test_a_change_that_is_not_there_may_be_too_old() -> None:
    with store_of(story()) as store, pytest.raises(NotFoundError) as missing:
        change_view(store, "attributary.observations.v1:0:5:1")
    assert missing.value.detail.startswith("No change 'attributary.observations.v1:0:5:1'. It may be older")
    assert (missing.value.title, missing.value.suggestion) == ("No such change", "")


def test_a_model_without_changes_has_none_and_an_unknown_one_is_named() -> None:
    with store_of(importance("other", NOW, 1, {"a": 1.0})) as store:
        assert changes(store, CONFIG, "bank").changes == []
        assert changes(store, CONFIG, "other").n == 0
        with pytest.raises(NotFoundError, match="Did you mean 'bikes'"):
            changes(store, CONFIG, "bike")


def test_grafana_is_given_regions_of_shifts_and_points_of_all_else() -> None:
    with store_of(story()) as store:
        found = annotation_list(store, CONFIG, end_ms=NOW + 20 * HOUR)
        of_bank = annotation_list(store, CONFIG, model_id="bank", events=["importance_shift"])
        part = annotation_list(store, CONFIG, start_ms=NOW + 5 * HOUR, end_ms=NOW + 5 * HOUR)
    assert [(one["id"], (one["time"] - NOW) // HOUR, (one["timeEnd"] - NOW) // HOUR) for one in found] == [
        ("open", 9, 9),
        ("again", 8, 8),
        ("why", 7, 7),
        ("loss", 6, 20),  # still open: up to the end of the window
        ("shift", 4, 5),
        ("told", 1, 1),
    ]
    assert found[-1] == {
        "id": "told",
        "time": NOW + HOUR,
        "timeEnd": NOW + HOUR,
        "title": "bank: salary lost and age gained importance",
        "text": "bank explanation at 900",
        "tags": ["bank", "explanation", "followed"],
    }
    assert [one["id"] for one in of_bank] == ["shift"]
    assert of_bank[0]["timeEnd"] == NOW + 5 * HOUR
    assert [one["id"] for one in part] == ["back"]  # what it ends began before the window


def test_changes_without_a_time_are_no_annotations() -> None:
    with store_of(explanation("bank", None, 900)) as store:
        assert annotation_list(store, CONFIG) == []
        assert changes(store, CONFIG, "bank").changes[0].time_ms is None
