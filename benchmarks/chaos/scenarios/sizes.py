"""How long a restart takes with large states, and with many."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.chaos.lab.fleet import Fleet
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.workload import Sent, ballast_config, observations, raw_config
from benchmarks.process import peak_bytes

MEGABYTES = (1, 3, 10, 30)
MANY = 5_000


def run(lab: Lab) -> None:
    """The time of a restart with one state of 1 to 30 MB, and with 5 000 small models; printed, not judged."""
    for megabytes in MEGABYTES[1:2] if lab.short else MEGABYTES:
        _one_large(lab, megabytes)
    _many_small(lab, 60 if lab.short else MANY)


def _one_large(lab: Lab, megabytes: int) -> None:
    raw = raw_config(lab.bootstrap, f"size-{megabytes}")
    raw["models"] = {"credit": ballast_config(1000 * megabytes)}
    raw["checkpoint"] = {"interval_s": 1, "max_observations": 100, "max_share": 1.0}
    records = [sent for sent in observations(1_000, lab.seed) if sent.key == b"credit"]
    _restart(lab, raw, f"one state of {megabytes} MB", records[:300], records[300:])


def _many_small(lab: Lab, n: int) -> None:
    raw = raw_config(lab.bootstrap, "size-many")
    raw["models"] = {f"model-{i:04}": ballast_config(1) for i in range(n)}
    raw["checkpoint"] = {"interval_s": 1, "max_observations": 5_000}
    values = [sent.value for sent in observations(2 * n + 1_000, lab.seed) if sent.key == b"credit"]
    records = [Sent(i % n % 4, f"model-{i % n:04}".encode(), values[i % len(values)]) for i in range(n + 20)]
    _restart(lab, raw, f"{n} small models", records[:n], records[n:])


def _restart(lab: Lab, raw: dict[str, Any], what: str, first: list[Sent], then: list[Sent]) -> None:
    with Fleet(lab, raw) as fleet:
        member = fleet.add()
        fleet.send(first)
        began = time.monotonic()
        if not fleet.wait_drained(600.0):
            return
        lab.note(f"{what}: first start to all {len(first)} observations committed {time.monotonic() - began:.1f} s")
        began = time.monotonic()
        member.stop()
        stop_s = time.monotonic() - began
        state = lab.broker.bytes_on_disk(fleet.config.kafka.changelog)
        fleet.send(then)
        began = time.monotonic()
        member.start()
        if not fleet.wait("ready", member.worker.is_ready, 600.0, poll_s=0.05):
            return
        ready_s = time.monotonic() - began
        before = len(first)
        if not fleet.wait("the first observation is handled", lambda: fleet.consumed() > before, 600.0, poll_s=0.05):
            return
        handled_s = time.monotonic() - began
        peak = peak_bytes(member.worker.pid) / 1e6
        lab.note(
            f"{what}: stop {stop_s:.2f} s, restart until ready {ready_s:.2f} s, until the first observation is handled "
            f"{handled_s:.2f} s, peak memory {peak:.0f} MB, changelog {state / 1e6:.1f} MB on disk"
        )
        fleet.finish(600.0)
