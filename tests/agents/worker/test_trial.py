"""What has ended a worker, tried in a process of its own; and a partition through the deaths of its owners."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
from typing import Any

import pytest
from faust.types import TP

from attributary_agents.config.reading import parse_config
from attributary_agents.config.schema import holds_secret
from attributary_agents.config.settings import Config
from attributary_agents.models.subprocess.process import ApartError
from attributary_agents.state.checkpoints import decode_checkpoint
from attributary_agents.state.codec import encode_state
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker import assigned as assigned_module
from attributary_agents.worker import observations as observations_module
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.poison import Begun, _public, try_observation, try_restore
from attributary_agents.worker.records import Record
from tests.agents.stand_ins import MODELS, TOPIC, CountingClassifier
from tests.agents.worker.test_assigned import Running, event

HERE = "tests.agents.worker.test_trial"
FINE, KILLS, NO_MEMORY = (f'{{"x": {{"a": {a}, "b": 1.0}}, "y": true}}'.encode() for a in (1.0, 9.0, 8.0))


class Deadly(CountingClassifier):
    """Ends its process at a = 9, needs more memory than there is at a = 8, and ends it when five are restored."""

    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        if x["a"] == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        if x["a"] == 8:
            raise MemoryError
        super().learn_one(x, y)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if sum(self.counts[True]) + sum(self.counts[False]) >= 9:
            os.kill(os.getpid(), signal.SIGKILL)


def config() -> Config:
    return parse_config({"models": {"m": {"model": {"class": f"{HERE}.Deadly"}}}})


def record(offset: int, value: bytes, key: bytes | None = b"m") -> Record:
    return Record(TOPIC, 0, offset, 0, key, value)


async def at_once() -> None:
    pass


def test_the_process_of_its_own_is_given_no_secret() -> None:
    brokers, registry, mlflow, key, chat = (f"CANARY-{n}-" * 8 for n in range(5))
    given = {
        "kafka": {
            "security": {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "me", "password": brokers},
            "schema_registry": {"url": "http://registry:8081", "username": "me", "password": registry},
        },
        "mlflow": {"username": "me", "password": mlflow},
        "state": {"key": key},
        "serve": {"webhooks": {"chat": {"url": f"https://chat/{chat}"}}},
        "models": {"m": {"model": {"mlflow": "models:/bank@champion"}, "learn": False}},
    }
    assert {name for name in Config.model_fields if holds_secret((name,))} == given.keys() - {"models"}
    whole = parse_config(given)
    before, after = pickle.dumps(whole), pickle.dumps(_public(whole))
    for secret in (brokers, registry, mlflow, key, chat):
        assert secret.encode() in before
        assert secret.encode() not in after


def partition(n: int) -> Partition:
    made = Partition(TOPIC, 0, config(), {}.get)
    for offset in range(n):
        made.handle(record(offset, FINE))
    return made


@pytest.mark.parametrize(
    "key", [b"m", *(pytest.param(key, marks=pytest.mark.long) for key in (b"other", b"\xff", None))]
)
def test_what_harms_nobody_is_told_apart_whatever_it_is(key: bytes | None) -> None:
    tried = partition(2)
    asyncio.run(try_observation(tried, record(2, FINE if key == b"m" else KILLS, key), at_once))
    assert (tried.offset, tried.counters.consumed, tried.models["m"].n_observations) == (1, 2, 2), "left as it was"


@pytest.mark.parametrize(
    ("value", "kind"), [(KILLS, "ended"), pytest.param(NO_MEMORY, "memory", marks=pytest.mark.long)]
)
def test_what_ends_the_process_is_told(value: bytes, kind: str) -> None:
    with pytest.raises(ApartError) as caught:
        asyncio.run(try_observation(partition(2), record(2, value), at_once))
    assert caught.value.kind == kind


@pytest.mark.long
def test_a_state_is_restored_apart() -> None:
    few, many = (encode_state(partition(n).models["m"]) for n in (2, 6))
    asyncio.run(try_restore(config(), "m", few, at_once))
    with pytest.raises(ApartError, match="SIGKILL"):
        asyncio.run(try_restore(config(), "m", many, at_once))
    with pytest.raises(ApartError) as caught:
        asyncio.run(try_restore(config(), "m", b"torn", at_once))
    assert caught.value.kind == "failed", "for the worker itself to find and to say"


class Died(BaseException):
    """Stands for the end of the worker's process."""


def test_a_partition_goes_on_behind_what_ended_two_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    handle, tried = Partition.handle, []

    def dies(self: Partition, one: Record) -> Any:
        if one.offset == 3:
            raise Died
        return handle(self, one)

    async def trial(_partition: Partition, one: Record, begun: Begun, _answers: object) -> None:
        await begun()
        tried.append(one.offset)
        raise ApartError("ended", "its process ended with SIGKILL")

    monkeypatch.setattr(Partition, "handle", dies)
    monkeypatch.setattr(observations_module, "try_observation", trial)
    sink, n_died = None, 0
    while True:
        running = Running()
        if sink is not None:
            running.broker.sink = sink
            running = _with_sink(running, sink)
        sink = running.broker.sink
        try:
            asyncio.run(_own(running, 6))
            break
        except Died:
            n_died += 1
    assert (n_died, tried) == (2, [3])
    assert running.broker.log.count("send") == 1, "one dead letter"


def _with_sink(running: Running, sink: Any) -> Running:
    running.worker._shared.records = sink
    return running


async def _own(running: Running, n: int) -> None:
    (assigned,) = await running.own(1)
    for offset in range(assigned.partition.checkpointed + 1, n):
        await running.handle(offset)
    await running.worker.release()
    counters, offset = decode_checkpoint(assigned._store.load(checkpoint_key(0)))
    assert (offset, counters.consumed, counters.used, counters.dead_letters["ended_worker"]) == (n - 1, n, n - 1, 1)


def test_a_release_ends_the_building_and_the_next_owner_is_given_the_record_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*_: Any) -> bytes:
        await asyncio.get_running_loop().create_future()
        return b""

    async def run() -> None:
        running = Running()
        (assigned,) = await running.own(1)
        value = b'{"version": "2", "model": {"class": "river.naive_bayes.GaussianNB"}}'
        running.broker.assigned = {TP(TOPIC, 0), TP(MODELS, 0)}
        building = asyncio.create_task(running.worker.handle_control(event(MODELS, 0, value)))
        while assigned._building is None:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assigned.tick()  # answers while it is built
        await running.worker.release()
        await building
        assert not [line for line in running.broker.log if line.startswith(("commit", "write control"))]
        assert (assigned.control.offset, assigned._endings._note.deployment) == (-1, (-1, 0))

    monkeypatch.setattr(assigned_module, "build", never)
    asyncio.run(run())
