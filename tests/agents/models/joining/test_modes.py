"""Models without labels, mirrors of a model in service, and requests whose response comes by itself."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from river import linear_model

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import ConfigError
from attributary_agents.models.join import Arrival, arrive
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import StepError, prequential
from attributary_agents.models.swap import swap
from attributary_agents.models.versions import Version, configured_version
from attributary_explainers.monitor.events import Event
from attributary_explainers.monitor.mismatch import Mismatch
from attributary_explainers.monitor.step import MATURE
from attributary_topics import ImportanceEvent, IncidentEvent, Observation, Response, Source, encode_json

PUBLISH = {"every": 100, "min_observations": 50}
LINEAR = {"model": {"class": "river.linear_model.LinearRegression"}, "loss": "squared"}


def state_of(source: dict[str, Any] | None = None, **model: Any) -> ModelState:
    given = {"alpha": 0.01, "publish": PUBLISH, **model}
    sources = {} if source is None else {"sources": {"s": {"topic": "s", **source}}}
    config = parse_config({**sources, "models": {"m": given}}).models["m"]
    return new_state("m", config, configured_version(config))


def run(state: ModelState, arrivals: list[Arrival], *, are_requests: bool = False) -> list[Event]:
    events: list[Event] = []
    for n, arrival in enumerate(arrivals):
        is_request = are_requests and isinstance(arrival, Observation)
        ready = arrive(state, arrival, n, is_request=is_request)
        if ready is not None:
            observation, kept = ready
            events += prequential(state, observation, Source("t", 0, n), n, kept=kept)
    return events


def rows(n: int, seed: int = 1) -> list[dict[str, float]]:
    rng = random.Random(seed)
    return [{"a": rng.gauss(0, 1), "b": rng.gauss(0, 1), "noise": rng.gauss(0, 1)} for _ in range(n)]


def served(x: dict[str, float]) -> float:
    return 3.0 * x["a"] - 1.0 * x["b"] + 10.0


class Weighted:
    """A model of somebody's: a weighted sum, which never learns."""

    def __init__(self, **weights: float) -> None:
        self.weights = weights

    def __call__(self, x: dict[str, float]) -> float:
        return sum(self.weights.get(name, 0.0) * value for name, value in x.items())


def first() -> Weighted:
    return Weighted(a=2.0, b=3.0)


def second() -> Weighted:
    return Weighted(a=2.0, noise=3.0)


UNLABELLED: dict[str, Any] = {
    "mode": "unlabelled",
    "factory": f"{__name__}:first",
    "loss": "squared",
    "explainers": {"pfi": {"n_samples": 5}},
}


def test_without_labels_the_importances_are_of_the_model_s_own_output() -> None:
    state = state_of(**UNLABELLED)
    events = run(state, [Observation("m", x, None) for x in rows(1000)])
    (event,) = [event for event in events if isinstance(event, ImportanceEvent) and event.observation == 1000]
    # Closed form: E (w (x - x'))^2 = 2 w^2 Var x, for squared loss against f(x) itself.
    importance = {name: one.importance for name, one in event.features.items()}
    assert importance["a"] == pytest.approx(8.0, rel=0.25)
    assert importance["b"] == pytest.approx(18.0, rel=0.25)
    assert importance["noise"] == 0.0
    assert (event.mode, event.model_loss, event.baseline_loss, event.quality) == ("unlabelled", None, None, {})
    assert b'"fidelity"' not in encode_json(event)


def test_a_new_version_is_explained_without_labels_and_without_a_verdict() -> None:
    state = state_of(change={"window": 200}, **UNLABELLED)
    stream = [Observation("m", x, None) for x in rows(1500)]
    run(state, stream[:500])
    state, (said,) = swap(state, Version("2", state.current.spec, second(), 0), Source("t", 0, 0))
    assert isinstance(said, IncidentEvent)
    first, *_ = (event for event in run(state, stream[500:]) if isinstance(event, IncidentEvent))
    assert (first.id, first.life, first.what, first.severity) == (said.id, "confirmed", "version", "info")
    told = first.explanation
    assert told is not None
    assert (told["route"], told["verdict"], told["losses"]) == ("version", None, None)
    changed = {name for name, one in told["importances"]["pfi"]["features"].items() if one["significant"]}
    assert changed == {name for name, one in first.features.items() if one.significant} == {"b", "noise"}
    for event in (said, first):
        assert (event.mode, event.loss) == ("unlabelled", "squared")
        assert [(effect.before, effect.after, effect.now) for effect in event.effects] == [(None, None, None)]


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"learn": True}, "learn: false"),
        ({"watch_loss": True}, "watch_loss: false"),
        ({"quality": ["mae"]}, "quality: []"),
        ({"change": {"detector": "adwin"}}, "change.detector: null"),
    ],
)
def test_what_needs_labels_is_refused_without_them(settings: dict[str, Any], remedy: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"`mode: unlabelled` needs `{remedy}`")):
        state_of(**{**UNLABELLED, **settings})


def test_an_incident_of_a_mirror_says_so_and_measures_how_far_it_is_from_what_is_served() -> None:
    state = state_of(mode="mirror", model=LINEAR["model"], loss="squared")
    run(state, [Observation("m", x, None, y_pred=served(x)) for x in rows(500)])
    state, (said,) = swap(
        state, Version("2", state.current.spec, linear_model.LinearRegression(), 0), Source("t", 0, 0)
    )
    assert isinstance(said, IncidentEvent)
    assert (said.what, said.mode) == ("version", "mirror")
    loss, measured = said.effects
    assert (loss.name, measured.name) == ("loss", "mean absolute error")
    assert measured.before is not None
    assert measured.before.value > 0.0


def test_a_mirror_learns_what_is_served_and_says_how_well() -> None:
    state = state_of(mode="mirror", model=LINEAR["model"], loss="squared")
    events = run(state, [Observation("m", x, None, y_pred=served(x)) for x in rows(3000)])
    last = [event for event in events if isinstance(event, ImportanceEvent)][-1]
    assert last.mode == "mirror"
    assert last.fidelity is not None
    assert last.fidelity == pytest.approx(1 - (last.model_loss or 0) / (last.baseline_loss or 1), abs=1e-12)
    assert last.fidelity > 0.95
    importance = {name: one.importance for name, one in last.features.items()}
    assert importance["a"] == pytest.approx(18.0, rel=0.3)
    assert importance["b"] == pytest.approx(2.0, rel=0.5)
    assert abs(importance["noise"]) < 0.2
    assert state.change is not None
    assert state.change.n_observations == 3000 - MATURE, "before, it only became alike"


def test_a_mirror_that_does_not_learn_is_refused() -> None:
    with pytest.raises(ConfigError, match="`mode: mirror` needs `learn: true`"):
        state_of(mode="mirror", learn=False, **LINEAR)


def test_a_mirror_of_classes_learns_the_most_probable_one() -> None:
    state = state_of(mode="mirror", model={"class": "river.tree.HoeffdingTreeClassifier"})
    stream = []
    for x in rows(600):
        p = 0.9 if x["a"] > 0 else 0.2
        stream.append(Observation("m", x, None, y_pred={"yes": p, "no": 1 - p}))
    events = run(state, stream)
    last = [event for event in events if isinstance(event, ImportanceEvent)][-1]
    assert max(last.features, key=lambda name: last.features[name].importance) == "a"
    assert last.fidelity is not None
    assert last.fidelity > 0.5


def test_predictions_of_another_model_than_the_one_in_service_are_told() -> None:
    stream = rows(400)
    right = state_of(**UNLABELLED)
    run(right, [Observation("m", x, None, y_pred=first()(x)) for x in stream])
    assert right.mismatch.value == 0.0
    other = state_of(**UNLABELLED)
    run(other, [Observation("m", x, None, y_pred=second()(x)) for x in stream])
    assert other.mismatch.value is not None
    assert other.mismatch.value > 0.9
    silent = state_of(**UNLABELLED)
    run(silent, [Observation("m", x, None) for x in stream])
    assert silent.mismatch.value is None


def test_request_and_response_are_one_observation_whichever_comes_first() -> None:
    source = {"format": "open-inference", "y_pred": "outputs.score", "pair": "60s"}
    inputs = rows(300)
    whole = state_of(mode="mirror", **LINEAR)
    expected = run(whole, [Observation("m", x, None, y_pred=served(x)) for x in inputs])
    for seed in range(3):
        rng = random.Random(seed)
        parts: list[Arrival] = []
        for i, x in enumerate(inputs):
            pair: list[Arrival] = [Observation("m", x, None, id=str(i), time_ms=i), Response("m", str(i), served(x), i)]
            rng.shuffle(pair)
            parts += pair
        state = state_of(source, mode="mirror", **LINEAR)
        events = run(state, parts, are_requests=True)
        assert len(events) == len(expected)
        assert [event.features for event in events if isinstance(event, ImportanceEvent)] == [
            event.features for event in expected if isinstance(event, ImportanceEvent)
        ]
        assert state.late is not None
        assert state.late.pairs is not None
        assert (state.late.pairs.counts.joined, state.late.pairs.n_waiting) == (300, 0)


def test_a_request_without_a_response_expires_and_is_counted() -> None:
    source = {"format": "open-inference", "y_pred": "outputs.score", "pair": "60s"}
    state = state_of(source, mode="mirror", **LINEAR)
    stream: list[Arrival] = [Observation("m", x, None, id=str(i), time_ms=i * 10_000) for i, x in enumerate(rows(10))]
    run(state, stream, are_requests=True)
    assert state.late is not None
    assert state.late.pairs is not None
    assert (state.late.pairs.n_expired, state.late.pairs.n_waiting, state.n_observations) == (3, 7, 0)


@pytest.mark.parametrize(
    ("logged", "y", "expected"),
    [
        (0.25, True, {True: 0.25, False: 0.75}),
        (0.25, 1, {1: 0.25, 0: 0.75}),
        ("yes", "no", {"yes": 1.0}),
        ({"true": 0.25, "false": 0.75}, True, {True: 0.25, False: 0.75}),
        ({"3": 0.5, "4": 0.5}, 3, {3: 0.5, 4: 0.5}),
    ],
)
def test_a_logged_prediction_is_read_as_the_labels_are(logged: Any, y: Any, expected: dict[Any, float]) -> None:
    from attributary_explainers.monitor.mismatch import as_output

    assert as_output(logged, y, "probabilities") == expected


@pytest.mark.parametrize(
    ("logged", "own", "differ"),
    [
        (True, {True: 0.7, False: 0.3}, 0.0),
        (1, {True: 0.7, False: 0.3}, 0.0),
        (0, {True: 0.7, False: 0.3}, 1.0),
        ("true", {True: 0.7, False: 0.3}, 0.0),
        ({"true": 0.4, "false": 0.6}, {True: 0.3, False: 0.7}, 0.0),
        ({"true": 0.6, "false": 0.4}, {True: 0.3, False: 0.7}, 1.0),
        (True, {1: 0.7, 0: 0.3}, 0.0),
        (False, {1: 0.7, 0: 0.3}, 1.0),
        ({"3": 0.6, "4": 0.4}, {3: 0.9, 4: 0.1}, 0.0),
        ("4", {3: 0.9, 4: 0.1}, 1.0),
        ("yes", {"yes": 0.9, "no": 0.1}, 0.0),
        ("no", "no", 0.0),
        (0.7, {True: 0.7, False: 0.3}, None),
        (3.0, 3.0, 0.0),
        (3.5, 3.0, 1.0),
    ],
)
def test_a_logged_class_is_the_model_s_own_however_logs_write_it(logged: Any, own: Any, differ: float | None) -> None:
    mismatch = Mismatch(0.01)
    mismatch.update(logged, own)
    assert mismatch.value == differ


def test_numbers_agree_within_a_hundredth_of_the_spread_of_those_logged() -> None:
    for off, expected in ((0.9, 0.0), (1.1, 1.0)):
        mismatch = Mismatch(0.01)
        for n in range(100):
            logged = 100.0 if n % 2 else -100.0  # a spread of 100
            mismatch.update(logged, logged + off)
        assert mismatch.value == pytest.approx(expected, abs=0.05)


def test_a_logged_prediction_of_another_kind_is_a_dead_letter_of_its_label() -> None:
    from attributary_topics import LateLabel

    config = parse_config(
        {
            "sources": {"s": {"topic": "s", "id": "id", "y_pred": "score"}},
            "labels": {"l": {"topic": "l", "id": "id", "y": "y", "ttl": "1h"}},
            "models": {"m": {"model": {"class": "river.tree.HoeffdingTreeClassifier"}}},
        }
    ).models["m"]
    state = new_state("m", config, configured_version(config))
    for n, x in enumerate(rows(20)):
        y = "yes" if x["a"] > 0 else "no"
        run(state, [Observation("m", x, None, y_pred=None, id=f"w{n}", time_ms=n), LateLabel("m", f"w{n}", y, n)])
    run(state, [Observation("m", rows(1)[0], None, y_pred=0.7, id="odd", time_ms=30)])
    with pytest.raises(StepError) as told:
        run(state, [LateLabel("m", "odd", "yes", 31)])
    assert told.value.reason == "wrong_prediction"
