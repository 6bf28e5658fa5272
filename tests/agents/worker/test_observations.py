"""Slices of observations: bounded in time, cut where something comes before the next one, in turn with others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from attributary_agents.errors import StateError
from attributary_agents.worker import observations
from attributary_agents.worker.assigned import Assigned
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from tests.agents.worker.test_assigned import GOOD, Running, fetch, in_a_loop, record
from tests.agents.worker.test_restoring import stored


class Slices:
    """The observations that were handled, by partition, in slices: a turn of the event loop ends one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, takes_s: float = 0.0) -> None:
        self.now = 0.0
        self.found: list[list[tuple[int, int]]] = []
        self._is_open = False
        handle = Partition.handle

        def noted(partition: Partition, one: Record) -> list[Outgoing]:
            if not self._is_open:
                self._is_open = True
                self.found.append([])
                asyncio.get_running_loop().call_soon(self._close)
            self.found[-1].append((partition.number, one.offset))
            self.now += takes_s
            return handle(partition, one)

        monkeypatch.setattr(Partition, "handle", noted)
        monkeypatch.setattr(observations, "time", SimpleNamespace(monotonic=lambda: self.now))

    def _close(self) -> None:
        self._is_open = False

    @property
    def sizes(self) -> list[int]:
        return [len(one) for one in self.found]


async def begun(*model_ids: str, n: int = 1, **given: Any) -> tuple[Running, list[Assigned]]:
    """Return a worker that has handled the first observation of n partitions: of that one a note is taken back."""
    running = Running(*model_ids, **given)
    owned = await running.own(n)
    for number in range(n):
        await running.handle(0, partition=number)
    return running, owned


async def take(running: Running, records: list[Any], generation: int = 1) -> None:
    await running.worker.take(fetch(records, generation))


async def settle(running: Running) -> None:
    for _ in range(2):  # and what handling has begun: a checkpoint
        await running.worker.under_way.settle()
        running.worker.under_way.check()


@in_a_loop
async def test_a_slice_ends_when_its_time_is_over_and_the_loop_has_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    running, (assigned,) = await begun()
    slices = Slices(monkeypatch, takes_s=0.003)
    await take(running, [record(offset) for offset in range(1, 21)])
    await settle(running)
    assert slices.sizes == [7, 7, 6], "looked at after each observation of 3 ms, until 20 ms are over"
    assert assigned.partition.offset == 20
    assert sum(running.worker.view.observation_times.counts) == 21, "each is measured by itself"


@in_a_loop
async def test_an_observation_that_takes_longer_is_a_slice_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    running, _ = await begun()
    slices = Slices(monkeypatch, takes_s=1.0)
    await take(running, [record(offset) for offset in range(1, 4)])
    await settle(running)
    assert slices.sizes == [1, 1, 1]


@in_a_loop
async def test_partitions_take_turns_and_between_two_slices_the_loop_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    running, _ = await begun(n=3)
    slices = Slices(monkeypatch, takes_s=0.011)
    for number, last in enumerate((6, 2, 2)):
        await take(running, [record(offset, partition=number) for offset in range(1, last + 1)])
    await settle(running)
    assert [one[0][0] for one in slices.found] == [0, 1, 2, 0, 0], "nobody waits behind all that another has"
    assert slices.sizes == [2] * 5, "two slices of 20 ms are never in one turn of the loop"


@pytest.mark.long
@in_a_loop
async def test_a_slice_ends_at_the_observation_at_which_a_checkpoint_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    running, (assigned,) = await begun()
    slices = Slices(monkeypatch, takes_s=1e-6)
    most = assigned._shared.config.checkpoint.max_observations
    await take(running, [record(offset) for offset in range(1, 2 * most + 5)])
    await settle(running)
    assert slices.found[0][-1][1] == most - 1
    assert max(slices.sizes) <= most + 1, "one is noted and handled before a slice"
    assert assigned.partition.checkpointed >= most - 1


@in_a_loop
async def test_a_checkpoint_that_is_due_covers_little_more_than_is_wanted_also_in_a_backlog() -> None:
    running, (assigned,) = await begun()
    shared, every = assigned._shared, 20
    checkpoint = shared.config.checkpoint.model_copy(update={"max_observations": every, "max_share": 1.0})
    shared.config = shared.config.model_copy(update={"checkpoint": checkpoint})
    assigned._storing.schedule._config = checkpoint
    await take(running, [record(offset) for offset in range(1, 20 * every)])
    await settle(running)
    commits = [line for line in running.broker.log if line.startswith("commit")]
    assert len(commits) >= 18


@in_a_loop
async def test_what_is_sent_keeps_its_order_and_ends_a_slice_where_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observations, "MAX_SENT_BYTES", 5_000)
    running, (assigned,) = await begun()
    slices = Slices(monkeypatch)
    sent: list[bytes] = []

    def send(one: Outgoing) -> Any:
        sent.append(one.value or b"")
        return running.broker.send_soon()

    assigned._storing._delivery.outbox._send = send
    await take(running, [record(offset, b"no %03d" % offset + b" " * 1000) for offset in range(1, 13)])
    await settle(running)
    assert [value[:6] for value in sent] == [b"no %03d" % offset for offset in range(1, 13)]
    assert 1 < max(slices.sizes) <= 5, "a few of 1 kB, where 5 kB may be on their way"


@in_a_loop
async def test_a_model_that_has_to_be_restored_first_ends_the_slice_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = await stored()
    slices = Slices(monkeypatch)
    running = Running("m0", "m1", "m2", "m3", "m4", "m5", broker=broker)
    (assigned,) = await running.own(1)
    await take(running, [record(12 + n, key=key) for n, key in enumerate((b"m0", b"m0", b"m1", b"m0", b"m1", b"none"))])
    await settle(running)
    assert slices.sizes == [2, 4], "m1 once; a key that is no model needs nothing"
    models = assigned.partition.models
    assert (models["m0"].n_observations, models["m1"].n_observations) == (5, 4)


@in_a_loop
async def test_in_a_gap_the_broker_is_asked_before_the_record_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    running, (assigned,) = await begun()
    slices = Slices(monkeypatch)
    asked: list[tuple[int, int]] = []

    async def check(partition: Partition, offset: int, *, is_first: bool = False) -> None:
        if offset > partition.offset + 1:
            asked.append((partition.offset, offset))
            partition.offset = offset - 1

    monkeypatch.setattr(assigned._shared.gaps, "check", check)
    offsets = [1, 2, 5, 6, 9]
    await take(running, [record(offset) for offset in offsets])
    await settle(running)
    assert asked == [(2, 5), (6, 9)]
    assert [offset for one in slices.found for _, offset in one] == offsets
    assert slices.sizes == [2, 2, 1]


@in_a_loop
async def test_records_that_come_twice_are_skipped_within_a_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running()
    (assigned,) = await running.own(1)
    await take(running, [record(offset) for offset in range(4)])
    await take(running, [record(offset) for offset in range(2, 8)])
    await settle(running)
    assert (assigned.partition.offset, assigned.partition.counters.consumed) == (7, 8)


async def _revoke(running: Running, assigned: Assigned) -> None:
    await running.worker.release([0])


async def _fence(running: Running, assigned: Assigned) -> None:
    running.worker.give_up()


async def _fail(running: Running, assigned: Assigned) -> None:
    assigned._steps.has_failed = True


@pytest.mark.parametrize("how", [_revoke, _fence, _fail])
@in_a_loop
async def test_what_waits_when_the_partition_goes_is_not_handled(
    how: Callable[[Running, Assigned], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    running, (assigned,) = await begun()
    slices = Slices(monkeypatch, takes_s=0.003)
    await take(running, [record(offset) for offset in range(1, 50)])
    while len(slices.found) < 2:
        await asyncio.sleep(0)
    gone = asyncio.ensure_future(how(running, assigned))
    await running.worker.under_way.settle()
    await gone
    n_handled = 1 + sum(slices.sizes)
    assert n_handled < 50, "at most the slices that were under way"
    assert assigned.partition.offset == n_handled - 1
    assert len(assigned._observations._inbox) == 0
    log = running.broker.log
    committed = [line for line in log if line.startswith("commit")]
    assert [line.split()[-1] for line in committed] == ([str(n_handled)] if how is _revoke else [])
    await take(running, [record(n_handled)])  # of the fetch after: another owner's, unless it is ours again
    await running.worker.under_way.settle()
    assert assigned.partition.offset == n_handled - 1


@in_a_loop
async def test_a_fetch_of_a_later_generation_begins_from_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running()
    (first,) = await running.own(1)
    await take(running, [record(offset) for offset in range(5)])
    await settle(running)
    await first.checkpoint()
    await take(running, [record(offset) for offset in range(5, 9)], generation=2)
    await settle(running)
    (second,) = running.worker.assigned.values()
    assert second is not first
    assert (second.generation, second.partition.offset, second.partition.counters.consumed) == (2, 8, 9)
    await take(running, [record(9)], generation=1)
    await settle(running)
    assert second.partition.offset == 8


@in_a_loop
async def test_an_observation_that_ends_the_worker_is_raised_by_the_next_tick_and_nothing_follows_it() -> None:
    running = Running()
    (assigned,) = await running.own(1)

    def handle(one: Record) -> list[Outgoing]:
        if one.offset == 3:
            raise StateError("of another release")
        assigned.partition.offset = one.offset
        return []

    assigned.partition.handle = handle  # type: ignore[method-assign]
    await take(running, [record(offset) for offset in range(9)])
    await running.worker.under_way.settle()
    with pytest.raises(StateError, match="another release"):
        running.worker.tick()
    await take(running, [record(9, GOOD)])
    await running.worker.release()
    assert [line for line in running.broker.log if line.startswith(("commit", "write m"))] == []


@in_a_loop
async def test_the_watchdog_is_told_which_observation_of_a_slice_is_handled() -> None:
    running = Running()
    (assigned,) = await running.own(1)
    said: list[str] = []

    def handle(one: Record) -> list[Outgoing]:
        (step,) = running.worker.view.activity.steps
        said.append(f"{step}, {step.began == step.since}")
        assigned.partition.offset = one.offset
        return []

    assigned.partition.handle = handle  # type: ignore[method-assign]
    await take(running, [record(0), record(1, key=b"other")])
    await settle(running)
    topic = assigned.tp.topic
    assert said == [f"observation of model 'm' at {topic}[0]@0, True", f"observation at {topic}[0]@1, True"]
