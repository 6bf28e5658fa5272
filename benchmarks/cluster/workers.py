"""What several workers of one machine take, by --workers, on a real Apache Kafka.

    python -m benchmarks.cluster workers             # 1, 2 and 4 workers, 8 logistic models
    python -m benchmarks.cluster workers --n 2

Memory is what Linux calls PSS, in which each page counts by its share where several processes have it: so the sum over
processes, the supervisor among them, is what the machine has less. It is read when a stream has been handled. Processor
time is that of all processes from the first record's handling to the last one's, over the records.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import broker
from benchmarks.cluster.workplace import PARTITIONS, created, observation, raw_config, wait_settled

N_RECORDS = 8000


class Taken(NamedTuple):
    """Bytes of all processes together, of the largest of them, and seconds of processor time per record."""

    pss: int
    largest: int
    processor_s: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print; return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster workers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--n", type=int, nargs="+", default=[1, 2, 4], help="workers; default 1 2 4")
    args = parser.parse_args(argv)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print("workers  PSS, MB  largest process, MB  processor, µs per record")
    with broker("kafka") as running, tempfile.TemporaryDirectory() as folder:
        for n in args.n:
            taken = measure(raw_config(running.bootstrap, f"workers{n}"), Path(folder), n)
            megabytes = f"{taken.pss / 1e6:7.0f}  {taken.largest / 1e6:19.0f}"
            print(f"{n:7}  {megabytes}  {taken.processor_s * 1e6:24.0f}", flush=True)
    return 0


def measure(raw: dict[str, Any], folder: Path, n: int) -> Taken:
    """Let n workers handle a stream that comes while they wait for it, and return what they take."""
    config = created(raw)
    with WorkerProcess(raw, folder, "--workers", str(n)) as worker:
        wait_settled([worker])
        pids = list(family(worker.pid))
        before = sum(map(processor_s, pids))
        for partition in range(PARTITIONS):
            keys = [f"m{i}".encode() for i in (partition, partition + PARTITIONS)]
            some: list[tuple[bytes, bytes, list[tuple[str, bytes]]]] = [
                (keys[i % 2], observation(i), []) for i in range(N_RECORDS // PARTITIONS)
            ]
            produce(config.kafka.brokers[0], config.kafka.topics.observations, some, partition=partition)

        wait_for("all is handled", lambda: worker.total("records_consumed_total") >= N_RECORDS, 300, every_s=1.0)
        spent = sum(map(processor_s, pids)) - before
        sizes = [pss(pid) for pid in pids]
        assert worker.stop() == 0, worker.log_tail
    return Taken(sum(sizes), max(sizes), spent / N_RECORDS)


def family(pid: int) -> Iterator[int]:
    """Yield a process and all that it has started."""
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from family(int(child))


def pss(pid: int) -> int:
    """Return the bytes of a process, each page by its share."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def processor_s(pid: int) -> float:
    """Return the seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
