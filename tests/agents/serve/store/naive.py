"""A store of plain lists, written from the definitions alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from attributary_agents.serve.store.rows import Arrived
from attributary_explainers.ranking import ranks, shares

Key = tuple[str, str, str, str]


@dataclass
class Event:
    """One event of a series."""

    t: int
    observation: int
    run: int
    features: dict[str, dict[str, float | None]]
    scalars: Mapping[str, Any]
    version: str


@dataclass
class Naive:
    """Keeps every event in a list of its series; the series that took an event last is last."""

    series: dict[Key, list[Event]] = field(default_factory=dict)

    def take(self, records: Sequence[Arrived]) -> int:
        """Take importance events; return how many are new."""
        n_new = 0
        for record in records:
            said = record.event
            key = record.model_id, said["explainer"], said["removal"], said["loss"]
            known = self.series.get(key, [])
            assert record.time_ms is not None
            at = record.time_ms, said["observation"]
            if at in [(one.t, one.observation) for one in known]:
                continue
            run = known[-1].run if known else 0
            run = max((one.run for one in known), default=0)
            last = max((one.observation for one in known if one.run == run), default=0)
            latest = max((one.t for one in known), default=0)
            # Numbers begin again where time goes on and they do not, or where they are less than half.
            if known and at[1] < last and (at[0] > latest or 2 * at[1] <= last):
                run += 1
            self.series.pop(key, None)
            self.series[key] = [*known, Event(*at, run, said["features"], said, said["model_version"])]
            n_new += 1
        return n_new

    def window(
        self, model_id: str, explainer: str, start: int, end: int, by: str, points: int
    ) -> list[list[Event]] | None:
        """Return the events of each point."""
        for (model, name, _, _), events in reversed(self.series.items()):
            if (model, name) != (model_id, explainer):
                continue
            if by == "time":
                found = sorted(
                    (one for one in events if start <= one.t <= end), key=lambda one: (one.t, one.observation)
                )
                x = [one.t for one in found]
            else:
                some = [one for one in events if start <= one.observation <= end]
                run = max((one.run for one in some), default=0)
                found = sorted((one for one in some if one.run == run), key=lambda one: (one.observation, one.t))
                x = [one.observation for one in found]
            if not found:
                continue
            if len(found) <= points:
                return [[one] for one in found]
            placed: dict[int, list[Event]] = {}
            for one, value in zip(found, x, strict=True):
                placed.setdefault((value - x[0]) * points // (x[-1] - x[0] + 1), []).append(one)
            return [placed[at] for at in sorted(placed)]
        return None


def mean_of(events: Sequence[Event], feature: str) -> float:
    """Return the mean importance of a feature over events that have it; NaN where none has."""
    return _mean([one.features[feature]["importance"] for one in events if feature in one.features])


def scalar_of(events: Sequence[Event], name: str) -> float:
    """Return the mean of a figure over events that have it; NaN where none has."""
    return _mean([one.scalars.get(name) for one in events])


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else math.nan


def bounds_of(events: Sequence[Event], feature: str) -> tuple[float, float]:
    """Return the least lower and the largest upper bound of a feature; NaN where none is known."""
    low, high = [], []
    for one in events:
        found = one.features.get(feature)
        if found and found["half_width"] is not None and found["importance"] is not None:
            low.append(found["importance"] - found["half_width"])
            high.append(found["importance"] + found["half_width"])
    return (min(low), max(high)) if low else (math.nan, math.nan)


def standing_of(event: Event, feature: str) -> tuple[float, int]:
    """Return share and rank of a feature by the definitions; NaN and 0 where the event does not have it."""
    importance = {name: found["importance"] or 0.0 for name, found in event.features.items()}
    if feature not in importance:
        return math.nan, 0
    return shares(importance)[feature], ranks(importance)[feature]
