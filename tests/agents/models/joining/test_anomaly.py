"""Anomaly detectors in the worker: no label, one column of a score, and what each feature adds to it."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from sklearn.ensemble import IsolationForest

from attributary_agents.config.models import ModelConfig
from attributary_agents.config.reading import parse_config
from attributary_agents.errors import ConfigError
from attributary_agents.models.model_state import new_state
from attributary_agents.models.swap import swap
from attributary_agents.models.trial import check_model
from attributary_agents.models.versions import Version
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_topics import IncidentEvent, Observation, Source, decode_json, encode_json
from tests.agents.models.joining.test_modes import rows, run, state_of

HALF_SPACE = {
    "class": "river.anomaly.HalfSpaceTrees",
    "params": {"n_trees": 5, "height": 4, "window_size": 50, "seed": 1},
}
SCALED = {"class": "river.preprocessing.MinMaxScaler"}


class Rising:
    """A detector of somebody's, with a score that is known: 3 a - b + 10."""

    def __init__(self) -> None:
        self.learnt: list[dict[str, float]] = []

    def learn_one(self, x: dict[str, float]) -> None:
        self.learnt.append(x)

    def score_one(self, x: dict[str, float]) -> float:
        return 3.0 * x["a"] - x["b"] + 10.0


def rising() -> Rising:
    return Rising()


def forest() -> IsolationForest:
    return IsolationForest(n_estimators=10, random_state=1).fit([list(x.values()) for x in rows(200)])


def of(name: str, **more: Any) -> dict[str, Any]:
    return {"factory": f"{__name__}:{name}", "mode": "anomaly", **more}


def played(model: dict[str, Any], values: list[dict[str, Any]]) -> tuple[list[bytes], list[Any]]:
    """What a worker publishes of the values: importances, and the headers of dead letters."""
    config = parse_config({"models": {"m": {"alpha": 0.01, "publish": {"every": 100}, **model}}})
    partition = Partition("t", 0, config, load=lambda _key: None)
    sent = [
        one
        for n, value in enumerate(values)
        for one in partition.handle(Record("t", 0, n, 0, b"m", encode_json(value)))
    ]
    topics = config.kafka.topics
    importances = [one.value for one in sent if one.topic == topics.importances and one.value]
    return importances, [dict(one.headers) for one in sent if one.topic == topics.dead_letters]


@pytest.mark.parametrize(
    ("model", "mode"),
    [
        ({"model": HALF_SPACE}, "anomaly"),
        ({"model": [SCALED, HALF_SPACE]}, "anomaly"),
        ({"model": HALF_SPACE, "mode": "labelled"}, "labelled"),
        ({"model": {"class": "river.anomaly.GaussianScorer"}}, "labelled"),
        ({"model": {"class": "river.tree.HoeffdingTreeClassifier"}}, "labelled"),
        ({"factory": "m:f"}, "labelled"),
        ({"factory": "m:f", "mode": "anomaly"}, "anomaly"),
    ],
)
def test_the_mode_of_river_s_detectors_need_not_be_written(model: dict[str, Any], mode: str) -> None:
    assert ModelConfig.model_validate(model).mode == mode


def test_what_a_feature_adds_to_a_score_is_its_importance_and_the_mean_score_stands_beside_it() -> None:
    stream = [{"x": {**x, "a": x["a"] + (2.0 if n >= 1000 else 0.0)}} for n, x in enumerate(rows(1300))]
    explainers = {"pfi": {"n_samples": 5, "gap": 400}, "sage": {"n_samples": 5, "gap": 400}}
    events, dead = played(of("rising", explainers=explainers), stream)
    assert dead == []
    before, after = ([decode_json(one) for one in events if decode_json(one)["observation"] == n] for n in (1000, 1300))
    for event in (*before, *after):
        assert (event["mode"], event["loss"], event["loss_unit"]) == ("anomaly", "neg_score", "unit of the score")
        assert (event["baseline_loss"], event["quality"]) == (None, {})
    # 300 observations at alpha .01 weigh 1 - .99^300 = .951. Rows to draw from came before the shift.
    share = 1.0 - 0.99**300
    for quiet, loud in zip(before, after, strict=True):
        assert quiet["features"]["a"]["importance"] == pytest.approx(0.0, abs=1.0)
        assert loud["features"]["a"]["importance"] == pytest.approx(6.0 * share, abs=1.2)
        # The walks of sage start at the mean of earlier scores, and not at that of the rows that are drawn.
        assert loud["features"]["noise"]["importance"] == pytest.approx(0.0, abs=0.3 if loud is after[1] else 1e-9)
        assert loud["features"]["a"]["rank"] == 1
        mean = weighted([10.0 + 3.0 * value["x"]["a"] - value["x"]["b"] for value in stream], 0.01)
        assert loud["model_loss"] == pytest.approx(mean, rel=1e-9)


def weighted(scores: list[float], alpha: float) -> float:
    weights = [(1.0 - alpha) ** n for n in range(len(scores))]
    return sum(w * s for w, s in zip(weights, reversed(scores), strict=True)) / sum(weights)


def test_it_learns_each_observation_without_a_label() -> None:
    state = state_of(**of("rising"))
    stream = rows(30)
    run(state, [Observation("m", x, None) for x in stream])
    assert state.model.learnt == stream


def test_a_label_that_comes_all_the_same_is_read_by_nobody() -> None:
    stream = [{"x": x} for x in rows(300)]
    model = {"model": [SCALED, HALF_SPACE]}
    with_labels = [{**value, "y": n % 2} for n, value in enumerate(stream)]
    assert played(model, with_labels) == played(model, stream)
    assert len(played(model, stream)[0]) == 3


@pytest.mark.parametrize(
    "model",
    [
        [SCALED, HALF_SPACE],
        [
            {"class": "river.preprocessing.StandardScaler"},
            {"class": "river.anomaly.OneClassSVM", "params": {"nu": 0.1}},
        ],
        {"class": "river.anomaly.LocalOutlierFactor", "params": {"n_neighbors": 5}},
        {"class": "river.anomaly.QuantileFilter", "params": {"anomaly_detector": HALF_SPACE, "q": 0.95}},
        {"class": "river.anomaly.ThresholdFilter", "params": {"anomaly_detector": HALF_SPACE, "threshold": 0.9}},
    ],
)
def test_river_s_detectors_are_explained_and_their_state_can_be_stored(model: Any) -> None:
    rng = random.Random(1)
    stream = [{"x": {"a": rng.random(), "b": rng.random()}} for _ in range(200)]
    events, dead = played({"model": model}, stream)
    assert dead == []
    assert decode_json(events[-1])["n_observations"] >= 190
    check_model("m", ModelConfig.model_validate({"model": model}))


def test_a_trained_detector_of_scikit_learn_is_explained_where_it_does_not_learn() -> None:
    stream = [{"x": {**x, "noise": x["noise"] + (8.0 if n >= 300 else 0.0)}} for n, x in enumerate(rows(400))]
    events, dead = played(of("forest", learn=False, explainers={"pfi": {"n_samples": 2, "gap": 150}}), stream)
    assert dead == []
    assert decode_json(events[-1])["features"]["noise"]["rank"] == 1


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (of("forest"), "IsolationForest cannot learn one observation at a time"),
        (
            {"factory": f"{__name__}:rising"},
            "Rising is an anomaly detector, which learns without labels: add `mode: anomaly`",
        ),
        ({"model": {"class": "river.anomaly.GaussianScorer"}}, "its score depends on the target too"),
        (
            {"model": {"class": "river.tree.HoeffdingTreeClassifier"}, "mode": "anomaly"},
            "mode: anomaly needs an anomaly detector, and HoeffdingTreeClassifier is a classifier: leave `mode` out",
        ),
        ({**of("rising"), "loss": "squared"}, "`loss: squared` needs labels, and an anomaly detector has a score"),
        ({"model": HALF_SPACE, "quality": ["roc_auc"]}, "`mode: anomaly` needs `quality: []`"),
        ({"model": HALF_SPACE, "change": {}}, "`mode: anomaly` needs `change: null`"),
        (
            of("forest", learn=False, change={"detector": "adwin"}),
            "`mode: anomaly` needs `change: {detector: null}`: a score",
        ),
        ({"model": HALF_SPACE, "watch_loss": True}, "`mode: anomaly` needs `watch_loss: false`"),
        (
            {"model": HALF_SPACE, "change": {}, "quality": ["roc_auc"], "watch_loss": True},
            "`mode: anomaly` needs `watch_loss: false` and `quality: []` and `change: null`: a score is not right or "
            "wrong without labels. Write that here, also where `defaults` say otherwise; or, for a detector whose "
            "observations have labels, which it does not read, `mode: labelled`",
        ),
    ],
)
def test_what_does_not_go_together_is_said_in_a_line(model: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        made(model)
    assert "\n" not in str(caught.value).strip()


@pytest.mark.parametrize(
    "instead", [{"change": None, "watch_loss": False, "quality": []}, {"mode": "labelled", "quality": []}]
)
def test_what_the_refusal_of_an_earlier_configuration_says_is_what_to_write(instead: dict[str, Any]) -> None:
    defaults = {"change": {"window": 500}, "watch_loss": True, "quality": ["roc_auc"]}
    config = {"defaults": defaults, "models": {"m": {"model": HALF_SPACE}}}
    with pytest.raises(ConfigError, match=r"models\.m: `mode: anomaly` needs .*also where `defaults` say otherwise"):
        parse_config(config)
    model = parse_config({**config, "models": {"m": {"model": HALF_SPACE, **instead}}}).models["m"]
    check_model("m", model)
    assert model.mode == instead.get("mode", "anomaly")


def test_labels_of_a_detector_are_refused_and_a_source_needs_none() -> None:
    source = {"topic": "s", "id": "id", "x": {"all_but": ["id"]}}
    parse_config({"sources": {"s": source}, "models": {"m": {"model": HALF_SPACE}}})
    labels = {"l": {"topic": "l", "id": "id", "y": "y", "ttl": "1h"}}
    said = "labels.l: model m is an anomaly detector, which reads no labels: remove this section"
    with pytest.raises(ConfigError, match=re.escape(said)):
        parse_config({"sources": {"s": source}, "labels": labels, "models": {"m": {"model": HALF_SPACE}}})


def test_a_new_version_is_compared_by_its_scores_and_without_a_verdict() -> None:
    state = state_of(**of("rising", learn=False, change={"window": 200}))
    stream = [Observation("m", x, None) for x in rows(1500)]
    run(state, stream[:500])
    other = Other()
    state, (said,) = swap(state, Version("2", state.current.spec, other, 0), Source("t", 0, 0))
    assert isinstance(said, IncidentEvent)
    assert (said.what, said.life, said.mode) == ("version", "suspected", "anomaly")
    event, *_ = (event for event in run(state, stream[500:]) if isinstance(event, IncidentEvent))
    assert (event.id, event.life, event.mode) == (said.id, "confirmed", "anomaly")
    told = event.explanation
    assert told is not None
    assert (told["route"], told["verdict"], told["losses"]) == ("version", None, None)


def test_that_another_version_has_taken_over_is_said_without_losses_too() -> None:
    state = state_of(**of("rising", learn=False, change={"window": 200}))
    run(state, [Observation("m", x, None) for x in rows(300)])
    state, _ = swap(state, Version("2", state.current.spec, Other(), 0), Source("t", 0, 0))
    state, (ended, said) = swap(state, Version("3", state.current.spec, Rising(), 0), Source("t", 0, 1))
    assert isinstance(ended, IncidentEvent)
    assert isinstance(said, IncidentEvent)
    assert (ended.life, ended.reason, ended.explanation) == ("over", "replaced", None)
    assert (ended.mode, said.mode, said.life) == ("anomaly", "anomaly", "suspected")


def test_a_detector_with_labels_is_watched_and_told_by_its_score() -> None:
    stream = [{"x": {"a": 0.0 if n < 600 else 1.0, "b": (n % 7) / 7.0, "noise": 0.0}, "y": 0} for n in range(1000)]
    config = parse_config({"models": {"m": of("fixed", mode="labelled", learn=False, change={"window": 100})}})
    partition = Partition("t", 0, config, load=lambda _key: None)
    sent = [
        one
        for n, value in enumerate(stream)
        for one in partition.handle(Record("t", 0, n, 0, b"m", encode_json(value)))
    ]
    incidents = [decode_json(one.value) for one in sent if one.topic == config.kafka.topics.incidents and one.value]
    assert {event["id"] for event in incidents} == {incidents[0]["id"]}
    assert incidents[0]["life"] == "suspected"
    told = next(event["explanation"] for event in incidents if event["explanation"])
    assert (told["route"], told["detector"]["signal"], told["verdict"]) == ("detector", "score", "harder")
    losses = told["losses"]
    assert losses["loss"] == "score"
    assert losses["reference_then"]["loss"] == pytest.approx(9.57, abs=0.005)
    assert losses["reference_now"]["loss"] == pytest.approx(12.6, abs=0.05)
    last = [decode_json(one.value) for one in sent if one.topic == config.kafka.topics.importances and one.value][-1]
    assert last["model_loss"] > 10.0
    assert last["baseline_loss"] is None  # the mean of scores is no better and no worse a score


def fixed() -> Rising:
    return Rising()


class Other(Rising):
    """A version that goes by something else."""

    def score_one(self, x: dict[str, float]) -> float:
        return 3.0 * x["noise"] + 10.0


def test_a_state_that_was_stored_goes_on_as_if_nothing_had_happened() -> None:
    state = new_state("m", parse_config({"models": {"m": {"model": [SCALED, HALF_SPACE]}}}).models["m"])
    assert state.loss.name == "score"
    assert {explainer.loss.name for explainer in state.explainers.values()} == {"neg_score"}
    assert state.loss_watch is None
    assert state.quality is None


def made(model: dict[str, Any]) -> None:
    check_model("m", parse_config({"models": {"m": model}}).models["m"])
