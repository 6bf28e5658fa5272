"""What two workers write to their logs in a healthy hour with a rebalance and a deployment, on a real Apache Kafka.

python -m benchmarks.cluster log --minutes 60
python -m benchmarks.cluster log --minutes 1 --soon     # Faust's checks fall due after seconds and not minutes

Exits with 1 where a line is at ERROR, or one at WARNING names a setting that the configuration does not have.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import broker
from benchmarks.chaos.compare.positions import is_drained
from benchmarks.cluster.workplace import PARTITIONS, SteadyStream, created, raw_config, wait_settled

SOON = {
    "STREAM_PROCESSING_TIMEOUT": "2",
    "BROKER_COMMIT_LIVELOCK_SOFT_TIMEOUT": "2",
    "BROKER_COMMIT_INTERVAL": "0.5",
}
"""Faust's own settings, which it reads from the environment: what it judges after five minutes, after seconds."""

_LINE = re.compile(r"\d{4}-\d\d-\d\d \S+ (?P<level>[A-Z]+) (?P<logger>\S+): (?P<text>.*)")
_FOREIGN = re.compile(r"\b(broker|stream|consumer|producer|worker|agent)_[a-z_]+\b|\bTimer \S+ is overlapping")
"""Settings of Faust, which nobody can set here, and what else only it says."""


class Line(NamedTuple):
    """A line of a log."""

    level: str
    logger: str
    text: str

    @property
    def is_wrong(self) -> bool:
        """Whether a healthy worker must not write it."""
        return self.level in ("ERROR", "CRITICAL") or (self.level == "WARNING" and bool(_FOREIGN.search(self.text)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print lines by level."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster log",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="default 60")
    parser.add_argument("--per-s", type=float, default=20.0, help="observations a second; default 20")
    parser.add_argument("--kilobytes", type=int, default=1000, help="of each of 8 models; default 1000")
    parser.add_argument("--soon", action="store_true", help="let Faust's checks fall due after seconds")
    args = parser.parse_args(argv)
    if args.soon:
        os.environ.update(SOON)
    with tempfile.TemporaryDirectory() as folder, broker("kafka") as running:
        raw = raw_config(running.bootstrap, "log", kilobytes=args.kilobytes)
        lines = run(raw, Path(folder), 60 * args.minutes, args.per_s)
    by_level = Counter(line.level for line in lines)
    for (level, logger, text), n in sorted(Counter(lines).items()):
        if level != "INFO":
            print(f"{n:4d} {level} {logger}: {text}")
    wrong = [line for line in lines if line.is_wrong]
    print(f"{args.minutes:g} minutes, two workers: {dict(sorted(by_level.items()))}; {len(wrong)} that must not be")
    return int(bool(wrong))


def run(raw: dict[str, object], folder: Path, seconds: float, per_s: float) -> list[Line]:
    """Let a worker run, a second one join and leave, and a model be deployed; return the lines of both logs."""
    config = created(raw)
    stays, comes = WorkerProcess(raw, folder), WorkerProcess(raw, folder)
    began = time.monotonic()

    def until(share: float) -> None:
        wait_for("the workers go on", lambda: time.monotonic() - began > share * seconds, 2 * seconds + 60, every_s=0.5)
        ended = [w.exit_code for w in (stays, comes) if w.exit_code is not None]
        if any(ended):
            raise RuntimeError(f"a worker ended with {ended}:\n{stays.log_tail}\n{comes.log_tail}")

    with SteadyStream(config, per_s) as stream, stays:
        wait_settled([stays])
        until(0.3)
        with comes:
            wait_settled([stays, comes])
            until(0.5)
            _deploy(config, "m0")
            wait_for("the new version is there", lambda: _has_version(stays, comes), 60)
            until(0.8)
            if comes.stop():
                raise RuntimeError(f"the worker that left did not end cleanly:\n{comes.log_tail}")
        wait_settled([stays])
        until(1.0)
        stream.stop()
        wait_for("all is handled", lambda: is_drained(config.kafka.brokers[0], config), 120, every_s=0.5)
        if stays.stop():
            raise RuntimeError(f"the worker that stayed did not end cleanly:\n{stays.log_tail}")
    return [line for worker in (stays, comes) for line in lines_of(worker.log.read_text(errors="replace"))]


def lines_of(log: str) -> list[Line]:
    """Return the lines of a log; what is indented below one is no line, and what is none at all is at ERROR."""
    found = []
    for text in log.splitlines():
        match = _LINE.fullmatch(text)
        if match:
            found.append(Line(match["level"], match["logger"], match["text"]))
        elif text.strip() and not text.startswith(" "):
            found.append(Line("ERROR", "(no logger)", text))
    return found


def _deploy(config: Config, model_id: str) -> None:
    value = json.dumps({"version": "2", "model": {"class": "river.naive_bayes.GaussianNB"}}).encode()
    partition = int(model_id[1:]) % PARTITIONS
    produce(config.kafka.brokers[0], config.kafka.topics.models, [(model_id.encode(), value, [])], partition=partition)


def _has_version(*workers: WorkerProcess) -> bool:
    return any(
        dict(labels).get("version") == "2" for worker in workers for labels in worker.samples("attributary_model_info")
    )


if __name__ == "__main__":
    sys.exit(main())
