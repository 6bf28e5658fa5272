"""Measures the time from a record's producer to its event at a consumer, at a steady rate of records."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from support.kafka import read_all
from support.waiting import wait_for

from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.demo.processes import start_child
from attributary_topics import Topics
from benchmarks.process import processor_s
from benchmarks.scale.cases import Case, Subject
from benchmarks.scale.running import PACKAGES, Runner

SETTLING_S = 3.0
"""What comes in the first seconds is not counted: it may have waited for the subject's start."""
EVENTS_PER_S = 100


@dataclass(frozen=True)
class Waited:
    """How long records waited for their events.

    Attributes
    ----------
    per_s
        Records that were sent a second.
    load
        Part of one core that the subject took meanwhile.
    p50_ms, p99_ms
        Milliseconds from the producer's time stamp to the event at a consumer.
    n
        Events.
    """

    case: str
    subject: str
    per_s: float
    load: float
    p50_ms: float
    p99_ms: float
    n: int


class _Events:
    """Notes when the events of records arrive, from a thread."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.arrived: dict[int, float] = {}
        self._bootstrap, self._topic = bootstrap, topic
        self._ready, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()), daemon=True)

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(self._topic, bootstrap_servers=self._bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        self._ready.set()
        try:
            while not self._stop.is_set():
                for batch in (await consumer.getmany(timeout_ms=50)).values():
                    now = time.time()
                    for record in batch:
                        self.arrived.setdefault(json.loads(record.value)["source"]["offset"], now)
        finally:
            await consumer.stop()

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note them inside the block."""
        self._thread.start()
        self._ready.wait(60)
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join(30)


def measure(runner: Runner, broker: KafkaBroker, case: Case, subject: Subject, per_s: float, seconds: float) -> Waited:
    """Run a subject on a topic of its own while records come at a steady rate; return how long they waited."""
    prefix = f"latency-{uuid.uuid4().hex[:8]}"
    own = replace(case, first=0, last=0, partitions=1, models=1, workers=1, own_prefix=prefix)
    topics = Topics(prefix)
    every = max(1, round(per_s / EVENTS_PER_S))
    with contextlib.ExitStack() as stack:
        if subject.is_worker:
            publish = {"publish": {"every": every}}
            asked = replace(subject, settings={**(subject.settings or {}), **publish})
            (worker,) = runner.worker(own, asked)
            events = _Events(broker.bootstrap, topics.importances)
            stack.enter_context(events.noted())
            stack.enter_context(worker)
            wait_for("the worker is ready", worker.is_ready, 120)
            pid = worker.pid
        else:
            runner.worker(own, Subject("", settings={}))  # its topics
            events = _Events(broker.bootstrap, topics.importances)
            stack.enter_context(events.noted())
            child = stack.enter_context(runner.loop(own, subject, every=every, first=0, last=0))
            time.sleep(3)
            pid = child.pid
        began, cpu = time.time(), processor_s(pid)
        _send(runner.folder, broker, own, per_s, seconds)
        load = (processor_s(pid) - cpu) / (time.time() - began)
        time.sleep(0.5)
    sent = {record.offset: record.timestamp / 1e3 for record in read_all(broker.bootstrap, topics.observations)}
    waits = sorted(
        1e3 * (at - sent[offset])
        for offset, at in events.arrived.items()
        if offset in sent and sent[offset] > began + SETTLING_S
    )
    if not waits:
        raise RuntimeError(f"{subject.name}: no event came")
    return Waited(case.name, subject.name, per_s, load, _quantile(waits, 0.5), _quantile(waits, 0.99), len(waits))


def _send(folder: Path, broker: KafkaBroker, case: Case, per_s: float, seconds: float) -> None:
    given = {
        "brokers": broker.bootstrap,
        "topic": Topics(case.prefix).observations,
        "features": case.features,
        "per_s": per_s,
        "seconds": seconds + SETTLING_S,
    }
    argv = [sys.executable, "-m", "benchmarks.scale.subjects.steady", json.dumps(given)]
    child = start_child(argv, log=folder / "steady.log", env={"PYTHONPATH": PACKAGES})
    if child.wait(seconds + 120):
        raise RuntimeError((folder / "steady.log").read_text()[-2000:])


def _quantile(ordered: list[float], q: float) -> float:
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]
