"""SIGSTOP past the session's time-out: another worker takes over, and then the frozen one wakes up and goes on."""

from __future__ import annotations

import os
import signal

from support.states import stored

from benchmarks.chaos.lab.fleet import Fleet
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.workload import Sent, ballast_config, observations, raw_config, slices


def run(lab: Lab) -> None:
    """One of two workers is frozen past its session, in a checkpoint mostly, and wakes when the other has done all."""
    n, session_s, per_round = (2, 3.0, 1_500) if lab.short else (20, 6.0, 3_000)
    raw = raw_config(lab.bootstrap, "pause", session_timeout_s=session_s)
    # A large state, written again and again: most moments are within a checkpoint.
    raw["models"]["fraud"] = ballast_config(1000)
    raw["checkpoint"] = {"interval_s": 0.1, "max_observations": 40, "max_share": 1.0}
    with Fleet(lab, raw) as fleet:
        parts = list(slices(observations(n * per_round, lab.seed), 2 * n + 1))
        stale = []
        for _ in range(2):
            fleet.add()
        for i in range(n):
            for member in fleet.members:
                if not member.is_running:
                    member.start()
            if not fleet.wait_ready():
                return
            at = _freeze(lab, fleet, (parts[2 * i], parts[2 * i + 1]), i)
            if at is None:
                return
            stale += at
            for member in fleet.members:
                if member.is_running:
                    member.kill()  # no chance to mend anything: the next round recovers from the changelog
        lab.check("no stale write survives", not stale, "; ".join(stale) or f"{n} freezes")
        fleet.compare()
        lab.note("a fresh recovery of all, and the rest of the observations")
        for member in fleet.members:
            member.start()
        fleet.send(parts[-1])
        fleet.finish()


def _freeze(lab: Lab, fleet: Fleet, parts: tuple[list[Sent], list[Sent]], i: int) -> list[str] | None:
    before = fleet.consumed()
    fleet.send(parts[0])
    target = before + lab.random.randrange(1, len(parts[0]) // 2)
    if not fleet.wait(f"{target} observations are consumed", lambda: fleet.consumed() >= target, poll_s=0.02):
        return None
    frozen = next((member for member in fleet.members if "fraud" in member.models()), None)
    if frozen is None:
        lab.check("fraud has an owner", False, "no worker exports it")
        return None
    fleet.pause(lab.random.uniform(0.0, 0.3))
    os.kill(frozen.worker.pid, signal.SIGSTOP)
    lab.note(f"freeze {i + 1}: worker {fleet.members.index(frozen)}, after observation {target}")
    fleet.send(parts[1])
    drained = fleet.wait_drained()
    offsets = {name: state.offset for name, state in stored(fleet.config).models.items()}
    os.kill(frozen.worker.pid, signal.SIGCONT)
    if not drained:
        return None
    lab.note("the other has done all; the frozen one goes on")
    fleet.pause(3.0)  # for whatever it still has to write
    now = {name: state.offset for name, state in stored(fleet.config).models.items()}
    return [
        f"round {i + 1}: {name} fell from offset {offset} to {now.get(name)}"
        for name, offset in offsets.items()
        if now.get(name) != offset
    ]
