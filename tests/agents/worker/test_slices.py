"""Many models on one partition: stored in slices, between which records go on."""

from __future__ import annotations

import asyncio

import pytest

from attributary_agents.models.model_state import ModelState
from attributary_agents.state.checkpoints import decode_checkpoint
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker import delivery as outbox
from attributary_agents.worker.assigned import Assigned
from attributary_agents.worker.schedule import Slices
from tests.agents.stand_ins import TOPIC
from tests.agents.worker.test_assigned import Running, in_a_loop

IDS = tuple(f"m{n}" for n in range(6))


def due(assigned: Assigned, n: int) -> None:
    """Let the first checkpoint be due when n observations are pending, and no other one."""
    assigned._storing.schedule.is_due = lambda n_pending: n_pending == assigned.partition.offset + 1 >= n  # type: ignore[method-assign]


async def until_stored(assigned: Assigned) -> None:
    assert assigned._storing.task is not None
    await assigned._storing.task


@in_a_loop
async def test_records_are_handled_between_the_slices_of_a_checkpoint_and_are_not_in_it(one_by_one: None) -> None:
    running = Running(*IDS)
    (assigned,) = await running.own(1)
    due(assigned, 6)
    for offset in range(6):
        await running.handle(offset, key=IDS[offset].encode())
    running.broker.log.clear()
    while assigned._storing.being_made is None:
        await asyncio.sleep(0)
    offset, log = 6, running.broker.log
    while assigned.partition.checkpointed < 0:
        await running.handle(offset, key=b"m0")
        await asyncio.sleep(0)
        offset += 1
    await until_stored(assigned)
    # On a busy machine so many pass that some of them publish.
    written = [line for line in log if line != "send"]
    assert written == [*(f"write {name}" for name in IDS), "write checkpoint/0", f"commit {TOPIC}[0] 6"]
    assert offset > 6 + 3, "observations passed in between"
    counters, at = decode_checkpoint(assigned._store.load(checkpoint_key(0)))
    assert (at, counters.consumed, counters.used) == (5, 6, 6)
    assert assigned.partition.n_pending == offset - 6
    assert assigned.pending_s > 0
    assert assigned.partition.dirty == {"m0"}, "it has changed since it was stored"
    await running.worker.release()
    written = [line for line in log if line != "send"]
    assert written[8:] == ["write m0", "write checkpoint/0", f"commit {TOPIC}[0] {offset}", "write note/0"]


@in_a_loop
async def test_while_what_was_sent_is_not_acknowledged_records_are_handled_and_no_state_is_written() -> None:
    running = Running("m0")
    (assigned,) = await running.own(1)
    broker = running.broker
    due(assigned, 3)
    broker.slow = True
    for offset in range(2):
        await running.handle(offset, b"junk", key=b"m0")
    await running.handle(2, key=b"m0")
    await asyncio.sleep(0.02)
    assert assigned._storing.being_made is not None
    broker.log.clear()
    for offset in range(3, 6):
        await asyncio.wait_for(running.handle(offset, b"junk", key=b"m0"), 1)
    assert broker.log == ["send"] * 3, "neither a record nor the checkpoint waits for the other"
    first, second, *later = broker.sending
    second.set_result(None)
    await asyncio.sleep(0.02)
    assert broker.log == ["send"] * 3
    first.set_result(None)
    await until_stored(assigned)
    assert broker.log[3:] == ["write m0", "write checkpoint/0", f"commit {TOPIC}[0] 3"]
    delivery = assigned._storing._delivery
    assert [sent.ends for sent in delivery.sent] == later, "what was sent meanwhile is still to be waited for"
    assert delivery.n_bytes == sum(sent.n_bytes for sent in delivery.sent) > 0
    leaving = asyncio.ensure_future(running.worker.release())
    await asyncio.sleep(0.02)
    assert broker.log[6:] == []
    for sent in later:
        sent.set_result(None)
    await leaving
    assert broker.log[6:] == ["write checkpoint/0", f"commit {TOPIC}[0] 6", "write note/0"]


@pytest.mark.parametrize(("stride", "goes_on"), [(1, True), (2, False)])
@in_a_loop
async def test_records_wait_for_a_state_only_where_its_model_is_explained_at_another_stride(
    stride: int, goes_on: bool
) -> None:
    running = Running()
    (assigned,) = await running.own(1)
    await running.handle(0)

    def adapt(state: ModelState) -> float:
        state.stride = stride
        return 0.25

    assigned.partition.budget.adapt = adapt  # type: ignore[method-assign]
    running.broker.hanging = {0}
    due(assigned, 1)
    running.worker.tick()
    while "write m" not in running.broker.log:
        await asyncio.sleep(0)
    record = asyncio.ensure_future(running.handle(1))
    for _ in range(20):
        await asyncio.sleep(0)
    assert (record.done(), assigned.partition.offset) == ((True, 1) if goes_on else (False, 0))
    assert assigned.explain_shares == {"m": 0.25}
    record.cancel()
    await running.worker.under_way.cancel()


@in_a_loop
async def test_while_a_checkpoint_cannot_be_made_no_more_is_handled_than_a_crash_may_repeat() -> None:
    running = Running("m0")
    (assigned,) = await running.own(1)
    due(assigned, 3)
    assigned._storing.schedule._config = assigned._storing.schedule._config.model_copy(update={"max_observations": 5})
    running.broker.hanging = {0}
    for offset in range(8):
        await asyncio.wait_for(running.handle(offset, key=b"m0"), 1)
    assert assigned._storing.being_made is not None
    assert assigned._storing.being_made.cut.offset == 2
    waits = asyncio.ensure_future(running.handle(8, key=b"m0"))
    await asyncio.sleep(0.02)
    assert assigned.partition.offset == 7
    assigned._storing.schedule._config = assigned._storing.schedule._config.model_copy(update={"max_observations": 7})
    assert not waits.done(), "it waits for the checkpoint, and not for a time"
    waits.cancel()
    await asyncio.wait([waits])
    assert assigned._storing.task is not None
    assert not assigned._storing.task.done(), "who waits for it does not end it"
    assigned._storing.schedule._config = assigned._storing.schedule._config.model_copy(update={"max_replay_s": 1e-9})
    waits = asyncio.ensure_future(running.handle(8, key=b"m0"))
    await asyncio.sleep(0.02)
    assert assigned.partition.offset == 7
    waits.cancel()
    assigned._storing.task.cancel()
    await asyncio.wait([waits, assigned._storing.task])


@in_a_loop
async def test_no_state_is_written_before_what_a_record_waits_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_SENT_BYTES", 0)  # each record waits for what it has sent
    running = Running("m0")
    (assigned,) = await running.own(1)
    broker = running.broker
    due(assigned, 1)
    await running.handle(0, key=b"m0")
    await until_stored(assigned)
    broker.slow = True
    waits = asyncio.ensure_future(running.handle(1, b"junk", key=b"m0"))
    await asyncio.sleep(0.02)
    broker.log.clear()
    leaving = asyncio.ensure_future(running.worker.release())
    await asyncio.sleep(0.02)
    assert broker.log == []
    assert not waits.done()
    broker.sending[-1].set_result(None)
    await asyncio.gather(waits, leaving)
    assert broker.log == ["write checkpoint/0", f"commit {TOPIC}[0] 2", "write note/0"]


@in_a_loop
async def test_a_release_finishes_the_checkpoint_under_way_and_makes_one_of_the_rest(one_by_one: None) -> None:
    running = Running(*IDS)
    (assigned,) = await running.own(1)
    due(assigned, 6)
    for offset in range(6):
        await running.handle(offset, key=IDS[offset].encode())
    while assigned._storing.being_made is None:
        await asyncio.sleep(0)
    await running.handle(6, key=b"m5")
    await running.worker.release()
    commits = [line for line in running.broker.log if line.startswith("commit")]
    assert commits == [f"commit {TOPIC}[0] 6", f"commit {TOPIC}[0] 7"]
    assert assigned.partition.n_pending == 0


@in_a_loop
async def test_after_a_slice_that_failed_nothing_is_handled_stored_or_committed(one_by_one: None) -> None:
    running = Running(*IDS)
    (assigned,) = await running.own(1)
    due(assigned, 6)
    for offset in range(6):
        await running.handle(offset, key=IDS[offset].encode())
    while "write m1" not in running.broker.log:
        await asyncio.sleep(0)
    running.broker.failing.add(0)
    await running.worker.under_way.settle()
    with pytest.raises(RuntimeError, match="no broker"):
        running.worker.tick()
    running.broker.failing.clear()
    running.broker.log.clear()
    await running.handle(6, key=b"m0")
    await running.worker.release()
    assert running.broker.log == []
    assert assigned.partition.offset == 5


class Time:
    """A clock that a record and a look at the loop move on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("waits", [True, False])
@in_a_loop
async def test_after_a_slice_the_records_that_wait_have_as_long(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sleep = Time(), asyncio.sleep
    slices = Slices(clock)

    async def pass_by(seconds: float) -> None:
        clock.now += seconds
        if waits and seconds:
            slices.note_record()
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", pass_by)
    for _ in range(3):
        slices.note_slice(0.5)
        clock.now += 0.0
        began = clock.now
        await slices.rest()
        assert clock.now - began == pytest.approx(0.5 if waits else 0.001, abs=0.0011)
        clock.now = slices._records_until
    slices.note_slice(0.5)
    slices.note_slice(0.25)  # of another partition
    began = clock.now
    await slices.rest()
    assert clock.now - began == pytest.approx(0.75 if waits else 0.001, abs=0.0011)
