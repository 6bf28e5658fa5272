"""When a checkpoint is due: by time or number, within a share of the time, and never too much work behind."""

from __future__ import annotations

import pytest

from attributary_agents.config.settings import CheckpointConfig
from attributary_agents.worker.cadence import Cadence

CONFIG = CheckpointConfig(interval_s=10, max_observations=100, max_share=0.1, max_replay_s=60)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_nothing_is_stored_where_nothing_is_pending(clock: Clock) -> None:
    cadence = Cadence(CONFIG, clock)
    cadence.worked(1e6)
    clock.now += 1e6
    assert not cadence.is_due(0)
    assert cadence.is_due(1)


@pytest.mark.parametrize(("elapsed", "pending", "due"), [(9.9, 99, False), (10, 1, True), (0.1, 100, True)])
def test_cheap_states_are_stored_by_time_or_number(clock: Clock, elapsed: float, pending: int, due: bool) -> None:
    cadence = Cadence(CONFIG, clock)
    clock.now += elapsed
    assert cadence.is_due(pending) is due


def test_storing_takes_no_more_than_its_share(clock: Clock) -> None:
    cadence, stored = Cadence(CONFIG, clock), 0.0
    began = clock.now
    while clock.now < began + 10_000:
        clock.now += 0.5
        cadence.worked(0.001)
        if cadence.is_due(1000):
            clock.now += 3.0
            stored += 3.0
            cadence.stored(3.0)
    share = stored / (clock.now - began)
    assert 0.09 < share < 0.1005  # the last one is cut off by the end


def test_a_crash_repeats_no_more_work_than_that_whatever_storing_costs(clock: Clock) -> None:
    cadence, longest = Cadence(CONFIG, clock), 0.0
    for _ in range(100_000):
        clock.now += 0.01
        cadence.worked(0.01)
        longest = max(longest, cadence.work_s)
        if cadence.is_due(1):
            clock.now += 500.0
            cadence.stored(500.0)
    assert longest == pytest.approx(60, abs=0.02)


def test_a_cost_is_forgotten_when_the_next_one_is_small(clock: Clock) -> None:
    cadence = Cadence(CONFIG, clock)
    cadence.stored(5.0)
    clock.now += 10
    assert not cadence.is_due(1)
    clock.now += 35
    assert cadence.is_due(1)
    cadence.stored(0.01)
    clock.now += 10
    assert cadence.is_due(1)
