"""Thousands of ordinary models on one worker: what a start, a checkpoint of all and a restart cost."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator

from benchmarks.chaos.compare.compare import positions
from benchmarks.chaos.lab.fleet import Fleet, Member
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.sender import Pulse
from benchmarks.chaos.lab.workload import PARTITIONS, Sent, ordinary, raw_config
from benchmarks.process import footprint, peak_bytes, processor_s

MANY = 5_000
EACH = 10
"""Observations of each model."""

FAST = "fast"
"""A model of its own on the last partition, whose observations are timed."""

N_BEFORE, SHORT_N_BEFORE = 1_500, 800
"""Observations of the fast model at first, with a drift: it has a reference by then, and a change to explain."""

_PATIENCE_S = 900.0


def run(lab: Lab) -> None:
    """5 000 scalers with logistic regressions, iPFI, iSAGE and change: start, checkpoint of all and restart."""
    n, n_before = (30, SHORT_N_BEFORE) if lab.short else (MANY, N_BEFORE)
    names = [f"model-{i:04}" for i in range(n)]
    raw = raw_config(lab.bootstrap, "models")
    raw["models"] = {**{name: ordinary() for name in names}, FAST: ordinary(every=1)}
    raw["checkpoint"] = {"interval_s": 3.0 if lab.short else 10.0, "max_observations": 1_000_000, "max_share": 1.0}
    values = _values(lab.seed, drift_at=n_before // 2)
    fast = [Sent(PARTITIONS - 1, FAST.encode(), next(values)) for _ in range(20_000)]
    rounds = [
        [Sent(i % (PARTITIONS - 1), name.encode(), next(values)) for i, name in enumerate(names)] for _ in range(EACH)
    ]
    with Fleet(lab, raw) as fleet:
        began = time.monotonic()
        member = fleet.add()
        if not fleet.wait("ready", member.worker.is_ready, _PATIENCE_S, poll_s=0.05):
            return
        lab.note(f"first start until ready: {_cost(member, began)}")
        fleet.send(fast[:n_before])
        for records in rounds[:-3]:
            fleet.send(records)
        if not fleet.wait_drained(_PATIENCE_S):
            return
        lab.note(f"{n * (EACH - 3)} observations are handled and committed: {_cost(member, began)}")
        _checkpoint_of_all(lab, fleet, member, rounds[-3], fast[n_before:10_000])
        fleet.wait_drained()
        began = time.monotonic()
        code = member.stop()
        lab.check("a clean stop with all models", code == 0, f"exit code {code}")
        lab.note(f"SIGTERM until its end: {time.monotonic() - began:.2f} s")
        fleet.send(rounds[-2])
        _restart(lab, fleet, member, fast[10_000:])
        fleet.send(rounds[-1])
        fleet.wait_drained(_PATIENCE_S)
        lab.note(f"all {n} models are in use: peak memory {peak_bytes(member.worker.pid) / 1e6:.0f} MB")
        fleet.conclude()


def _checkpoint_of_all(lab: Lab, fleet: Fleet, member: Member, records: list[Sent], beats: list[Sent]) -> None:
    """Time the fast model while all others are stored, and again while somebody scrapes."""
    topics = fleet.config.kafka.topics
    pulse = Pulse(fleet.bootstrap, (topics.observations, topics.importances), beats)
    pulse.start()
    pulse.up.wait(60.0)
    fleet.pause(2.0)
    quiet = time.monotonic()
    fleet.pause(2.0)
    lab.note(f"a fast model's observation is an event after {1000 * pulse.longest_s(quiet, time.monotonic()):.0f} ms")
    wanted, cpu = _of_others(fleet, member) + len(records), processor_s(member.worker.pid)
    fleet.send(records)
    if fleet.wait("all others are handled", lambda: _of_others(fleet, member) >= wanted, _PATIENCE_S, 0.5):
        handled = time.monotonic()
        _wait_drained(fleet)
        stored = time.monotonic()
        # The others' observations are ahead of the fast one's until they are handled: that is no pause.
        handled = pulse.next_after(handled)
        lab.note(
            f"checkpoint of all: longest pause of the fast model {1000 * pulse.longest_s(handled, stored):.0f} ms in "
            f"{stored - handled:.1f} s; processor time of observations and checkpoint "
            f"{processor_s(member.worker.pid) - cpu:.1f} s"
        )
    began = time.monotonic()
    member.worker.metrics()
    ended = time.monotonic()
    lab.note(f"a scrape takes {ended - began:.2f} s, longest pause {1000 * pulse.longest_s(began, ended):.0f} ms")
    pulse.finish()
    lab.note(f"the fast model had {len(pulse.beats)} observations meanwhile")


def _restart(lab: Lab, fleet: Fleet, member: Member, beats: list[Sent]) -> None:
    """Every model has an observation waiting, the fast one too."""
    topics = fleet.config.kafka.topics
    pulse = Pulse(fleet.bootstrap, (topics.observations, topics.importances), beats)
    pulse.start()
    pulse.up.wait(60.0)
    began = time.monotonic()
    member.start()
    awaited: dict[str, Callable[[], bool]] = {
        "ready": member.worker.is_ready,
        "the first observation of the fast model is an event": lambda: bool(pulse.beats),
    }

    def note_what_is_there() -> bool:
        for what in [what for what, is_there in awaited.items() if is_there()]:
            del awaited[what]
            lab.note(f"restart until {what}: {_cost(member, began)}")
        return not awaited

    if not fleet.wait("ready, and the first event", note_what_is_there, _PATIENCE_S, 0.05):
        return
    if _wait_drained(fleet):
        lab.note(f"restart until every model has handled one and is stored: {_cost(member, began)}")
    pulse.finish()


def _of_others(fleet: Fleet, member: Member) -> int:
    """Observations consumed on all partitions but the fast model's."""
    topic = fleet.config.kafka.topics.observations
    samples = member.samples("attributary_records_consumed_total", topic=topic)
    return int(sum(value for at, value in samples if int(at["partition"]) != PARTITIONS - 1))


def _wait_drained(fleet: Fleet) -> bool:
    """Wait until all partitions but the fast model's are committed to their ends, without a scrape."""

    def is_drained() -> bool:
        found = positions(fleet.bootstrap, fleet.config, fleet.config.kafka.topics.observations)
        return all(done == end for number, (done, end) in found.items() if number != PARTITIONS - 1)

    return fleet.wait("all is handled and committed", is_drained, _PATIENCE_S, 0.5)


def _cost(member: Member, began: float) -> str:
    pid = member.worker.pid
    return (
        f"{time.monotonic() - began:.2f} s, {processor_s(pid):.2f} s of processor time, peak memory "
        f"{peak_bytes(pid) / 1e6:.0f} MB, now {footprint(pid).rss / 1e6:.0f} MB"
    )


def _values(seed: int, *, drift_at: int) -> Iterator[bytes]:
    """Observations without end, all of use: `a` decides the label, from the drift on `b`."""
    rng = random.Random(seed)
    for i in itertools.count():
        x = {name: round(rng.uniform(-1, 1), 3) for name in "abc"}
        yield json.dumps({"x": x, "y": x["a" if i < drift_at else "b"] > 0}).encode()
