"""Makes scenarios of a fleet: of a plan, and of 1000 partitions on 100 workers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean

from ..config.settings import Config
from .fleet import Change, Scenario
from .plan import Plan
from .timing import Timed

MOST_PACKETS = 400_000
"""Packets of a simulation: more records than that come in packets of several."""

KILLED_S, JOINED_S, BEHIND_S = 20.0, 30.0, 180.0
"""A worker is killed after so long, one joins so long after that was missed, and so much is played behind that."""


def crash_and_join(config: Config, plan: Plan, rate: float, n_models: int, timed: Mapping[str, Timed]) -> Scenario:
    """Return minutes of a plan's load in which a worker is killed, missed, and another one joins."""
    assert plan.carried is not None
    carried = plan.carried
    missed_s = KILLED_S + config.kafka.session_timeout_s
    seconds = missed_s + JOINED_S + BEHIND_S
    encode_s = fmean(one.encode_s for one in timed.values())
    models = n_models / carried.partitions
    return Scenario(
        partitions=carried.partitions,
        workers=carried.workers,
        rate=rate,
        service_s=1e-6 * plan.record_us,
        service_cv2=fmean(one.cv2 for one in timed.values()),
        seconds=seconds,
        packet=packet_of(rate, seconds),
        checkpoint_s=config.checkpoint.interval_s,
        # In the plan's price of a record checkpoints are included already.
        checkpoint_cost_s=0.0,
        session_timeout_s=config.kafka.session_timeout_s,
        restore_s=models * 2 * encode_s,
        changes=(Change(KILLED_S, "kill", 0), Change(missed_s + JOINED_S, "join", carried.workers)),
    )


def large_fleet(
    partitions: int = 1000, workers: int = 100, load: float = 0.6, service_s: float = 2e-4, seconds: float = 360.0
) -> Scenario:
    """Return minutes of a large fleet: a tenth of it is killed one after the other, some leave, and others join."""
    rate = load * workers / service_s
    tenth = max(1, workers // 10)
    changes = [Change(40.0 + number, "kill", number) for number in range(tenth)]
    changes += [Change(180.0 + 5 * number, "leave", tenth + number) for number in range(min(3, workers - tenth - 1))]
    changes += [Change(220.0 + 5 * number, "join", workers + number) for number in range(tenth)]
    return Scenario(
        partitions=partitions,
        workers=workers,
        rate=rate,
        service_s=service_s,
        seconds=seconds,
        packet=packet_of(rate, seconds),
        changes=tuple(changes),
        sample_s=5.0,
    )


def packet_of(rate: float, seconds: float) -> int:
    """Return how many records a packet has, so that a simulation takes seconds and not hours."""
    return max(1, math.ceil(rate * seconds / MOST_PACKETS))
