"""How soon a worker that was killed goes on after its restart, with and without `kafka.instance_id`, on Apache Kafka.

python -m benchmarks.cluster takeover                   # the default session time-out, 60 s: about three minutes

A lone worker is ended by SIGKILL in the middle of a stream, and started again at once. What it leaves is compared with
what an undisturbed worker would have left.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import broker
from benchmarks.chaos.compare.positions import is_drained
from benchmarks.cluster.workplace import SteadyStream, created, raw_config, wait_settled, worker_in

AT_MOST_S = 15.0

_OBSERVATION = (("stage", "observation"),)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 where a worker with a name takes too long."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster takeover",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--session-timeout-s", type=float, default=60.0, help="default 60, as the configuration's")
    parser.add_argument("--kills", type=int, default=2, help="of the worker with a name; default 2")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, broker("kafka") as running:
        took: dict[str, list[float]] = {}
        for title, name, kills in (("with a name", "attributary-0", args.kills), ("without", None, 1)):
            raw = raw_config(running.bootstrap, title.replace(" ", "-"), session_timeout_s=args.session_timeout_s)
            took[title] = measure(worker_in(raw, Path(folder), **({"instance_id": name} if name else {})), raw, kills)
            print(
                f"{title}: goes on {', '.join(f'{s:.1f} s' for s in took[title])} after SIGKILL and start", flush=True
            )
    print(f"nothing lost, nothing doubled; to reach with a name: {AT_MOST_S:g} s")
    return int(max(took["with a name"]) > AT_MOST_S)


def measure(worker: WorkerProcess, raw: dict[str, object], kills: int) -> list[float]:
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
            print(f"    {took[-1]:.1f} s", flush=True)
        stream.stop()
        wait_for("all is handled", lambda: is_drained(config.kafka.brokers[0], config), 600, every_s=0.5)
        if worker.stop():
            raise RuntimeError(f"the worker did not end cleanly:\n{worker.log_tail}")
    check_equal(config.kafka.brokers[0], config)
    return took


def _handled(worker: WorkerProcess) -> int:
    """Return the observations that this process has handled; 0 while it does not answer."""
    return int(worker.samples("attributary_stage_duration_seconds_count").get(_OBSERVATION, 0))


if __name__ == "__main__":
    sys.exit(main())
