"""A probe of an event loop finds how long its turns take and what took longest; they are judged by what is promised."""

import asyncio
import math
import threading
from collections import Counter

import pytest
from benchmarks.scale import standstill
from benchmarks.scale.subjects import watched
from benchmarks.scale.subjects.watched import STEPS_OF_E, Turns, watch_handles, watch_loop

STOOD_S, WAITED_S = 0.5, 7.0


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def pass_by(self, seconds):
        self.now += seconds


@pytest.fixture
def turns(monkeypatch):
    monkeypatch.setattr(asyncio.Handle, "_run", asyncio.Handle._run)  # put back afterwards
    found = Turns(lambda: "steady", Clock())
    watch_handles(found)
    return found


def run(turns, main, waits_s=0.0):
    """Run a loop whose looks that wait last so long, and the others no time."""
    loop = asyncio.new_event_loop()
    select = loop._selector.select

    def timed(timeout):
        turns.clock.pass_by(0.0 if timeout == 0 else waits_s)
        return select(timeout)

    loop._selector.select = timed
    watch_loop(loop, turns)
    try:
        loop.run_until_complete(main())
    finally:
        turns.leave()
        loop.close()


def test_a_turn_lasts_as_long_as_all_that_is_done_in_it(turns):
    async def stands_still(seconds):
        turns.clock.pass_by(seconds)
        await asyncio.sleep(0)

    async def main():
        await asyncio.gather(stands_still(STOOD_S), stands_still(2 * STOOD_S), asyncio.sleep(0))

    run(turns, main)
    (longest,) = turns.long["steady"]
    assert longest["s"] == pytest.approx(3 * STOOD_S)
    assert longest["handle_s"] == pytest.approx(2 * STOOD_S)
    assert "stands_still" in longest["handle"]
    assert sum(turns.counted["steady"].values()) > 1
    assert standstill.quantile(turns.counted["steady"], 1.0) == pytest.approx(3 * STOOD_S, rel=0.02)


def test_waiting_for_a_socket_is_no_turn(turns):
    async def main():
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        threading.Timer(0.01, lambda: loop.call_soon_threadsafe(ended.set)).start()
        await ended.wait()

    run(turns, main, WAITED_S)
    assert turns.clock.now >= 100.0 + WAITED_S
    assert turns.counted["steady"]
    assert not turns.long


def test_a_look_that_does_not_wait_belongs_to_the_turn_after_it(turns):
    """Another thread may have the interpreter when it ends."""
    loop = asyncio.new_event_loop()
    select = loop._selector.select

    def held_up(timeout):
        turns.clock.pass_by(STOOD_S)
        return select(timeout)

    loop._selector.select = held_up
    watch_loop(loop, turns)

    async def main():
        await asyncio.sleep(0)

    loop.run_until_complete(main())
    loop.close()
    assert [turn["s"] for turn in turns.long["steady"]] == pytest.approx([STOOD_S] * len(turns.long["steady"]))
    assert turns.long["steady"]


@pytest.mark.parametrize(
    ("s", "record_s", "is_over"),
    [(0.021, 0.0, False), (0.023, 0.0, True), (0.05, 0.049, False), (0.053, 0.05, True), (0.023, 0.05, False)],
)
def test_a_turn_may_last_a_slice_or_one_record_that_takes_longer(s, record_s, is_over):
    assert standstill.is_over({"s": s, "record_s": record_s}) is is_over


def test_quantiles_and_shares_are_those_of_the_lengths_counted():
    lengths = [0.001] * 90 + [0.1] * 10
    counted = {str(k): n for k, n in Counter(round(STEPS_OF_E * math.log(s)) for s in lengths).items()}
    assert standstill.quantile(counted, 0.5) == pytest.approx(0.001, rel=0.02)
    assert standstill.quantile(counted, 0.95) == pytest.approx(0.1, rel=0.02)
    assert standstill.share_of_time(counted, 0.022) == pytest.approx(1.0 / 1.09, rel=0.02)
    assert standstill.quantile({}, 0.5) == 0.0


def test_measuring_what_the_probe_costs_leaves_the_loops_of_this_process_as_they_are():
    before = asyncio.Handle._run
    assert set(watched.probe_cost(200)) == {"turn_s", "handle_s"}
    assert asyncio.Handle._run is before
