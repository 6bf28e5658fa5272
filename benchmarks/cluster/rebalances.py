"""What a worker's memory is after each of many rebalances, on a real Apache Kafka.

python -m benchmarks.cluster rebalances                         # 100 rebalances in and out, 8 models of 2 MB
python -m benchmarks.cluster rebalances --times 10 --kilobytes 500

Another member joins and leaves the group over and over: the worker loses half of its partitions, and takes them again
with their states, while observations come.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import broker
from benchmarks.cluster.workplace import PARTITIONS, SteadyStream, created, passing_member, raw_config, wait_settled

AT_MOST = 0.10
"""Growth from the median after the first rebalances to that after the last ones that is no failure."""

SETTLING = 3
"""Rebalances after which the first five values are taken: caches and buffers are there by then."""


GIVING_BACK_S = 2.0
"""Seconds after which the worker has given back what restoring has needed."""

LOOKED_AT_S = 6.0
"""Seconds over which the memory is looked at then: checkpoints, which need some for a moment, are made in them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print; return 1 where the memory has grown by more than a tenth."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster rebalances",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--times", type=int, default=100, help="default 100")
    parser.add_argument("--kilobytes", type=int, default=2000, help="of each of 8 models; default 2000")
    parser.add_argument("--per-s", type=float, default=20.0, help="observations a second; default 20")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, broker("kafka") as running:
        raw = raw_config(running.bootstrap, "rebalances", kilobytes=args.kilobytes, session_timeout_s=6.0)
        held, most = measure(raw, Path(folder), args.times, args.per_s)
    for title, megabytes in (("held", held), ("at most, in a checkpoint", most)):
        grown, slope, error = judge(megabytes)
        print(
            f"after {args.times} rebalances in and out: {title}: {grown:+.1%} of "
            f"{median(megabytes[SETTLING:][:5]):.1f} MB; slope {slope:+.3f} ± {error:.3f} MB per rebalance"
        )
    print(f"to reach: at most {AT_MOST:+.0%} of what is held")
    return int(judge(held)[0] > AT_MOST)


def measure(raw: dict[str, object], folder: Path, times: int, per_s: float) -> tuple[list[float], list[float]]:
    """Return the worker's resident memory at the start and after each time that a member came and went.

    Returns
    -------
    The least and the most within some seconds, in MB: what the worker holds, and with what a checkpoint needs.
    """
    config = created(raw)
    worker = WorkerProcess(raw, folder)
    held, most = list[float](), list[float]()
    with worker, SteadyStream(config, per_s) as stream:
        wait_settled([worker])
        wait_for("each state has been stored again and again", lambda: _checkpoints(worker) >= 5 * PARTITIONS, 300)
        for n in range(times + 1):
            if n:
                with passing_member(config):
                    wait_settled([worker], PARTITIONS // 2)
                wait_settled([worker])
                wait_for("all models are restored", lambda: not worker.total("models_restoring"), 60)
                sleep(GIVING_BACK_S)
            looks = _looks(worker.pid)
            held.append(min(looks))
            most.append(max(looks))
            print(
                f"{n:4d}  {held[-1]:6.1f} to {most[-1]:6.1f} MB, {_describe(worker.pid)}, {stream.sent} sent",
                flush=True,
            )
        if worker.stop():
            raise RuntimeError(f"the worker did not end cleanly:\n{worker.log_tail}")
    return held, most


def _checkpoints(worker: WorkerProcess) -> float:
    """Return how many checkpoints the worker has made: after two the changelog holds two generations of each state."""
    found = worker.samples("attributary_stage_duration_seconds_count")
    return found.get((("stage", "checkpoint"),), 0.0)


def judge(megabytes: Sequence[float]) -> tuple[float, float, float]:
    """Return the growth as a share, and the slope in MB per rebalance with its standard error, behind `SETTLING`."""
    rest = list(megabytes[min(SETTLING, len(megabytes) - 1) :])
    n = len(rest)
    grown = median(rest[-5:]) / median(rest[:5]) - 1
    if n < 3:
        return grown, 0.0, float("inf")
    center, mean = (n - 1) / 2, sum(rest) / n
    spread = sum((i - center) ** 2 for i in range(n))
    slope = sum((i - center) * (y - mean) for i, y in enumerate(rest)) / spread
    residual = sum((y - mean - slope * (i - center)) ** 2 for i, y in enumerate(rest))
    return grown, slope, (residual / (n - 2) / spread) ** 0.5


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":", 1) for line in lines)


def _resident(pid: int) -> float:
    return int(_status(pid)["VmRSS"].split()[0]) / 1000


def _looks(pid: int) -> list[float]:
    until, looks = monotonic() + LOOKED_AT_S, [_resident(pid)]
    while monotonic() < until:
        sleep(0.1)
        looks.append(_resident(pid))
    return looks


def _describe(pid: int) -> str:
    status = _status(pid)
    n_files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return f"{int(status['Threads'])} threads, {n_files} files"


if __name__ == "__main__":
    sys.exit(main())
