"""SIGKILL at random moments: while observations are handled, and while a worker starts, recovers and checkpoints."""

from __future__ import annotations

import json

from benchmarks.chaos.lab.fleet import Fleet, Member, compact_soon
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.workload import PLACE, Sent, ballast_config, observations, raw_config, slices


def run(lab: Lab) -> None:
    """One worker, killed and restarted at once, over and over; a new version of a model on the way."""
    n_kills, n = (6, 2_400) if lab.short else (50, 50_000)
    raw = raw_config(lab.bootstrap, "kills", session_timeout_s=2.0)
    # A state of several records, and a changelog that is compacted all the time: kills come between its records, too.
    raw["models"]["fraud"] = ballast_config(2000)
    raw["checkpoint"]["max_share"] = 1.0
    with Fleet(lab, raw) as fleet:
        compact_soon(fleet)
        parts = list(slices(observations(n, lab.seed), n_kills + 1))
        member = fleet.add()
        for i, part in enumerate(parts[:-1]):
            fleet.send(part)
            if i == n_kills // 6:
                deploy(fleet, "credit")
            lab.note(f"kill {i + 1} of {n_kills}: {_kill(lab, fleet, member, sum(map(len, parts[:i])), len(part))}")
            member.start()
        fleet.send(parts[-1])
        fleet.wait_drained()
        lab.check("kills", member.n_starts == n_kills + 1, f"{n_kills} SIGKILL, {member.n_starts} starts")
        fleet.conclude()


def _kill(lab: Lab, fleet: Fleet, member: Member, before: int, n: int) -> str:
    if lab.random.random() < 0.5:
        # Start-up takes about 3 s; joining, up to the session's time-out; recovery and the first checkpoint follow.
        seconds = lab.random.uniform(0.0, 4.0 if lab.short else 8.0)
        fleet.pause(seconds)
        member.kill()
        return f"{seconds:.2f} s after its start"
    target = before + lab.random.randrange(n)
    fleet.wait(f"{target} observations are consumed", lambda: fleet.consumed() >= target)
    more = lab.random.uniform(0.0, 1.2)  # somewhere between two checkpoints, or in one
    fleet.pause(more)
    member.kill()
    return f"{more:.2f} s after observation {target}"


def deploy(fleet: Fleet, model_id: str, version: str = "2") -> None:
    """Send a new version of a model to the models topic: naive Bayes, untrained."""
    value = json.dumps({"version": version, "model": {"class": "river.naive_bayes.GaussianNB"}}).encode()
    fleet.send([Sent(PLACE[model_id], model_id.encode(), value)], fleet.config.kafka.topics.models)
    fleet.lab.note(f"version {version} of {model_id} is deployed")
