"""Attacks by who can write to the state's changelog, and does not have the key."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.kafka import produce, read_all
from support.states import stored
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.settings import Config
from attributary_agents.kafka.clients import producer
from attributary_agents.state.admin import read_records
from attributary_agents.state.codec import MAGIC as STATE
from attributary_agents.state.codec import pack, unpack
from attributary_agents.state.names import control_key
from attributary_agents.state.owners import Owners
from attributary_agents.state.records import chunk_key, head_key
from attributary_agents.state.seal import Head, Seal
from attributary_agents.state.writing import changelog_writer
from benchmarks.hostile.lab import Found, attack

from ..lab import LOGISTIC, Lab

KEY = "a key of thirty-two characters and more"
HALF, N = 300, 600
MODELS = ("credit", "fraud")


def _present(config: Config) -> dict[bytes, bytes]:
    return {key: value for key, value in _last(config).items() if value is not None}


def _learnt_all(
    lab: Lab, kept: Callable[[Config], dict[bytes, bytes]]
) -> tuple[dict[str, Any], Config, dict[bytes, bytes]]:
    """Let a worker learn half of the observations, and then all; return what `kept` read in between."""
    raw, config = lab.configure(dict.fromkeys(MODELS, LOGISTIC), state={"key": KEY})
    _send(lab, config, 0, HALF)
    with lab.worker(raw) as worker:
        worker.wait_consumed(HALF, timeout_s=60)
        _wait_committed(config, HALF)
        older = kept(config)
        _send(lab, config, HALF, N)
        worker.wait_consumed(N, timeout_s=60)
        assert worker.stop() == 0
    return raw, config, older


@attack(
    "older-state",
    "send a model's older state again, signed as it was, and delete the newer one",
)
def send_an_older_state(lab: Lab) -> Found:
    """Keep the record of half of the observations, and put it in the place of that of all."""
    raw, config, older = _learnt_all(lab, _of_credit)
    _write(config, [*((key, None) for key in _of_credit(config)), *older.items()])
    _send(lab, config, N, N + 100)
    with lab.worker(raw) as worker:
        worker.wait_consumed(N + 100, timeout_s=60)
        refused, learnt = worker.total("models_refused"), _learnt(worker)
        dead = worker.total("dead_letters_total")
        assert worker.stop() == 0
    said = "credit is refused" in worker.log.read_text()
    figure = f"refused{' aloud' if said else ''}: {dead} of 50 are dead letters; the other model has {learnt}"
    return Found(figure, held=refused == 1 and said and dead == 50 and learnt == {"fraud": (N + 100) // 2})


@attack(
    "older-partition",
    "send older states and the checkpoint that fits again, signed as they were, and delete the newer ones",
)
def send_an_older_partition(lab: Lab) -> Found:
    """Keep all records at half of the observations, and put them in the place of those of all."""
    raw, config, older = _learnt_all(lab, _present)
    _write(config, [*((key, None) for key in _present(config)), *older.items()])
    _send(lab, config, N, N + 10)
    with lab.worker(raw) as worker:
        code = worker.wait(60)
    said = f"the group has committed offset {N}" in worker.log.read_text()
    lab.worker(raw).run_until(N + 10, timeout_s=60)
    learnt = {name: state.n_observations for name, state in stored(config).models.items()}
    figure = f"ends with {code}{', says what it found' if said else ''}; the next one repeats, and has {learnt}"
    return Found(figure, held=code == 1 and said and learnt == dict.fromkeys(MODELS, N // 2 + 5))


@attack(
    "unsigned-state",
    "records that are not signed, under the name of a model, of higher epochs",
)
def send_an_unsigned_state(lab: Lab) -> Found:
    """Write heads of two epochs, one of them as high as an epoch can be."""
    raw, config = lab.configure(dict.fromkeys(MODELS, LOGISTIC), state={"key": KEY})
    _send(lab, config, 0, HALF)
    lab.worker(raw).run_until(HALF, timeout_s=60)
    for epoch in (_epoch(config) + 1, 999_999_999_999_999):
        blob = b"forged"
        _write(config, [(head_key(b"credit", epoch), Seal().write(b"", Head.of(blob), blob))])
    _send(lab, config, HALF, N)
    with lab.worker(raw) as worker:
        worker.wait_consumed(N, timeout_s=60)
        counted = worker.total("state_records_foreign_total")
        assert worker.stop() == 0
    said = "of no worker of this group" in worker.log.read_text()
    left = len(_of_credit(config)) - 1
    learnt = {name: state.n_observations for name, state in stored(config).models.items()}
    figure = f"goes on with {learnt}; {counted} counted{', told' if said else ''}, {left} left"
    held = counted == 2 and said and left == 0 and learnt == dict.fromkeys(MODELS, N // 2)
    return Found(figure, held)


N_CHUNKS, SHORT_N_CHUNKS, CHUNK = 600, 200, bytes(900_000)


@attack(
    "headless-chunks",
    f"{N_CHUNKS:,} chunks of 900 kB that belong to no state, and as many deployments of other partitions",
)
def send_headless_chunks(lab: Lab) -> Found:
    """Write zeros, which cost the attacker next to nothing, and start workers that may have 1.5 GiB for data."""
    raw, config = lab.configure(dict.fromkeys(MODELS, LOGISTIC), state={"key": KEY})
    _send(lab, config, 0, HALF)
    with lab.worker(raw) as worker:
        worker.wait_consumed(HALF, timeout_s=60)
        before = _most_memory(worker)
        assert worker.stop() == 0
    epochs = {b"credit": 900_000_000_000_000, control_key("credit", 999): 1}
    n_chunks = SHORT_N_CHUNKS if lab.short else N_CHUNKS
    asyncio.run(_send_zeros(config, epochs, n_chunks))
    peaks, counted, said = [], [], []
    for end in (N - 100, N):
        _send(lab, config, HALF if end < N else N - 100, end)
        with lab.worker(raw) as worker:
            resource.prlimit(worker.pid, resource.RLIMIT_DATA, (MAY_HAVE, MAY_HAVE))
            worker.wait_consumed(end, timeout_s=120)
            peaks.append(_most_memory(worker) - before)
            counted.append(worker.total("state_records_foreign_total"))
            assert worker.stop() == 0
            said.append(worker.log.read_text().count("of no worker of this group"))
    left = len(_of_credit(config)) - 1
    learnt = {name: state.n_observations for name, state in stored(config).models.items()}
    figure = (
        f"at most {max(peaks)} MB more; {counted[0]:,} counted{', told once' if said[0] == 1 else ''}; "
        f"{left} left under the model's name; goes on with {learnt}"
    )
    held = counted == [2 * n_chunks, n_chunks] and said == [1, 0] and left == 0
    return Found(figure, held=held and learnt == dict.fromkeys(MODELS, N // 2), fast=max(peaks) < 400)


MAY_HAVE = 3 * 2**29


async def _send_zeros(config: Config, epochs: Mapping[bytes, int], n_chunks: int) -> None:
    options = {"compression_type": "gzip", "max_request_size": 2**25, "max_batch_size": 2**24}
    async with producer(config.kafka, config.kafka.changelog, **options) as client:
        sent = [
            await client.send(config.kafka.changelog, CHUNK, chunk_key(name, epoch, 0, index), 0)
            for name, epoch in epochs.items()
            for index in range(n_chunks)
        ]
        await asyncio.gather(*sent)


def _most_memory(worker: WorkerProcess) -> int:
    """Return the most memory that the worker has had, in MB."""
    status = Path(f"/proc/{worker.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1000


WAYS: dict[str, Callable[[Path], bytes]] = {
    "system": lambda path: _call("posix", "system", f"touch {path}"),
    "eval": lambda path: _call("builtins", "eval", f"open({str(path)!r}, 'w')"),
    "detour": lambda path: _call("river.stream.cache", "os.system", f"touch {path}"),
}
"""Model id to a pickle that makes a file when it is read."""


@attack(
    "pickle",
    "states that run a command when they are read; no key is configured",
)
def send_a_pickle_that_runs_a_command(lab: Lab) -> Found:
    """Put a model that makes a file into the stored states of three models, by three ways to a command."""
    models = (*WAYS, "good")
    raw, config = lab.configure(dict.fromkeys(models, LOGISTIC))
    _send(lab, config, 0, 100, models)
    lab.worker(raw).run_until(100, timeout_s=60)
    forged = []
    for key, value in _last(config).items():
        name = key.split(b"\0")[0].decode()
        if name in WAYS and value is not None:
            data = unpack(STATE, Seal().read(key, value)[1])
            data["current"]["model"] = WAYS[name](lab.folder / f"made-by-{name}")
            blob = pack(STATE, data)
            forged.append((key, Seal().write(key, Head.of(blob), blob)))
    _write(config, forged)
    _send(lab, config, 100, 200, models)
    with lab.worker(raw) as worker:
        worker.wait_consumed(200, timeout_s=60)
        refused, learnt = worker.total("models_refused"), _learnt(worker)
        assert worker.stop() == 0
    ran = len(list(lab.folder.glob("made-by-*")))
    figure = f"{ran} of {len(forged)} commands run; {refused} refused; the other model has {learnt}"
    return Found(figure, held=ran == 0 and refused == len(forged) == 3 and learnt == {"good": 50})


def _call(module: str, name: str, argument: str) -> bytes:
    def text(value: str) -> bytes:
        return b"X" + len(value.encode()).to_bytes(4, "little") + value.encode()

    return b"\x80\x05" + text(module) + text(name) + b"\x93" + text(argument) + b"\x85R."


def _send(lab: Lab, config: Config, begin: int, end: int, models: Sequence[str] = MODELS) -> None:
    """Send observations, of each model in turn."""
    records: list[tuple[bytes, bytes, list[tuple[str, bytes]]]] = []
    for n in range(begin, end):
        x = {"a": n * 37 % 101 / 50 - 1, "b": n * 53 % 101 / 50 - 1}
        records.append((models[n % len(models)].encode(), json.dumps({"x": x, "y": x["a"] > 0}).encode(), []))
    produce(lab.broker.bootstrap, config.kafka.topics.observations, records, partition=0)


def _learnt(worker: WorkerProcess) -> dict[str, int]:
    """Return how many observations each model has seen that is there."""
    samples = worker.samples("attributary_model_observations_total")
    return {dict(labels)["model_id"]: int(value) for labels, value in samples.items()}


def _wait_committed(config: Config, n: int) -> None:
    """Wait until a checkpoint has the first n observations."""
    wait_for("a checkpoint", lambda: stored(config).checkpoints[0][1] == n - 1)


def _last(config: Config) -> dict[bytes, bytes | None]:
    return {record.key or b"": record.value for record in read_all(config.kafka.brokers[0], config.kafka.changelog)}


def _of_credit(config: Config) -> dict[bytes, bytes]:
    return {key: value for key, value in _last(config).items() if key.startswith(b"credit\0") and value is not None}


def _epoch(config: Config) -> int:
    return Owners(asyncio.run(read_records(config)), 0, Seal(KEY.encode())).last


def _write(config: Config, records: Sequence[tuple[bytes, bytes | None]]) -> None:
    async def write() -> None:
        async with changelog_writer(config) as send:
            for key, value in records:
                await send(0, key, value)

    asyncio.run(write())
