"""When a checkpoint is due: by time or number, within a share of the time, one of a partition at a time."""

from __future__ import annotations

import asyncio
import functools

import pytest

from attributary_agents.config.settings import CheckpointConfig
from attributary_agents.worker.schedule import CheckpointSchedule, UnderWay

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
    schedule = CheckpointSchedule(CONFIG, clock)
    schedule.add_work(1e6)
    clock.now += 1e6
    assert not schedule.is_due(0)
    assert schedule.is_due(1)


@pytest.mark.parametrize(("elapsed", "pending", "due"), [(9.9, 99, False), (10, 1, True), (0.1, 100, True)])
def test_cheap_states_are_stored_by_time_or_number(clock: Clock, elapsed: float, pending: int, due: bool) -> None:
    schedule = CheckpointSchedule(CONFIG, clock)
    clock.now += elapsed
    assert schedule.is_due(pending) is due


def test_storing_takes_no_more_than_its_share(clock: Clock) -> None:
    schedule, stored = CheckpointSchedule(CONFIG, clock), 0.0
    began = clock.now
    while clock.now < began + 10_000:
        clock.now += 0.5
        schedule.add_work(0.001)
        if schedule.is_due(1000):
            clock.now += 3.0
            stored += 3.0
            schedule.record_checkpoint(3.0)
    share = stored / (clock.now - began)
    assert 0.09 < share < 0.1005  # the last one is cut off by the end


def test_a_crash_repeats_no_more_work_than_that_whatever_storing_costs(clock: Clock) -> None:
    schedule, longest = CheckpointSchedule(CONFIG, clock), 0.0
    for _ in range(100_000):
        clock.now += 0.01
        schedule.add_work(0.01)
        longest = max(longest, schedule.work_s)
        if schedule.is_due(1):
            clock.now += 500.0
            schedule.record_checkpoint(500.0)
    assert longest == pytest.approx(60, abs=0.02)


def test_a_cost_is_forgotten_when_the_next_one_is_small(clock: Clock) -> None:
    schedule = CheckpointSchedule(CONFIG, clock)
    schedule.record_checkpoint(5.0)
    clock.now += 10
    assert not schedule.is_due(1)
    clock.now += 35
    assert schedule.is_due(1)
    schedule.record_checkpoint(0.01)
    clock.now += 10
    assert schedule.is_due(1)


def test_of_what_is_due_one_of_a_name_runs_at_a_time_and_failures_are_handed_on() -> None:
    async def run() -> None:
        under_way, begun, goes_on = UnderWay(), list[str](), asyncio.Event()

        async def work(name: str) -> None:
            begun.append(name)
            await goes_on.wait()
            if name == "b":
                raise RuntimeError("no broker")

        for name in ("a", "b", "a", "b"):
            under_way.start(name, functools.partial(work, name))
        await asyncio.sleep(0)
        under_way.check()
        assert begun == ["a", "b"]
        goes_on.set()
        await under_way.settle()
        with pytest.raises(RuntimeError, match="no broker"):
            under_way.check()
        under_way.check()  # said once
        under_way.start("a", functools.partial(work, "a"))
        await under_way.settle()
        assert begun == ["a", "b", "a"]
        goes_on.clear()
        under_way.start("b", functools.partial(work, "b"))
        await asyncio.sleep(0)
        await under_way.cancel()
        under_way.check()

    asyncio.run(run())
