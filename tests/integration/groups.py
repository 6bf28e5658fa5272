"""What tests of a group work with: its configuration, a member that does nothing, and a steady stream."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from benchmarks.chaos.compare.compare import is_drained
from benchmarks.chaos.lab.workload import ballast_config
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.app import create_app
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.kafka.topics import create_topics

PARTITIONS = 4

_OBSERVATION = (("stage", "observation"),)

LOGISTIC = [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}]


def raw_config(bootstrap: str, group: str, *, kilobytes: int = 0, n_models: int = 8, **kafka: Any) -> dict[str, Any]:
    """Return a configuration as it would stand in the file; its models are logistic, or carry so many kilobytes each.

    Model `m<i>` is meant for partition `i % PARTITIONS`.
    """
    small = {
        "model": LOGISTIC,
        "features": dict.fromkeys("abc", "number"),
        "alpha": 0.01,
        "explainers": {"pfi": {"n_samples": 1}, "sage": {"n_samples": 2}},
        "publish": {"every": 50},
    }
    model = ballast_config(kilobytes) if kilobytes else small
    return {
        "kafka": {
            "brokers": [bootstrap],
            "group": group,
            "topic_prefix": group,
            "partitions": PARTITIONS,
            **kafka,
        },
        "models": {f"m{i}": model for i in range(n_models)},
        "checkpoint": {"interval_s": 2},
    }


def created(raw: dict[str, Any]) -> Config:
    """Read the configuration and create its topics."""
    config = parse_config(raw)
    create_topics(config)
    return config


def observation(i: int) -> bytes:
    """Return the i-th observation of a fixed sequence, whose label its first feature decides."""
    rng = random.Random(i)
    a, b, c = (round(rng.uniform(-1, 1), 3) for _ in range(3))
    return json.dumps({"x": {"a": a, "b": b, "c": c}, "y": a > 0}).encode()


def partitions_of(worker: WorkerProcess) -> set[int]:
    """Return the partitions that the worker shows in its metrics; none while it does not answer."""
    samples = worker.samples("attributary_records_consumed_total")
    return {int(dict(labels)["partition"]) for labels in samples}


def wait_settled(workers: list[WorkerProcess], n_partitions: int = PARTITIONS, timeout_s: float = 300.0) -> None:
    """Wait until the workers have so many partitions between them and are ready."""

    def settled() -> bool:
        if not all(worker.is_ready() for worker in workers):
            return False
        found = [partitions_of(worker) for worker in workers]
        return all(found) and sum(map(len, found)) == n_partitions

    wait_for("the group has settled", settled, timeout_s)


@contextmanager
def passing_member(config: Config, instance_id: str | None = None) -> Iterator[None]:
    """Be a member of the group inside the block: it takes its share of the partitions, by Faust's assignor, idly.

    Parameters
    ----------
    instance_id
        Its name in the group; with one it stays a member behind the block, until its session is over.
    """
    joined, leave = threading.Event(), threading.Event()

    async def belong() -> None:
        app = create_app(config).app
        topics = (config.kafka.topics.observations, config.kafka.topics.models, config.kafka.changelog)
        member = AIOKafkaConsumer(
            *topics,
            bootstrap_servers=config.kafka.brokers,
            group_id=config.kafka.group,
            group_instance_id=instance_id,
            partition_assignment_strategy=[app.assignor],
            enable_auto_commit=False,
            session_timeout_ms=int(config.kafka.session_timeout_s * 1000),
            heartbeat_interval_ms=int(config.kafka.session_timeout_s * 100),
            rebalance_timeout_ms=60_000,
            request_timeout_ms=90_000,
        )
        await member.start()  # returns with an assignment
        try:
            joined.set()
            while not leave.is_set():
                await asyncio.sleep(0.05)
        finally:
            await member.stop()

    thread = threading.Thread(target=lambda: asyncio.run(belong()), daemon=True)
    thread.start()
    try:
        wait_for("the passing member has joined", joined.is_set, 120)
        yield
    finally:
        leave.set()
        thread.join(60)


class SteadyStream:
    """Sends observations of all models at a steady rate, from a thread, inside the block.

    Parameters
    ----------
    per_s
        Observations a second.
    """

    def __init__(self, config: Config, per_s: float) -> None:
        self.sent = 0
        self._config = config
        self._per_s = per_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._send()), daemon=True)

    async def _send(self) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self._config.kafka.brokers, enable_idempotence=True)
        await producer.start()
        models = list(self._config.models)
        began = time.monotonic()
        try:
            while not self._stopped.is_set():
                due = int((time.monotonic() - began) * self._per_s)
                while self.sent < due:
                    i = self.sent % len(models)
                    await producer.send(
                        self._config.kafka.topics.observations,
                        observation(self.sent),
                        models[i].encode(),
                        i % self._config.kafka.partitions,
                    )
                    self.sent += 1
                await asyncio.sleep(0.05)
        finally:
            await producer.stop()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Send no more; what was sent is at the broker."""
        self._stopped.set()
        self._thread.join(30)


def worker_in(raw: dict[str, Any], folder: Path, **kafka: Any) -> WorkerProcess:
    """Return a worker with the configuration and some keys of `kafka` of its own."""
    return WorkerProcess({**raw, "kafka": {**raw["kafka"], **kafka}}, folder)


def takeovers(worker: WorkerProcess, raw: dict[str, object], kills: int) -> list[float]:
    """Return the seconds from each SIGKILL to the first observation handled by the next process.

    Raises
    ------
    AssertionError
        What is left is not what an undisturbed worker leaves.
    """
    config = created(raw)
    took = []
    with worker, SteadyStream(config, 10.0) as stream:
        wait_settled([worker])
        for _ in range(kills):
            worker.wait_consumed(worker.total("records_consumed_total") + 50, timeout_s=120)
            worker.kill()
            killed_at = time.monotonic()
            worker.start()
            wait_for("the next process handles observations", lambda: _handled(worker), 300)
            took.append(time.monotonic() - killed_at)
        stream.stop()
        wait_for("all is handled", lambda: is_drained(config.kafka.brokers[0], config), 600, every_s=0.5)
        if worker.stop():
            raise RuntimeError(f"the worker did not end cleanly:\n{worker.log_tail}")
    check_equal(config.kafka.brokers[0], config)
    return took


def _handled(worker: WorkerProcess) -> int:
    """Return the observations that this process has handled; 0 while it does not answer."""
    return int(worker.samples("attributary_stage_duration_seconds_count").get(_OBSERVATION, 0))
