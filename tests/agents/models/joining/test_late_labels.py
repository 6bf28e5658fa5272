"""Models whose labels come later: what is scored, what is explained, and when it is as if they had come at once."""

from __future__ import annotations

import copy
import math
import pickle
import random
from typing import Any

import pytest
from river import datasets

from attributary_agents.config.reading import parse_config
from attributary_agents.models.join import Arrival, arrive
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import StepError, prequential
from attributary_agents.models.swap import swap
from attributary_agents.models.versions import Version, configured_version
from attributary_explainers.monitor.events import Event
from attributary_topics import ImportanceEvent, LateLabel, Observation, Source, encode_json
from tests.agents.stand_ins import FACTORY

FOREST = {"model": {"class": "river.forest.ARFClassifier", "params": {"n_models": 3, "seed": 1}}}
LINEAR = {
    "model": [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LinearRegression"}],
    "loss": "squared",
}
PUBLISH = {"every": 50, "min_observations": 20}


def state_of(*, ttl: Any = None, **model: Any) -> ModelState:
    """The state of model m; with `ttl`, or more of its section, its labels come later."""
    late: dict[str, Any] = {}
    if ttl is not None:
        late["sources"] = {"s": {"topic": "s", "id": "id"}}
        waits = ttl if isinstance(ttl, dict) else {"ttl": ttl}
        late["labels"] = {"l": {"topic": "l", "id": "id", "y": "y", **waits}}
    config = parse_config({**late, "models": {"m": {"alpha": 0.01, "publish": PUBLISH, **model}}}).models["m"]
    return new_state("m", config, configured_version(config))


def run(state: ModelState, arrivals: list[Arrival]) -> list[Event]:
    events: list[Event] = []
    for n, arrival in enumerate(arrivals):
        ready = arrive(state, arrival, n)
        if ready is not None:
            observation, kept = ready
            events += prequential(state, observation, Source("t", 0, n), n, n_before=0, kept=kept)
    return events


def stream(n: int, kind: str = "forest") -> list[Observation]:
    data = datasets.Phishing() if kind == "forest" else datasets.TrumpApproval()
    return [Observation("m", dict(x), y, id=str(i), time_ms=i * 1000) for i, (x, y) in enumerate(data.take(n))]


def asked(observation: Observation) -> Observation:
    return Observation("m", observation.x, None, None, observation.id, observation.time_ms)


def labelled(observation: Observation, after_ms: int = 0) -> LateLabel:
    assert observation.id is not None
    assert observation.time_ms is not None
    return LateLabel("m", observation.id, observation.y, observation.time_ms + after_ms)


def said(events: list[Event]) -> list[bytes]:
    """What the events say beside where they come from, and what is said only where labels are late."""
    plain = []
    for event in events:
        fields = {name: getattr(event, name) for name in event.__dataclass_fields__}
        for name in ("source", "present_loss", "n_waiting", "n_expired", "label_delay_median_s"):
            fields.pop(name, None)
        plain.append(encode_json(fields))
    return plain


@pytest.mark.parametrize(("kind", "model"), [("forest", FOREST), ("linear", LINEAR)])
def test_labels_in_order_and_at_once_are_the_prequential_run_to_the_last_bit(kind: str, model: dict[str, Any]) -> None:
    rows = stream(400, kind)
    plain = state_of(**model)
    expected = [event for n, one in enumerate(rows) for event in prequential(plain, one, Source("t", 0, n), n)]
    late = state_of(ttl="1h", **model)
    events = run(late, [part for one in rows for part in (asked(one), labelled(one))])
    assert len(expected) >= 400 // 50
    assert said(events) == said(expected)
    assert late.model_loss.value == plain.model_loss.value
    assert late.present_loss is not None
    assert late.present_loss.value == plain.model_loss.value

    first = state_of(ttl="1h", **model)  # labels that come before their observations
    assert said(run(first, [part for one in rows for part in (labelled(one), asked(one))])) == said(expected)


def test_a_model_that_does_not_learn_joins_and_scores_the_same_in_any_order() -> None:
    rows = stream(300)
    losses = set()
    for seed in range(3):
        state = state_of(ttl="30d", factory=FACTORY, learn=False, explainers={}, change=None, watch_loss=False)
        parts: list[Arrival] = [part for one in rows for part in (asked(one), labelled(one, after_ms=5000))]
        for one in parts:
            if isinstance(one, Observation):
                one.x["a"] = float(one.id or 0) - 150.0
        random.Random(seed).shuffle(parts)
        total = 0.0
        for n, arrival in enumerate(parts):
            ready = arrive(state, arrival, n)
            if ready is not None:
                observation, kept = ready
                prequential(state, observation, Source("t", 0, n), n, kept=kept)
                assert kept is None or kept.y_pred is not None
                total += state.loss(observation.y, state.together.function(observation.x))
        assert state.late is not None
        assert state.late.labels is not None
        assert (state.late.labels.counts.joined, state.late.labels.n_waiting) == (300, 0)
        losses.add(round(total, 9))
    assert len(losses) == 1


def test_what_was_predicted_is_scored_and_the_present_model_is_explained() -> None:
    rows = stream(400)
    state = state_of(ttl="1h", **FOREST)
    predicted = {}
    # Labels come a hundred observations later: the model learns in between.
    for i, one in enumerate(rows):
        assert one.id is not None
        run(state, [asked(one)])
        predicted[one.id] = state.together.function(one.x)
        if i >= 100:
            run(state, [labelled(rows[i - 100])])
    assert state.n_observations == 300
    scored = [state.loss(rows[i].y, predicted[str(i)]) for i in range(300) if predicted[str(i)] is not None]
    assert len(scored) >= 199
    expected = _smoothed(scored, 0.01)
    assert state.model_loss.value == pytest.approx(expected, rel=1e-12)
    assert state.present_loss is not None
    assert state.present_loss.value is not None
    assert state.present_loss.value < 0.9 * expected, "by now it has learnt much of what these are like"


def _smoothed(values: list[float], alpha: float) -> float:
    """Weighted mean with weights (1 - alpha)^age, which begins with all of the first value."""
    weights = [(1 - alpha) ** (len(values) - 1 - i) for i in range(len(values))]
    return math.fsum(w * v for w, v in zip(weights, values, strict=True)) / math.fsum(weights)


def test_a_loss_of_an_old_version_is_counted_and_not_scored() -> None:
    rows = stream(20)
    state = state_of(ttl="1h", **FOREST)
    run(state, [part for one in rows[:10] for part in (asked(one), labelled(one))])
    run(state, [asked(one) for one in rows[10:15]])
    new = copy.deepcopy(state.model)
    state, _ = swap(state, Version("2", state.current.spec, new, 0), Source("t", 0, 30))
    run(state, [asked(one) for one in rows[15:]])
    run(state, [labelled(one) for one in rows[10:]])
    assert state.late is not None
    assert state.late.labels is not None
    assert state.late.labels.counts.old_version == 5
    assert state.late.labels.counts.joined == 20
    assert state.n_observations == 20
    assert state.model_loss.weights.n == 5  # of the new version alone


def test_an_observation_twice_is_a_dead_letter_and_changes_nothing() -> None:
    rows = stream(3)
    state = state_of(ttl="1h", **FOREST)
    run(state, [asked(rows[0])])
    for _ in range(2):  # while it waits, and after its label
        before = pickle.dumps({**state.snapshot(), "late": None, "n_failed": None})
        with pytest.raises(StepError) as told:
            run(state, [asked(rows[0])])
        assert told.value.reason == "duplicate_id"
        assert pickle.dumps({**state.snapshot(), "late": None, "n_failed": None}) == before
        run(state, [labelled(rows[0])])
    assert state.late is not None
    assert state.late.labels is not None
    assert state.late.labels.counts.repeated == 2
    assert state.late.labels.counts.duplicate == 1
    assert state.n_observations == 1


def test_events_say_what_waits_and_how_late_labels_are() -> None:
    rows = stream(60)
    state = state_of(ttl="20s", **FOREST)
    arrivals: list[Arrival] = []
    for i, one in enumerate(rows):
        arrivals.append(asked(one))
        if i >= 5 and i != 8:  # five seconds later; that of one never
            arrivals.append(labelled(rows[i - 5], after_ms=5000))
    told = [event for event in run(state, arrivals) if isinstance(event, ImportanceEvent)]
    (event,) = [event for event in told if event.observation == 50]
    assert (event.n_waiting, event.n_expired, event.label_delay_median_s) == (5, 1, 5.0)
    assert event.present_loss is not None


def test_the_state_is_the_same_after_it_has_been_stored_anywhere() -> None:
    rows = stream(120)
    rng = random.Random(1)
    parts: list[tuple[float, Arrival]] = []
    for i, one in enumerate(rows):
        parts.append((i, asked(one)))
        parts.append((i + rng.uniform(-3, 30), labelled(one, after_ms=1000)))
    arrivals = [part for _, part in sorted(parts, key=lambda pair: pair[0])]
    whole = state_of(ttl="40s", **FOREST)
    expected = said(run(whole, arrivals))
    for stop in (1, 37, 150, 239):
        state = state_of(ttl="40s", **FOREST)
        events = said(run(state, arrivals[:stop]))
        stored = pickle.loads(pickle.dumps(state.snapshot()))
        again = state_of(ttl="40s", **FOREST)
        again.current = Version(**{**stored["current"], "model": pickle.loads(stored["current"]["model"])})
        again = new_state("m", again.config, again.current)
        again.restore(stored)
        events += said(run(again, arrivals[stop:]))
        assert events == expected
        assert again.late is not None
        assert whole.late is not None
        assert again.late.snapshot() == whole.late.snapshot()


def test_a_prediction_that_only_now_is_absurd_is_refused_before_anything_is_changed_by_it() -> None:
    state = state_of(ttl="1h", factory="tests.agents.models.joining.test_modes:first", loss="squared", learn=False)
    run(state, [Observation("m", {"a": float(n), "b": 1.0}, None, None, str(n), n) for n in range(1, 6)])
    run(state, [LateLabel("m", str(n), 2.0 * n, 10) for n in range(1, 5)])
    explainer = state.explainers["pfi"]
    before = state.model_loss.snapshot(), dict(explainer.importance), explainer.n_observations
    state.model.weights["a"] = 1e200  # the square of which no number holds; what was predicted then was right
    with pytest.raises(StepError) as told:
        run(state, [LateLabel("m", "5", 10.0, 11)])
    assert told.value.reason == "prediction_not_finite"
    assert (state.model_loss.snapshot(), dict(explainer.importance), explainer.n_observations) == before
    assert state.present_loss is not None
    assert math.isfinite(state.present_loss.value or math.nan)


@pytest.mark.parametrize("is_early", [False, True])
def test_a_logged_prediction_is_compared_once_whichever_comes_first(is_early: bool) -> None:
    state = state_of(ttl="1h", factory="tests.agents.models.joining.test_modes:first", loss="squared", learn=False)
    for n in range(40):
        x = {"a": float(n % 7), "b": float(n % 3)}
        logged = state.model(x) + (100.0 if n % 4 == 0 else 0.0)
        parts: list[Arrival] = [Observation("m", x, None, logged, str(n), n), LateLabel("m", str(n), 1.0, n)]
        run(state, parts[::-1] if is_early else parts)
    assert state.mismatch.share.weights.n == 40
    assert state.mismatch.value == pytest.approx(0.25, abs=0.1)


def test_what_has_no_label_in_time_counts_in_the_mean_prediction_where_that_is_wanted() -> None:
    means = {}
    for unlabelled in ("drop", "explain"):
        state = state_of(
            ttl={"ttl": "10s", "unlabelled": unlabelled},
            factory="tests.agents.models.joining.test_modes:first",
            loss="squared",
            learn=False,
        )
        # Predictions are 2 for those that get labels, and 20 for those that get none.
        for n in range(200):
            x = {"a": 1.0 if n % 2 else 10.0, "b": 0.0}
            run(state, [Observation("m", x, None, None, str(n), n * 1000)])
            if n % 2:
                run(state, [LateLabel("m", str(n), 2.0, n * 1000)])
        means[unlabelled] = state.marginal.snapshot()["value"]
    assert means["drop"] == 2.0
    assert means["explain"] == pytest.approx(11.0, abs=1.0)


def test_what_a_model_predicted_that_begins_again_is_not_scored_and_what_was_logged_is() -> None:
    rows = stream(30)
    state = state_of(ttl="1h", **FOREST)
    run(state, [part for one in rows[:10] for part in (asked(one), labelled(one))])
    run(state, [asked(one) for one in rows[10:13]])
    x, y = rows[13].x, rows[13].y
    run(state, [Observation("m", x, None, y, "logged", 13_000)])
    state.begin_again()
    run(state, [part for one in rows[14:20] for part in (asked(one), labelled(one))])
    scored = state.model_loss.weights.n
    run(state, [labelled(one) for one in rows[10:13]])
    assert (state.model_loss.weights.n, state.n_observations) == (scored, 9)
    run(state, [LateLabel("m", "logged", y, 21_000)])
    assert (state.model_loss.weights.n, state.n_observations) == (scored + 1, 10)
    assert state.late is not None
    assert state.late.labels is not None
    assert (state.late.labels.counts.joined, state.late.labels.counts.old_version) == (20, 0)
