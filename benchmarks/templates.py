"""What thousands of models of one template cost a worker, over a single model: throughput, memory, bringing one back.

    python -m benchmarks.templates                  # on a real Apache Kafka: `make kafka` first
    python -m benchmarks.templates --ids 1000 --observations 10000

Two workers, one after the other, each with one template and the same settings: to one all observations are of a single
id, to the other of many, a second of stream time apart. First each id has one observation, and is new. What is measured
comes after that: at each time so many ids have observations, others as time goes on, and an id that has had none for
`idle` rests. Both have a topic that is full when they start. Times are of the processor, but for *records a second*.
To bring one back is measured in this process: from the stored bytes to the end of its observation, less what the next
one takes. On a machine with other work, compare ratios of one run alone.
"""

from __future__ import annotations

import argparse
import logging
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from support.kafka import Record, produce
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.kafka.observations import encode_value
from attributary_agents.kafka.topics import create_topics
from attributary_agents.state.codec import encode_state
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record as Handled

FEATURES = tuple(f"f{n}" for n in range(9))
MODEL = {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}
ACTIVE, TIMEOUT_S = 200, 900.0
MATURE, BROUGHT_BACK = 100, 100

out = Console(width=110)


@dataclass(frozen=True)
class Run:
    """What a worker has said of itself.

    Attributes
    ----------
    resident, most_resident
        Megabytes at the end, and at most while the rest was handled.
    cpu_us, per_s
        Microseconds of the processor for a record, and records a second, of those that were measured.
    """

    resident: float
    most_resident: float
    cpu_us: float
    per_s: float
    known: int
    loaded: int
    most_loaded: int
    loads: int
    evictions: int


def configuration(bootstrap: str, name: str, ids: int, idle_s: int) -> dict[str, Any]:
    """One template, with topics and a group of this name, on one partition."""
    return {
        "kafka": {"brokers": [bootstrap], "group": name, "topic_prefix": name, "partitions": 1},
        "models": {"store-*": {**MODEL, "max_models": max(ids, 1), "idle": f"{idle_s}s"}},
    }


def value(rng: random.Random) -> bytes:
    """Return the value of a record: nine numbers, of which two matter."""
    x = {name: rng.random() for name in FEATURES}
    return encode_value({"x": x, "y": 3 * x["f0"] + x["f1"] + rng.gauss(0, 0.1)})


def stream(ids: int, n: int, n_first: int) -> Iterator[Record]:
    """Yield the records: each id once, then those of a few ids at a time; of a single id as many."""
    rng = random.Random(1)
    start_ms = round(1000 * (time.time() - n - n_first))
    for i in range(n_first + n):
        number = i if i < n_first else (i - n_first) // 100 * (ACTIVE // 10) + rng.randrange(ACTIVE)
        yield b"store-%d" % (number % ids), value(rng), [], start_ms + 1000 * i


def run(bootstrap: str, name: str, ids: int, n: int, n_first: int, idle_s: int, folder: Path) -> Run:
    """Let a worker handle the records; return what it says."""
    config = configuration(bootstrap, name, ids, idle_s)
    create_topics(parsed := parse_config(config))
    produce(bootstrap, parsed.kafka.topics.observations, stream(ids, n, n_first), partition=0)
    worker = WorkerProcess(config, folder)
    with worker:
        seen = _watched(worker, n_first, n)
        worker.stop()
    return seen


def _watched(worker: WorkerProcess, n_first: int, n: int) -> Run:
    worker.wait_consumed(n_first, timeout_s=TIMEOUT_S)
    found = worker.metrics()
    began, cpu_s = time.monotonic(), _of(found, "process_cpu_seconds_total")
    begun_at = n_now = _of(found, "attributary_records_consumed_total")
    resident, loaded = [_of(found, "process_resident_memory_bytes") / 1e6], [_of(found, "attributary_models_loaded")]
    while n_now < n_first + n:
        time.sleep(0.5)
        if found := worker.metrics() or found:
            n_now = _of(found, "attributary_records_consumed_total")
            resident.append(_of(found, "process_resident_memory_bytes") / 1e6)
            loaded.append(_of(found, "attributary_models_loaded"))
        if time.monotonic() - began > TIMEOUT_S or worker.exit_code is not None:
            raise RuntimeError(worker.log_tail)
    measured = n_now - begun_at
    if measured < n / 2:
        raise SystemExit(f"--observations {n}: they were handled before anybody looked: take more")
    return Run(
        resident[-1],
        max(resident),
        1e6 * (_of(found, "process_cpu_seconds_total") - cpu_s) / measured,
        measured / (time.monotonic() - began),
        int(_of(found, "attributary_models_known")),
        int(loaded[-1]),
        int(max(loaded)),
        int(_of(found, "attributary_model_loads_total")),
        int(_of(found, "attributary_model_evictions_total")),
    )


def _of(found: dict[str, dict[Any, float]], name: str) -> float:
    return sum(found.get(name, {}).values())


def bring_back() -> tuple[list[float], list[float], int]:
    """Return the milliseconds to handle an observation of a model that rests, and the next one; and what is stored."""
    config = parse_config({"models": {"store-*": MODEL}})
    rng, key = random.Random(2), b"store-1"
    partition = Partition("observations", 0, config, lambda _key: None, time.perf_counter)
    for offset in range(MATURE):
        partition.handle(Handled("observations", 0, offset, offset, key, value(rng)))
    blob = encode_state(partition.models["store-1"])
    first: list[float] = []
    second: list[float] = []
    for _ in range(BROUGHT_BACK):
        again = Partition("observations", 0, config, {key: blob}.get, time.perf_counter)
        for offset, took in ((MATURE, first), (MATURE + 1, second)):
            record = Handled("observations", 0, offset, offset, key, value(rng))
            began = time.process_time()
            again.handle(record)
            took.append(1000 * (time.process_time() - began))
    return first, second, len(blob)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, measure, print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.templates",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--ids", type=int, default=10_000, help="models; default 10000")
    parser.add_argument("--observations", type=int, default=20_000, help="that are measured; default 20000")
    parser.add_argument("--idle", type=int, default=600, help="seconds of stream time, a record each; default 600")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    logging.disable()
    runs: dict[int, Run] = {}
    with tempfile.TemporaryDirectory() as folder, KafkaBroker() as broker:
        for ids in (1, args.ids):
            name = f"templates-{ids}"
            runs[ids] = run(broker.bootstrap, name, ids, args.observations, args.ids, args.idle, Path(folder))
    one, many = runs[1], runs[args.ids]
    table = Table(title=f"one template, {args.observations} observations, idle {args.idle} s", title_justify="left")
    for title in ("", "1 model", f"{args.ids} models", "ratio"):
        table.add_column(title, justify="right" if title else "left")
    for what, left, right, form in (
        ("records a second", one.per_s, many.per_s, ".0f"),
        ("µs of the processor for a record", one.cpu_us, many.cpu_us, ".0f"),
        ("MB resident at the end", one.resident, many.resident, ".0f"),
        ("MB resident at most", one.most_resident, many.most_resident, ".0f"),
    ):
        table.add_row(what, f"{left:{form}}", f"{right:{form}}", f"{right / left:.2f}")
    for title, attribute in (
        ("models known", "known"),
        ("in memory at the end", "loaded"),
        ("in memory at most", "most_loaded"),
        ("loaded, times", "loads"),
        ("left the memory, times", "evictions"),
    ):
        table.add_row(title, str(getattr(one, attribute)), str(getattr(many, attribute)), "")
    out.print(table)
    first, second, size = bring_back()
    cost = [a - b for a, b in zip(first, second, strict=True)]
    out.print(
        f"to bring one back: {statistics.median(cost):.1f} ms (of {BROUGHT_BACK}, quartiles "
        f"{statistics.quantiles(cost)[0]:.1f} to {statistics.quantiles(cost)[2]:.1f}), besides its observation, "
        f"{statistics.median(second):.2f} ms; {size / 1000:.1f} kB are stored of it after {MATURE} observations"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
