"""What the page of a replay holds: all that was published, in bounded numbers, and nothing of a clock."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.replay.page import ReplayPage
from attributary_agents.worker.records import Outgoing
from attributary_topics import Source, encode_json, event_headers
from tests.agents.replay.pages import data_of, importance, incident, made_page
from tests.agents.serve.incidents import explanation
from tests.agents.stand_ins import FACTORY

Written = Callable[..., Any]


def config_of(**model: Any) -> Config:
    return parse_config({"models": {"credit": {"factory": FACTORY, **model}}}, "a test")


@pytest.fixture
def shown(tmp_path: Path) -> Written:
    def written(
        importances: list[dict[str, Any]], incidents: Iterable[dict[str, Any]] = (), *more: Any, **model: Any
    ) -> Any:
        return data_of(made_page(tmp_path / "report.html", config_of(**model), importances, incidents, *more))

    return written


def features_of(data: Any, explainer: str = "pfi") -> dict[str, Any]:
    """Feature to its series, the most important first."""
    return {one["feature"]: one for one in data["models"]["credit"]["series"][explainer]["features"]}


def test_nothing_leaves_a_model_that_learns_and_says_when_it_publishes(shown: Written) -> None:
    data = shown([], publish={"every": 321})
    (row,) = data["fleet"]["models"]
    assert (row["model_id"], row["state"], row["n_observations"], row["explainer"]) == ("credit", "learning", 0, None)
    assert data["models"]["credit"]["series"] == {}
    assert data["health"]["broker"] == "none"
    assert not data["fleet"]["is_wrong"]


def test_it_has_importance_loss_discrepancy_and_incidents_by_observation(shown: Written) -> None:
    events = [importance(t, {"age": 0.2, "salary": t / 1000}) for t in range(100, 600, 100)]
    data = shown(events, [incident(300, ["age"], explanation=explanation()), incident(450, ["salary"], life="over")])
    series = data["models"]["credit"]["series"]["pfi"]
    assert (series["by"], series["observation"]) == ("observation", [100, 200, 300, 400, 500])
    assert features_of(data)["salary"]["importance"] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert features_of(data)["salary"]["high"] == [0.12, 0.22, 0.32, 0.42, 0.52]
    figures = series["figures"]
    assert (figures["model_loss"], figures["baseline_loss"]) == ([0.4] * 5, [0.7] * 5)
    assert figures["discrepancy"] == [0.1] * 5
    marks = [(mark["kind"], mark["observation"], mark["end_observation"]) for mark in series["marks"]]
    assert marks == [("incident", 250, None), ("incident", 400, 450)]
    assert {mark["incident_id"] for mark in series["marks"]} == data["incidents"].keys(), "each leads to its incident"
    assert data["models"]["credit"]["view"]["threshold"] == 0.25
    assert data["models"]["credit"]["view"]["row"]["model_loss"] == 0.4


def test_no_time_is_told_that_no_event_has(shown: Written) -> None:
    data = shown([importance(t, {"age": 0.2}) for t in (100, 200)], [incident(150, ["age"])])
    row = data["fleet"]["models"][0]
    assert row["last_event_ms"] is data["health"]["last_event_ms"] is None
    assert (row["incident"]["time_ms"], row["incident"]["since"]["time_ms"]) == (None, None)
    view = data["models"]["credit"]["view"]
    for one in (*view["versions"], *view["explainers"]):
        assert (one["first_ms"], one["last_ms"]) == (None, None)


def test_quality_stands_beside_the_loss(shown: Written) -> None:
    def quality(t: int) -> dict[str, Any]:
        figures = {"accuracy": (0.8, 0.9 if t > 200 else None), "f1": (None, None), "mae": (3.5, 3.25)}
        return {name: {"value": value, "reference": reference} for name, (value, reference) in figures.items()}

    data = shown([importance(t, {"age": 0.2}, quality=quality(t)) for t in range(100, 600, 100)])
    figures = data["models"]["credit"]["series"]["pfi"]["figures"]
    assert figures["quality"]["accuracy"] == [0.8] * 5
    assert figures["quality_reference"]["accuracy"] == [None, None, 0.9, 0.9, 0.9]
    assert figures["quality"]["mae"] == [3.5] * 5
    assert set(figures["quality"]["f1"]) == {None}, "what is never known is not drawn"


def test_the_sentence_and_the_whole_event_of_every_incident_is_there(shown: Written) -> None:
    incidents = [incident(t, ["age", "salary"]) for t in range(60, 6000, 60)]
    data = shown([importance(6000, {"age": 1.0})], incidents)
    told = data["models"]["credit"]["incidents"]
    assert told["n"] == len(incidents)
    assert [row["sentence"] for row in told["incidents"]] == [event["sentence"] for event in reversed(incidents)]
    assert [data["incidents"][row["id"]]["event"] for row in told["incidents"]] == incidents[::-1]


def test_every_explainer_has_its_series(shown: Written) -> None:
    events = [importance(t, {"age": 0.2}, explainer=name) for t in (100, 200) for name in ("pfi", "sage")]
    data = shown(events)
    assert data["models"]["credit"]["series"].keys() == {"pfi", "sage"}
    assert [one["name"] for one in data["models"]["credit"]["view"]["explainers"]] == ["pfi", "sage"]
    assert data["fleet"]["n_incidents"] == 0


def test_what_became_of_the_rows_is_counted_by_reason(shown: Written) -> None:
    data = shown(
        [importance(t, {"age": 0.2}) for t in (100, 200)],
        [],
        ["wrong_type"] * 600 + ["missing_label"] * 4,
        change={"threshold": 0.25},
    )
    letters = data["models"]["credit"]["dead_letters"]
    assert letters["n"] == data["fleet"]["n_dead_letters"] == 604
    assert [(one["reason"], one["n"]) for one in letters["reasons"]] == [("wrong_type", 600), ("missing_label", 4)]
    assert data["models"]["credit"]["view"]["threshold"] == 0.25, "as it is configured, where no incident has said it"


def test_rows_that_are_all_refused_are_counted_of_a_model_that_has_said_nothing(shown: Written) -> None:
    data = shown([], [], ["wrong_type"] * 3)
    assert data["models"]["credit"]["dead_letters"]["n"] == 3
    assert data["fleet"]["models"][0]["n_dead_letters"] == 3


def test_what_is_large_at_the_end_is_shown_and_an_importance_beyond_all_loss_is_remarked(shown: Written) -> None:
    """Twenty features were large for long; another one is the largest at the end, and means nothing."""
    old = {f"feature{i}": 0.5 for i in range(20)} | {"late": 0.0, "small": 0.01}
    new = {f"feature{i}": 0.1 - 0.001 * i for i in range(20)} | {"late": 40.0, "small": 0.01}
    data = shown([*(importance(t, old) for t in range(100, 2000, 100)), importance(2000, new)])
    features = list(features_of(data))
    assert features[0] == "late"
    assert "small" not in features
    assert data["models"]["credit"]["series"]["pfi"]["others"]["n"] == 2
    (note,) = data["models"]["credit"]["view"]["notes"]
    assert note.startswith("late (pfi): far more than a model without features loses.")


def test_what_an_incident_names_is_shown_though_it_is_large_no_more(shown: Written) -> None:
    features = {f"feature{i}": 1.0 for i in range(30)} | {"gone": 0.001}
    data = shown([importance(t, features) for t in (100, 200)], [incident(150, ["gone"])])
    assert "gone" in features_of(data)


@pytest.mark.parametrize("n", [1, 2, 999, 1000, 1001, 2500])
def test_long_series_are_thinned_evenly_and_keep_their_end(shown: Written, n: int) -> None:
    data = shown([importance(t, {f"f{i}": 0.1 for i in range(20)}) for t in range(1, n + 1)])
    series = data["models"]["credit"]["series"]["pfi"]
    at = series["observation"]
    assert series["n_events"] == n
    assert len(at) == len(features_of(data)["f0"]["importance"]) <= 1000
    assert len(at) >= min(n, 1000) / 2
    assert at[-1] == n
    steps = {b - a for a, b in pairwise(at)}
    assert max(steps, default=0) - min(steps, default=0) <= 1


def test_neither_the_page_nor_memory_grows_with_the_replay(tmp_path: Path) -> None:
    config, sizes = config_of(), []
    features = {f"feature{i}": 0.1 + i / 7 for i in range(20)}
    for n in (1000, 3000):
        events = [importance(t, features) for t in range(1, n + 1)]
        sizes.append(len(made_page(tmp_path / "report.html", config, events)))
    assert sizes[1] < 1.05 * sizes[0]

    page = ReplayPage("credit", config)
    event = encode_json(importance(1, features))
    for n in range(1200):
        headers = event_headers("importance", "credit", Source("t", 0, n), 0, 0)
        page.take(Outgoing(config.kafka.topics.importances, b"credit", event, headers))
        assert len(page._waiting) < 500, "the rest is in a file"
    page.close()


def test_only_the_largest_features_are_there_and_the_rest_is_counted(shown: Written) -> None:
    features = {f"feature{i}": 1.0 / (i + 1) for i in range(30)}
    data = shown([importance(t, features) for t in (100, 200)])
    assert list(features_of(data)) == [f"feature{i}" for i in range(20)]
    others = data["models"]["credit"]["series"]["pfi"]["others"]
    assert others["n"] == 10
    total = sum(features.values())
    assert others["share"] == pytest.approx(sum(sorted(features.values())[:10]) / total, abs=1e-4)


def test_what_is_not_known_is_null(shown: Written) -> None:
    unknown = {"model_loss": None, "baseline_loss": None, "discrepancy": None}
    events = [importance(100, {"age": 0.0}, **unknown), importance(200, {"age": 0.0, "late": -1e-12}, **unknown)]
    events[0]["features"]["age"]["half_width"] = None
    data = shown(events)
    age, late = (features_of(data)[name] for name in ("age", "late"))
    assert (age["low"][0], age["high"][0]) == (None, None)
    assert late["importance"][0] is None
    figures = data["models"]["credit"]["series"]["pfi"]["figures"]
    assert {*figures["model_loss"], *figures["baseline_loss"], *figures["discrepancy"]} == {None}


def test_of_each_incident_the_newest_revision_is_there_whole(shown: Written) -> None:
    told = [
        incident(300, ["age"], life="suspected"),
        incident(600, ["age"], explanation=explanation(), what="inputs"),
        {**incident(300, ["age"], life="over", revision=2), "observation": 500},
    ]
    data = shown([importance(800, {"age": 1.0})], told)
    found = {view["row"]["id"]: view for view in data["incidents"].values()}
    assert found["credit:600"]["event"] == told[1]
    assert found["credit:300"]["event"] == told[2]
    assert [(found[one]["row"]["standing"], found[one]["until"]) for one in ("credit:300", "credit:600")] == [
        ("over", 500),
        ("bad", 800),
    ]


def test_incidents_without_importances_are_there(shown: Written) -> None:
    data = shown([], [incident(300, ["age"])])
    assert data["fleet"]["models"][0]["state"] == "incident"
    assert [line["headline"] for line in data["fleet"]["incidents"]] == ["Credit is worse at 300"]


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e12, 1e300])
def test_numbers_of_any_size_fit(shown: Written, size: float) -> None:
    data = shown([importance(t, {"age": size * t, "salary": -size}) for t in (100, 200)])
    found = features_of(data)["age"]["importance"]
    assert found == pytest.approx([100 * size, 200 * size], rel=1e-4, abs=1e-38)


def test_one_early_extreme_does_not_flatten_the_rest(shown: Written) -> None:
    events = [importance(t, {"age": 100.0 if t == 1 else 1.0 + 0.1 * (t % 3)}) for t in range(1, 500)]
    data = shown(events)
    series = data["models"]["credit"]["series"]["pfi"]
    assert -1.0 < series["low"] < 1.0
    assert 1.0 < series["high"] < 4.0
    assert max(features_of(data)["age"]["importance"]) == 100.0, "the chart says that it is beyond"


def test_a_lasting_change_is_within_the_range(shown: Written) -> None:
    data = shown([importance(t, {"age": 0.01 if t < 700 else 0.5}) for t in range(10, 1000, 10)])
    assert data["models"]["credit"]["series"]["pfi"]["high"] >= 0.5


def test_numbers_are_short(shown: Written) -> None:
    data = shown([importance(t, {"age": math.pi / 10, "salary": 0.1}) for t in range(100, 2000, 100)])
    assert set(features_of(data)["age"]["importance"]) == {0.31416}
    assert len(json.dumps(features_of(data)["age"]["share"][0])) <= 8


def test_the_same_events_make_the_same_page(tmp_path: Path) -> None:
    events, incidents = [importance(t, {"age": 0.2}) for t in (100, 200)], [incident(150, ["age"])]
    pages = [made_page(tmp_path / "report.html", config_of(), events, incidents, ["wrong_type"]) for _ in range(2)]
    assert pages[0] == pages[1]
