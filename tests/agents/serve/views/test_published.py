"""What is answered of real events: the same numbers and sentences as are on the topics."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from attributary_agents.serve.views.compare import compare, read_moment
from attributary_agents.serve.views.fleet import fleet
from attributary_agents.serve.views.incidents import incident, incidents
from attributary_agents.serve.views.model import model_view
from attributary_agents.serve.views.series import series
from attributary_agents.serve.views.whole import whole

from . import published as of
from .published import Published

KINDS = (of.counting, of.regression, of.many_classes, of.many_features, of.unlabelled, of.mirror, of.late_labels)
STORED = 1e-6
POINT = 5.1e-5
"""Five digits."""


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def told(request: pytest.FixtureRequest) -> Published:
    kind: Callable[[], Published] = request.param
    return kind()


@pytest.fixture(scope="module")
def flipped() -> Published:
    return of.counting()


def of_explainer(told: Published, name: str) -> list[dict[str, Any]]:
    return [event for event in told.importances if event["explainer"] == name]


def test_series_are_the_events(told: Published) -> None:
    assert told.importances
    for name in {event["explainer"] for event in told.importances}:
        events = of_explainer(told, name)
        found = series(told.store, told.config, "m", name, top=50)
        assert found.observation == [event["observation"] for event in events]
        assert len(events) >= 3
        last = events[-1]["features"]
        assert [one.feature for one in found.features] == list(last)[:50]
        assert found.others.n == max(len(last) - 50, 0)
        for one in found.features:
            said = [event["features"].get(one.feature, {}) for event in events]
            assert_same(one.importance, [figure.get("importance") for figure in said])
            for sign, edges in ((-1, one.low), (1, one.high)):
                assert_same(edges, [_edge(figure, sign) for figure in said])
            assert_same(one.share, [figure.get("share") for figure in said], 5.1e-4)
            assert one.rank == [figure.get("rank") for figure in said]
            assert one.latest == pytest.approx(last[one.feature]["importance"], rel=STORED)
            assert_same([one.latest_half_width], [last[one.feature]["half_width"]], STORED)
        for figure in ("model_loss", "baseline_loss", "present_loss", "discrepancy", "shift", "n_waiting", "fidelity"):
            assert_same(getattr(found.figures, figure), [event.get(figure) for event in events])
        for metric in events[-1]["quality"]:
            wanted = [event["quality"][metric]["value"] for event in events]
            assert_same(found.figures.quality[metric], wanted)


def assert_same(found: Sequence[float | None], wanted: Sequence[float | None], rel: float = POINT) -> None:
    """Equal up to the digits that are sent, and to those stored of the largest; null where the event has null."""
    assert [value is None for value in found] == [value is None for value in wanted]
    known = [value for value in wanted if value is not None]
    least = STORED * max(map(abs, known), default=0.0)
    assert [value for value in found if value is not None] == pytest.approx(known, rel=rel, abs=least)


def _edge(figure: dict[str, Any], sign: int) -> float | None:
    half = figure.get("half_width")
    return None if half is None else figure["importance"] + sign * half


def test_the_row_is_the_last_event(told: Published) -> None:
    (row,) = fleet(told.store, told.config, now_ms=told.end_ms).models
    last = of_explainer(told, "pfi")[-1]
    assert (row.model_id, row.version, row.explainer) == ("m", last["model_version"], "pfi")
    assert row.loss is not None
    assert (row.loss.name, row.loss.unit, row.loss.largest) == (last["loss"], last["loss_unit"], last["loss_largest"])
    assert (row.model_loss, row.baseline_loss) == (last["model_loss"], last["baseline_loss"])
    assert row.mode == last.get("mode", "labelled")
    assert row.fidelity == last.get("fidelity")
    assert row.n_waiting == last.get("n_waiting")
    assert row.n_observations == last["observation"]
    assert row.n_dead_letters == told.n_dead_letters
    assert row.n_features == len(last["features"])
    for one in row.top:
        said = last["features"][one.feature]
        assert_same([one.importance, one.half_width], [said["importance"], said["half_width"]], STORED)
        assert one.share == pytest.approx(said["share"], rel=1e-4)


def test_a_comparison_of_two_events_is_their_difference(told: Published) -> None:
    first, *_, last = of_explainer(told, "pfi")
    a, b = f"m@#{first['observation']}", f"m@#{last['observation']}"
    found = compare(told.store, told.config, read_moment(a), read_moment(b), "pfi")
    assert found.is_same_loss
    assert {one.feature for one in found.features} == first["features"].keys() | last["features"].keys()
    size = max(abs(figure["importance"]) for event in (first, last) for figure in event["features"].values())
    for one in found.features:
        before, after = (event["features"].get(one.feature) for event in (first, last))
        if before is not None and after is not None:
            assert one.delta == pytest.approx(after["importance"] - before["importance"], abs=size * STORED)


def test_the_model_has_what_the_events_have(told: Published) -> None:
    found = model_view(told.store, told.config, "m", now_ms=told.end_ms)
    last = told.importances[-1]
    assert {one.name: one.n_events for one in found.explainers} == {
        name: len(of_explainer(told, name)) for name in {event["explainer"] for event in told.importances}
    }
    assert found.explainers[0].n_observations == of_explainer(told, found.explainers[0].name)[-1]["n_observations"]
    assert set(found.quality) == set(last["quality"])
    assert found.label_delay_median_s == last.get("label_delay_median_s")


def test_a_file_has_all_of_it(told: Published) -> None:
    """The object of a single file answers as the interface does."""
    found = json.loads(json.dumps(whole(told.store, told.config, build="1.2.3")), parse_constant=pytest.fail)
    assert found == whole(told.store, told.config, build="1.2.3")
    assert (found["health"]["build"], found["health"]["broker"]) == ("1.2.3", "none")
    model = found["models"]["m"]
    assert model["series"].keys() == {event["explainer"] for event in told.importances}
    for name, drawn in model["series"].items():
        assert drawn["observation"] == [event["observation"] for event in of_explainer(told, name)]
        assert len(drawn["features"]) == min(len(told.importances[-1]["features"]), 20)
    assert found["incidents"].keys() == told.incidents.keys()
    assert [row["id"] for row in model["incidents"]["incidents"]] == list(reversed(told.incidents))
    pair = model["view"]["compare"]
    assert (pair["a"], pair["b"]) in [(one["a"], one["b"]) for one in found["comparisons"]]
    for view in found["incidents"].values():
        if view["compare"] is not None:
            asked = view["compare"]["a"], view["compare"]["b"]
            assert asked in [(one["a"], one["b"]) for one in found["comparisons"]]


def test_incidents_are_told_in_the_words_of_the_topic(flipped: Published) -> None:
    listed = incidents(flipped.store, flipped.config, "m", last=500)
    assert listed.n == len(flipped.incidents) > 0
    told = {row.id: (row.headline, row.sentence, row.revision) for row in listed.incidents}
    assert told == {
        incident_id: (event["headline"], event["sentence"], event["revision"])
        for incident_id, event in flipped.incidents.items()
    }
    assert max(event["revision"] for event in flipped.incidents.values()) > 1
    for incident_id, event in flipped.incidents.items():
        found = incident(flipped.store, incident_id)
        assert found.event == event
        assert (found.row.observation, found.row.life) == (event["observation"], event["life"])


def test_the_fleet_tells_the_last_incident(flipped: Published) -> None:
    *_, last = [event for event in flipped.incidents.values() if event["life"] != "withdrawn"]
    found = fleet(flipped.store, flipped.config, now_ms=flipped.end_ms, window_ms=86_400_000)
    assert found.models[0].incident is not None
    assert found.models[0].incident.sentence == last["sentence"]
    assert {line.headline for line in found.incidents} == {one["headline"] for one in flipped.incidents.values()}
    is_bad = any(line.standing == "bad" for line in found.incidents)
    assert found.is_wrong == is_bad
    assert found.sentence.startswith(last["headline"] if is_bad else "Nothing is wrong: m has no incident")
    assert found.sentence.endswith(" · 2 dead letters")
    assert found.n_dead_letters == flipped.n_dead_letters == 2
