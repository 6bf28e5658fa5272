"""Models of templates in a worker: made at their first record, resting while they are idle, as if they had stayed."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.state.checkpoints import decode_checkpoint
from attributary_agents.state.codec import decode_state, encode_state
from attributary_agents.state.names import checkpoint_key, wanted_names
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from tests.agents.monitoring.views import samples
from tests.agents.stand_ins import DEAD_LETTERS, FACTORY, TOPIC, balances, header
from tests.agents.worker.test_assigned import GOOD, Running, fetch, in_a_loop
from tests.agents.worker.test_assigned import record as client_record
from tests.delivery.remains import Log, Storing, stored_models

START_MS = 1_700_000_000_000


def config(partitions: int = 1, **template: Any) -> Config:
    model = {
        "factory": FACTORY,
        "alpha": 0.1,
        "explainers": {"pfi": {"n_samples": 2}, "sage": {"n_samples": 2}},
        "change": {"window": 20, "threshold": 0.0},
        "publish": {"every": 3},
    }
    models = {"store-*": {**model, **template}, "bank": model}
    return parse_config({"kafka": {"partitions": partitions}, "models": models})


def record(offset: int, key: bytes, seconds: float, value: bytes = GOOD) -> Record:
    return Record(TOPIC, 0, offset, START_MS + round(1000 * seconds), key, value)


def stream(n: int = 400, n_ids: int = 25) -> list[Record]:
    """A record a second, each of one of many models; some cannot be used, and some are of no model."""
    rng = random.Random(5)
    made = []
    for i in range(n):
        a = rng.uniform(-1, 1)
        value = json.dumps({"x": {"a": a, "b": rng.uniform(-1, 1)}, "y": (a > 0) != (i > n // 2)}).encode()
        # Neighbours in time are of few models, and each comes again after a long pause.
        key = b"store-%d" % ((i // 40 + rng.randrange(4)) % n_ids) if i % 9 else b"bank"
        if i % 50 == 17:
            key, value = rng.choice([(key, b"{poison"), (b"store-*", value), (b"else", value)])
        made.append(record(i, key, i, value))
    return made


def played(chosen: Config, rests: bool, every: int = 7) -> tuple[Log, dict[str, Any], list[int]]:
    """What is sent and stored at the end, and how many models were loaded after each checkpoint."""
    table: dict[bytes, bytes] = {}
    partition, log, loaded = Partition(TOPIC, 0, chosen, table.get), Log(), []
    storing = Storing(partition, table.__setitem__)
    for i, one in enumerate(stream()):
        log.send(partition.handle(one))
        if i % every == every - 1:
            storing.checkpoint()
            if rests:
                partition.rest_idle()
            loaded.append(len(partition.models))
    storing.checkpoint()
    assert balances(partition.counters)
    at = decode_checkpoint(table[checkpoint_key(0)])
    return log, {"models": stored_models(table, chosen), "checkpoint": at, "table": table}, loaded


def rewritten(table: dict[bytes, bytes]) -> dict[str, bytes]:
    """The states as they are written anew. Equal objects have several pickles, by what of them is the same object."""
    chosen, found = config(), {}
    for name, blob in table.items():
        if (model_id := chosen.finder.id_of_key(name)) is not None:
            found[model_id] = encode_state(decode_state(model_id, chosen.settings_of(model_id), blob))
    return found


def test_models_that_rest_leave_the_same_events_and_states_to_the_byte_as_those_that_stay() -> None:
    stayed, at_end, n_stayed = played(config(idle="10s"), rests=False)
    rested, found, n_rested = played(config(idle="10s"), rests=True)
    assert max(n_stayed) == n_stayed[-1] > 12
    assert max(n_rested) < 10, "few are loaded at a time"
    assert len(stayed.by_id) > 100
    assert rested.by_id == stayed.by_id
    assert found["checkpoint"] == at_end["checkpoint"]
    assert found["models"] == at_end["models"]
    assert rewritten(found["table"]) == rewritten(at_end["table"])
    assert len(found["models"]) == n_stayed[-1]


def test_a_model_rests_after_so_much_time_of_the_partition_and_not_by_its_own_late_records() -> None:
    partition, table = Partition(TOPIC, 0, config(idle="60s"), lambda _key: None), dict[bytes, bytes]()
    storing = Storing(partition, table.__setitem__)
    partition.handle(record(0, b"store-1", 0))
    partition.handle(record(1, b"bank", 0))
    partition.handle(record(2, b"store-2", 59))
    storing.checkpoint()
    assert partition.rest_idle() == {}
    partition.handle(record(3, b"store-3", 60))
    assert partition.rest_idle() == {"store-1": "store-*"}, "idle, and stored"
    partition.handle(record(4, b"store-4", 10))  # late: but it is an observation at 60 s of the partition
    partition.handle(record(5, b"else", 119))  # of no model, and a record of the partition
    storing.checkpoint()
    assert partition.rest_idle() == {"store-2": "store-*"}
    assert set(partition.models) == {"bank", "store-3", "store-4"}, "an id of its own never rests"
    assert partition.models.resting == {"store-1", "store-2"}


def test_what_is_not_stored_stays() -> None:
    partition, table = Partition(TOPIC, 0, config(idle="1s"), lambda _key: None), dict[bytes, bytes]()
    partition.handle(record(0, b"store-1", 0))
    partition.handle(record(1, b"bank", 1000))
    assert partition.rest_idle() == {}, "it has never been stored"
    storing = Storing(partition, table.__setitem__)
    storing.checkpoint()
    partition.handle(record(2, b"store-1", 1000))
    partition.handle(record(3, b"bank", 2000))
    assert partition.rest_idle() == {}, "it has changed since it was stored"
    storing.checkpoint()
    assert partition.rest_idle() == {"store-1": "store-*"}


def test_new_models_beyond_the_limit_are_dead_letters_and_those_that_are_there_go_on() -> None:
    partition = Partition(TOPIC, 0, config(partitions=2, max_models=5), lambda _key: None)  # 3 on each
    keys = [b"store-1", b"store-2", b"store-3", b"store-4", b"store-1", b"bank", b"store-4", b"store-5"]
    reasons = []
    for offset, key in enumerate(keys):
        letters = [one for one in partition.handle(record(offset, key, offset)) if one.topic == DEAD_LETTERS]
        reasons += [header(one, "attributary-dlq-reason") for one in letters] or [""]
    assert reasons == ["", "", "", "too_many_models", "", "", "too_many_models", "too_many_models"]
    (letter,) = partition.handle(record(8, b"store-9", 8))
    assert header(letter, "attributary-dlq-message") == (
        "key: expected one of the 3 models that 'store-*' has on this partition (max_models), got 'store-9'"
    )
    assert partition.counters.dead_letters["too_many_models"] == 4
    assert partition.models["store-1"].n_observations == 2
    assert balances(partition.counters)


@pytest.mark.parametrize("stored_at", range(0, 40, 3))
def test_the_same_models_are_there_after_a_crash_at_every_point(stored_at: int) -> None:
    chosen = config(max_models=4, idle="5s")
    records = [one for one in stream(120) if b"store" in (one.key or b"")]
    undisturbed, log = Partition(TOPIC, 0, chosen, lambda _key: None), Log()
    for one in records:
        log.send(undisturbed.handle(one))
    assert undisturbed.counters.dead_letters["too_many_models"] > 10

    table, again = dict[bytes, bytes](), Log()
    partition = Partition(TOPIC, 0, chosen, table.get)
    storing = Storing(partition, table.__setitem__)
    for one in records[:stored_at]:
        again.send(partition.handle(one))
    storing.checkpoint()
    partition.rest_idle()
    for one in records[stored_at : stored_at + 20]:
        again.send(partition.handle(one))
    for _ in range(2):  # the checkpoint that a crash cuts off has stored some of the models
        storing.store_slice()
    successor = Partition(TOPIC, 0, chosen, dict(table).get)
    at = decode_checkpoint(table.get(checkpoint_key(0)))[1]
    for one in (one for one in records if one.offset > at):
        again.send(successor.handle(one))
    assert again.by_id == log.by_id
    assert successor.counters == undisturbed.counters
    known = successor.models.known
    assert known.n_known("store-*") == 4
    assert {name for name in undisturbed.models if name != "bank"} == known._known["store-*"]


def test_names_in_the_changelog_are_wanted_where_a_template_matches() -> None:
    is_wanted = wanted_names(config().finder)
    names = (b"store-1", b"bank", b"\x00control/0/store-1", b"\x00control/0/bank", b"\x00checkpoint/0")
    assert all(is_wanted(name, 0) for name in names)
    wrong = (
        b"store-*",
        b"else",
        b"\x00control/1/store-1",
        b"\x00control/0/else",
        b"\x00merge/0/store-1",
        b"store-\x01",
    )
    assert not any(is_wanted(name, 0) for name in wrong)


def running(broker: Any = None, **template: Any) -> Running:
    found = Running(broker=broker)
    found.__init__("store-*", broker=found.broker, **template)  # type: ignore[misc]
    return found


async def handle(running: Running, offset: int, key: bytes, seconds: float) -> None:
    one = client_record(offset, key=key)
    one.timestamp = START_MS + round(1000 * seconds)
    await running.worker.take(fetch([one]))
    for task in list(running.worker.under_way._tasks.values()):
        if task.get_coro().__name__ == "_handle_all":  # type: ignore[union-attr]
            await task


async def checkpointed(running: Running) -> None:
    """Make a checkpoint beside the records, as a tick does that finds it due."""
    (assigned,) = running.worker.assigned.values()
    await assigned._storing._store_in_slices()


def of_template(running: Running) -> dict[str, float]:
    found = samples(AttributaryCollector(running.worker.config, running.worker.view))
    return {name: n for (name, labels), n in found.items() if labels == (("template", "store-*"),)}


@in_a_loop
async def test_a_worker_lets_idle_models_rest_after_a_checkpoint_and_loads_them_for_a_record() -> None:
    here = running(idle="10s")
    (assigned,) = await here.own(1)
    for offset in range(20):
        await handle(here, offset, b"store-%d" % (offset % 10), offset / 10)
    await handle(here, 20, b"store-3", 100)
    models = assigned.partition.models
    assert len(models) == 10
    await checkpointed(here)
    assert set(models) == {"store-3"}
    assert models.resting == {f"store-{n}" for n in range(10)} - {"store-3"}
    assert assigned.partition._readers.keys() == {b"store-3"}
    assert assigned.state_bytes.keys() == {"store-3"}
    await handle(here, 21, b"store-5", 101)
    assert set(models) == {"store-3", "store-5"}
    assert models["store-5"].n_observations == 3
    assert of_template(here) == {
        "models_loaded": 2,
        "models_known": 10,
        "model_loads_total": 1,
        "model_evictions_total": 9,
        "template_observations_total": 22,
    }
    found = samples(AttributaryCollector(here.worker.config, here.worker.view))
    assert {labels for name, labels in found if name == "model_template"} == {
        (("model_id", f"store-{n}"), ("template", "store-*")) for n in (3, 5)
    }
    assert found["series_dropped_models", ()] == 0
    # The next owner finds all of them.
    await here.worker.release()
    again = running(here.broker, idle="10s")
    (assigned,) = await again.own(1)
    assert assigned.partition.models.known.n_known("store-*") == 10
    await handle(again, 22, b"store-5", 102)
    assert assigned.partition.models["store-5"].n_observations == 4


@in_a_loop
async def test_keys_that_a_template_matches_and_whose_records_cannot_be_used_leave_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attributary_agents.worker.partition.MOST_READERS", 50)
    monkeypatch.setattr("attributary_agents.worker.restore.MOST_ASKED", 50)
    here = running(max_models=8)  # 2 on each of 4 partitions
    (assigned,) = await here.own(1)
    for offset in range(200):
        await handle(here, offset, b"store-%d" % offset, 0)
    await checkpointed(here)
    assert set(assigned.partition.models) == {"store-0", "store-1"}
    assert assigned.partition.counters.dead_letters["too_many_models"] == 198
    assert len(assigned.partition._readers) <= 50
    assert len(assigned._restoring._asked) <= 50
    assert len(assigned.partition.models._logs) <= 2
