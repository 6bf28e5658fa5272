"""The object of a single file: all that the interface would answer, within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.serve.answers import (
    Comparison,
    DeadLetters,
    DependenceList,
    Fleet,
    Health,
    IncidentList,
    IncidentView,
    ModelView,
    Series,
)
from attributary_agents.serve.views.fleet import fleet
from attributary_agents.serve.views.whole import whole

from .stores import HOUR, NOW, Arrived, config_of, dead_letters, importance, incident, store_of

CONFIG = config_of({"bank": {}, "bikes": {}, "quiet": {}})


def replayed(n: int = 30, n_features: int = 3) -> list[Arrived]:
    """What a replay has: no times."""
    others = {f"f{i}": 0.05 for i in range(n_features - 1)}
    return [importance("bank", None, 100 * i, {"salary": (5.0 / i, 0.1), **others}) for i in range(1, n + 1)]


def test_each_part_is_an_answer_of_the_interface() -> None:
    told = incident("bank", None, 1005, "i1", observation=1500, features=("salary",))
    with store_of(replayed(), told, dead_letters("bank", 0, "wrong_type", 4)) as store:
        found = whole(store, CONFIG, build="1.2.3")
    assert found.keys() == {"health", "fleet", "models", "incidents", "comparisons"}
    Health.model_validate(found["health"])
    overview = Fleet.model_validate(found["fleet"])
    assert overview.sentence == (
        "bank is worse, began at observation 1 005 · 2 configured models have not said anything yet · 4 dead letters"
    )
    (bank,) = found["models"].values()
    assert bank.keys() == {"view", "series", "incidents", "dead_letters", "dependences"}
    view = ModelView.model_validate(bank["view"])
    drawn = Series.model_validate(bank["series"]["pfi"])
    assert IncidentList.model_validate(bank["incidents"]).n == 1
    assert DeadLetters.model_validate(bank["dead_letters"]).n == 4
    assert DependenceList.model_validate(bank["dependences"]).dependences == []
    explained = IncidentView.model_validate(found["incidents"]["i1"])
    answers = {(one["a"], one["b"]): Comparison.model_validate(one["answer"]) for one in found["comparisons"]}
    assert list(answers) == [
        ("bank@#100", "bank@#3000"),  # the first with the last
        ("bank@#999", "bank@#1500"),  # around the incident
    ]
    assert view.compare is not None
    assert explained.compare is not None
    first_last, around = (answers[one.a, one.b] for one in (view.compare, explained.compare))
    assert (first_last.a.observation, first_last.b.observation) == (100, 3000)
    assert (around.a.observation, around.b.observation) == (900, 1500)
    assert around.features[0].feature == "salary"
    assert around.features[0].delta == pytest.approx(5.0 / 15 - 5.0 / 9)
    assert drawn.by == "observation"
    assert drawn.observation == [100 * i for i in range(1, 31)]


def test_what_has_no_time_has_none_in_the_file() -> None:
    """The store keeps 0 for it, which is the first of January 1970."""
    with store_of(replayed()) as store:
        found = whole(store, CONFIG)
    assert found["fleet"]["models"][0]["last_event_ms"] is None
    assert found["fleet"]["models"][0]["state"] == "explained"
    assert found["health"]["last_event_ms"] is None
    view = found["models"]["bank"]["view"]
    assert {one["first_ms"] for one in (*view["explainers"], *view["versions"])} == {None}
    assert {one["last_ms"] for one in (*view["explainers"], *view["versions"])} == {None}
    assert {one["answer"][side]["time_ms"] for one in found["comparisons"] for side in "ab"} == {None}


@pytest.mark.parametrize(
    ("times", "by"), [((NOW, NOW + HOUR), "time"), ((NOW, NOW), "observation"), ((None, None), "observation")]
)
def test_charts_count_observations_where_times_say_nothing(times: tuple[int | None, ...], by: str) -> None:
    records = [importance("bank", time_ms, 100 * (i + 1), {"a": 1.0}) for i, time_ms in enumerate(times)]
    with store_of(records) as store:
        drawn = whole(store, CONFIG)["models"]["bank"]["series"]["pfi"]
    assert (drawn["by"], drawn["observation"]) == (by, [100, 200])


@pytest.mark.parametrize(("n_features", "points", "shown"), [(3, 200, 3), (10, 200, 10), (15, 133, 15), (60, 100, 20)])
def test_a_series_has_as_many_points_as_there_is_room_for(
    n_features: int, points: int, shown: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, value in (("MOST_VALUES", 2_000), ("MOST_POINTS", 200)):
        monkeypatch.setattr(f"attributary_agents.serve.views.whole.{limit}", value)
    with store_of(replayed(points + 1, n_features)) as store:
        drawn = whole(store, CONFIG)["models"]["bank"]["series"]["pfi"]
    assert (len(drawn["observation"]), len(drawn["features"])) == (points, shown)
    assert drawn["others"]["n"] == n_features - shown


def test_a_feature_that_an_incident_names_is_in_the_file_however_little_it_matters_at_the_end() -> None:
    features = {**{f"f{i:02}": 1.0 + i for i in range(40)}, "salary": 0.0}
    told = incident("bank", None, 150, features=("salary",))
    with store_of([importance("bank", None, 100 * i, features) for i in (1, 2)], told) as store:
        drawn = whole(store, CONFIG)["models"]["bank"]["series"]["pfi"]
    assert [one["feature"] for one in drawn["features"]] == [f"f{i:02}" for i in range(39, 19, -1)] + ["salary"]


def test_comparisons_of_many_features_are_few() -> None:
    features = {f"f{i}": float(i) for i in range(1000)}
    told = [incident("bank", None, 200 + i, features=("f1",)) for i in range(20)]
    with store_of([importance("bank", None, 100 * i, features) for i in range(1, 6)], told) as store:
        texts = [(one["a"], one["b"]) for one in whole(store, CONFIG)["comparisons"]]
    assert len(texts) == 6
    assert texts[:2] == [("bank@#100", "bank@#500"), ("bank@#213", "bank@#319")]


def test_many_models_share_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attributary_agents.serve.views.whole.ALL_VALUES", 1200)
    records = [importance(f"m{k}", None, i, {"a": 1.0, "b": 2.0}) for k in range(4) for i in range(1, 301)]
    with store_of(records) as store:
        found = whole(store, CONFIG)
        two = whole(store, CONFIG, ["m1", "m0", "no such model"])
    n_points = [len(one["series"]["pfi"]["observation"]) for one in found["models"].values()]
    assert n_points == [150] * 4
    assert list(two["models"]) == ["m1", "m0"]
    assert len(two["models"]["m1"]["series"]["pfi"]["observation"]) == 300


def test_an_empty_store_is_a_file_that_says_so() -> None:
    with store_of() as store:
        found = whole(store, CONFIG)
    assert found["fleet"]["sentence"] == "No model has published anything yet · 0 dead letters"
    assert [one["model_id"] for one in found["fleet"]["configured"]] == ["bank", "bikes", "quiet"]
    assert (found["models"], found["incidents"], found["comparisons"]) == ({}, {}, [])


def test_the_file_says_what_the_interface_says() -> None:
    told: list[Any] = [importance("bank", NOW, 100, {"a": 1.0}), importance("bikes", NOW + HOUR, 50, {"hour": 2.0})]
    with store_of(told) as store:
        found = whole(store, CONFIG)
        asked = fleet(store, CONFIG, now_ms=NOW + HOUR, query="*", limit=200)
    assert found["fleet"] == asked.model_dump(mode="json")
    assert found["fleet"]["now_ms"] == NOW + HOUR
