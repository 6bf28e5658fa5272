"""Reports that a frozen classifier's probabilities come true less often."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..change.verdicts import Onset
from ..core.probabilities import two_most_probable
from ..core.reliability import P_LEAST, log_loss_of
from ..errors import UnknownLabelWarning, warn_caller
from ..ordering import sort_key
from ..snapshots import Stored
from ..typing import Array
from .events import Kind, LevelMoved, LossShift, LossShiftEnd, Moved, Reason
from .guard import LossReach
from .law import DIRECTIONS, SEEN, Comparison, Level, Recalibration, level_of
from .tables import LEAST_EVENTS, N_FIRST, NOTHING, Passed, ReliabilityTables, Sums, edges_of

N_LEVELS = 4
"""Classes whose share is watched at most, of more than two: those that are predicted most often."""
MOST_CLASSES = 200
"""Labels beyond it are no classes: such observations count for nothing."""
HIT = None
"""The outcome that the more probable one of the two most probable classes came; None is no label."""
_OF_HITS: tuple[str, ...] = ("slope", "slope and down", "down")
_BAND = 1.96
_LEFT = 1.0 / 3.0
"""Share of a move that is left where it counts as over."""
_BACK = 3.0
"""Standard errors within which a window is back at the reference."""
_LATEST = 1000
_SOON_ROWS, _SOON_ERRORS = 500, 10
"""Observations, and errors to be expected, within which it is said what would be seen."""
_RARE = 0.1
"""Share of rows below which a class is said to be seen by its share, and not by errors."""
_STRETCH, _NEARLY_BACK = 8, 1.28
"""Least blocks of a stretch; standard errors below which it counts as well again."""
_SHARP, _SMALL = 0.25, 0.2
"""Standard error of a stretch, as a share of what the shift had moved or of this log odds ratio if that is larger."""
_FURTHER = 2.0
"""A shift is told again where the loss has risen so many times as far."""
_SOON, _MOST_PATIENT = 80, 6
"""Blocks after an end in which a shift is the same one again; its end is waited for twice as long each time."""


@dataclass
class Open(Stored):
    """A shift that was told and is not over.

    The window of outcome `i` was off by `moved` in `direction`; it is over below a third of that, in two stretches in a
    row of `length` blocks or more, each long enough to see a quarter of it. `since` has the sums at the begin of the
    stretch.
    """

    shift: LossShift
    i: int
    direction: Array
    moved: float
    length: int
    window: Sums
    since: Sums
    n: int = 0
    below: int = 0


class ReliabilityRoute(Stored):
    """Watches whether outcomes come as often as they were predicted to.

    An outcome is that one of two classes came and not the other, among rows in which one of the two did: so what is
    predicted of all other classes is nothing to it, and a model that is too sure of itself is no special case. Of two
    classes it is the rarer one. Of more, it is the more probable one of the two that are most probable (`HIT`), and
    each of the next four most predicted classes against the most predicted one. A model is guarded as soon as an
    outcome has come, and not come, 30 times.
    """

    learns = False

    def __init__(self, once_in: float) -> None:
        self.once_in = once_in
        self.open: Open | None = None
        self._columns: dict[Any, int] = {}
        """Class to column, in the order in which they came."""
        self._first: list[tuple[dict[Any, float], Any]] = []
        self.outcomes: list[Any] = []
        """The class of each table, or `HIT`."""
        self._other: Any = None
        """The most predicted class, which the others are compared with."""
        self._tables: list[ReliabilityTables] = []
        self._clean: list[tuple[Sums, int]] = []
        """Sums and blocks of each table before the open shift."""
        self._unknown: Counter[Any] = Counter()
        """How often a label came to which the model gave no probability."""
        self._number = 0
        self._ended_at: int | None = None
        self._n_again = 0
        """Shifts in a row that came soon after the end of the one before: damage that comes in bursts."""

    @property
    def ready(self) -> bool:
        """Whether shifts can be told."""
        return self.open is not None or any(tables.is_armed for tables in self._tables)

    @property
    def n_reference(self) -> int:
        """Observations that the latest ones are compared with."""
        if not self._tables:
            return 0
        reference = self._clean[0][0] if self._clean else self._tables[0].now
        return int(reference.books[0])

    @property
    def waits_for(self) -> tuple[Any, int, int] | None:
        """The missing count: its name, its present value, its needed value.

        None where the model is guarded.
        """
        if self.ready:
            return None
        if not self._tables:
            return "labelled observations", len(self._first), N_FIRST
        outcome, (seen, others) = self.outcomes[-1], self._tables[-1].n_events
        name = "right predictions" if outcome is HIT else f"labels {outcome!r}"
        if seen > others:
            name = "wrong predictions" if outcome is HIT else f"labels other than {outcome!r}"
        return name, min(seen, others, LEAST_EVENTS), LEAST_EVENTS

    @property
    def reach(self) -> LossReach | None:
        """The least rise of the error, or of a rare class, that is seen soon.

        None before the model is guarded, while a shift is open, or where no rise is.
        """
        if self.open is not None:
            return None
        for outcome, tables in zip(self.outcomes, self._tables, strict=True):
            if not tables.is_armed:
                continue
            n_rows, positives = tables.now.n, int(tables.now.table[SEEN].sum())
            # What is hardly ever predicted with more than a half has no errors but that it came.
            is_rare = outcome is not HIT and positives < _RARE * n_rows
            n_events = positives if is_rare else tables.n_errors
            share = max(n_events, 1) / n_rows
            n = max(_SOON_ROWS, math.ceil(_SOON_ERRORS / share))
            after = tables.least_share(share, n)
            label = outcome if is_rare else None
            return LossReach(n_events / n_rows, after, n, "share", label) if after < 1.0 else None
        return None

    def update(self, y: Any, y_pred: Any, number: int) -> list[LossShift | LossShiftEnd]:
        """Take in the observation of this number; return events, mostly none."""
        if y is None or not y_pred or (isinstance(y, float) and math.isnan(y)) or not self._is_known(y, y_pred):
            return []
        self._number = number
        if y not in y_pred:
            self._unknown[y] += 1
            if self._unknown[y] == LEAST_EVENTS:
                _warn_of_class(y, y_pred)
        if self._tables:
            return self._take(y, y_pred)
        self._first.append((dict(y_pred), y))
        return self._begin() if len(self._first) == N_FIRST else []

    def _is_known(self, y: Any, y_pred: Mapping[Any, float]) -> bool:
        columns = self._columns
        if y not in columns or not columns.keys() >= y_pred.keys():
            if len(columns.keys() | y_pred.keys() | {y}) > MOST_CLASSES:
                return False
            for label in (*y_pred, y):
                columns.setdefault(label, len(columns))
        return math.isfinite(sum(y_pred.values()))

    def take_holdout(self, rows: Sequence[tuple[Any, Any]]) -> None:
        """Make the labels and predictions of a hold-out the reference.

        Their order says nothing, so that no shift is looked for in them.
        """
        self._first = [(dict(y_pred), y) for y, y_pred in rows if self._is_known(y, y_pred)]
        self._choose()
        rows, self._first = self._first, []
        for y_pred, y in rows:
            for i in self._add(y, y_pred):
                self._tables[i].close_block()
        for tables in self._tables:
            tables.close_block()
            tables.restart(tables.now, tables.n, 0)

    def _begin(self) -> list[LossShift | LossShiftEnd]:
        """Choose outcomes and bins by the first predictions; take in their rows."""
        self._choose()
        rows, self._first = self._first, []
        events: list[LossShift | LossShiftEnd] = []
        number = self._number
        for i, (p, y) in enumerate(rows, start=1):
            self._number = number - N_FIRST + i
            events += self._take(y, p)
        return events

    def _choose(self) -> None:
        """Choose outcomes and bins by the first predictions."""
        rows = self._first
        _warn_of_unknown(rows)
        predicted = {label: np.array([p.get(label, 0.0) for p, _ in rows]) for label in self._columns}
        most = sorted(predicted, key=lambda label: (-float(predicted[label].mean()), sort_key(label)))
        self._other = most[0]
        self.outcomes = most[1:] if len(most) == 2 else [HIT, *most[1 : 1 + N_LEVELS]]
        for outcome in self.outcomes:
            first = np.array([self._pair(outcome, p)[2] for p, _ in rows])
            n_classes = len(self.outcomes) - 1
            # Half of the promise is for `HIT`.
            once_in = self.once_in * (1.0 if not n_classes else 2.0 if outcome is HIT else 2.0 * n_classes)
            only = _OF_HITS if outcome is HIT else DIRECTIONS
            self._tables.append(ReliabilityTables(edges_of(first), once_in, only))

    def _pair(self, outcome: Any, y_pred: Mapping[Any, float]) -> tuple[Any, Any, float]:
        """Return an outcome's class, its rival, and its probability against it.

        The rival is the class with which it is compared.
        """
        label, other = outcome, self._other
        if outcome is HIT:
            label, other = two_most_probable(y_pred)
        p, rest = y_pred.get(label, 0.0), y_pred.get(other, 0.0)
        return label, other, p / (p + rest) if p + rest > 0.0 else 0.5

    def _take(self, y: Any, y_pred: Mapping[Any, float]) -> list[LossShift | LossShiftEnd]:
        events: list[LossShift | LossShiftEnd] = []
        for i in self._add(y, y_pred):
            events += self._end_block(i, self._tables[i].end_block(self._number))
        return events

    def _add(self, y: Any, y_pred: Mapping[Any, float]) -> list[int]:
        """Add a row to every table; return the indices of full blocks."""
        loss, excess = log_loss_of(y_pred, y)
        full: list[int] = []
        for i, (outcome, tables) in enumerate(zip(self.outcomes, self._tables, strict=True)):
            block = tables.block
            block.book(loss, excess)
            label, other, p = self._pair(outcome, y_pred)
            if y in (label, other) and block.add(p, y == label):
                full.append(i)
        return full

    def _end_block(self, i: int, passed: Passed | None) -> list[LossShift | LossShiftEnd]:
        told = self.open
        if told is None:
            return [] if passed is None else self._tell(i, passed)
        clean = self._clean[i][0]
        if passed is not None and clean.n:  # else this outcome had hardly come before: there is nothing to go back to
            if self._is_back(i, passed) and (not self._n_again or self._tables[i].n >= told.length):
                return [self._end("returned")]
            level = level_of(passed.window.table, clean.table, _slope_of(clean.table))
            if self._kind(i, level) != told.shift.kind or self._is_further(i, told, passed):
                return self._tell(i, passed)
        return [self._end("returned")] if i == told.i and self._is_over(told) else []

    def _tell(self, i: int, passed: Passed) -> list[LossShift | LossShiftEnd]:
        tables = self._tables[i]
        passed, onset = tables.onset(passed)
        if onset is None:
            onset = Onset(max(1, self._number - passed.window.n + 1), None, self._number)
        before, slope = passed.before, passed.slope
        if self.open is not None and self._clean[i][0].n:  # of what came before the open one, as its explanation is
            before, slope = self._clean[i][0], _slope_of(self._clean[i][0].table)
        shift = self._shift(i, passed.window, before, slope, passed.name, onset)
        ended: list[LossShift | LossShiftEnd] = []
        if self.open is not None:
            ended = [LossShiftEnd(self.open.shift, "settled", self._number, shift.loss)]
        starts = [_mark_before(of, shift.onset.observation) for of in self._tables]
        starts[i] = passed.before, max(tables.n - passed.n_blocks, 1)
        if not self._clean:
            self._clean = starts
        is_soon = (
            self._ended_at is not None and self._number - self._ended_at < _SOON * passed.window.n / passed.n_blocks
        )
        self._n_again = min(self._n_again + 1, _MOST_PATIENT) if is_soon else 0
        moved = Comparison.of(passed.window.table, before.table, slope).moved(passed.direction)
        # The window that told is a chosen one, and its move too large: the end goes by stretches that are long enough.
        length = max(2 ** (1 + self._n_again) * passed.n_blocks, _STRETCH)
        for of, (start, _) in zip(self._tables, starts, strict=True):
            window = of.now - start if of is not tables else passed.window
            of.restart(window if window.n else NOTHING, 1 if window.n else 0, self._number)
        self.open = Open(shift, i, passed.direction, moved, length, passed.window, passed.window)
        return [*ended, shift]

    def again(self) -> LossShift | None:
        """Return the open shift, over all observations since its window began.

        None without an open shift.
        """
        if self.open is None:
            return None
        told, i = self.open.shift, self.open.i
        before, now = self._clean[i][0], self._tables[i].now
        shift = self._shift(i, now, before, _slope_of(before.table), told.signal, told.onset)
        self.open.window = now
        # That of the first word was a chosen one.
        self.open.moved = max(0.0, self._compared(i, now).moved(self.open.direction))
        self.open.shift = replace(shift, observation=told.observation, due_at=told.due_at)
        return self.open.shift

    def _shift(self, i: int, window: Sums, before: Sums, slope: float, name: str, onset: Onset) -> LossShift:
        level = level_of(window.table, before.table, slope)
        is_hit = self.outcomes[i] is HIT
        n = float(window.books[0])
        levels: tuple[LevelMoved, ...] = ()
        if not is_hit and abs(level.z) >= _BACK:
            intercept = min(max(level.shift / max(slope, 0.05), -15.0), 15.0)
            observed, usual = (float(of.table[SEEN].sum()) / float(of.books[0]) for of in (window, before))
            levels = (LevelMoved(self.outcomes[i], level.expected / n, observed, intercept, usual),)
        return LossShift(
            kind=self._kind(i, level),
            signal="level" if name in ("level", "up", "down") and not is_hit else "slope",
            observation=self._number,
            onset=onset,
            loss=_moved(window, before, 1),
            excess=_moved(window, before, 3),
            slope=_slopes(window, before, level.z_slope),
            level=levels,
            n_reference=int(before.books[0]),
            n_window=int(window.books[0]),
            loss_name="log_loss",
            loss_unit="nats",
            loss_largest=-math.log(P_LEAST),
        )

    def _kind(self, i: int, level: Level) -> Kind:
        return "level" if level.is_all and self.outcomes[i] is not HIT else "worse"

    def _compared(self, i: int, window: Sums) -> Comparison:
        clean = self._clean[i][0].table
        return Comparison.of(window.table, clean, _slope_of(clean))

    def _is_back(self, i: int, passed: Passed) -> bool:
        """Return whether the window is back at the clean reference."""
        compared = self._compared(i, passed.window)
        return all(float(compared.z(direction)) <= _BACK for direction in compared.directions())

    def _is_further(self, i: int, told: Open, passed: Passed) -> bool:
        """Return whether the loss has risen much further than was told."""
        before, after = _moved(told.window, self._clean[told.i][0], 1), _moved(passed.window, self._clean[i][0], 1)
        return after.low > 0.0 and after.after - after.before > _FURTHER * (before.after - before.before)

    def _is_over(self, told: Open) -> bool:
        told.n += 1
        if told.n < told.length:
            return False
        now = self._tables[told.i].now
        compared = self._compared(told.i, now - told.since)
        if compared.error(told.direction) > _SHARP * max(told.moved, _SMALL):
            return False  # what has come says too little: the stretch goes on
        is_small = compared.moved(told.direction) < _LEFT * told.moved
        told.below = told.below + 1 if is_small and float(compared.z(told.direction)) < _NEARLY_BACK else 0
        told.since, told.n = now, 0
        return told.below >= 2

    def _end(self, reason: Reason) -> LossShiftEnd:
        assert self.open is not None
        told, self.open = self.open, None
        clean, self._clean = self._clean, []
        tables = self._tables[told.i]
        latest = tables.latest(told.length)
        end = LossShiftEnd(told.shift, reason, self._number, _moved(latest, clean[told.i][0], 1))
        for of, (sums, n_blocks) in zip(self._tables, clean, strict=True):
            of.restart(sums, n_blocks, self._number)
        self._ended_at = self._number
        return end

    def excess(self) -> Moved | None:
        """Return the excess of the reference and of the latest rows, or None.

        The latest rows are 1000 or more.
        """
        if not self._tables:
            return None
        tables = self._tables[0]
        before, after = tables.split(_LATEST)
        if self._clean:
            before = self._clean[0][0]
        return _moved(after, before, 3) if before.n and after.n else None


def _mark_before(tables: ReliabilityTables, number: int) -> tuple[Sums, int]:
    """Return sums and blocks of the newest mark before an observation.

    `NOTHING` and 0 without such a mark.
    """
    n = max((n for n, mark in tables.marks.items() if mark.number < number), default=0)
    return (tables.marks[n].sums, n) if n else (NOTHING, 0)


def _slope_of(table: Array) -> float:
    return float(Recalibration.of(table).theta[0])


def _moved(window: Sums, before: Sums, column: int) -> Moved:
    """Return how far the mean of a column of the books has moved."""
    (mean, error), (after, error_after) = (_mean_of(of.books, column) for of in (before, window))
    half = math.hypot(error, error_after)
    z = (after - mean) / half if half > 0.0 else 0.0
    return Moved(mean, after, after - mean - _BAND * half, after - mean + _BAND * half, z)


def _mean_of(books: Array, column: int) -> tuple[float, float]:
    n = max(float(books[0]), 1.0)
    mean = float(books[column]) / n
    return mean, math.sqrt(max(float(books[column + 1]) / n - mean * mean, 0.0) / n)


def _slopes(window: Sums, before: Sums, z: float) -> Moved:
    """Return the slopes of both recalibrations, before and in the window.

    The slope is 1 where predictions go as far as the outcomes follow.
    """
    fits = [Recalibration.of(of.table) for of in (before, window)]
    first, second = (float(fit.theta[0]) for fit in fits)
    half = _BAND * math.sqrt(sum(float(fit.covariance[0, 0]) for fit in fits))
    return Moved(first, second, second - first - half, second - first + half, z)


def _warn_of_unknown(rows: list[tuple[dict[Any, float], Any]]) -> None:
    if any(p.get(y, 0.0) > 0.0 for p, y in rows):
        return
    _warn(
        f"none of the first {len(rows)} labels is a class that the model predicts: they are like {{}}, and its "
        "classes like {}. The loss of such observations says nothing: give labels as the model knows them",
        rows[0][1],
        rows[0][0],
    )


def _warn_of_class(label: Any, y_pred: Mapping[Any, float]) -> None:
    _warn(
        f"{LEAST_EVENTS} labels are {{}}, to which the model gave no probability; its classes are like {{}}. What it "
        "loses by a class that it does not know is not watched: train it with that class, or give labels as it knows "
        "them",
        label,
        y_pred,
    )


def _warn(said: str, label: Any, y_pred: Mapping[Any, float]) -> None:
    known = max(y_pred, key=y_pred.__getitem__)
    warning = UnknownLabelWarning(said.format(repr(label), repr(known)))
    warning.without_values = said.format(*(f"{type(one).__name__} values" for one in (label, known)))
    warn_caller(warning)
