"""The broker goes away, in order or at once, and comes back, while observations keep coming."""

from __future__ import annotations

import re
import time
from collections import Counter

from benchmarks.chaos.lab.fleet import Fleet
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.sender import Sender
from benchmarks.chaos.lab.workload import observations, raw_config

_LEVELS = re.compile(r"^[\d :,-]+ (WARNING|ERROR|CRITICAL) (\S+?):? (.*)")
_NUMBERS = re.compile(r"\d+(\.\d+)?")
QUOTED = 12


def run(lab: Lab) -> None:
    """The broker is stopped for a while, killed and started again; two workers wait, and go on."""
    outages = (
        [("stopped", 8.0), ("killed", 0.0)] if lab.short else [("stopped", 30.0), ("killed", 0.0), ("stopped", 300.0)]
    )
    n = 4_000 if lab.short else 60_000
    rate = n / (sum(seconds for _, seconds in outages) + (12 if lab.short else 30) * len(outages))
    raw = raw_config(lab.bootstrap, "broker-stop")
    # A worker that cannot start without a broker tries again, later each time: 300 s make about 20 starts.
    with Fleet(lab, raw, most_exits=8 if lab.short else 40) as fleet:
        for _ in range(2):
            fleet.add()
        fleet.wait_ready()
        sender = Sender(lab.bootstrap, fleet.config.kafka.topics.observations, observations(n, lab.seed), rate)
        sender.start()
        for how, seconds in outages:
            fleet.pause(3.0)
            exits = len(fleet.exits())
            began = time.monotonic()
            if how == "killed":
                lab.broker.kill()
            else:
                lab.broker.stop()
            lab.note(f"the broker is {how}, for {seconds:.0f} s")
            if outages[0] == (how, seconds):
                fleet.pause(seconds / 4)
                fleet.members[1].kill()
                fleet.members[1].start()
                lab.note("worker 1 is killed, and started while there is no broker")
                fleet.pause(seconds * 3 / 4)
            else:
                fleet.pause(seconds)
            lab.broker.start()
            lab.note(f"the broker is back after {time.monotonic() - began:.1f} s")
            if not sender.is_alive():
                sender.finish()  # raises what has ended it; or there was too little to send
                lab.check("observations keep coming", False, "all were sent before the last outage was over")
            consumed = fleet.consumed()
            goes_on = fleet.wait("the work goes on", lambda c=consumed: fleet.consumed() > c + 20, 150.0)  # type: ignore[misc]
            if goes_on:
                lab.note(f"the work goes on {time.monotonic() - began:.1f} s after the broker went")
            ended = fleet.exits()[exits:]
            refused = [said for said in ended if "exit code 2" in said and "no Kafka at" in said]
            seen = (
                f"{len(ended) - len(refused)} exits of two workers, and {len(refused)} refused starts, in a line each"
            )
            lab.check(f"no crash loop, broker {how} for {seconds:.0f} s", len(ended) - len(refused) <= 2, seen)
        sender.finish()
        fleet.wait_drained()
        fleet.stop()
        _quote(lab, fleet)
        fleet.compare()


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
