"""Reports that a model's loss shifted, how it shifted, and its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..change.verdicts import Onset, onset_of
from ..errors import InvalidParameterError
from ..snapshots import Stored
from ..typing import Array, Output
from .events import Kind, LevelMoved, LossShift, LossShiftEnd, Moved, Reason
from .guard import LossReach
from .ladder import Ladder, Look, Passed, Sums
from .signals import ClassSignals, NumberSignals, Signals

ROSE = 3.0
"""Standard errors by which a loss has risen clearly."""
_BAND = 1.96
_CLEARLY, _SOMEWHAT = 3.0, 2.5
"""Standard errors by which the level has moved, and by which excess or slope have."""
_STEADY, _LARGE = 2.0, 6.0
"""Standard errors of the slope below which the order of observations counts as being as good as before: two, or a
sixth of those of the level."""
BLOCK, BLOCK_OF_LEARNERS = 128, 32
REFERENCE, REFERENCE_OF_LEARNERS = 5000, 1000
"""Observations that anything is compared with, at least."""
_STEP = 32
"""Observations in a step of the path that an onset is looked for in."""
_PATH = 64
_LATEST = 1000
_SHARES = {"loss": 0.15, "slope": 0.4, "level": 0.2}
"""Of the promise: what is told by a signal first is told the sooner, the larger its share is."""
_LEFT = 1.0 / 3.0
"""Share of a rise that is left where it counts as over."""
_SOON, _MOST_PATIENT = 80, 6
"""Blocks after an end in which a shift is the same one again; its end is waited for twice as long each time."""


@dataclass
class Open(Stored):
    """A shift that was told and is not over.

    `column` is the signal that it goes by, in direction `sign`; it is over below `middle`, in two stretches of
    `length` blocks in a row. `window` holds the blocks that it was told by.
    """

    shift: LossShift
    column: int
    sign: int
    middle: float
    length: int
    window: Sums
    sum: float = 0.0
    n: int = 0
    below: int = 0


class LossRoute(Stored):
    """Watch for lasting moves of a model's signals.

    The model learns, or gives labels or numbers alone. A model that learns between observations is watched in blocks of
    32, from observation 1344 on, and a move of excess or slope is reported only where the loss rose, too. For any other
    model the reference takes 5300 observations (7000 of numbers), and blocks have 128. Over all signals, one false
    report is allowed in `once_in` observations.
    """

    def __init__(self, output: Output, learns: bool, once_in: float) -> None:
        self.output, self.learns, self.once_in = output, learns, once_in
        self.block = BLOCK_OF_LEARNERS if learns else BLOCK
        self._least = (REFERENCE_OF_LEARNERS if learns else REFERENCE) // self.block
        self.signals: ClassSignals | NumberSignals = (
            NumberSignals(learns) if output == "number" else ClassSignals(learns, output == "probabilities")
        )
        self.now: Ladder | None = None
        """The ladder that is fed; None before there are signals."""
        self.clean: Ladder | None = None
        """That of before the open shift."""
        self.open: Open | None = None
        self._began = 0
        self._number = 0
        self._n_taken = 0
        self._ended_at: int | None = None
        self._n_again = 0
        """Shifts in a row that came soon after the end of the one before: damage that comes in bursts."""
        self._numbers: list[int] = []
        self._path: list[tuple[int, npt.NDArray[np.float32]]] = []

    @property
    def ready(self) -> bool:
        """Whether shifts can be told."""
        return self.open is not None or (self.now is not None and self.now.now.n > self.now.n_least)

    @property
    def waits_for(self) -> tuple[Any, int, int] | None:
        """The missing count: its name, its present value, its needed value.

        None where the model is guarded.
        """
        if self.ready:
            return None
        first = -(-self.signals.n_first // self.block) * self.block
        return "labelled observations", self._n_taken, first + (self._least + 1) * self.block

    @property
    def reach(self) -> LossReach | None:
        """The least rise of the loss that is seen soon; None before the guard."""
        ladder = self.clean or self.now
        if not self.ready or ladder is None:
            return None
        mean, n, after = ladder.least_rise(0, max(1, _LATEST // 2 // self.block))
        unit = "share" if self.output != "number" else "target"
        return LossReach(self.signals.value(0, mean), self.signals.value(0, after), n * self.block, unit)

    @property
    def n_reference(self) -> int:
        """Observations that the latest ones are compared with."""
        ladder = self.clean or self.now
        return 0 if ladder is None else ladder.now.n * self.block

    def update(self, y: Any, y_pred: Any, number: int) -> list[LossShift | LossShiftEnd]:
        """Take in the observation of this number; return events, mostly none."""
        if not self.signals.add(y, y_pred):
            return []
        self._n_taken += 1
        if self.signals.n % _STEP == 1:
            self._numbers.append(number)
        return [] if self.signals.n < self.block else self._end_block(number)

    def take_holdout(self, rows: Sequence[tuple[Any, Any]]) -> None:
        """Take in a hold-out's labels and predictions, in the order of time.

        They come before the stream. InvalidParameterError: the loss shifts within them.
        """
        for y, y_pred in rows[: len(rows) // self.block * self.block]:
            if self.update(y, y_pred, 0):
                raise InvalidParameterError(
                    "holdout", f"rows with one loss throughout: it shifts before row {self._n_taken}", len(rows)
                )
        self._path.clear()
        self._began = 0

    def _end_block(self, number: int) -> list[LossShift | LossShiftEnd]:
        self._number, numbers, self._numbers = number, self._numbers, []
        rows = self.signals.take()
        if rows is None:
            return []
        if self.now is None:
            self.now, self._began = self._ladder(), numbers[0] - 1
        steps = (np.add.reduce(rows.reshape(len(numbers), _STEP, -1), axis=1) / _STEP).astype(np.float32)
        self._path += zip(numbers, steps, strict=True)
        del self._path[:-_PATH]
        return self._step(self.now, rows)

    def _step(self, ladder: Ladder, rows: Array) -> list[LossShift | LossShiftEnd]:
        rows, n = rows[:, : len(self.signals.names)], len(rows)
        squares = rows * rows
        means = np.add.reduce(rows) / n
        passed = ladder.step(means, np.add.reduce(squares) / n, np.add.reduce(squares * rows) / n)
        told = [one for one in passed if self._counts(ladder, one)]
        if told:
            first = max(told, key=lambda one: abs(one.z))
            if self.open is not None and not self.learns:
                if self._is_back(ladder, first) and (not self._n_again or ladder.now.n >= self.open.length):
                    return [self._end("returned")]
                if self._gets_better(ladder, first):
                    return []
            return self._tell(ladder, first)
        fallen = [one for one in passed if self.learns and self.signals.names[one.signal] == "loss" and one.z < 0]
        if fallen:  # the model has become better: that is the level to watch from now on
            self.now, self._began = ladder.continued(fallen[0].start, self._least // 2), self._number
            return []
        if self.open is None:
            return []
        return [self._end("returned")] if self._is_over(self.open, means) else []

    def _ladder(self) -> Ladder:
        names = self.signals.names
        shares = {name: 1.0 if self.learns else _SHARES[name] for name in names}
        parts = {"level": 2 * max(names.count("level"), 1)}  # up and down
        promises = [self.once_in * sum(shares.values()) / shares[name] * parts.get(name, 1) for name in names]
        both = [name == "level" or (self.learns and name == "loss") for name in names]
        return Ladder(promises, both, self.block, self._least)

    def _counts(self, ladder: Ladder, passed: Passed) -> bool:
        name = self.signals.names[passed.signal]
        if not self.learns:
            return True
        if name == "level":
            return False
        if name == "loss":
            return passed.z > 0
        # A model that learns may grow surer of itself and be no worse.
        return bool(ladder.look(passed.start).z[0] >= ROSE)

    def _tell(self, ladder: Ladder, passed: Passed) -> list[LossShift | LossShiftEnd]:
        look, window = ladder.look(passed.start), ladder.now - passed.start
        shift = self._shift(look, window, passed.start.n, passed.signal, self._onset(ladder, passed, look))
        ended: list[LossShift | LossShiftEnd] = []
        if self.open is not None:
            ended = [LossShiftEnd(self.open.shift, "settled", self._number, moved(look, 0, self.signals))]
        if self.clean is None:
            self.clean = ladder
            ladder.go_back_to(passed.start)
        # Of a model that learns, worse is that its loss rose, and over is that its loss is back.
        j = self.signals.names.index("loss") if self.learns else passed.signal
        difference = float(look.difference[j])
        middle = float(look.before[j]) + _LEFT * difference
        is_soon = self._ended_at is not None and self._number - self._ended_at < _SOON * self.block
        self._n_again = min(self._n_again + 1, _MOST_PATIENT) if is_soon else 0
        patience = 2 ** (1 + self._n_again) * window.n
        self.open = Open(shift, j, 1 if difference > 0 else -1, middle, patience, window)
        self.now, self._began = self._ladder(), self._number
        return [*ended, shift]

    def again(self) -> LossShift | None:
        """Return the open shift over all observations since its window began.

        For a model that learns, and has gone on since, it is the shift as first reported. None without an open shift.
        """
        if self.open is None or self.clean is None or self.now is None:
            return None
        told = self.open.shift
        if self.learns:
            return told
        window = self.open.window + self.now.now
        look = self.clean.compare(window)
        shift = replace(
            self._shift(look, window, self.clean.now.n, self.open.column, told.onset),
            observation=told.observation,
            due_at=told.due_at,
        )
        self.open.shift = shift
        return shift

    def _shift(self, look: Look, window: Sums, n_before: int, column: int, onset: Onset) -> LossShift:
        names = self.signals.names
        means = {name: moved(look, i, self.signals) for i, name in enumerate(names) if name != "level"}
        name, unit, largest = self.signals.loss
        expected = self._expected(window.n)
        return LossShift(
            kind=kind_of(look, self.signals, self.output, expected),
            signal=names[column],  # type: ignore[arg-type]
            observation=self._number,
            onset=onset,
            loss=means["loss"],
            excess=means.get("excess"),
            slope=means.get("slope"),
            level=levels_of(look, self.signals, expected),
            n_reference=n_before * self.block,
            n_window=window.n * self.block,
            loss_name=name,
            loss_unit=unit,
            loss_largest=largest,
        )

    def _expected(self, n_window: int) -> Array:
        """Return the mean predictions of the levels over the latest blocks."""
        steps = [step for _, step in self._path[-max(1, n_window * self.block // _STEP) :]]
        means: Array = np.array(steps, dtype=np.float64).mean(axis=0)
        return means[len(self.signals.names) :]

    def _onset(self, ladder: Ladder, passed: Passed, look: Look) -> Onset:
        j = int(np.argmax(abs(look.z)))
        path = [(number, step) for number, step in self._path if number > self._began]
        numbers = [number for number, _ in path]
        if 2 * (ladder.now.n - passed.start.n) * self.block <= _PATH * _STEP:
            values, width = [float(step[j]) for _, step in path], _STEP
        else:
            means = ladder.batches.means()[:, j]
            values, width = means.tolist(), ladder.batches.size * self.block
            begins = self._number - ladder.now.n * self.block + 1
            numbers = [begins + width * i for i in range(len(values))]
        found = onset_of(values, numbers) if len(values) >= 4 else None
        if found is None:
            first = max(self._began, self._number - (ladder.now.n - passed.start.n) * self.block)
            return Onset(first, None, self._number)
        # It may lie anywhere in the steps that are next to these.
        low = None if found.low is None else max(self._began, found.low - width)
        return replace(found, low=low, high=min(found.high + 2 * width - 1, self._number))

    def _is_back(self, ladder: Ladder, passed: Passed) -> bool:
        """Return whether all signals in the window are back at the reference."""
        assert self.clean is not None
        z = self.clean.compare(ladder.now - passed.start).z
        return all(
            (abs(value) if name == "level" else value) <= ROSE
            for name, value in zip(self.signals.names, z.tolist(), strict=False)
        )

    def _gets_better(self, ladder: Ladder, passed: Passed) -> bool:
        """Return whether the moved signal came closer to the clean reference."""
        assert self.clean is not None
        look, j = ladder.look(passed.start), passed.signal
        clean = self.clean.now.of[0, j] / max(self.clean.now.n, 1)
        before = look.before[j]
        return bool(abs(before + look.difference[j] - clean) < abs(before - clean))

    def _is_over(self, told: Open, means: Array) -> bool:
        told.sum += float(means[told.column])
        told.n += 1
        if told.n < told.length:
            return False
        told.below = told.below + 1 if told.sign * (told.sum / told.n - told.middle) < 0 else 0
        told.sum, told.n = 0.0, 0
        return told.below >= 2

    def _end(self, reason: Reason) -> LossShiftEnd:
        assert self.open is not None
        assert self.now is not None
        assert self.clean is not None
        told, self.open = self.open, None
        recent = self.now.latest(min(told.length, self.now.now.n))
        window = self.now.now if recent is None else self.now.now - recent
        loss = moved(self.clean.compare(window), 0, self.signals) if window.n else told.shift.loss
        self.now, self.clean, self._began = self.clean, None, self._number
        self._ended_at = self._number
        return LossShiftEnd(told.shift, reason, self._number, loss)

    def excess(self) -> Moved | None:
        """Return excess of the reference and the latest 1000 rows; None if none."""
        if self.now is None or "excess" not in self.signals.names:
            return None
        column = self.signals.names.index("excess")
        start = self.now.latest(max(_LATEST // self.block, 1))
        if start is None:
            return None
        look = self.now.look(start) if self.clean is None else self.clean.compare(self.now.now - start)
        return moved(look, column, self.signals) if look.error[column] > 0.0 else None


def kind_of(look: Look, signals: Signals, output: Output, expected: Array) -> Kind:
    """Return the kind of a shift by how far each signal has moved.

    The thresholds are standard errors. `expected` has the mean predictions in the window, shape (levels,).
    """
    names = signals.names
    levels = [j for j, name in enumerate(names) if name == "level"]
    level = max((abs(float(look.z[j])) for j in levels), default=0.0)
    z = {name: float(look.z[j]) for j, name in enumerate(names) if name != "level"}
    slope, excess = z.get("slope", 0.0), z.get("excess", 0.0)
    is_worse = slope >= _SOMEWHAT or excess >= _SOMEWHAT
    if level >= _CLEARLY and _is_of_level(look, output, level):
        is_dear = is_worse or (output != "probabilities" and z["loss"] > ROSE)
        if slope < max(_STEADY, level / _LARGE) and not (
            is_dear and _predictions_moved(look, signals, levels, expected)
        ):
            return "level"
    if is_worse:
        return "worse"
    return "harder" if output == "probabilities" else "rose"


def _is_of_level(look: Look, output: Output, level: float) -> bool:
    """Return whether the level is the move to report, not the loss."""
    if output == "label":  # whether the order is as good as before is not known
        return bool(look.z[0] < _SOMEWHAT)
    if output == "number":
        return bool(level >= 0.5 * look.z[0])
    # A model that learns is off its level now and then; that is told where nothing else has moved.
    return bool(look.z[1] < _SOMEWHAT)


def _predictions_moved(look: Look, signals: Signals, levels: list[int], expected: Array) -> bool:
    """Return whether predictions moved and the observed level did not.

    Then what the model reads has changed, and not the base rate.
    """
    if not signals.usual:
        return False
    level = int(np.argmax(abs(look.z[levels])))
    off = float(look.difference[levels[level]])
    observed = off + float(expected[level]) - signals.usual[level]
    return bool(observed * np.sign(off) < 0.5 * abs(off))


def moved(look: Look, column: int, signals: Signals) -> Moved:
    """Return how far a signal has moved, in the unit that people read."""
    before, difference, half = (
        signals.value(column, float(value))
        for value in (look.before[column], look.difference[column], _BAND * look.error[column])
    )
    return Moved(before, before + difference, difference - half, difference + half, float(look.z[column]))


def levels_of(look: Look, signals: Signals, expected: Array) -> tuple[LevelMoved, ...]:
    """Return the clearly moved levels, each with its correcting intercept."""
    columns = [j for j, name in enumerate(signals.names) if name == "level"]
    usual = [mean for _, mean in signals.spread(np.array(signals.usual))] if signals.usual else [None] * len(columns)
    found = []
    for level, (j, (label, mean), was) in enumerate(zip(columns, signals.spread(expected), usual, strict=True)):
        if abs(float(look.z[j])) >= _CLEARLY:
            off, difference = signals.value(j, float(look.before[j])), float(look.difference[j])
            observed = mean + off + signals.value(j, difference)
            before = None if was is None else was + off
            found.append(LevelMoved(label, mean, observed, signals.intercept(level, difference), before))
    return tuple(found)
