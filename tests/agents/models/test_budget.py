"""A budget for explaining: the stride that it leads to, what is explained at a stride, and crashes in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from attributary_agents.config.explainers import ExplainConfig
from attributary_agents.kafka.observations import encode_value
from attributary_agents.models.budget import Budget, StageTimer, next_stride
from attributary_agents.models.model_state import ModelState
from attributary_agents.models.prequential import StepError, prequential
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_topics import Observation, Source
from tests.agents.models.test_prequential import FEW, NO_CHANGE, importances, run
from tests.agents.models.test_prequential import state_of as a_state
from tests.agents.stand_ins import TOPIC, TOUCHY_FACTORY, CountingClassifier, config_of, observations
from tests.delivery.remains import Log, Storing, checkpoint, store_models

TENTH = ExplainConfig(budget=0.1, max_lag=1000)


def state_of(model: Any = None, **settings: Any) -> ModelState:
    return a_state(model, **{"explainers": FEW, **NO_CHANGE, **settings})


@pytest.mark.parametrize(
    ("stride", "share", "lag", "lag_before", "expected"),
    [
        (1, 0.05, 0, 0, 1),
        (1, 0.1, 0, 0, 1),
        (1, 0.105, 0, 0, 1),  # within a tenth
        (1, 0.15, 0, 0, 2),
        (1, 0.9, 0, 0, 2),  # by two at most
        (1, 1.0, 0, 0, 2),
        (8, 0.9, 0, 0, 16),
        (40, 0.9, 0, 0, 64),
        (64, 0.9, 0, 0, 64),
        (8, 0.12, 0, 0, 10),  # 8 * 0.12 * 0.9 / (0.1 * 0.88) = 9.8
        (8, 0.08, 0, 0, 8),  # 6.3 is wanted, and 6.3 / 0.8 = 7.8
        (8, 0.05, 0, 0, 5),
        (8, 0.001, 0, 0, 4),
        (3, 0.001, 0, 0, 2),
        (2, 0.06, 0, 0, 2),
        (2, 0.04, 0, 0, 1),
        (1, 0.0, 0, 0, 1),
        (4, None, 5000, 0, 4),  # nothing is known
        (4, 0.05, 1001, 5000, 8),  # behind
        (64, 0.05, 1001, 5000, 64),
        (4, 0.005, 1001, 0, 4),  # explaining is not what takes the time
        (4, 0.05, 500, 100, 8),  # falling behind
        (4, 0.05, 500, 500, 4),  # not any more; not yet small either
        (4, 0.2, 500, 500, 8),
        (4, 0.05, 100, 0, 3),  # small
        (4, 0.05, 60, 10, 3),
    ],
)
def test_the_next_stride(stride: int, share: float | None, lag: int, lag_before: int, expected: int) -> None:
    assert next_stride(stride, share, lag, lag_before, TENTH) == expected


@pytest.mark.parametrize("config", [ExplainConfig(), ExplainConfig(every=3)])
def test_without_a_budget_the_stride_stays(config: ExplainConfig) -> None:
    assert next_stride(1, 0.9, 10**6, 0, config) == 1


@pytest.mark.parametrize("budget", [0.05, 0.3, 0.7])
@pytest.mark.parametrize("explaining", [0.01, 0.2, 0.3, 1.0, 7.0])
def test_the_stride_comes_to_rest_within_the_budget(budget: float, explaining: float) -> None:
    """Time 1 for the rest of an observation, `explaining` for one explained; it was 50 times that before."""
    config, stride, strides = ExplainConfig(budget=budget), 1, []
    for i in range(40):
        e = explaining * (50 if i < 12 else 1) / stride
        stride = next_stride(stride, e / (1 + e), 0, 0, config)
        strides.append(stride)
    assert len(set(strides[-20:])) == 1
    share = explaining / stride / (1 + explaining / stride)
    assert stride == 64 or share <= 1.1 * budget
    # Not many more are passed over than have to be.
    assert stride <= 1 + 1.25 * explaining * (1 - budget) / budget + 1


class Clock:
    """Goes on by what it is told to before it is read."""

    def __init__(self, steps: Iterator[float]) -> None:
        self.now, self._steps = 0.0, steps

    def __call__(self) -> float:
        self.now += next(self._steps)
        return self.now


def timer_of(*observations: tuple[float, float, float, int | None]) -> StageTimer:
    """Per observation: seconds to predict, to explain, for all else, and rows."""
    timer = StageTimer()
    for predict, explain, rest, rows in observations:
        timer.add(predict, explain, predict + explain + rest, rows)
    return timer


def test_the_times_of_an_observation_are_those_of_its_stages() -> None:
    # Read when it begins, is predicted, scored, explained and done: prediction 1, explaining 4, in all 1 + 2 + 4 + 8.
    state, timer = state_of(), StageTimer(Clock(iter([0.0, 1.0, 2.0, 4.0, 8.0] * 10)))
    for i, observation in enumerate(observations(10)):
        prequential(state, observation, Source("topic", 0, i), 0, timer)
    rows = 1 + 2 * 3 + 2  # the first has nothing to draw from: one row
    alone = 10 * 1.0 / (9 * rows + 1)
    assert timer.share == pytest.approx((10 * (1.0 - alone) + 10 * 4.0) / (10 * 15.0))


def test_the_share_leaves_out_what_the_prediction_takes_alone() -> None:
    # Ten rows in a second and a quarter of one: an eighth is that of the prediction.
    assert timer_of(*[(1.25, 0.25, 2.5, 10)] * 10).share == pytest.approx((1.125 + 0.25) / 4.0)
    # Where some were passed over it is known: half a second.
    some = timer_of(*[(1.25, 0.25, 2.5, 10), (0.5, 0.25, 3.25, None)] * 10)
    assert some.share == pytest.approx((0.75 + 0.25) / 8.0)
    # A fast path can be faster than the model alone: then the rows took nothing.
    assert timer_of(*[(1.0, 0.5, 2.5, 10), (2.0, 0.0, 2.0, None)] * 10).share == pytest.approx(0.5 / 8.0)


@pytest.mark.parametrize(("explain", "period"), [({}, 8), ({"every": 1}, 1), ({"every": 8}, 1), ({"budget": 0.2}, 1)])
def test_without_a_budget_one_observation_in_eight_is_measured_for_the_metric(
    explain: dict[str, Any], period: int
) -> None:
    state, readings = state_of(explain=explain), iter([0.0, 1.0, 2.0, 4.0, 8.0] * 160)
    clock = Clock(readings)
    budget = Budget(clock)
    for i, observation in enumerate(observations(160)):
        prequential(state, observation, Source("topic", 0, i), 0, budget.timer(state))
    assert len(list(readings)) == 5 * (160 - 160 // period)
    rows = 1 + 2 * 3 + 2
    share = budget.adapt(state)
    if explain in ({}, {"every": 1}):  # of each measured one, 1 second of prediction and 4 of explaining in 15
        first = 0 if period > 1 else 1  # which has nothing to draw from: one row
        alone = (160 // period) / ((160 // period - first) * rows + first)
        assert share == pytest.approx((1.0 - alone + 4.0) / 15.0)
    else:
        assert share is not None
    assert budget.timer(state).share is None


def test_few_observations_have_no_share() -> None:
    assert timer_of(*[(1.0, 1.0, 1.0, 5)] * 7, *[(1.0, 1.0, 1.0, None)] * 50).share is None
    assert StageTimer().share is None
    timer = timer_of(*[(1.0, 1.0, 1.0, 5)] * 8)
    assert timer.share is not None
    timer.reset()
    assert timer.share is None


@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_every_so_many_observations_one_is_explained(every: int) -> None:
    model, plain = CountingClassifier(), CountingClassifier()
    state, all_explained = state_of(model, explain={"every": every}), state_of(plain)
    for i, observation in enumerate(observations(60), start=1):
        model.calls.clear()
        prequential(state, observation, Source("topic", 0, i), 0)
        prequential(all_explained, observation, Source("topic", 0, i), 0)
        explained = i % every == 0 and i > 1
        assert len(model.predicted) == 1 + explained * (2 * 3 + 2), "x itself, and the rows where it is explained"
        assert model.calls[-1] == ("learn", observation.x)
    assert model.counts == plain.counts
    assert state.model_loss.value == all_explained.model_loss.value
    for explainer in state.explainers.values():
        # The first finds nothing to draw from, where it is to be explained.
        assert explainer.n_observations == 60 // every - (every == 1)
        assert explainer.skipped["budget"] == 60 - 60 // every
        assert explainer.reservoir.n_seen == 60


def test_one_in_so_many_is_the_configured_or_the_one_within_the_budget() -> None:
    for settings, expected in (({}, 1), ({"every": 5}, 5), ({"budget": 0.2}, 8)):
        state = state_of(explain=settings)
        state.stride = 8
        assert state.explain_every == expected


def test_an_observation_that_fails_has_no_number() -> None:
    state = state_of(factory=TOUCHY_FACTORY, explain={"every": 2})
    for i, c in enumerate(["fine", "predict", "fine", "learn", "fine", "fine"]):
        x = {"a": 0.5 + i, "b": 1.0 + 2 * i, "c": c}
        if c == "fine":
            prequential(state, Observation("m", x, True), Source("topic", 0, i), 0)
        else:
            with pytest.raises(StepError):
                prequential(state, Observation("m", x, True), Source("topic", 0, i), 0)
    assert (state.n_observations, state.n_failed) == (4, 2)
    assert state.explainers["pfi"].n_observations == 2


def test_what_took_so_long_changes_nothing_until_the_models_are_stored() -> None:
    state, twin = state_of(explain={"budget": 0.1}), state_of(explain={"budget": 0.1})
    ticks = random.Random(3)
    budget = Budget(Clock(iter(lambda: ticks.random(), None)))
    for i, observation in enumerate(observations(50)):
        found = prequential(state, observation, Source("topic", 0, i), 0, budget.timer(state))
        assert found == prequential(twin, observation, Source("topic", 0, i), 0)
    assert (state.stride, state.explain_every) == (1, 1)
    assert state.explainers["pfi"].snapshot() == twin.explainers["pfi"].snapshot()
    budget.begin(lag=0)
    share = budget.adapt(state)
    assert share is not None
    assert 0.3 < share < 0.7
    assert state.stride == 2
    assert budget.adapt(state) is None, "nothing has been measured since"
    assert state.stride == 2


def test_the_lag_is_compared_with_that_of_the_checkpoint_before() -> None:
    state = state_of(explain={"budget": 0.9, "max_lag": 1000})
    budget = Budget(Clock(iter(lambda: 1.0, None)))
    stream = iter(enumerate(observations(400)))
    strides = []
    for lag in (200, 200, 500, 5000, 0):
        for _ in range(80):
            i, observation = next(stream)
            prequential(state, observation, Source("topic", 0, i), 0, budget.timer(state))
        budget.begin(lag)
        budget.adapt(state)
        strides.append(state.stride)
    assert strides == [2, 2, 4, 8, 4]


def records(n: int) -> list[Record]:
    stream = observations(n, flip_at=n // 2)
    return [
        Record(TOPIC, 0, i, 1000 + i, b"m" if i % 4 else b"n", encode_value({"x": o.x, "y": o.y}))
        for i, o in enumerate(stream)
    ]


def store(partition: Partition, table: dict[bytes, bytes], lag: int, *, finish: bool = True) -> None:
    """As the worker stores; not `finish`: it crashes before the partition's own checkpoint."""
    (checkpoint if finish else store_models)(partition, table, lag)


@pytest.mark.parametrize("explain", [{"budget": 0.05}, {"every": 3}, {"budget": 0.9, "max_lag": 50}])
@pytest.mark.parametrize("crash_after", [100, 170, 230])
@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.share(3, "explain", "crash_after", "finish")
def test_a_crash_repeats_the_observations_as_they_were(explain: dict[str, Any], crash_after: int, finish: bool) -> None:
    """The successor's clock and lag are others; it has the stride, and the numbers, from what is stored."""
    settings = {"explain": explain, "publish": {"every": 5}, "change": {"window": 20}, "explainers": FEW}
    config, stream, ticks = config_of("m", "n", **settings), records(crash_after), random.Random(1)
    clock = Clock(iter(lambda: ticks.random(), None))
    table: dict[bytes, bytes] = {}
    log, partition = Log(), Partition(TOPIC, 0, config, table.get, clock)
    for i, record in enumerate(stream):
        log.send(partition.handle(record))
        if i in (60, 120, 180):
            store(partition, table, lag=30 * i, finish=finish or i < crash_after - 60)
    strides = {model_id: state.stride for model_id, state in partition.models.items()}
    assert (strides["m"] > 1) == ("budget" in explain), strides

    sent = len(log.by_id)
    successor = Partition(TOPIC, 0, config, table.get, clock)
    for record in stream[successor.checkpointed + 1 :]:
        log.send(successor.handle(record))  # asserts that equal ids have equal bytes
    assert len(log.by_id) == sent > 0
    assert {model_id: state.stride for model_id, state in successor.models.items()} == strides
    for model_id, state in successor.models.items():
        for name, explainer in state.explainers.items():
            assert explainer.snapshot() == partition.models[model_id].explainers[name].snapshot()


@pytest.mark.long
@pytest.mark.parametrize("between", [1, 5, 17])
def test_a_crash_between_the_slices_of_a_checkpoint_repeats_the_observations_as_they_were(between: int) -> None:
    settings = {"explain": {"budget": 0.05}, "publish": {"every": 2}, "change": {"window": 20}, "explainers": FEW}
    config, n_changed = config_of("m", "n", **settings), 0
    # Also soon after the first cut, where a model is not stored yet; the three ways crash in places of their own.
    for crash_after in range(61 + between // 2, 240, 16):
        stream, ticks = records(crash_after), random.Random(1)
        clock = Clock(iter(lambda ticks=ticks: ticks.random(), None))
        table: dict[bytes, bytes] = {}
        log, partition = Log(), Partition(TOPIC, 0, config, table.get, clock)
        storing = Storing(partition, table.__setitem__)
        for i, record in enumerate(stream):
            log.send(partition.handle(record))
            if i >= 60 and i % between == 0:
                storing.store_slice(lag=30 * i)
        strides = [partition.models[model_id].stride for model_id in "mn"]
        n_changed += strides[0] > 1
        sent = len(log.by_id)
        successor = Partition(TOPIC, 0, config, table.get, clock)
        for record in stream[successor.checkpointed + 1 :]:
            log.send(successor.handle(record))  # asserts that equal ids have equal bytes
        assert len(log.by_id) == sent > 0
        assert [successor.models.find_or_make(model_id).stride for model_id in "mn"] == strides
    assert n_changed > 5


def test_a_replay_has_no_clock_and_explains_everything() -> None:
    partition = Partition(TOPIC, 0, config_of("m", "n", explain={"budget": 0.01}, change=None), lambda _key: None)
    for record in records(100):
        partition.handle(record)
    partition.budget.begin(10**6)
    assert [partition.budget.adapt(state) for state in partition.models.values()] == [None, None]
    assert [state.explain_every for state in partition.models.values()] == [1, 1]


def test_events_say_how_many_observations_they_are_made_of() -> None:
    state = state_of(explain={"every": 4}, publish={"every": 20})
    found = [e for e in importances(run(state, observations(40))) if e.observation == 40]
    assert [event.n_observations for event in found] == [10, 10]


def test_the_share_of_the_features_is_that_of_pfi() -> None:
    state = state_of(explain={"feature_share": 0.5})
    assert state.explainers["pfi"].parameters["feature_share"] == 0.5
    assert "feature_share" not in state.explainers["sage"].parameters
