"""Partial dependence in a worker: its events are the model's exact curves, and of which features they come when."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

import pytest
from river import base, naive_bayes

from attributary_agents.config.models import ModelConfig
from attributary_agents.errors import ConfigError
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import Event, prequential
from attributary_agents.models.swap import swap
from attributary_agents.models.trial import check_model
from attributary_agents.models.versions import Version, configured_version
from attributary_agents.state.codec import decode_state, encode_state
from attributary_topics import DependenceEvent, Observation, Source, encode_json

ALPHA = 0.01
CITIES = ["Köln", "Łódź", "São Paulo"]


def price(x: dict[str, Any]) -> float:
    """Depend on all features together; one that is missing counts 5."""
    size, rooms = x.get("size", 5), x.get("rooms", 5)
    return float((size - 3) * rooms + {"Köln": 10, "Łódź": -4}.get(x.get("city", ""), 0) * rooms + x.get("new", 0))


def chances(x: dict[str, Any]) -> dict[Any, float]:
    """Give three classes probabilities."""
    high = 1.0 / (1.0 + 2.0 ** -(x["size"] - 5))
    return {"low": 0.9 - 0.8 * high, "high": 0.8 * high, "other": 0.1}


def houses(n: int, *, missing: float = 0.2) -> list[Observation]:
    """Make observations of which the first ten have every value: no grid changes after the first block."""
    rng = random.Random(7)
    made: list[Observation] = []
    for i in range(n):
        x: dict[str, Any] = {"size": i % 6 + 1, "city": CITIES[i % 3], "rooms": (1, 2.5, 4)[i % 3], "new": i % 2 == 0}
        if i >= 10:
            x["size"], x["city"] = rng.randint(1, 6), rng.choices(CITIES, (3, 2, 1))[0]
            x["rooms"] = None if rng.random() < missing else rng.choice([1, 2.5, 4])
            x["new"] = rng.random() < 0.5
        made.append(Observation("m", x, float(i % 7)))
    return made


def config(**settings: Any) -> ModelConfig:
    chosen = {
        "learn": False,
        "loss": "squared",
        "explainers": {"pdp": {"every": 640}},
        "change": None,
        "watch_loss": False,
        "quality": [],
        "publish": {"every": 20, "min_observations": 1},
        **settings,
    }
    return ModelConfig.model_validate(
        {"factory": "tests.agents.models.beside.test_dependence:make", "alpha": ALPHA, **chosen}
    )


def make() -> Callable[[dict[str, Any]], float]:
    return price


def state_of(model: Any = price, **settings: Any) -> ModelState:
    made = config(**settings)
    return new_state("m", made, configured_version(made, model))


def run(state: ModelState, stream: list[Observation]) -> list[Event]:
    events: list[Event] = []
    for observation in stream:
        n = state.n_observations + state.n_failed
        events += prequential(state, observation, Source("topic", 0, n), n)
    return events


def curves(state: ModelState, stream: list[Observation]) -> list[DependenceEvent]:
    return [event for event in run(state, stream) if isinstance(event, DependenceEvent)]


def exact(model: Callable[[dict[str, Any]], Any], rows: list[dict[str, Any]], feature: str, value: Any) -> float:
    """Return the weighted mean prediction over all rows that have the feature, set to a value."""
    weights = {i: (1.0 - ALPHA) ** (len(rows) - 1 - i) for i, row in enumerate(rows) if row.get(feature) is not None}
    total = sum(w * model({**present(rows[i]), feature: value}) for i, w in weights.items())
    return total / sum(weights.values())


def present(x: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in x.items() if value is not None}


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("mode", ["labelled", "unlabelled"])
def test_an_event_is_the_exact_curve_over_all_that_was_drawn(mode: str, missing: float) -> None:
    # Of a block of at most window / 4 rows all are asked, so nothing is left to chance. What has come in the first 320
    # observations is asked until 640.
    state, stream = (
        state_of(explainers={"pdp": {"every": 640, "window": 2000}}, mode=mode),
        houses(640, missing=missing),
    )
    found = [event for event in curves(state, stream) if event.observation == 640]
    assert [event.feature for event in found] == ["size", "city", "rooms", "new"]
    rows = [observation.x for observation in stream[:320]]
    for event in found:
        assert event.kind == ("category" if event.feature in ("city", "new") else "number")
        values = [{"true": True, "false": False}[v] for v in event.values] if event.feature == "new" else event.values
        assert len(values) == len(set(values)) == len({row[event.feature] for row in rows} - {None})
        assert event.mean == pytest.approx([exact(price, rows, event.feature, value) for value in values], abs=1e-9)
        assert event.half_width == [None] * len(values)
        assert (event.n_observations, event.explainer, event.label) == (640, "pdp", None)
        assert event.mode == (None if mode == "labelled" else mode)
    assert {type(value) for event in found for value in event.values if event.kind == "category"} == {str}


def test_the_curve_of_a_model_that_learns_follows_it() -> None:
    settings = {"learn": True, "loss": "brier", "explainers": {"pdp": {"every": 1000, "label": "yes", "window": 400}}}
    model = naive_bayes.GaussianNB()
    state = state_of(model, **settings)
    rng = random.Random(3)
    stream = []
    for _ in range(3000):
        x = {"size": rng.gauss(0.0, 1.0), "rooms": rng.gauss(0.0, 1.0)}
        stream.append(Observation("m", x, "yes" if x["size"] + 0.5 * x["rooms"] > 0 else "no"))
    found = [event for event in curves(state, stream) if event.observation == 3000]
    assert [event.feature for event in found] == ["size", "rooms"]
    for event in found:
        rows = [observation.x for observation in stream[-500:]]
        means = [
            exact(lambda x: model.predict_proba_one(x)["yes"], rows, event.feature, value) for value in event.values
        ]
        assert event.label == "yes"
        assert event.mean == pytest.approx(means, abs=0.06)
    assert max(m for m in found[0].mean if m is not None) > 0.8 > 0.2 > min(m for m in found[0].mean if m is not None)


def test_they_come_first_as_soon_as_there_are_curves_and_then_rarely() -> None:
    state = state_of(explainers={"pdp": {"every": 200}}, publish={"every": 25, "min_observations": 90})
    assert sorted({event.observation for event in curves(state, houses(650))}) == [100, 200, 400, 600]
    state = state_of(explainers={"pdp": {}}, publish={"every": 25, "min_observations": 1})
    assert sorted({event.observation for event in curves(state, houses(600))}) == [25, 250, 500], "ten times every"


def test_nothing_is_published_twice_where_nothing_was_explained_in_between() -> None:
    state = state_of(explainers={"pdp": {"every": 20}}, explain={"every": 50})
    found = sorted({event.observation for event in curves(state, houses(1200))})
    # What is explained at 50, 150, 250 and so on is told at the next multiple of 20.
    assert found[1:] == [n for n in range(found[0] + 10, 1201, 10) if (n % 50 == 0 and n % 20 == 0) or n % 100 == 60]


def test_without_importances_the_first_features_are_followed_and_named_ones_in_their_order() -> None:
    state = state_of(explainers={"pdp": {"max_features": 2}})
    assert {event.feature for event in curves(state, houses(300))} == {"size", "city"}
    state = state_of(explainers={"pdp": {"features": ["new", "size", "nowhere"]}})
    found = [event.feature for event in curves(state, houses(60))]
    assert found[:2] == ["new", "size"]
    assert set(found) == {"new", "size"}, "what is in no observation has no curve"


def first_then_last(x: dict[str, Any]) -> float:
    return float(3 * x["a"]) if x["phase"] == 0 else float(3 * x["d"])


def test_the_most_important_features_are_followed_and_others_when_these_have_become_it() -> None:
    rng = random.Random(1)
    stream = []
    for t in range(3000):
        x: dict[str, Any] = {name: rng.choice([-1.0, 0.0, 1.0]) for name in "abcd"}
        x["phase"] = int(t >= 1500)
        stream.append(Observation("m", x, first_then_last(x)))
    explainers = {"pfi": {"n_samples": 1}, "pdp": {"every": 500, "max_features": 1}}
    state = state_of(first_then_last, explainers=explainers, publish={"every": 100, "min_observations": 100})
    by_observation = {event.observation: event.feature for event in curves(state, stream)}
    assert [by_observation.get(n) for n in (500, 1000, 1500)] == ["a"] * 3
    assert by_observation[3000] == "d"
    (event,) = [event for event in curves(state, stream[:500]) if event.observation == 3500]
    assert len(event.values) == 3


def test_a_group_is_followed_by_its_features() -> None:
    rng = random.Random(1)
    stream = [
        Observation("m", x, float(x["d"] + x["c"])) for x in ({n: rng.gauss(0, 1) for n in "abcd"} for _ in range(400))
    ]
    state = state_of(
        lambda x: x["d"] + x["c"],
        groups={"last": ["d", "c"]},
        explainers={"pfi": {"n_samples": 1}, "pdp": {"max_features": 2}},
        publish={"every": 100, "min_observations": 100},
    )
    assert {event.feature for event in curves(state, stream)} == {"c", "d"}


@pytest.mark.parametrize(
    ("model", "label", "followed"),
    [
        (chances, None, "low"),
        (chances, "other", "other"),
        (lambda x: {True: 0.1, False: 0.9}, None, True),
        (lambda x: {1: 0.1, 0: 0.9}, None, 1),
        (lambda x: {"no": 0.8, "yes": 0.2}, None, "yes"),
        (lambda x: {"a": 0.2, 3: 0.8}, None, 3),
        (lambda x: {f"c{i:02}": 0.1 if i == 7 else 0.9 / 39 for i in range(40)}, None, "c07"),
    ],
    ids=["most probable", "named", "booleans", "numbers", "texts", "no order", "forty"],
)
def test_of_two_classes_the_larger_is_followed_and_of_more_the_most_probable(
    model: Any, label: Any, followed: Any
) -> None:
    settings = {"explainers": {"pdp": {"label": label}}, "publish": {"every": 20, "min_observations": 10}}
    state = state_of(model, loss="brier", **settings)
    (first, *_) = model(houses(1)[0].x)
    stream = [Observation("m", present(one.x), first) for one in houses(60)]
    assert {event.label for event in curves(state, stream)} == {followed}


def test_the_most_probable_class_is_so_over_all_that_came_before() -> None:
    rng = random.Random(2)

    def model(x: dict[str, Any]) -> dict[str, float]:
        return {"a": 0.7, "b": 0.2, "c": 0.1} if x["size"] > 1 else {"a": 0.0, "b": 0.0, "c": 1.0}

    stream = [Observation("m", {"size": rng.choice([2, 3, 4, 1])}, "a") for _ in range(49)]
    stream += [Observation("m", {"size": 1}, "a"), *stream]
    state = state_of(model, loss="brier", publish={"every": 20, "min_observations": 50})
    assert {event.label for event in curves(state, stream)} == {"a"}


def test_a_class_that_the_model_does_not_know_has_no_curve_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = state_of(chances, loss="brier", explainers={"pdp": {"label": "hihg"}})
    stream = [Observation("m", present(one.x), "low") for one in houses(100)]
    with caplog.at_level(logging.WARNING):
        assert curves(state, stream) == []
    assert caplog.text.count("no class 'hihg': the model knows 'low', 'high', 'other'") == 1


def test_without_values_no_text_and_no_category_of_an_observation_is_in_an_event() -> None:
    everything = state_of()
    quiet = state_of(explainers={"pdp": {"publish_values": False, "every": 640}})
    named = state_of(explainers={"pdp": {"publish_values": False, "features": ["city", "new", "size"]}})
    assert "Köln" in str(curves(everything, houses(60)))
    for state, features in ((quiet, {"size", "rooms"}), (named, {"size"})):
        found = curves(state, houses(700))
        assert {event.feature for event in found} == features
        assert {event.kind for event in found} == {"number"}
        assert not any(city in str(found) for city in CITIES)
        assert {type(value) for event in found for value in event.values} <= {int, float}


def test_a_category_that_is_a_number_and_a_long_text() -> None:
    long = "x" * 5000
    stream = [Observation("m", {"size": i % 2, "city": long}, 1.0) for i in range(60)]
    state = state_of(explainers={"pdp": {"categorical": ["size"]}})
    found = {event.feature: event for event in curves(state, stream)}
    assert (found["size"].kind, found["size"].values) == ("category", ["0", "1"])
    assert [len(str(value)) for value in found["city"].values] == [200]


def test_what_has_no_mean_prediction_is_refused_in_a_line() -> None:
    def refusal(model: str, **settings: Any) -> str:
        explainers = {"pdp": settings}
        made = ModelConfig.model_validate({"model": {"class": model}, "explainers": explainers, "change": None})
        with pytest.raises(ConfigError) as refused:
            check_model("m", made)
        return str(refused.value)

    said = refusal("river.linear_model.LinearRegression", label="yes")
    assert said == "models.m: explainers.pdp.label: expected None for a model that predicts numbers, got 'yes'"
    said = refusal("tests.agents.models.beside.test_dependence.Labels")
    assert said.startswith("models.m: explainers.pdp: Labels has no probabilities or numbers of which there is a mean:")
    assert "pdp: null" in said
    assert "\n" not in said


class Labels(base.Classifier):
    """Predicts a label, and no probabilities."""

    def predict_one(self, x: dict[str, Any]) -> bool:
        return True

    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        pass


def test_a_version_without_a_mean_prediction_goes_on_without(caplog: pytest.LogCaptureFixture) -> None:
    state = state_of(naive_bayes.GaussianNB(), learn=True, loss=None)
    stream = [Observation("m", present(one.x) | {"city": 1}, one.y > 3) for one in houses(60)]
    assert curves(state, stream)
    with caplog.at_level(logging.WARNING):
        other, _ = swap(state, Version("2", {}, Labels()), Source("topic", 0, 60))
    assert "version 2 goes on without pdp: explainers.pdp: Labels has no probabilities" in caplog.text
    assert other.pdp is None
    assert run(other, stream[:40]) == []


@pytest.mark.parametrize("stop", [1, 15, 60, 200, 333])
def test_a_state_that_is_stored_and_read_sends_the_same_events(stop: int) -> None:
    settings = {"explainers": {"pfi": {"n_samples": 1}, "pdp": {"window": 60, "every": 60, "max_features": 2}}}
    stream = houses(500)
    whole = state_of(**settings)
    expected = [encode_json(event) for event in run(whole, stream)]
    state = state_of(**settings)
    events = run(state, stream[:stop])
    read = decode_state("m", config(**settings), encode_state(state))
    assert [encode_json(event) for event in (*events, *run(read, stream[stop:]))] == expected
    assert sum(b'"dependence"' in event for event in expected) > 10


def test_other_parameters_begin_afresh_and_how_often_and_what_is_told_are_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = state_of(explainers={"pdp": {}})
    run(state, houses(100))
    stored = encode_state(state)
    same = decode_state("m", config(explainers={"pdp": {"every": 7, "publish_values": False}}), stored)
    assert same.pdp is not None
    assert same.pdp.explainer is not None
    assert same.pdp.explainer.n_observations == 100
    with caplog.at_level(logging.WARNING):
        other = decode_state("m", config(explainers={"pdp": {"grid_size": 3}}), stored)
    assert other.pdp is not None
    assert other.pdp.explainer is None
    assert "parameters of pdp changed in the configuration: it starts afresh" in caplog.text


def test_another_version_begins_its_own_curves() -> None:
    state = state_of(publish={"every": 50, "min_observations": 1})
    before = curves(state, houses(200))
    other, _ = swap(state, Version("2", {}, lambda x: 7.0), Source("topic", 0, 200))
    after = curves(other, houses(60))
    assert {event.model_version for event in before} == {"1"}
    assert {(event.model_version, event.observation) for event in after} == {("2", 250)}
    assert {mean for event in after for mean in event.mean} == {7.0}


def test_a_model_that_raises_on_what_it_is_asked_costs_no_observation() -> None:
    def model(x: dict[str, Any]) -> float:
        if x["size"] == 6 and x["city"] == "Köln":
            raise RuntimeError("never met")
        return 1.0

    stream = [one for one in houses(400) if not (one.x["size"] == 6 and one.x["city"] == "Köln")]
    state = state_of(model)
    with pytest.warns(UserWarning, match="RuntimeError"):
        found = curves(state, stream)
    assert state.n_failed == 0
    assert {event.feature for event in found} == {"size", "city", "rooms", "new"}
    assert {mean for event in found for mean in event.mean} == {1.0}


def test_a_policy_that_skips_missing_values_skips_them_here() -> None:
    state, stream = state_of(missing="skip"), houses(300)
    run(state, stream)
    assert state.pdp is not None
    assert state.pdp.explainer is not None
    assert state.pdp.explainer.n_observations == sum(None not in one.x.values() for one in stream) < 300


def test_memory_is_bounded() -> None:
    rng = random.Random(1)
    state = state_of(explainers={"pdp": {"window": 40, "grid_size": 4, "max_features": 3}})
    sizes = []
    for _ in range(6):
        stream = [
            Observation("m", {"size": rng.random(), "city": f"c{rng.randrange(10**6)}", "rooms": 1}, 1.0)
            for _ in range(300)
        ]
        run(state, stream)
        assert state.pdp is not None
        sizes.append(len(repr(state.pdp.snapshot())))
    assert max(sizes[2:]) < 1.3 * max(sizes[:2])
