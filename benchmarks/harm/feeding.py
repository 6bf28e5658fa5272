"""Rows through a `LossMonitor`, and what it told of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from attributary_explainers import LossMonitor, LossShift, LossShiftEnd, LossShiftExplained
from benchmarks.harm.worlds.populations import Array

CHANGE_AT = 20_000
"""Clean rows before anything happens, and rows after it."""


@dataclass(frozen=True)
class Shift:
    """One shift that was told. Observations are counted from 1."""

    observation: int
    first: str
    """Kind of the first word."""

    final: str
    """Kind of the last word: that of the explanation where one came."""

    signal: str
    onset: tuple[int, int, int]
    """Observation, low, high."""

    features: tuple[tuple[Any, bool], ...] = ()
    """The most suspicious first, and whether each is named in the sentence."""

    split: bool = False
    """Whether it was said that a tree has split just before."""

    ended: int | None = None
    reason: str = ""


@dataclass
class Told:
    """What was told of one stream."""

    shifts: list[Shift] = field(default_factory=list)

    def before(self, at: int) -> list[Shift]:
        """Told until this observation."""
        return [s for s in self.shifts if s.observation <= at]

    def after(self, at: int) -> list[Shift]:
        """Told later than this observation."""
        return [s for s in self.shifts if s.observation > at]


def feed(
    monitor: LossMonitor,
    rows: Iterable[Any],
    ys: Iterable[Any],
    predictions: Iterable[Any],
    until: Callable[[Any], bool] = lambda event: False,
) -> Told:
    """Hand over all rows, or those up to an event that is waited for; return what was told."""
    events: list[Any] = []
    update = monitor.update
    for x, y, y_pred in zip(rows, ys, predictions, strict=False):
        told = update(x, y, y_pred)
        if told:
            events += told
            if any(map(until, told)):
                break
    return summed(events)


def summed(events: Iterable[Any]) -> Told:
    """Events of one monitor, by shift."""
    told = Told()
    for event in events:
        if isinstance(event, LossShift):
            onset = (event.onset.observation, event.onset.low or 1, event.onset.high)
            told.shifts.append(
                Shift(event.observation, event.kind, event.kind, event.signal, onset, split=event.has_split)
            )
        elif isinstance(event, LossShiftExplained):
            features = tuple((f.name, f.significant) for f in event.features)
            told.shifts[-1] = replace(told.shifts[-1], final=event.shift.kind, features=features)
        elif isinstance(event, LossShiftEnd):
            told.shifts[-1] = replace(told.shifts[-1], ended=event.observation, reason=event.reason)
    return told


def nothing(n: int) -> Sequence[None]:
    """In place of rows, for a monitor without a model."""
    return [None] * n


def mappings(names: Sequence[str], x: Array) -> Iterable[dict[str, float]]:
    """Rows as a stream has them."""
    return (dict(zip(names, row, strict=True)) for row in x.tolist())


def of_two(p: Array) -> Iterable[dict[int, float]]:
    """Predictions of two classes, from the probability of label 1."""
    return ({0: 1.0 - one, 1: one} for one in p.tolist())


def of_many(p: Array) -> Iterable[dict[int, float]]:
    """Predictions of k classes, (n, k)."""
    return (dict(enumerate(row)) for row in p.tolist())
