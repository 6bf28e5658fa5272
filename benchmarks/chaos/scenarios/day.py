"""A day of checkpoints in minutes: does anything grow that should not?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.chaos.compare.growth import check_growth
from benchmarks.chaos.lab.fleet import SEGMENT_BYTES, Fleet, Member, compact_soon
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.workload import observations, raw_config
from benchmarks.process import Footprint, footprint

CHECKPOINTS_OF_A_DAY = 8640
"""One in 10 s, the default interval."""

LIVE_MULTIPLE = 4
"""Most that the changelog may hold, in live states, besides the segments that are being written."""


@dataclass(frozen=True)
class Sample:
    """How large things are at one moment."""

    second: float
    checkpoints: int
    process: Footprint
    changelog: int
    live: int


def run(lab: Lab) -> None:
    """As many checkpoints as in a day, ten a second: memory, open files and the changelog must stay flat."""
    # The worker looks at the interval once a second, so ten a second are made by counting observations.
    wanted, rate, every = (200, 200.0, 12) if lab.short else (CHECKPOINTS_OF_A_DAY, 200.0, 20)
    raw = raw_config(lab.bootstrap, "day")
    raw["checkpoint"] = {"interval_s": 0.1, "max_observations": every, "max_share": 1.0}
    with Fleet(lab, raw) as fleet:
        compact_soon(fleet)
        fleet.start(1)
        (member,) = fleet.members
        sender = fleet.start_sending(observations(wanted * every, lab.seed), rate)
        samples: list[Sample] = []
        while sender.is_alive():
            fleet.pause(0.5 if lab.short else 5.0)
            samples.append(_sample(lab, fleet, member))
            lab.show(_said(samples[-1]))
        sender.finish()
        fleet.wait_drained()
        fleet.pause(3.0)  # for the last compaction
        last = _sample(lab, fleet, member)
        for sample in (*samples[:: max(len(samples) // 12, 1)], last):
            lab.note(_said(sample))
        done = last.checkpoints
        lab.check("checkpoints", done >= 0.9 * wanted, f"{done} in {last.second - samples[0].second:.0f} s")
        _flat(lab, samples)
        fleet.conclude()


def _said(sample: Sample) -> str:
    return (
        f"{sample.checkpoints} checkpoints, RSS {sample.process.rss / 1e6:.1f} MB, {sample.process.files} open files, "
        f"changelog {sample.changelog / 1e6:.2f} MB on disk, live states {sample.live / 1e6:.2f} MB"
    )


def _sample(lab: Lab, fleet: Fleet, member: Member) -> Sample:
    stored = member.samples("attributary_stage_duration_seconds_count", stage="checkpoint")
    return Sample(
        lab.elapsed_s,
        int(sum(count for _, count in stored)),
        footprint(member.worker.pid),
        lab.broker.bytes_on_disk(fleet.config.kafka.changelog),
        int(sum(size for _, size in member.samples("attributary_model_state_bytes"))),
    )


def _flat(lab: Lab, samples: Sequence[Sample]) -> None:
    """The last quarter against the second one, by medians: the first is warm-up."""
    quarter = len(samples) // 4
    if quarter < 3:
        lab.check("enough samples", False, f"{len(samples)} samples")
        return
    second, last = samples[quarter : 2 * quarter], samples[-quarter:]

    early, late = ([sample.process for sample in part] for part in (second, last))
    check_growth(lab, early, late, ("in the second quarter", "in the last one"), files=5)
    # What is not compacted yet: the active segment and one that waits, per partition that is used.
    waiting = 2 * 2 * 2 * SEGMENT_BYTES
    largest, live = max(one.changelog for one in last), max(one.live for one in last)
    lab.check(
        "the changelog is bounded",
        largest <= LIVE_MULTIPLE * live + waiting,
        f"{largest / 1e6:.2f} MB at most in the last quarter; allowed {LIVE_MULTIPLE} x {live / 1e6:.2f} MB of live "
        f"state and {waiting / 1e6:.1f} MB of segments that are not compacted yet",
    )
