"""A breaker opens after failures in a row, lets one request try at a time, and waits longer each time that fails."""

from __future__ import annotations

import asyncio

from attributary_agents.config.served import BreakerConfig
from attributary_agents.worker.endpoints.breaker import Breaker
from tests.agents.worker.test_assigned import in_a_loop


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def breaker(clock: Clock) -> Breaker:
    return Breaker(BreakerConfig(failures=3, wait=10.0, longest=25.0), clock, lambda: 1.0)


async def admitted(one: Breaker) -> bool | None:
    """Return what a request is told; None where it has to wait."""
    waiting = asyncio.ensure_future(one.admit())
    for _ in range(5):
        await asyncio.sleep(0)
    if not waiting.done():
        waiting.cancel()
        return None
    return waiting.result()


@in_a_loop
async def test_it_opens_after_so_many_failures_in_a_row() -> None:
    one = breaker(Clock())
    for _ in range(2):
        assert not one.note_failure(is_trial=False)
    one.note_success()
    for n in range(3):
        assert await admitted(one) is False
        assert one.note_failure(is_trial=False) == (n == 2)
    assert one.is_open
    assert await admitted(one) is None


@in_a_loop
async def test_one_request_tries_at_a_time_and_each_time_later() -> None:
    clock = Clock()
    one = breaker(clock)
    for _ in range(3):
        one.note_failure(is_trial=False)
    for wait_s in (10.0, 20.0, 25.0, 25.0):
        clock.now += wait_s - 0.1
        assert await admitted(one) is None
        clock.now += 0.1
        assert await admitted(one) is True
        assert await admitted(one) is None, "another one tries already"
        one.note_failure(is_trial=True)
    clock.now += 25.0
    assert await admitted(one) is True
    one.note_success()
    assert not one.is_open
    assert await admitted(one) is False
    for _ in range(3):
        one.note_failure(is_trial=False)
    clock.now += 10.0
    assert await admitted(one) is True, "and the first wait is a short one again"


@in_a_loop
async def test_who_waits_goes_on_when_the_one_that_tries_has_its_answer_or_gives_up() -> None:
    clock = Clock()
    one = breaker(clock)
    for _ in range(3):
        one.note_failure(is_trial=False)
    clock.now += 10.0
    assert await one.admit() is True
    waiting = [asyncio.ensure_future(one.admit()) for _ in range(3)]
    await asyncio.sleep(0)
    one.leave(is_trial=True)
    await asyncio.sleep(0.01)
    assert sorted(task.result() if task.done() else "waits" for task in waiting if task.done()) == [True]
    one.note_success()
    assert sorted(await asyncio.gather(*waiting)) == [False, False, True]


@in_a_loop
async def test_what_was_sent_before_it_opened_does_not_make_it_wait_longer() -> None:
    clock = Clock()
    one = breaker(clock)
    for _ in range(8):
        one.note_failure(is_trial=False)
    clock.now += 10.0
    assert await admitted(one) is True
