"""Reads signals of a model of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...typing import Array, Snapshot
from .base import N_UNTAUGHT, Signals

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

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "rows": np.array(self._rows, dtype=np.float64).tobytes(),
            "gauged": np.array(self._gauged, dtype=np.float64).tobytes(),
            "scale": [self._scale, self._middle, self._width, self._off],
            "usual": self.usual,
            "names": list(self.names),
        }

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""
        self._rows = np.frombuffer(state["rows"], dtype=np.float64).reshape(-1, 2).tolist()
        self._gauged = np.frombuffer(state["gauged"], dtype=np.float64).reshape(-1, 2).tolist()
        self.n = len(self._rows)
        self._scale, self._middle, self._width, self._off = state["scale"]
        self.usual = list(state["usual"])
        self.names = tuple(state["names"])
        self.labels = (None,) if self.names else ()
