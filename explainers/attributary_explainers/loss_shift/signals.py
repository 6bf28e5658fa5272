"""Reads loss, excess, slope and level from labelled observations.

Every signal is a number per observation. Its mean does not change as long as the model stays as good as it was:

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
import numpy.typing as npt

from ..ordering import sort_key
from ..predictions import most_probable
from ..snapshots import Stored
from ..typing import Array, Ints

N_UNTAUGHT = 320
"""Observations that count for nothing: what a model says before it has learnt."""


class Signals(Stored, abc.ABC):
    """Gathers observations and predictions, and turns blocks into signals.

    Attributes
    ----------
    names
        Names of the columns that `take` returns; each of `labels` has a column `level`. After these columns comes the
        prediction for each level, which is not watched.
    loss
        Name, unit and largest value of the loss.
    """

    names: tuple[str, ...] = ()
    labels: tuple[Any, ...] = ()
    loss: tuple[str, str, float | None]

    def __init__(self, learns: bool, n_first: int = N_UNTAUGHT) -> None:
        self.learns = learns
        self.n_first = n_first
        """Observations that come before there are signals."""
        self.n = 0
        """Observations that have been gathered and not been taken."""
        self.usual: list[float] = []
        """Mean prediction of each level before signals were told; empty of a model that learns, whose moves."""

    @property
    def n_columns(self) -> int:
        """Columns that `take` returns."""
        return len(self.names) + len(self.labels)

    def value(self, column: int, moved: float) -> float:
        """Return a column's mean or difference in the unit that people read."""
        return moved

    def spread(self, expected: Array) -> list[tuple[Any, float]]:
        """Return each level's label and mean prediction, in the unit people read."""
        return list(zip(self.labels, expected.tolist(), strict=True))

    @abc.abstractmethod
    def intercept(self, level: int, moved: float) -> float | None:
        """Return the addend that moves a level's mean by `moved`, or None.

        It is added to the logits, or to predictions of numbers. None where there is nothing to add to.
        """


N_LEVELS = 4
"""Classes whose share is watched at most: the most frequent ones of the reference."""
MOST_CLASSES = 200
"""Labels beyond it are no classes: such observations count for nothing."""
_CLIP = 1e-3
"""Probabilities are at least this before an intercept is solved for."""
_LATEST = 256
"""Predictions that intercepts are solved on, over all levels."""
_LARGEST_INTERCEPT = 15.0
_STEEPEST = 2.0


class ClassSignals(Signals):
    """Signals of a classifier that learns or that gives labels alone.

    With labels alone they are a loss and levels.
    """

    def __init__(self, learns: bool, has_probabilities: bool) -> None:
        super().__init__(learns)
        self.has_probabilities = has_probabilities
        self._columns: dict[Any, int] = {}
        """Class to column, in the order in which they came."""
        self._p: list[list[float]] = []
        self._y: list[int] = []
        self._gauged: list[tuple[Array, Ints]] = []
        self._latest: npt.NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        """Shape (rows, levels): the latest predictions of the classes whose share is watched."""
        self.loss = ("zero_one", "share of observations", 1.0)
        self._first = ("loss", "excess", "slope") if has_probabilities else ("loss",)

    def add(self, y: Any, y_pred: Any) -> bool:
        """Gather an observation; `y_pred` holds probabilities or is a label."""
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
            for label in (*y_pred, y):
                columns.setdefault(label, len(columns))
        row = [y_pred.get(label, 0.0) for label in columns]
        if not math.isfinite(sum(row)):
            return False
        self._p.append(row)
        self._y.append(columns[y])
        self.n += 1
        return True

    def take(self) -> Array | None:
        """Return the gathered signals; None while the first rows calibrate."""
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
        """Take in the first rows, which choose the classes that are watched."""
        self._gauged.append((p.astype(np.float32).astype(np.float64), y))
        if sum(len(one) for _, one in self._gauged) < self.n_first:
            return
        width = len(self._columns)
        p = np.concatenate([np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one, _ in self._gauged])
        y = np.concatenate([one for _, one in self._gauged])
        self._gauged = []
        if width > 1:
            self.labels = self._watched(y)
            if not self.learns:
                self.usual = p[:, [self._columns[label] for label in self.labels]].mean(axis=0).tolist()
        self.names = self._first + ("level",) * len(self.labels)

    def _watched(self, y: Ints) -> tuple[Any, ...]:
        """Return the classes whose share is watched; of two, a single class."""
        labels = list(self._columns)
        counts = np.bincount(y, minlength=len(labels))
        if len(labels) == 2:
            rarer = int(counts[0] > counts[1]) if counts[0] != counts[1] else None
            return (sorted(labels, key=sort_key)[1] if rarer is None else labels[rarer],)
        return tuple(labels[j] for j in np.argsort(-counts, kind="stable")[:N_LEVELS])

    def _of_probabilities(self, p: Array, y: Ints) -> Array:
        # What a young model expects to lose changes while it learns; bounded signals settle sooner.
        rows, best = np.arange(len(y)), p.argmax(axis=1)
        wrong = (best != y).astype(np.float64)
        q = np.minimum(np.maximum(p, 0.01), 0.99)
        logit = np.log(q / (1.0 - q))
        pull = (np.add.reduce(q * logit, axis=1) - logit[rows, y]) / max(p.shape[1], 2)
        slope = np.minimum(np.maximum(pull, -_STEEPEST), _STEEPEST)
        return self._with_levels([wrong, wrong - 1.0 + p[rows, best], slope], p, y)

    def _with_levels(self, first: list[Array], q: Array, y: Ints) -> Array:
        found = np.empty((len(y), self.n_columns))
        for j, column in enumerate(first):
            found[:, j] = column
        for j, label in enumerate(self.labels, start=len(first)):
            at = self._columns[label]
            found[:, j + len(self.labels)] = q[:, at]
            found[:, j] = (y == at) - q[:, at]
        if self.has_probabilities and (n := len(self.labels)):
            latest = found[:, found.shape[1] - n :].astype(np.float32)
            self._latest = np.concatenate([self._latest.reshape(-1, n), latest])[-_LATEST // n :]
        return found

    def intercept(self, level: int, moved: float) -> float | None:
        """Return the addend for the class's logit; None for labels alone."""
        if not len(self._latest):
            return None
        q = np.minimum(np.maximum(self._latest[:, level].astype(np.float64), _CLIP), 1.0 - _CLIP)
        return _intercept(q, min(max(float(q.mean()) + moved, _CLIP), 1.0 - _CLIP))


def _intercept(q: Array, mean: float) -> float:
    """Return the logit shift that gives q this mean, bisected to 1e-6."""
    logit = np.log(q) - np.log(1.0 - q)
    low, high = -_LARGEST_INTERCEPT, _LARGEST_INTERCEPT
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if float((1.0 / (1.0 + np.exp(-logit - middle))).mean()) < mean:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


N_GAUGED = 2048
"""Observations of a model that does not learn from which the scale of its targets is taken."""
_FURTHEST, _LONGEST, _DEAREST = 4.0, 3.0, 12.0
"""Bounds of residuals and losses (in mean absolute residuals) and of predictions (in standard deviations)."""


class NumberSignals(Signals):
    """Signals of a regressor: absolute loss, slope and level.

    They are in units of the mean loss on the reference observations. There is no excess: a predicted number does not
    say how sure the model is of it.
    """

    loss = ("absolute", "unit of the target", None)

    def __init__(self, learns: bool) -> None:
        super().__init__(learns, N_UNTAUGHT if learns else N_GAUGED)
        self._rows: list[list[float]] = []
        self._scale, self._middle, self._width, self._off = 1.0, 0.0, 1.0, 0.0
        self._gauged: list[list[float]] = []

    def add(self, y: Any, y_pred: Any) -> bool:
        """Gather an observation; both are numbers."""
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
        """Return the gathered signals; None while the target's scale is unknown."""
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 2)
        if not self.names:
            self._gauged += self._rows
        self._rows, self.n = [], 0
        if not self.names:
            if len(self._gauged) >= self.n_first:
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
        self.usual = [] if self.learns else [self._middle / self._scale]

    def value(self, column: int, moved: float) -> float:
        """Return the mean in the unit of the target."""
        return moved if self.names[column : column + 1] == ("slope",) else moved * self._scale

    def spread(self, expected: Array) -> list[tuple[Any, float]]:
        """Return None and the mean prediction."""
        return [(None, float(expected[0]) * self._scale)]

    def intercept(self, level: int, moved: float) -> float | None:
        """Return the addend for the prediction."""
        return moved * self._scale
