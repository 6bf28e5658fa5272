"""What `delivery: exactly_once` costs beside the default: records a second, processor time, and when events are seen.

    python -m benchmarks.exactly_once                    # on an Apache Kafka of its own
    python -m benchmarks.exactly_once --records 120000 --turns 8

A linear model with iPFI 10. *Speed*: the topic is filled beforehand, and a worker reads it; workers of both kinds in
turns, each with a group of its own; once with an event every 500 observations, and once with one every 5, where a
checkpoint publishes a thousand. A worker is measured from the fifth part of its records on, so that its start and its
first checkpoint are not in it. *Latency*: observations come at a fixed rate, an event of each model every 5; a reader
of committed records notes when it is given them.

Ratios of a pair are what counts: times are those of the machine. Records a second are less sure than the processor time
of a record: they also have what else the machine does meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from support.kafka import produce
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import broker
from attributary_agents.kafka.topics import create_topics

KINDS = ("at_least_once", "exactly_once")
MODEL = "linear"


def raw_config(bootstrap: str, kind: str, name: str, *, every: int, interval_s: float) -> dict[str, Any]:
    """A configuration as it would stand in the file, with topics and a group of its own."""
    model = {
        "model": [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}],
        "features": {f"f{i}": "number" for i in range(10)},
        "explainers": {"pfi": {"n_samples": 10}},
        "change": None,
        "publish": {"every": every},
    }
    kafka = {"brokers": [bootstrap], "group": name, "topic_prefix": name, "partitions": 1}
    checkpoint = {"interval_s": interval_s}
    return {"kafka": kafka, "models": {MODEL: model}, "checkpoint": checkpoint, "delivery": kind}


def value(rng: random.Random) -> bytes:
    """An observation of ten features, of which the first decides the label."""
    x = {f"f{i}": round(rng.gauss(0.0, 1.0), 3) for i in range(10)}
    return orjson.dumps({"x": x, "y": x["f0"] > 0})


class Speed(NamedTuple):
    """How fast a worker was.

    Attributes
    ----------
    rate
        Records a second.
    used
        Microseconds of the worker's processor time per record.
    checkpoint
        Milliseconds from the beginning of a checkpoint to its end, in the mean.
    """

    rate: float
    used: float
    checkpoint: float


def speed(bootstrap: str, kind: str, turn: int, n: int, folder: Path, *, every: int) -> Speed:
    """Let a worker read a topic that is full."""
    name = f"speed-{every}-{kind.replace('_', '-')}-{turn}"
    raw = raw_config(bootstrap, kind, name, every=every, interval_s=5.0)
    config = parse_config(raw)
    create_topics(config)
    rng = random.Random(turn)
    produce(bootstrap, config.kafka.topics.observations, [(MODEL.encode(), value(rng), []) for _ in range(n)])
    worker = WorkerProcess(raw, folder)
    with worker:
        worker.wait_consumed(n // 5, timeout_s=300)  # the first checkpoint is made
        began, cpu = time.perf_counter(), _processor_s(worker.pid)
        first, before = worker.total("records_consumed_total"), _checkpoints(worker)
        worker.wait_consumed(n, timeout_s=600)
        took, used = time.perf_counter() - began, _processor_s(worker.pid) - cpu
        checkpoints = [after - before for after, before in zip(_checkpoints(worker), before, strict=True)]
        worker.stop()
    return Speed((n - first) / took, 1e6 * used / (n - first), 1e3 * checkpoints[0] / max(checkpoints[1], 1.0))


def _checkpoints(worker: WorkerProcess) -> list[float]:
    """Return the seconds that checkpoints have lasted, and how many they were."""
    metrics = worker.metrics()
    return [
        next(
            value
            for labels, value in metrics[f"attributary_stage_duration_seconds_{part}"].items()
            if ("stage", "checkpoint") in labels
        )
        for part in ("sum", "count")
    ]


def _processor_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def compare(bootstrap: str, every: int, n: int, turns: int, folder: Path) -> None:
    """Print how fast workers of both kinds are, in turns, and what the one costs over the other."""
    found: dict[str, list[Speed]] = {kind: [] for kind in KINDS}
    for turn in range(turns):
        for kind in KINDS if turn % 2 else KINDS[::-1]:
            one = speed(bootstrap, kind, turn, n, folder, every=every)
            found[kind].append(one)
            print(
                f"{kind:14} {one.rate:8.0f} records/s, {one.used:6.0f} us of the processor a record, a checkpoint "
                f"takes {one.checkpoint:4.0f} ms",
                flush=True,
            )
    pairs = list(zip(found[KINDS[1]], found[KINDS[0]], strict=True))
    for what, ratios in (
        ("records/s", [exact.rate / plain.rate for exact, plain in pairs]),
        ("processor time a record", [exact.used / plain.used for exact, plain in pairs]),
        ("how long a checkpoint takes", [exact.checkpoint / plain.checkpoint for exact, plain in pairs]),
    ):
        print(
            f"exactly once over at least once: {statistics.median(ratios):.2f} {what} "
            f"(each pair: {', '.join(f'{one:.2f}' for one in ratios)})"
        )
    print(f"load of the machine {os.getloadavg()[0]:.1f}", flush=True)


def latency(bootstrap: str, kind: str, interval_s: float, seconds: float, folder: Path) -> list[float]:
    """Return the seconds from each observation with an event to when a reader of committed records has it."""
    name = f"latency-{kind.replace('_', '-')}-{interval_s:g}".replace(".", "-")
    raw = raw_config(bootstrap, kind, name, every=5, interval_s=interval_s)
    config = parse_config(raw)
    create_topics(config)
    worker = WorkerProcess(raw, folder)
    with worker:
        deadline = time.monotonic() + 300
        while not worker.is_ready():
            if time.monotonic() > deadline:
                raise TimeoutError(worker.log_tail)
            time.sleep(0.2)
        topics = config.kafka.topics
        found = asyncio.run(_latencies(bootstrap, topics.observations, topics.importances, seconds))
        worker.stop()
    return found


async def _latencies(bootstrap: str, observations: str, importances: str, seconds: float) -> list[float]:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    consumer = AIOKafkaConsumer(importances, bootstrap_servers=bootstrap, isolation_level="read_committed")
    await producer.start()
    await consumer.start()
    found: list[float] = []
    sent: dict[int, float] = {}

    async def read() -> None:
        async for record in consumer:
            offset = orjson.loads(record.value)["source"]["offset"]
            found.append(time.time() - sent[offset])

    reading = asyncio.ensure_future(read())
    rng, began, n = random.Random(1), time.monotonic(), 0
    try:
        while (passed := time.monotonic() - began) < seconds:
            while n < 50 * passed:
                at = time.time()
                done = await producer.send_and_wait(observations, value(rng), MODEL.encode())
                sent[done.offset] = at
                n += 1
            await asyncio.sleep(0.005)
        await asyncio.sleep(12.0)  # for the last checkpoint
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await consumer.stop()
        await producer.stop()
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exactly_once", description=__doc__)
    parser.add_argument("--records", type=int, default=60_000, help="of one worker; default 60000")
    parser.add_argument("--turns", type=int, default=5, help="workers of each kind; default 5")
    parser.add_argument("--seconds", type=float, default=30.0, help="for which latency is measured; default 30")
    args = parser.parse_args(argv)
    with broker("kafka") as kafka, tempfile.TemporaryDirectory() as at:
        folder = Path(at)
        for every, n in ((500, args.records), (5, args.records // 2)):
            print(f"an event every {every} observations", flush=True)
            compare(kafka.bootstrap, every, n, args.turns, folder)
        for interval_s in (1.0, 5.0):
            for kind in KINDS:
                seen = sorted(latency(kafka.bootstrap, kind, interval_s, args.seconds, folder))
                worst = seen[int(0.99 * (len(seen) - 1))]
                print(
                    f"checkpoints of {interval_s:g} s, {kind:14} {len(seen)} events seen after "
                    f"{1e3 * statistics.median(seen):.0f} ms in the median, 99 % within {1e3 * worst:.0f} ms",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
