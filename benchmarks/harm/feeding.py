"""Rows through a `LossMonitor` in trials, and what it told of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Any, NamedTuple, Protocol

from rich.console import Console
from rich.progress import Progress

from attributary_explainers import LossMonitor, LossShift, LossShiftEnd, LossShiftExplained
from benchmarks.harm.worlds.subjects import Array

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


class Row(NamedTuple):
    """A line of the table."""

    what: str
    found: str
    goal: str


class Map(Protocol):
    """Calls a function with every tuple of arguments, and returns the results in their order."""

    def __call__(self, run: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return one result for each."""


@contextmanager
def workers(processes: int) -> Iterator[Map]:
    """So many processes, each of which teaches its models once; one runs here."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:

        def shown(name: str, results: Iterator[Any], total: int) -> list[Any]:
            task = bar.add_task(name, total=total)
            found = []
            for result in results:
                found.append(result)
                bar.advance(task)
            bar.remove_task(task)
            return found

        if processes == 1:
            yield lambda run, arguments: shown(run.__name__, (run(*a) for a in arguments), len(arguments))
            return
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:

            def spread(run: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
                waiting = [pool.submit(run, *a) for a in arguments]
                return shown(run.__name__, (future.result() for future in waiting), len(arguments))

            yield spread
