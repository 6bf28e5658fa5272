"""Importances over a window, the marks on it, and its limits, of hand-written events."""

from __future__ import annotations

import json
import math

import pytest

from attributary_agents.serve.views.series import MOST_FEATURES, MOST_POINTS, MOST_VALUES, series
from attributary_agents.serve.views.words import NotFoundError, WrongQuestionError

from .stores import DAY, HOUR, MINUTE, NOW, Arrived, config_of, importance, incident, store_of

CONFIG = config_of({"bank": {}})


def hourly(n: int, **fields: object) -> list[Arrived]:
    """An event per hour, at observations 100, 200, …; `a` rises by 0.01 each, `b` is 0.1."""
    return [
        importance("bank", NOW + i * HOUR, 100 * (i + 1), {"a": (0.2 + i / 100, 0.05), "b": (0.1, None)}, **fields)
        for i in range(n)
    ]


def test_each_event_is_a_point_where_there_are_few() -> None:
    with store_of(hourly(3, model_loss=0.25, n_waiting=7)) as store:
        found = series(store, CONFIG, "bank")
    assert (found.model_id, found.explainer, found.by, found.n_events) == ("bank", "pfi", "time", 3)
    assert found.time_ms == [NOW, NOW + HOUR, NOW + 2 * HOUR]
    assert found.observation == [100, 200, 300]
    a, b = found.features
    assert (a.feature, a.importance, a.low, a.high) == ("a", [0.2, 0.21, 0.22], [0.15, 0.16, 0.17], [0.25, 0.26, 0.27])
    assert a.share == pytest.approx([0.2 / 0.3, 0.21 / 0.31, 0.22 / 0.32], abs=1e-4)
    assert a.rank == [1, 1, 1]
    assert (a.latest, a.latest_half_width, a.latest_rank, a.moved) == (0.22, 0.05, 1, pytest.approx(0.02))
    assert (b.low, b.high, b.latest_half_width, b.moved) == ([None] * 3, [None] * 3, None, 0.0)
    assert found.others.n == 0
    assert found.figures.model_loss == [0.25] * 3
    assert found.figures.n_waiting == [7] * 3
    assert found.figures.fidelity == [None] * 3
    assert found.figures.quality == {"accuracy": [0.9] * 3}
    assert found.figures.quality_reference == {"accuracy": [0.95] * 3}
    assert found.loss.text == "brier loss: squared probability, at most 2"


@pytest.mark.parametrize(
    ("by", "start", "end", "observations"),
    [
        ("time", NOW + HOUR, NOW + 3 * HOUR, [200, 300, 400]),
        ("time", None, NOW, [100]),
        ("observation", 250, None, [300, 400, 500]),
        ("observation", 200, 200, [200]),
    ],
)
def test_the_bounds_of_a_window_are_in_it(by: str, start: int | None, end: int | None, observations: list[int]) -> None:
    with store_of(hourly(5)) as store:
        found = series(store, CONFIG, "bank", start=start, end=end, by=by)  # type: ignore[arg-type]
    assert found.observation == observations


@pytest.mark.parametrize(("n_features", "asked", "most"), [(10, 500, 200), (50, 200, 40), (200, 60, 40), (1, 3, 3)])
def test_points_times_features_are_limited(
    n_features: int, asked: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (MOST_VALUES, MOST_POINTS, MOST_FEATURES) == (20_000, 2_000, 50)
    monkeypatch.setattr("attributary_agents.serve.views.series.MOST_VALUES", 2_000)
    monkeypatch.setattr("attributary_agents.serve.views.series.MOST_POINTS", 200)
    features = {f"f{i}": 1.0 + i for i in range(n_features)}
    with store_of([importance("bank", NOW + i, i + 1, features) for i in range(most + 2)]) as store:
        found = series(store, CONFIG, "bank", points=asked, top=1000)
    assert len(found.observation) == most
    assert len(found.features) == min(n_features, 50)
    assert found.others.n == max(n_features - 50, 0)


def test_the_rest_is_counted_with_its_share() -> None:
    features = {f"f{i:03}": float(200 - i) for i in range(200)}
    with store_of(importance("bank", NOW, 100, features)) as store:
        found = series(store, CONFIG, "bank", top=10)
    assert [one.feature for one in found.features] == [f"f{i:03}" for i in range(10)]
    assert found.others.n == 190
    assert found.others.share == pytest.approx(sum(range(1, 191)) / sum(range(1, 201)), abs=1e-4)


def test_a_wild_value_does_not_widen_the_range() -> None:
    wild = importance("bank", NOW + 500 * HOUR, 60_000, {"a": (1e6, 10.0), "b": (0.1, 0.01)})
    ordinary = [importance("bank", NOW + i * HOUR, 100 * i + 1, {"a": (0.3, 0.1), "b": (0.1, 0.2)}) for i in range(400)]
    with store_of(ordinary, wild) as store:
        found = series(store, CONFIG, "bank")
    assert found.low == pytest.approx(-0.1)
    assert found.high == pytest.approx(0.4)
    assert max(value or 0.0 for value in found.features[0].importance) == 1e6


def test_a_feature_that_lost_its_importance_is_shown_where_an_incident_in_the_window_names_it() -> None:
    before = {"salary": 5.0, **{f"f{i}": 1.0 + i / 100 for i in range(20)}}
    after = {**before, "salary": 0.0}
    told = incident("bank", NOW + HOUR, 150, features=("salary",), life="over")
    with store_of(importance("bank", NOW, 100, before), importance("bank", NOW + 2 * HOUR, 200, after), told) as store:
        found = series(store, CONFIG, "bank", top=3)
        later = series(store, CONFIG, "bank", top=3, start=NOW + 2 * HOUR)
        asked = series(store, CONFIG, "bank", top=3, start=NOW + 2 * HOUR, features=["f0", "no such"])
    assert [one.feature for one in found.features] == ["f19", "f18", "f17", "salary"]
    assert found.features[-1].moved == -5.0
    assert [one.feature for one in later.features] == ["f19", "f18", "f17"]
    assert [one.feature for one in asked.features] == ["f19", "f18", "f17", "f0"]


def test_an_incident_is_marked_from_its_beginning_to_its_end() -> None:
    records = [
        incident("bank", NOW + 10 * MINUTE, 110, "over", life="suspected"),
        incident("bank", NOW + 10 * MINUTE, 110, "over", 2, life="over", severity="info", observation=160),
        incident("bank", NOW + 20 * MINUTE, 180, "chance", life="withdrawn"),
        incident("bank", NOW + 30 * MINUTE, 190, "open"),
    ]
    versions = [
        importance("bank", NOW, 100, {"a": 1.0}),
        importance("bank", NOW + HOUR, 200, {"a": 1.0}, model_version="2"),
    ]
    with store_of(records, versions) as store:
        found = series(store, CONFIG, "bank")
        part = series(store, CONFIG, "bank", start=NOW + 40 * MINUTE, end=NOW + 50 * MINUTE)
        counted = series(store, CONFIG, "bank", start=150, end=185, by="observation")
    marks = [
        (mark.kind, mark.incident_id, mark.observation, mark.end_observation, mark.standing) for mark in found.marks
    ]
    assert marks == [
        ("incident", "over", 110, 160, "over"),
        ("incident", "open", 190, None, "bad"),
        ("version", None, 200, None, None),
    ]
    over, still, version = found.marks
    assert (over.text, over.time_ms, over.end_ms) == ("bank is worse", NOW + 10 * MINUTE, NOW + 11 * MINUTE)
    assert (still.time_ms, still.end_ms) == (NOW + 30 * MINUTE, None)
    assert (version.text, version.time_ms) == ("version 2", NOW + HOUR)
    assert part.marks == [still], "it has not ended"
    assert counted.marks == [over], "it ends in the window"


@pytest.mark.parametrize(
    ("by", "start", "end", "nearest"),
    [
        ("time", NOW + 30 * HOUR, NOW + 40 * HOUR, 300),
        ("time", NOW - 2 * DAY, NOW - DAY, 100),
        ("time", NOW + HOUR + 5 * MINUTE, NOW + 2 * HOUR - MINUTE, 300),
        ("time", NOW + HOUR + MINUTE, NOW + 2 * HOUR - 5 * MINUTE, 200),
        ("observation", 301, None, 300),
        ("observation", None, 99, 100),
    ],
)
def test_a_window_without_events_names_the_nearest_one(
    by: str, start: int | None, end: int | None, nearest: int
) -> None:
    with store_of(hourly(3)) as store:
        found = series(store, CONFIG, "bank", start=start, end=end, by=by)  # type: ignore[arg-type]
    assert (found.n_events, found.features, found.observation, found.low) == (0, [], [], None)
    assert found.nearest_observation == nearest
    assert found.nearest_ms == NOW + (nearest // 100 - 1) * HOUR


def test_events_without_times_are_counted_by_observation() -> None:
    with store_of([importance("bank", None, 100 * i, {"a": 1.0 * i}) for i in range(1, 4)]) as store:
        found = series(store, CONFIG, "bank", by="observation")
    assert found.observation == [100, 200, 300]
    assert found.features[0].importance == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("value", [None, math.nan])
def test_numbers_that_are_not_known_are_null(value: float | None) -> None:
    """NaN is no JSON, and no browser reads it."""
    features = {"a": (value, value), "b": (0.5, 0.1)}
    with store_of(importance("bank", NOW, 100, features, model_loss=value, shift=value)) as store:
        found = series(store, CONFIG, "bank")
    text = found.model_dump_json()
    json.loads(text, parse_constant=pytest.fail)
    b = next(one for one in found.features if one.feature == "b")
    assert (b.importance, b.latest_half_width) == ([0.5], 0.1)
    a = next(one for one in found.features if one.feature == "a")
    assert (a.importance, a.latest, a.latest_share, a.moved) == ([None], None, None, None)
    assert found.figures.model_loss == [None]


@pytest.mark.parametrize("size", [1e6, 1e12, 1e-9, 1e35, -4.2])
def test_numbers_of_any_size_are_right_to_five_digits(size: float) -> None:
    with store_of(
        [importance("bank", NOW + i, i + 1, {"a": (size * (i + 1), abs(size) / 10)}) for i in range(9)]
    ) as store:
        (found,) = series(store, CONFIG, "bank").features
    assert found.importance == pytest.approx([size * (i + 1) for i in range(9)], rel=1e-5)
    assert found.latest == pytest.approx(size * 9, rel=1e-6)
    assert all(len(f"{value:.12g}".replace(".", "").strip("-0")) <= 12 for value in found.importance if value)


def test_a_line_that_hardly_moves_is_no_staircase() -> None:
    values = [1.0 + 1e-4 * i / 50 for i in range(51)]
    records = [importance("bank", NOW + i, i + 1, {"a": value}, model_loss=value) for i, value in enumerate(values)]
    with store_of(records) as store:
        found = series(store, CONFIG, "bank")
    assert len(set(found.features[0].importance)) == 51
    assert len(set(found.figures.model_loss)) == 51


def test_a_model_and_an_explainer_that_are_not_there_are_named_with_what_was_meant() -> None:
    with store_of(hourly(1)) as store:
        with pytest.raises(NotFoundError) as model:
            series(store, CONFIG, "bnak")
        with pytest.raises(NotFoundError) as explainer:
            series(store, CONFIG, "bank", "pfii")
        with pytest.raises(NotFoundError) as unlike:
            series(store, CONFIG, "x" * 10_000)
        with pytest.raises(WrongQuestionError, match="ends"):
            series(store, CONFIG, "bank", start=5, end=4)
    assert (model.value.detail, model.value.suggestion) == ("No model 'bnak'.", "bank")
    assert str(model.value) == "No model 'bnak'. Did you mean 'bank'?"
    assert (explainer.value.title, explainer.value.suggestion) == ("No such explainer", "pfi")
    assert (unlike.value.suggestion, len(unlike.value.detail) < 100) == ("", True)


def test_a_model_that_is_configured_says_when_it_will_publish() -> None:
    config = config_of({"bank": {"publish": {"every": 50}}, "store-*": {}})
    with store_of() as store:
        for model_id in ("bank", "store-7"):
            with pytest.raises(NotFoundError) as nothing:
                series(store, config, model_id)
            assert nothing.value.title == "No importance yet"
            assert nothing.value.detail.endswith(
                f" It publishes every {50 if model_id == 'bank' else 500} observations."
            )
        with pytest.raises(NotFoundError, match=r"No model 'store-\*'"):
            series(store, config, "store-*")


def test_names_of_any_kind_come_through_as_they_are() -> None:
    names = ["<script>alert(1)</script>", "quote\"'", "a\nb\x1b[31m", "x" * 300, "größe 🚀", "__proto__", ""]
    with store_of(importance("bank", NOW, 100, {name: 1.0 + i for i, name in enumerate(names)})) as store:
        found = series(store, CONFIG, "bank")
    assert {one.feature for one in found.features} == set(names)
