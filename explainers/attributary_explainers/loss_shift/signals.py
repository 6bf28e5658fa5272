"""Reads what labelled observations say of a model: loss, excess, slope and level.

Every signal is a number per observation whose mean stays what it is while the model is as good as it was:

loss    what the prediction cost
excess  the loss less what the model itself expected to lose: rises where it is wronger than it was
slope   rises where predictions go further than targets follow, and does not move with the base rate, to first order
level   target less prediction, one per class: moves with the base rate (of numbers: with the mean)
"""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

from ..ordering import sort_key
from ..predictions import most_probable
from ..typing import Array, Ints, Output, Snapshot
from .calibration import CLIP, Calibration, clipped

N_CALIBRATION = 4096
"""Observations of a model that does not learn from which its calibration is taken."""
N_UNTAUGHT = 320
"""Observations that count for nothing where there is no calibration: what a model says before it has learnt."""
N_LEVELS = 4
"""Classes whose share is watched at most: the most frequent ones of the reference."""
MOST_CLASSES = 1000
"""Labels beyond it are no classes: such observations count for nothing."""
_STEEPEST = 2.0
_FURTHEST, _LONGEST, _DEAREST = 4.0, 3.0, 12.0
"""Bounds of residuals and losses (in mean absolute residuals) and of predictions (in standard deviations)."""


class Signals(abc.ABC):
    """Gathers observations with their predictions, and turns a block of them into signals.

    Attributes
    ----------
    names
        Of the columns that `take` returns; those of levels are `level`, one for each of `labels`. After them come the
        predictions that the levels are of, one for each, which are not watched.
    loss
        Name, unit and largest value of the loss.
    """

    names: tuple[str, ...] = ()
    labels: tuple[Any, ...] = ()
    loss: tuple[str, str, float | None]

    def __init__(self, learns: bool) -> None:
        self.learns = learns
        self.n = 0
        """Observations that have been gathered and not been taken."""

    @abc.abstractmethod
    def add(self, y: Any, y_pred: Any) -> bool:
        """Gather one observation; return False where it has no target or no prediction that a loss could read."""

    @abc.abstractmethod
    def take(self) -> Array | None:
        """Return the signals of what was gathered, shape (rows, names and levels); None while the model is gauged."""

    @property
    def n_columns(self) -> int:
        """Columns that `take` returns."""
        return len(self.names) + len(self.labels)

    def value(self, column: int, moved: float) -> float:
        """Return a mean, or a difference of means, of that column in the unit that people read."""
        return moved

    def spread(self, sums: Array) -> list[tuple[Any, float]]:
        """Return label and mean prediction of each level, of the means of all columns."""
        return list(zip(self.labels, sums[len(self.names) :].tolist(), strict=True))

    @abc.abstractmethod
    def intercept(self, expected: float, observed: float) -> float:
        """Return what to add to the logit, or to the prediction, so that the mean prediction is what was observed."""

    @abc.abstractmethod
    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""

    @abc.abstractmethod
    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""


class ClassSignals(Signals):
    """Signals of probabilities, or of labels: those have a loss and levels alone.

    Source of the excess: the log loss less its expectation under the model's own prediction. It is the score of a
    recalibration, slope + c * level.
    """

    def __init__(self, learns: bool, has_probabilities: bool) -> None:
        super().__init__(learns)
        self.has_probabilities = has_probabilities
        self._columns: dict[Any, int] = {}
        self._order: list[Any] = []
        """The classes, by column."""
        self._p: list[list[float]] = []
        self._y: list[int] = []
        self._gauged: list[tuple[Array, Ints]] = []
        self._calibration: Calibration | None = None
        if has_probabilities and not learns:
            self.loss = ("log_loss", "nats", -math.log(CLIP))
        else:
            self.loss = ("zero_one", "share of observations", 1.0)
        self._first = ("loss", "excess", "slope") if has_probabilities else ("loss",)

    def add(self, y: Any, y_pred: Any) -> bool:
        """Gather one observation; y_pred is a dict of label to probability, or a label."""
        columns = self._columns
        if type(y_pred) is dict and self.has_probabilities and list(y_pred) == self._order:
            j = columns.get(y)
            row = list(y_pred.values())
            if j is not None and sum(row) * 0.0 == 0.0:  # all are finite
                self._p.append(row)
                self._y.append(j)
                self.n += 1
                return True
        return self._add_any(y, y_pred)

    def _add_any(self, y: Any, y_pred: Any) -> bool:
        """Gather one observation with a class that is new, or with probabilities of some classes alone."""
        if y is None or y_pred is None or (isinstance(y, float) and math.isnan(y)):
            return False
        columns = self._columns
        if isinstance(y_pred, dict):
            if not y_pred:
                return False
            if not self.has_probabilities:
                y_pred = {most_probable(y_pred): 1.0}
        else:
            y_pred = {y_pred: 1.0}
        if y not in columns or not columns.keys() >= y_pred.keys():
            if len(columns.keys() | y_pred.keys() | {y}) > MOST_CLASSES:
                return False
            for label in (y, *y_pred):
                columns.setdefault(label, len(columns))
            self._order = list(columns)
        row = [y_pred.get(label, 0.0) for label in columns]
        if not math.isfinite(sum(row)):
            return False
        self._p.append(row)
        self._y.append(columns[y])
        self.n += 1
        return True

    def take(self) -> Array | None:
        """Return the signals of what was gathered; None while the first ones calibrate the model."""
        p, y = self._gathered()
        if not self.names:
            self._gauge(p, y)
            return None
        if self.has_probabilities:
            return self._of_probabilities(p, y)
        wrong = p[np.arange(len(y)), y] < 0.5
        return self._with_levels([wrong.astype(np.float64)], p, y)

    def _gathered(self) -> tuple[Array, Ints]:
        width = len(self._columns)
        if self._p and len(self._p[0]) < width:  # a class has come since
            self._p = [row + [0.0] * (width - len(row)) for row in self._p]
        p, y = np.array(self._p, dtype=np.float64).reshape(len(self._p), width), np.array(self._y, dtype=np.int64)
        self._p, self._y, self.n = [], [], 0
        return p, y

    def _gauge(self, p: Array, y: Ints) -> None:
        """Take in what comes before signals are told: of a model that does not learn, what calibrates it."""
        calibrates = self.has_probabilities and not self.learns
        self._gauged.append((p.astype(np.float32).astype(np.float64), y))
        if sum(len(one) for _, one in self._gauged) < (N_CALIBRATION if calibrates else N_UNTAUGHT):
            return
        width = len(self._columns)
        p = np.concatenate([np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one, _ in self._gauged])
        y = np.concatenate([one for _, one in self._gauged])
        self._gauged = []
        if width > 1:
            self._calibration = Calibration.of(p, y) if calibrates else None
            self.labels = self._watched(y)
        self.names = self._first + ("level",) * len(self.labels)

    def _watched(self, y: Ints) -> tuple[Any, ...]:
        """Return the classes whose share is watched; of two, what the second one gains the first one loses."""
        labels = list(self._columns)
        if len(labels) == 2:
            return (sorted(labels, key=sort_key)[1],)
        counts = np.bincount(y, minlength=len(labels))
        return tuple(labels[j] for j in np.argsort(-counts, kind="stable")[:N_LEVELS])

    def _of_probabilities(self, p: Array, y: Ints) -> Array:
        rows, calibration = np.arange(len(y)), self._calibration
        if self.learns:
            # What a young model expects to lose changes while it learns; bounded signals settle sooner.
            best = p.argmax(axis=1)
            wrong = (best != y).astype(np.float64)
            q = np.minimum(np.maximum(p, 0.01), 0.99)
            logit = np.log(q / (1.0 - q))
            pull = (np.add.reduce(q * logit, axis=1) - logit[rows, y]) / max(p.shape[1], 2)
            slope = np.minimum(np.maximum(pull, -_STEEPEST), _STEEPEST)
            return self._with_levels([wrong, wrong - 1.0 + p[rows, best], slope], p, y)
        if calibration is None:  # one class alone
            loss = -np.log(clipped(p)[rows, y])
            return self._with_levels([loss, loss, np.zeros(len(y))], p, y)
        if p.shape[1] > len(calibration.bias):
            calibration.with_classes(p.shape[1])
        logs = np.log(clipped(p))
        q = calibration.of_logs(logs)
        logq = np.log(q)
        own, surprise = np.add.reduce(q * logq, axis=1), logq[rows, y]
        excess = own - surprise - calibration.expected_excess(q)
        centre = calibration.centre
        slope = own - q @ centre - surprise + centre[y]
        return self._with_levels([-logs[rows, y], excess, slope], q, y)

    def _with_levels(self, first: list[Array], q: Array, y: Ints) -> Array:
        found = np.empty((len(y), self.n_columns))
        for j, column in enumerate(first):
            found[:, j] = column
        for j, label in enumerate(self.labels, start=len(first)):
            at = self._columns[label]
            found[:, j + len(self.labels)] = q[:, at]
            found[:, j] = (y == at) - q[:, at]
        return found

    def intercept(self, expected: float, observed: float) -> float:
        """Return what to add to the logit of the class."""
        return _logit(observed) - _logit(expected)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        p = [row + [0.0] * (len(self._columns) - len(row)) for row in self._p]
        return {
            "classes": list(self._columns),
            "p": np.array(p, dtype=np.float64).tobytes(),
            "y": list(self._y),
            "gauged": [
                [one.astype(np.float32).tobytes(), one.shape[1], found.astype(np.int32).tobytes()]
                for one, found in self._gauged
            ],
            "calibration": None if self._calibration is None else self._calibration.snapshot(),
            "names": list(self.names),
            "labels": list(self.labels),
        }

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""
        self._order = list(state["classes"])
        self._columns = {label: j for j, label in enumerate(self._order)}
        self._y = list(state["y"])
        self.n = len(self._y)
        self._p = np.frombuffer(state["p"], dtype=np.float64).reshape(self.n, len(self._columns)).tolist()
        self._gauged = [
            (
                np.frombuffer(p, dtype=np.float32).reshape(-1, width).astype(np.float64),
                np.frombuffer(y, dtype=np.int32).astype(np.int64),
            )
            for p, width, y in state["gauged"]
        ]
        known = state["calibration"]
        self._calibration = None if known is None else Calibration.from_snapshot(known)
        self.names, self.labels = tuple(state["names"]), tuple(state["labels"])


class NumberSignals(Signals):
    """Signals of a regressor: absolute loss, slope and level, in units of what it lost on its reference observations.

    There is no excess: a predicted number does not say how sure the model is of it.
    """

    loss = ("absolute", "unit of the target", None)

    def __init__(self, learns: bool) -> None:
        super().__init__(learns)
        self._rows: list[list[float]] = []
        self._scale, self._middle, self._width, self._off = 1.0, 0.0, 1.0, 0.0
        self._gauged: list[list[float]] = []
        self._n_gauge = N_UNTAUGHT if learns else N_CALIBRATION // 2

    def add(self, y: Any, y_pred: Any) -> bool:
        """Gather one observation; both are numbers."""
        try:
            row = [float(y), float(y_pred)]
        except (TypeError, ValueError, OverflowError):
            return False
        if not (abs(row[0]) < 1e150 and abs(row[1]) < 1e150):
            return False
        self._rows.append(row)
        self.n += 1
        return True

    def take(self) -> Array | None:
        """Return the signals of what was gathered; None while the scale of targets is not known."""
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 2)
        if not self.names:
            self._gauged += self._rows
        self._rows, self.n = [], 0
        if not self.names:
            if len(self._gauged) >= self._n_gauge:
                self._gauge(np.array(self._gauged))
            return None
        y, y_pred = rows.T
        residual = (y - y_pred) / self._scale
        place = np.clip((y_pred - self._middle) / self._width, -_LONGEST, _LONGEST)
        bounded = np.clip(residual, -_FURTHEST, _FURTHEST)
        loss = np.minimum(abs(residual), _DEAREST)
        return np.column_stack([loss, -(bounded - self._off) * place, bounded, y_pred / self._scale])

    def _gauge(self, rows: Array) -> None:
        y, y_pred = rows.T
        self._scale = float(abs(y - y_pred).mean()) or float(abs(y).mean()) or 1.0
        self._off = float(np.clip((y - y_pred) / self._scale, -_FURTHEST, _FURTHEST).mean())
        self._middle, self._width = float(y_pred.mean()), float(y_pred.std()) or 1.0
        self._gauged = []
        self.names, self.labels = ("loss", "slope", "level"), (None,)

    def value(self, column: int, moved: float) -> float:
        """Return the mean in the unit of the target."""
        return moved if self.names[column : column + 1] == ("slope",) else moved * self._scale

    def spread(self, sums: Array) -> list[tuple[Any, float]]:
        """Return None and the mean prediction."""
        return [(None, float(sums[-1]) * self._scale)]

    def intercept(self, expected: float, observed: float) -> float:
        """Return what to add to the prediction."""
        return observed - expected

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "rows": np.array(self._rows, dtype=np.float64).tobytes(),
            "gauged": np.array(self._gauged, dtype=np.float64).tobytes(),
            "scale": [self._scale, self._middle, self._width, self._off],
            "names": list(self.names),
        }

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""
        self._rows = np.frombuffer(state["rows"], dtype=np.float64).reshape(-1, 2).tolist()
        self._gauged = np.frombuffer(state["gauged"], dtype=np.float64).reshape(-1, 2).tolist()
        self.n = len(self._rows)
        self._scale, self._middle, self._width, self._off = state["scale"]
        self.names = tuple(state["names"])
        self.labels = (None,) if self.names else ()


def signals_of(output: Output, learns: bool) -> Signals:
    """Return what reads predictions of this kind, before the first observation."""
    if output == "number":
        return NumberSignals(learns)
    return ClassSignals(learns, has_probabilities=output == "probabilities")


def restored_signals(output: Output, learns: bool, state: Snapshot) -> Signals:
    """Return the signals whose snapshot this is."""
    found = signals_of(output, learns)
    found.restore(state)
    return found


def _logit(p: float) -> float:
    p = min(max(p, CLIP), 1.0 - CLIP)
    return math.log(p / (1.0 - p))
