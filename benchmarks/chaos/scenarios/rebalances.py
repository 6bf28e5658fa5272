"""A second worker joins and leaves, over and over, while observations flow: what stays must not grow."""

from __future__ import annotations

from statistics import median

from benchmarks.chaos.compare.growth import check_growth
from benchmarks.chaos.lab.fleet import Fleet, Member
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.workload import PARTITIONS, SHORT_DRIFT_AT, observations, raw_config
from benchmarks.process import Footprint, footprint

WARM = 10
"""Rebalances that count as warm-up: by then every path has been taken once."""


def run(lab: Lab) -> None:
    """A hundred rebalances by a second worker that comes and goes; memory, files and threads of the first stay."""
    n_visits, warm, rate = (4, 4, 40.0) if lab.short else (50, WARM, 100.0)
    raw = raw_config(lab.bootstrap, "rebalances", session_timeout_s=4.0 if lab.short else 6.0)
    with Fleet(lab, raw) as fleet:
        stays = fleet.add()
        fleet.wait_ready()
        drift_at = SHORT_DRIFT_AT if lab.short else 1_000
        records = observations(int(n_visits * rate * 180), lab.seed, drift_at=drift_at)
        sender = fleet.start_sending(records, rate)
        alone: dict[int, Footprint] = {0: footprint(stays.worker.pid)}
        codes: list[int] = []
        guest: Member | None = None
        for i in range(n_visits):
            if guest is None:
                guest = fleet.add()
            else:
                guest.start()
            if not fleet.wait(f"visit {i + 1}: partitions are shared", lambda g=guest: _are_shared(fleet, g), 180.0):  # type: ignore[misc]
                break
            fleet.pause(lab.random.uniform(0.1, 1.0))
            if is_killed := i % 5 == 2:
                guest.kill()
            else:
                codes.append(guest.stop())
            if not fleet.wait(f"visit {i + 1}: the first has all again", lambda: _has_all(fleet, stays), 180.0):
                break
            done = 2 * (i + 1)
            alone[done] = footprint(stays.worker.pid)
            lab.note(f"{done} rebalances, the last by {'SIGKILL' if is_killed else 'SIGTERM'}: {_said(alone[done])}")
        sender.check_going("the last rebalance")
        sender.finish_early()
        lab.note(f"{sender.n_sent} observations were sent meanwhile")
        fleet.wait_drained()
        lab.check("rebalances", max(alone) == 2 * n_visits, f"{max(alone)}, each seen by who has the partitions")
        lab.check("SIGTERM ends a worker cleanly", not any(codes), f"exit codes {codes}")
        _judge(lab, alone, warm)
        fleet.conclude()


def _are_shared(fleet: Fleet, guest: Member) -> bool:
    """Whether both are ready and each has partitions that the other has not."""
    topic = fleet.config.kafka.topics.observations
    first, second = fleet.members[0].partitions(topic), guest.partitions(topic)
    ready = fleet.members[0].worker.is_ready() and guest.worker.is_ready()
    return ready and bool(first) and bool(second) and not first & second and len(first | second) == PARTITIONS


def _has_all(fleet: Fleet, stays: Member) -> bool:
    topic = fleet.config.kafka.topics.observations
    return len(stays.partitions(topic)) == PARTITIONS and stays.worker.is_ready()


def _said(seen: Footprint) -> str:
    return f"RSS {seen.rss / 1e6:.1f} MB, {seen.files} open files, {seen.threads} threads"


def _judge(lab: Lab, alone: dict[int, Footprint], warm: int) -> None:
    """The last moments without a guest against those up to the warm-up's end, by medians of three."""
    early = [seen for n, seen in alone.items() if 0 < n <= warm][-3:]
    last = [seen for n, seen in alone.items() if n > warm][-3:]
    if not early or not last:
        lab.check("enough rebalances", False, f"{max(alone)}")
        return
    check_growth(lab, early, last, (f"after {warm} rebalances", f"after {max(alone)}"), files=3)
    before, after = (int(median(seen.threads for seen in part)) for part in (early, last))
    lab.check("threads stay within 2", abs(after - before) <= 2, f"{before} to {after}")
