"""What must not wait for a backlog: becoming ready, restoring, committing, and letting partitions go."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from faust.transport.producer import ProducerBuffer
from faust.types import TP

from attributary_agents.worker import restore as restoring
from attributary_agents.worker import schedule as sharing
from attributary_agents.worker.models import PartitionModels
from tests.agents.stand_ins import TOPIC
from tests.agents.worker.test_assigned import Running, fetch, in_a_loop, record
from tests.agents.worker.test_observations import Slices, begun, settle, take
from tests.agents.worker.test_restoring import IDS, stored


@in_a_loop
async def test_a_worker_is_ready_though_all_its_partitions_have_a_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 8
    running = Running()
    slices = Slices(monkeypatch, takes_s=0.021)
    for number in reversed(range(n)):
        await running.worker.take(fetch([record(offset, partition=number) for offset in range(40)]))
    await asyncio.sleep(0)
    await running.worker.adopt([TP(TOPIC, number) for number in range(n)], 1)
    assert len(slices.found) <= 2 * n, "not a round of all partitions for each of them"
    await running.worker.under_way.cancel()


@in_a_loop
async def test_models_are_restored_beside_a_backlog_as_long_as_observations_are_handled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = Running(*IDS, broker=await stored())
    slices = Slices(monkeypatch, takes_s=0.021)
    restored: list[int] = []
    restore = PartitionModels.restore

    def noted(models: PartitionModels, model_id: str) -> None:
        restored.append(len(slices.found))
        restore(models, model_id)
        slices.now += 0.02  # less than a slice of observations

    monkeypatch.setattr(PartitionModels, "restore", noted)
    monkeypatch.setattr(restoring, "RESTORE_S", 0.0)
    # All by the same clock, and by turns of the loop: in a real millisecond it has as many as the machine is fast.
    monkeypatch.setattr(sharing, "LOOK_S", 0)
    monkeypatch.setattr(restoring, "time", SimpleNamespace(perf_counter=lambda: slices.now))
    running.worker._shared.slices.__init__(lambda: slices.now)  # type: ignore[misc]
    (assigned,) = await running.own(1)
    await take(running, [record(12 + n, key=b"m0") for n in range(1000)])
    assert assigned._restores is not None
    await assigned._restores
    assert len(restored) == len(IDS)
    between = [after - before for before, after in pairwise(restored)]
    assert max(between) <= 5, "a slice or a few of observations, and not one for each turn of the loop"
    await running.worker.under_way.cancel()


@in_a_loop
async def test_the_time_of_a_slice_is_the_work_that_a_crash_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    running, (assigned,) = await begun()
    before = assigned._storing.schedule.work_s
    Slices(monkeypatch, takes_s=0.003)
    await take(running, [record(offset) for offset in range(1, 21)])
    await settle(running)
    assert assigned._storing.schedule.work_s - before == pytest.approx(0.06)


@in_a_loop
async def test_each_observation_is_measured_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    running, _ = await begun()
    times = running.worker.view.observation_times
    before = times.sum
    Slices(monkeypatch, takes_s=0.003)
    await take(running, [record(offset) for offset in range(1, 21)])
    await settle(running)
    assert times.sum - before == pytest.approx(0.06)


@in_a_loop
async def test_what_flushes_the_producer_ends_beside_a_backlog_of_which_every_slice_sends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Faust flushes its producer in every commit, and at a revocation before it tells us of it."""

    class Channel:
        async def publish_message(self, fut: Any, wait: bool = False) -> None:
            fut.done.set_result(None)

    buffer: Any = ProducerBuffer()
    buffer.app = SimpleNamespace(conf=SimpleNamespace(producer_threaded=False))
    await buffer.start()
    running, _ = await begun()
    slices = Slices(monkeypatch, takes_s=0.021)

    def send_soon(**_given: Any) -> Any:
        done = asyncio.get_running_loop().create_future()
        buffer.put(SimpleNamespace(message=SimpleNamespace(channel=Channel()), done=done))
        return done

    running.broker.send_soon = send_soon  # type: ignore[method-assign]
    await take(running, [record(offset, b"junk") for offset in range(1, 400)])
    while len(slices.found) < 3:
        await asyncio.sleep(0)
    before = len(slices.found)
    await buffer.flush()
    assert len(slices.found) - before < 50, "and not only when nothing waits any longer"
    await running.worker.under_way.cancel()
    await buffer.stop()


@in_a_loop
async def test_where_the_flow_has_stopped_nothing_further_is_handled_and_it_goes_on_where_nothing_was_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running, (assigned,) = await begun()
    slices = Slices(monkeypatch, takes_s=0.021)
    await take(running, [record(offset) for offset in range(1, 40)])
    while len(slices.found) < 3:
        await asyncio.sleep(0)
    running.broker.flows = False
    n_handled = len(slices.found)
    await settle(running)
    running.worker.tick()
    await settle(running)
    assert len(slices.found) == n_handled, "Faust waits at a rebalance until all is sent, before it tells us"
    running.broker.flows = True
    running.worker.tick()
    await settle(running)
    assert assigned.partition.offset == 39


@in_a_loop
async def test_while_a_step_of_a_partition_lasts_the_others_have_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    running, (one, two) = await begun(n=2)
    slices = Slices(monkeypatch, takes_s=0.021)
    async with one._steps:
        for number in range(2):
            await take(running, [record(offset, partition=number) for offset in range(1, 5)])
        while two.partition.offset < 4:
            await asyncio.sleep(0)
        assert one.partition.offset == 0
    await settle(running)
    assert one.partition.offset == 4
    assert slices.sizes == [1] * 8
