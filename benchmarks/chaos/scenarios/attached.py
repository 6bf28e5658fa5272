"""Topics of others with labels that come later, and models of a template: mappers are killed with their workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from support.kafka import create_topics

from benchmarks.chaos.compare.accounts import accounts
from benchmarks.chaos.compare.compare import is_read
from benchmarks.chaos.lab.attached import (
    PARTITIONS,
    SHORT_STAYS_OPEN,
    STAYS_OPEN,
    attached_config,
    attached_records,
)
from benchmarks.chaos.lab.fleet import Fleet
from benchmarks.chaos.lab.lab import Lab

FROZEN_S = 14.0
"""Longer than the sessions of the worker and of its mapper, which is 10 s."""


@dataclass(frozen=True)
class Round:
    """What is done, in this order: which workers are killed at once, how the broker goes, and so on.

    Attributes
    ----------
    kills, losses, freezes
        Numbers of workers of each kill; how the broker goes each time; numbers of workers that are frozen one by one.
    visits
        Whether a third worker joins and leaves.
    """

    kills: tuple[tuple[int, ...], ...] = ((0,), (1,), (0, 1))
    losses: tuple[str, ...] = ("killed", "stopped")
    visits: bool = True
    freezes: tuple[int, ...] = (0, 1)


SHORT = Round(kills=((0,), (0, 1)), losses=("killed",), freezes=(0,))
SHORT_EXACT = Round(kills=((1,), (0,)), losses=("stopped",), visits=False, freezes=(1,))
"""In short each fault is there with one delivery at least, and with both where the delivery makes a difference.

A broker that is stopped closes connections on which it is being asked for the coordinator of transactions: such a
producer ended its worker once.
"""


def run(lab: Lab) -> None:
    """Sources, late labels, a template: two workers that map are killed and frozen, a third one joins, brokers go."""
    _run(lab, "attached", SHORT if lab.short else Round())


def run_exactly_once(lab: Lab) -> None:
    """The same with exactly-once delivery: each event and dead letter of a worker is committed once."""
    _run(lab, "attached-once", SHORT_EXACT if lab.short else Round(), delivery="exactly_once")


def _run(lab: Lab, name: str, what: Round, **sections: Any) -> None:
    # A backlog: whoever maps is behind, so that kills come between what is sent and what is committed.
    rounds, rate, backlog, drift_at, stays_open = (
        (1, 40.0, 2_500, 1_000, SHORT_STAYS_OPEN) if lab.short else (5, 80.0, 6_000, 1_500, STAYS_OPEN)
    )
    raw = attached_config(lab.bootstrap, name, short=lab.short, **sections)
    prefix = raw["kafka"]["topic_prefix"]
    create_topics(lab.bootstrap, {f"{prefix}-{topic}": n for topic, n in PARTITIONS.items()})
    # Rounds take 100 s or so; on a machine that is busy with other things three times as long.
    n = int((backlog + rate * (100 + rounds * 300)) / 2)
    records = attached_records(prefix, n, lab.seed, drift_at=drift_at, stays_open=stays_open)
    with Fleet(lab, raw) as fleet:
        fleet.send(records[:backlog])
        fleet.add()
        fleet.add()
        sender = fleet.start_sending(records[backlog:], rate)
        n_rested = 0
        for _ in range(rounds):
            n_ended = len(fleet.exits())
            _kill(lab, fleet, what.kills)
            _lose_broker(lab, fleet, what.losses)
            if what.visits:
                _visit(lab, fleet)
            n_rested += _n_rested(fleet)
            # With exactly-once delivery a worker that was frozen finds its transactions with another owner, and ends.
            ended = fleet.exits()[n_ended:] if fleet.config.is_exact else fleet.exits()
            lab.check("no worker that was not frozen ended by itself", not ended, "; ".join(ended[:3]) or "0 exits")
            for n in what.freezes:
                _freeze(lab, fleet, n)
            sender.check_going("the end of the round")
        sender.finish_early()
        group = fleet.config.kafka.group
        for topic, n in PARTITIONS.items():
            all_read = partial(is_read, fleet.bootstrap, f"{group}-map-{topic}", f"{prefix}-{topic}", n)
            fleet.wait(f"all {topic} are mapped", all_read, 240.0, 0.5)
        fleet.wait_drained(240.0)
        n_rested = max(n_rested, _n_rested(fleet))  # one round may have killed those that had seen some rest
        lab.check("models rest and come back", n_rested > 0, f"{n_rested} left the memory of workers that live")
        fleet.finish(240.0)
        for check in accounts(fleet.bootstrap, fleet.config):
            lab.take(check)


def _n_rested(fleet: Fleet) -> int:
    """Return how many models have left the memory of the two workers since these were started."""
    return sum(member.worker.total("model_evictions_total") for member in fleet.members[:2])


def _kill(lab: Lab, fleet: Fleet, kills: Sequence[Sequence[int]]) -> None:
    """Kill workers with their mappers, at random moments, and start them again at once."""
    for gone in kills:
        fleet.pause(lab.random.uniform(2.0, 9.0))
        for n in gone:
            fleet.members[n].kill()
        fleet.pause(lab.random.uniform(0.0, 1.0))
        for n in gone:
            fleet.members[n].start()
        lab.note(f"SIGKILL to worker {' and '.join(map(str, gone))}, started again at once")
    fleet.wait_ready()


def _lose_broker(lab: Lab, fleet: Fleet, losses: Sequence[str]) -> None:
    for how in losses:
        before = fleet.consumed()
        if how == "killed":
            lab.broker.kill()
        else:
            lab.broker.stop()
        gone_s = lab.elapsed_s
        fleet.pause(lab.random.uniform(0.5, 4.0))
        lab.broker.start()
        lab.note(f"the broker is {how}, and back after {lab.elapsed_s - gone_s:.1f} s")
        fleet.wait_going("when the broker is back", 150.0, before=before, since_s=lab.elapsed_s)
    fleet.wait_ready()


def _visit(lab: Lab, fleet: Fleet) -> None:
    """Let a third worker join, and leave in an orderly way."""
    if len(fleet.members) == 2:
        fleet.add()
    else:
        fleet.members[2].start()
    fleet.wait_ready()
    fleet.pause(lab.random.uniform(1.0, 6.0))
    code = fleet.members[2].stop()
    lab.note(f"a third worker was there, and has left with exit code {code}")
    fleet.wait_ready()


def _freeze(lab: Lab, fleet: Fleet, n: int) -> None:
    """Freeze a worker and its mapper past their sessions; woken, it goes on beside its successor, and is killed."""
    fleet.wait_ready()
    fleet.pause(lab.random.uniform(0.5, 3.0))
    os.kill(fleet.members[n].worker.pid, signal.SIGSTOP)
    lab.note(f"worker {n}: SIGSTOP")
    try:
        fleet.pause(FROZEN_S)
    finally:
        os.kill(fleet.members[n].worker.pid, signal.SIGCONT)
    fleet.pause(lab.random.uniform(0.5, 6.0))
    fleet.members[n].kill()
    fleet.members[n].start()
    lab.note(f"worker {n}: SIGCONT after {FROZEN_S:.0f} s; killed a little later, and started again")
    fleet.wait_ready()
