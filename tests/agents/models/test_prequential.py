"""One observation through one model: the order of calls, their number, what raises, and what is published."""

from __future__ import annotations

from typing import Any

import pytest
from river import linear_model

from attributary_agents.config.models import ModelConfig
from attributary_agents.errors import ConfigError
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import StepError, prequential
from attributary_agents.models.trial import check_models
from attributary_agents.models.versions import configured_version
from attributary_explainers import ModelFailureWarning
from attributary_explainers.monitor.events import Event
from attributary_topics import ImportanceEvent, IncidentEvent, Observation, Source
from tests.agents.stand_ins import TOUCHY_FACTORY, CountingClassifier, TouchyClassifier, config_of, observations

NO_CHANGE: dict[str, Any] = {"change": None}
FEW = {"pfi": {"n_samples": 3}, "sage": {"n_samples": 2}}
CHANGE = {"window": 30, "threshold": 0.2, "detector_params": {"delta": 0.05}}


def state_of(model: Any = None, **settings: Any) -> ModelState:
    config = config_of(**settings).models["m"]
    return new_state("m", config, configured_version(config, model))


def run(state: ModelState, stream: list[Observation]) -> list[Event]:
    events: list[Event] = []
    for i, observation in enumerate(stream):
        events += prequential(state, observation, Source("topic", 0, i), 1000 + i)
    return events


def importances(events: list[Event]) -> list[ImportanceEvent]:
    return [event for event in events if isinstance(event, ImportanceEvent)]


def incidents(events: list[Event]) -> list[IncidentEvent]:
    return [event for event in events if isinstance(event, IncidentEvent)]


@pytest.mark.parametrize("settings", [{"change": None}, {"change": {"window": 20}}])
def test_everything_before_the_change_is_evaluated_before_the_model_learns(settings: dict[str, Any]) -> None:
    model = CountingClassifier()
    state = state_of(model, explainers=FEW, **settings)
    for i, observation in enumerate(observations(30)):
        model.calls.clear()
        prequential(state, observation, Source("topic", 0, i), 0)
        kinds = [what for what, _ in model.calls]
        learnt = kinds.index("learn")

        assert model.calls[0] == ("predict", observation.x)
        assert kinds.count("learn") == 1
        assert model.calls[learnt] == ("learn", observation.x)
        n_explained = 0 if i == 0 else 2 * 3 + (2 - 1) * 2
        assert learnt == 1 + n_explained, "all evaluations of explainers come before learning"
        assert "predict" not in kinds[learnt:], "the reference is a copy"


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("n_samples", [1, 4])
def test_the_number_of_evaluations_is_the_documented_one(d: int, n_samples: int) -> None:
    extra = {f"f{i}": float(i) for i in range(d - 1)}
    stream = [Observation("m", {"a": (-1.0) ** i * (i + 1), **extra}, i % 2 == 0) for i in range(6)]
    for name, expected in (("pfi", 1 + d * n_samples), ("sage", 1 + (d - 1) * n_samples)):
        model = CountingClassifier()
        state = state_of(model, explainers={name: {"n_samples": n_samples}}, **NO_CHANGE)
        counts = []
        for i, observation in enumerate(stream):
            model.calls.clear()
            prequential(state, observation, Source("topic", 0, i), 0)
            counts.append(len(model.predicted))
        assert counts == [1, *[expected] * 5], f"{name}: the first observation finds an empty reservoir"


def test_x_itself_is_predicted_once_for_all_explainers() -> None:
    model = CountingClassifier()
    state = state_of(model, explainers=FEW, **NO_CHANGE)
    stream = observations(30)
    run(state, stream)
    # A continuous feature: no mixture with another observation is equal to x.
    assert [sum(x == observation.x for x in model.predicted) for observation in stream] == [1] * 30


def test_a_model_that_does_not_learn_is_never_taught() -> None:
    model = CountingClassifier()
    run(state_of(model, learn=False, explainers=FEW, **NO_CHANGE), observations(10))
    assert {what for what, _ in model.calls} == {"predict"}


def test_neither_observation_nor_its_features_are_changed() -> None:
    stream = observations(10)
    before = [(dict(o.x), o.y) for o in stream]
    run(state_of(explainers=FEW, change=CHANGE), stream)
    assert [(o.x, o.y) for o in stream] == before


@pytest.mark.parametrize(("stage", "error"), [("predict", RuntimeError), ("learn", ValueError)])
def test_a_model_that_raises_is_reported_with_its_stage(stage: str, error: type[Exception]) -> None:
    # Of an order and its reverse, one has c in a coalition whose other features are replaced.
    both_ways = {**FEW, "sage": {"n_samples": 2, "n_permutations": 2}}
    state = state_of(factory=TOUCHY_FACTORY, explainers=both_ways, **NO_CHANGE)
    run(state, [Observation("m", {"a": o.x["a"], "b": o.x["b"], "c": "fine"}, o.y) for o in observations(5)])
    model: TouchyClassifier = state.model
    learnt = sum(map(sum, model.counts.values()))
    a = 0.25
    with pytest.raises(StepError) as caught:
        prequential(state, Observation("m", {"a": a, "b": 2 * a, "c": stage}, True), Source("topic", 0, 5), 0)

    assert caught.value.stage == stage
    assert isinstance(caught.value.error, error)
    assert str(caught.value).startswith(f"{stage}: {error.__name__}: cannot")
    assert (state.n_observations, state.n_failed) == (5, 1)
    assert sum(map(sum, model.counts.values())) == learnt + (stage == "learn")
    # It goes on as if nothing had been.
    prequential(state, Observation("m", {"a": 1.0, "b": 0.0, "c": "fine"}, True), Source("topic", 0, 6), 0)
    assert (state.n_observations, state.n_failed) == (6, 1)


def test_explainers_are_made_as_configured() -> None:
    sage = {"removal": "observational-trees", "sampling": "independent", "n_permutations": 3, "bias_correction": False}
    chosen = {"pfi": {"removal": "product", "reservoir": "sliding_window"}, "sage": sage}
    state = state_of(explainers=chosen, missing="skip", publish={"every": 5}, **NO_CHANGE)
    pfi, made = state.explainers["pfi"].parameters, state.explainers["sage"].parameters
    assert (pfi["removal"], pfi["reservoir"], pfi["sampling"]) == ("product", "sliding_window", "stratified")
    assert {name: made[name] for name in sage} == sage
    assert pfi["missing"] == made["missing"] == "skip"
    events = importances(run(state, observations(10)))
    assert {(event.explainer, event.removal) for event in events} == {
        ("pfi", "product"),
        ("sage", "observational-trees"),
    }


@pytest.mark.parametrize(
    ("missing", "seen", "skipped"),
    [
        ("value", {"a": 1.0, "b": None}, 0),
        ("absent", {"a": 1.0}, 0),
        ("skip", {"a": 1.0}, 1),
        ({"b": 9.0}, {"a": 1.0, "b": 9.0}, 0),
    ],
)
def test_model_and_explainers_read_missing_values_by_the_same_policy(missing: Any, seen: Any, skipped: int) -> None:
    model = CountingClassifier()
    state = state_of(model, missing=missing, explainers=FEW, **NO_CHANGE)
    run(state, [Observation("m", {"a": float(i), "b": 1.0}, i % 2 == 0) for i in range(5)])
    model.calls.clear()
    prequential(state, Observation("m", {"a": 1.0, "b": None}, True), Source("topic", 0, 5), 0)
    assert model.predicted[0] == seen
    assert [x for what, x in model.calls if what == "learn"] == [seen]
    assert [explainer.skipped["missing"] for explainer in state.explainers.values()] == [skipped] * len(FEW)


def test_a_model_that_raises_on_replaced_features_only_is_counted_and_goes_on_learning() -> None:
    # Of an order and its reverse, one has c in a coalition whose other features are replaced.
    both_ways = {**FEW, "sage": {"n_samples": 2, "n_permutations": 2}}
    state = state_of(factory=TOUCHY_FACTORY, explainers=both_ways, **NO_CHANGE)
    run(state, [Observation("m", {"a": o.x["a"], "b": o.x["b"], "c": "fine"}, o.y) for o in observations(5)])
    learnt = sum(map(sum, state.model.counts.values()))
    before = {name: (e.n_observations, e.importance, e.n_skipped) for name, e in state.explainers.items()}
    with pytest.warns(ModelFailureWarning, match="cannot predict a mixture"):
        prequential(state, Observation("m", {"a": 0.25, "b": 0.5, "c": "explain"}, True), Source("topic", 0, 5), 0)
    assert (state.n_observations, state.n_failed) == (6, 0)
    assert sum(map(sum, state.model.counts.values())) == learnt + 1
    for name, explainer in state.explainers.items():
        n, importance, n_skipped = before[name]
        assert (explainer.n_observations, explainer.importance) == (n, importance)
        assert (explainer.n_skipped, explainer.skipped["model_error"]) == (n_skipped + 1, 1)
        # Stored, it would make the model raise for every observation that draws it.
        assert all(row["c"] == "fine" for row in explainer.reservoir.rows)


def test_model_loss_and_baseline_loss_equal_their_definitions() -> None:
    alpha = 0.1
    state = state_of(alpha=alpha, loss="brier", explainers=FEW, publish={"every": 1}, **NO_CHANGE)
    twin = CountingClassifier()
    losses, baselines, predictions = [], [], []

    def mean(values: list[float]) -> float:
        weights = [alpha * (1 - alpha) ** (len(values) - 1 - i) for i in range(len(values))]
        return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)

    for i, observation in enumerate(observations(40, flip_at=20)):
        y = observation.y
        predictions.append(twin.predict_proba_one(observation.x))
        marginal = {label: mean([p[label] for p in predictions]) for label in (False, True)}
        losses.append(sum((p - (label == y)) ** 2 for label, p in predictions[-1].items()))
        baselines.append(sum((p - (label == y)) ** 2 for label, p in marginal.items()))
        twin.learn_one(observation.x, bool(y))
        for event in importances(prequential(state, observation, Source("topic", 0, i), 0)):
            assert event.model_loss == pytest.approx(mean(losses), rel=1e-12)
            assert event.baseline_loss == pytest.approx(mean(baselines), rel=1e-12)
    assert state.n_observations == 40


def test_a_model_without_a_prediction_yet_is_neither_scored_nor_explained() -> None:
    config = ModelConfig.model_validate({"model": {"class": "river.tree.HoeffdingTreeClassifier"}})
    state = new_state("m", config)
    assert state.together.predict({"a": 1.0, "b": 1.0}, explain=False) is None
    run(state, observations(1))
    assert state.model_loss.value is None
    assert state.n_observations == 1
    run(state, observations(3))
    assert state.model_loss.value is not None


def test_the_generators_of_models_and_explainers_differ_and_are_the_same_in_every_process() -> None:
    def numbers(model_id: str, seed: int, name: str) -> list[int]:
        state = new_state(model_id, config_of(model_id, seed=seed, explainers=FEW).models[model_id])
        generator = (state.change if name == "change" else state.explainers[name])._rng  # type: ignore[union-attr]
        drawn: list[int] = generator.integers(1000, size=8).tolist()
        return drawn

    keys = [(m, s, n) for m in ("m", "n") for s in (1, 2) for n in ("pfi", "sage", "change")]
    drawn = [numbers(*key) for key in keys]
    assert len({tuple(one) for one in drawn}) == len(keys)
    assert drawn == [numbers(*key) for key in keys]


def test_a_model_that_cannot_be_explained_as_configured_is_refused_by_name() -> None:
    regression = {"class": "river.linear_model.LinearRegression"}
    with pytest.raises(ConfigError, match=r"models\.m: .*LinearRegression is a regressor"):
        check_models(config_of(factory=None, model=regression, loss="cross_entropy"))
    with pytest.raises(ConfigError, match=r"models\.m: groups"):
        check_models(config_of(groups={"g": ["a"], "h": ["a"]}))
    state = new_state("m", config_of(factory=None, model=regression).models["m"])
    assert isinstance(state.model, linear_model.LinearRegression)
    assert state.loss.name == "squared"


class DivergingRegressor(linear_model.LinearRegression):
    """Predicts what it is told to: finite, but with a square that is not."""

    def predict_one(self, x: dict[str, Any]) -> float:
        return float(x["a"])


def test_a_right_prediction_whose_baseline_is_not_finite_leaves_the_means_as_they_were() -> None:
    def means(state: ModelState) -> list[Any]:
        return [one.snapshot() for one in (state.marginal, state.model_loss, state.baseline_loss)]

    state, twin = (state_of(DivergingRegressor(), loss="squared", learn=False, **NO_CHANGE) for _ in range(2))
    run(state, [Observation("m", {"a": 1.0}, 0.5)])
    before = means(state)
    run(state, [Observation("m", {"a": 1e160}, 1e160)])  # the mean prediction is off by so much that its square is not
    assert state.n_observations == 2
    assert means(state) == before
    run(state, [Observation("m", {"a": 2.0}, 0.5)])
    run(twin, [Observation("m", {"a": a}, 0.5) for a in (1.0, 2.0)])
    assert means(state) == means(twin)


def test_a_prediction_whose_loss_is_not_finite_is_neither_scored_nor_learnt() -> None:
    state = state_of(DivergingRegressor(), loss="squared", change=None, alpha=0.001)
    run(state, [Observation("m", {"a": 1.0}, 0.0)])
    weights = dict(state.model.weights)
    with pytest.raises(StepError, match=r"1e\+200, whose loss is inf.*models reset m.*models\.m\.bounds") as caught:
        run(state, [Observation("m", {"a": 1e200}, 0.0)])
    assert (caught.value.stage, caught.value.reason) == ("explain", "prediction_not_finite")
    assert state.model.weights == weights
    run(state, [Observation("m", {"a": 3.0}, 0.0)])
    assert (state.n_observations, state.n_failed) == (2, 1)
    weight = 0.999  # of the first of two, alpha 0.001
    assert state.model_loss.value == pytest.approx((weight * 1.0 + 9.0) / (weight + 1.0))
    assert state.baseline_loss.value is not None
    assert state.baseline_loss.value < float("inf")


class NaNFirst(linear_model.LinearRegression):
    """Predicts NaN until it has been taught something, and whenever it is asked about a negative number."""

    taught = 0

    def predict_one(self, x: dict[str, Any]) -> float:
        return float("nan") if self.taught < 3 or x["a"] < 0 else 1.0

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        self.taught += 1


def test_a_model_that_has_never_predicted_a_number_is_taught_and_later_nan_is_a_failure() -> None:
    state = state_of(NaNFirst(), change=None)
    run(state, [Observation("m", {"a": 1.0}, 2.0)] * 5)
    assert (state.n_observations, state.model.taught) == (5, 5)
    with pytest.raises(StepError, match="the model predicts nan") as caught:
        run(state, [Observation("m", {"a": -1.0}, 2.0)])
    assert (caught.value.stage, caught.value.reason) == ("predict", "prediction_not_finite")
    assert state.model.taught == 5


def test_one_absurd_number_does_not_ruin_a_linear_model() -> None:
    scaled = [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LinearRegression"}]
    for chosen in (scaled, scaled[1]):
        publish = {"every": 10, "min_observations": 1000}
        settings = config_of(factory=None, model=chosen, change=None, publish=publish, loss="squared").models["m"]
        state = new_state("m", settings)
        stream = [Observation("m", o.x, 2.0 * o.x["a"] - o.x["b"]) for o in observations(400)]
        run(state, stream[:200])
        for x in ({"a": 1e300, "b": 1.0}, {"a": 1.0, "b": -1e300}):
            with pytest.raises(StepError) as caught:
                run(state, [Observation("m", x, 1.0)])
            assert caught.value.reason == "prediction_not_finite"
        events = importances(run(state, stream[200:]))
        assert len(events) == 20
        assert not any(event.stale for event in events)
        assert state.model_loss.value is not None
        assert state.model_loss.value < 0.1
