"""The broker goes away, in order or at once, and comes back, while observations keep coming."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from benchmarks.chaos.lab.fleet import Fleet
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.probe import Probe
from benchmarks.chaos.lab.workload import SHORT_DRIFT_AT, observations, raw_config

_LEVELS = re.compile(r"^[\d :,-]+ (WARNING|ERROR|CRITICAL) (\S+?):? (.*)")
_NUMBERS = re.compile(r"\d+(\.\d+)?")
QUOTED = 12

UNREADY_AFTER_S = 15.0
"""So long after the broker has gone a worker may say that it is ready."""


@dataclass(frozen=True)
class Outage:
    """How the broker goes, for how long, and whether a worker is killed and started again meanwhile."""

    how: str
    seconds: float
    restarts: bool = False

    def __str__(self) -> str:
        return f"{self.how} for {self.seconds:.0f} s"


SHORT = (Outage("stopped", 24.0, restarts=True), Outage("killed", 0.0))
FULL = (
    Outage("stopped", 30.0, restarts=True),
    Outage("killed", 0.0),
    Outage("killed", 150.0, restarts=True),
    Outage("stopped", 300.0),
)


def run(lab: Lab) -> None:
    """The broker is stopped and killed; two workers that a liveness probe watches wait, and go on by themselves."""
    outages = SHORT if lab.short else FULL
    rate, most_s, drift_at = (50.0, 600.0, SHORT_DRIFT_AT) if lab.short else (100.0, 1_800.0, 1_000)
    records = observations(int(rate * most_s), lab.seed, drift_at=drift_at)
    raw = raw_config(lab.bootstrap, "broker-stop")
    # Both are less than an outage: a worker that counts as stuck because it waits is killed, by the probe or by itself.
    if lab.short:
        raw["web"] = {"stuck_after_s": 8.0}
    else:
        raw["watchdog"] = {"warn_after_s": 30.0, "end_after_s": 100.0}
    # A worker that ended whenever it is started without a broker would try again, later each time.
    with Fleet(lab, raw, most_exits=40) as fleet:
        fleet.start(2)
        with Probe(lab, fleet.members) as probe:
            sender = fleet.start_sending(records, rate)
            for outage in outages:
                _outage(lab, fleet, probe, outage)
                sender.check_going("the last outage was over")
            sender.finish_early()
            fleet.wait_drained()
        probe.check()
        fleet.conclude()
        _quote(lab, fleet)


def _outage(lab: Lab, fleet: Fleet, probe: Probe, outage: Outage) -> None:
    fleet.wait_ready()  # both take part in every outage
    topic = fleet.config.kafka.topics.observations
    fleet.wait("both workers have partitions", lambda: all(member.partitions(topic) for member in fleet.members), 60.0)
    exits, consumed = len(fleet.exits()), fleet.consumed()
    if outage.how == "killed":
        lab.broker.kill()
    else:
        lab.broker.stop()
    gone_s = lab.elapsed_s
    lab.note(f"the broker is {outage}")
    if outage.restarts:
        fleet.pause(outage.seconds / 4)
        fleet.members[1].kill()
        fleet.members[1].start()
        lab.note("worker 1 is killed, and started while there is no broker")
        restarted_s = lab.elapsed_s

        def is_up() -> bool:
            answers = [one for one in probe.seen if one.worker == 1 and one.second > restarted_s and one.ready]
            return len(answers) >= 3 or len(fleet.exits()) > exits

        fleet.wait("worker 1 is up", is_up, 90.0)
    fleet.pause(gone_s + outage.seconds - lab.elapsed_s)
    back_s = lab.elapsed_s
    lab.broker.start()
    served_s = lab.elapsed_s
    lab.note(f"the broker is back after {served_s - gone_s:.1f} s")
    alive = len(fleet.exits()) == exits and all(member.is_running for member in fleet.members)
    seen = "; ".join(fleet.exits()[exits:][:2]) or "no worker has ended"
    lab.check(f"both workers are alive all along: {outage}", alive, seen)
    if outage.seconds > UNREADY_AFTER_S:
        _judge_unready(lab, probe, outage, (gone_s + UNREADY_AFTER_S, back_s))
    fleet.wait_going("when the broker is back", 150.0, before=consumed, since_s=served_s)
    if fleet.wait_ready(150.0):
        lab.note(f"both workers are ready {lab.elapsed_s - served_s:.1f} s after the broker is back")


def _judge_unready(lab: Lab, probe: Probe, outage: Outage, between: tuple[float, float]) -> None:
    """Check what /readyz has said once the outage must have been noticed."""
    for i in range(2):
        looks = [one for one in probe.seen if one.worker == i and between[0] <= one.second <= between[1]]
        counts = Counter("no answer" if one.ready is None else str(one.ready) for one in looks)
        found = ", ".join(f"{n} x {status}" for status, n in counts.most_common()) or "no look"
        said = looks[-1].said if looks else ""
        lab.check(
            f"/readyz of worker {i}: {outage}",
            counts["503"] > 0 and not counts["200"],
            f"{found}, from {UNREADY_AFTER_S:.0f} s on; the last: {said}",
        )


def _quote(lab: Lab, fleet: Fleet) -> None:
    """What the log says, once for each kind of line, the most frequent first."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    n_lines = 0
    for member in fleet.members:
        for line in member.worker.log.read_text(errors="replace").splitlines():
            n_lines += 1
            if (found := _LEVELS.match(line)) and "dead letter" not in line:
                kind = _NUMBERS.sub("#", " ".join(found.groups()))
                counts[kind] += 1
                first.setdefault(kind, line[:240])
    # About 20 kinds of lines, each once in 30 s.
    allowed = round(len(fleet.members) * 20 * (1 + lab.elapsed_s / 30))
    lab.check(
        "the log is readable", counts.total() <= allowed, f"{counts.total()} warnings and errors, {allowed} allowed"
    )
    lab.note(f"the workers' logs have {n_lines} lines; warnings and errors, each kind once:")
    for kind, count in counts.most_common(QUOTED):
        lab.note(f"  {count} x {first[kind]}")
