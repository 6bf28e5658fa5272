"""Many models on one partition: restored as they are asked for, and beside the records."""

from __future__ import annotations

import asyncio
import logging

import pytest

from attributary_agents.errors import StateError
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.state.checkpoints import decode_checkpoint
from attributary_agents.state.codec import MAGIC
from attributary_agents.state.names import checkpoint_key
from attributary_agents.state.seal import Seal
from attributary_agents.state.store import PartitionStore
from attributary_agents.worker.assigned import Assigned
from attributary_agents.worker.models import PartitionModels
from tests.agents.worker.test_assigned import Broker, Running, in_a_loop

IDS = tuple(f"m{n}" for n in range(6))


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that are restored, in their order."""
    found: list[str] = []
    restore = PartitionModels.restore

    def noted(models: PartitionModels, model_id: str) -> None:
        found.append(model_id)
        restore(models, model_id)

    monkeypatch.setattr(PartitionModels, "restore", noted)
    return found


async def stored(*, closes: bool = True) -> Broker:
    """What a worker leaves that has handled two observations of each model, and has stored them."""
    running = Running(*IDS)
    (assigned,) = await running.own(1)
    for offset in range(2 * len(IDS)):
        await running.handle(offset, key=IDS[offset % len(IDS)].encode())
    await assigned.checkpoint()
    if not closes:
        assigned._endings._note.is_open = True
        await assigned._endings.open()
    assigned._shared.under_way._tasks.clear()
    return running.broker


def show_at_most(running: Running, n: int) -> None:
    """Let so many models have series."""
    config = running.worker.config
    metrics = config.metrics.model_copy(update={"max_models": n})
    running.worker.config = config.model_copy(update={"metrics": metrics})


@in_a_loop
async def test_a_model_that_is_asked_for_is_restored_first_and_the_rest_beside_the_records(
    one_by_one: None, restored: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    running = Running(*IDS, broker=await stored())
    (assigned,) = await running.own(1)
    assert restored == [], "it is ready all the same"
    assert list(assigned.partition.models.waiting) == list(IDS)
    await running.handle(12, key=b"m4")
    assert restored[0] == "m4"
    assert assigned.partition.models["m4"].n_observations == 3
    assert len(restored) < len(IDS)
    assert assigned._restores is not None
    await assigned._restores
    assert sorted(restored) == list(IDS), "each of them once"
    assert {state.n_observations for state in assigned.partition.models.values()} == {2, 3}
    (line,) = [one.getMessage() for one in caplog.records if one.getMessage().startswith("restored")]
    assert line.startswith("restored 6 models in ")


@in_a_loop
async def test_a_model_that_is_asked_for_before_the_others_are_counted_is_counted_too(
    restored: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    running = Running(*IDS, broker=await stored())
    begin = Assigned.begin

    async def begin_and_handle(assigned: Assigned) -> None:
        await begin(assigned)
        if assigned.tp.partition == 0:  # its record comes while the second partition begins
            await running.handle(12, key=b"m4")
            assert restored == ["m4"]

    monkeypatch.setattr(Assigned, "begin", begin_and_handle)
    assigned, _ = await running.own(2)
    assert assigned._restores is not None
    await assigned._restores
    assert sorted(restored) == list(IDS), "each of them once"
    lines = [one.getMessage() for one in caplog.records if one.getMessage().startswith("restored")]
    assert [line.partition(" in ")[0] for line in lines] == ["restored 6 models"]


@in_a_loop
async def test_what_waits_to_be_restored_leaves_with_the_partition(
    one_by_one: None, restored: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    running = Running(*IDS, broker=await stored())
    await running.own(1)
    await running.handle(12, key=b"m4")
    await running.worker.release()
    n_restored = len(restored)
    for _ in range(20):
        await asyncio.sleep(0)
    assert 1 <= len(restored) == n_restored < len(IDS)
    (line,) = [one.getMessage() for one in caplog.records if one.getMessage().startswith("restored")]
    assert line.startswith(f"restored {n_restored} model")
    assert running.broker.log[-1] == "write note/0"


@in_a_loop
async def test_of_more_models_than_have_series_the_others_rest_until_they_are_asked_for(
    restored: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    running = Running(*IDS, broker=await stored())
    show_at_most(running, 2)
    (assigned,) = await running.own(1)
    assert assigned._restores is not None
    await assigned._restores
    models = assigned.partition.models
    assert restored == ["m0", "m1"], "those that a scrape shows"
    assert (models.waiting, models.resting) == ({}, {"m2", "m3", "m4", "m5"})
    (line,) = [one.getMessage() for one in caplog.records if one.getMessage().startswith("restored")]
    assert line.startswith("restored 2 models in ")
    assert line.endswith("; 4 more, which have no series (metrics.max_models), follow when they are asked for")
    collected = AttributaryCollector(running.worker.config, running.worker.view).collect()
    found = {metric.name: metric.samples[0].value for metric in collected if metric.samples}
    assert found["attributary_models_restoring"] == 0
    assert found["attributary_models_resting"] == found["attributary_series_dropped_models"] == 4
    await running.handle(12, key=b"m4")
    assert restored == ["m0", "m1", "m4"]
    assert models["m4"].n_observations == 3
    assert models.resting == {"m2", "m3", "m5"}
    await running.worker.release()
    _, at = decode_checkpoint(assigned._store.load(checkpoint_key(0)))
    assert at == 12
    # The next owner finds all of them, also those that have rested all the time.
    again = Running(*IDS, broker=running.broker)
    (assigned,) = await again.own(1)
    assert assigned._restores is not None
    await assigned._restores
    assert {name: state.n_observations for name, state in assigned.partition.models.items()} == {
        name: 3 if name == "m4" else 2 for name in IDS
    }


@in_a_loop
async def test_a_damaged_state_of_a_model_that_rests_is_told_when_it_is_asked_for() -> None:
    broker = await stored()
    (written,) = broker.sink.epochs(0, b"m5").values()
    assert written.head is not None
    written.head = written.head[:-1] + bytes([written.head[-1] ^ 1])  # far behind what is looked at before
    running = Running(*IDS, broker=broker)
    show_at_most(running, 2)
    (assigned,) = await running.own(1)
    assert assigned._restores is not None
    await assigned._restores
    assert assigned.partition.models.refused == {}
    await running.handle(12, key=b"m5")
    assert list(assigned.partition.models.refused) == ["m5"]
    assert running.broker.log[-1] == "send", "a dead letter"


async def _put(broker: Broker, name: str, blob: bytes, *, damaged: bool = False) -> None:
    store = PartitionStore(broker.sink, 0, 1, broker.send_changelog, Seal())
    await store.put(name.encode(), blob)
    if damaged:
        written = broker.sink.epochs(0, name.encode())[store.epoch]
        assert written.head is not None
        written.head = written.head.replace(blob[:4], b"ATX9")


@pytest.mark.parametrize("damaged", [False, True], ids=["another release", "damaged"])
@in_a_loop
async def test_a_state_of_another_release_is_found_before_anything_is_restored(
    damaged: bool, restored: list[str]
) -> None:
    broker = await stored()
    blob = b'ATX9{"river": "0.1.0"}\n' + bytes(9)
    await _put(broker, "m5", MAGIC + blob[4:] if damaged else blob, damaged=damaged)
    running = Running(*IDS, broker=broker)
    if not damaged:
        with pytest.raises(StateError):
            await running.own(1)
        assert restored == []
        return
    (assigned,) = await running.own(1)
    assert assigned._restores is not None
    await assigned._restores
    assert list(assigned.partition.models.refused) == ["m5"], "its bytes are not those that were stored"
    assert len(assigned.partition.models) == len(IDS) - 1


@in_a_loop
async def test_a_model_that_the_checkpoint_names_and_that_is_gone_is_told_without_an_observation() -> None:
    broker = await stored()
    del broker.sink._partitions[0][b"m2"]
    running = Running(*IDS, broker=broker)
    (assigned,) = await running.own(1)
    assert assigned._restores is not None
    await assigned._restores
    assert "is gone" in str(assigned.partition.models.refused["m2"])


@in_a_loop
async def test_after_an_owner_that_ended_the_note_names_a_model_while_it_is_restored_and_none_afterwards(
    one_by_one: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await stored(closes=False)
    running = Running(*IDS, broker=broker)
    named: list[str] = []
    restore = PartitionModels.restore

    def noted(models: PartitionModels, model_id: str) -> None:
        named.append(assigned._endings._load().restore)
        assert named[-1] == model_id
        restore(models, model_id)

    monkeypatch.setattr(PartitionModels, "restore", noted)
    (assigned,) = await running.own(1)
    await running.handle(12, key=b"m4")
    assert assigned._restores is not None
    assert assigned._endings._load().restore == ""
    await assigned._restores
    assert sorted(named) == list(IDS)
    assert assigned._endings._load().restore == ""


@in_a_loop
async def test_models_that_had_series_are_restored_before_others() -> None:
    running = Running(*IDS, broker=await stored())
    show_at_most(running, 2)
    running.worker.view.shown = {"m4", "m5", "elsewhere"}
    (assigned,) = await running.own(1)
    assert assigned._restores is not None
    await assigned._restores
    assert sorted(assigned.partition.models) == ["m4", "m5"]


@in_a_loop
async def test_a_model_rests_only_where_its_first_bytes_have_told_that_this_release_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = Running(*IDS, broker=await stored())
    show_at_most(running, 2)
    beginning = PartitionStore.beginning

    def of_an_object(store: PartitionStore, name: bytes) -> bytes | None:
        return None if name == b"m5" else beginning(store, name)

    monkeypatch.setattr(PartitionStore, "beginning", of_an_object)
    (assigned,) = await running.own(1)
    assert assigned._restores is not None
    await assigned._restores
    assert sorted(assigned.partition.models) == ["m0", "m1", "m5"]
