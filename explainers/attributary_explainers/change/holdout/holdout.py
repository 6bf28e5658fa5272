"""Keeps recent observations, with predictions made before learning."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...losses.losses import Loss
from ...models.function import model_function
from ...packing import unpack_numbers
from ...predictions import is_usable
from ...typing import Array, Features, ModelFunction, Output, Prediction, Snapshot
from ..discrepancy import Distance, spread
from .comparison import RecentLosses, distances_between, losses_of, predictions, usable_predictions
from .rows import HeldRows, Row, column_of

_BATCH_SIZE = 32
_LEAST_SPREAD = 1e-300
"""Targets with less are all the same: a quotient would be infinite."""

BASELINE = 4
"""Windows after a reference was taken whose losses say how good it was."""


class HeldOut:
    """Keeps the last `window` and first rows of a reference, and its losses.

    The reference does not change, so observations can wait for one call of it; `rows` asks for all that wait.

    Parameters
    ----------
    window
        Observations that are kept. The losses of the reference on those that leave are its baseline, for at most four
        windows: they show how good it is on unchanged data.
    loss, distance
        Measures of the predictions.
    relative
        Whether the discrepancy is divided by the spread of the targets.
    batch_size
        Most observations that wait for one call; None is 32 where the model predicts many at once, else 1.
    """

    def __init__(self, window: int, loss: Loss, distance: Distance, *, relative: bool, batch_size: int | None) -> None:
        self.window, self.loss, self.distance, self.relative = window, loss, distance, relative
        self.batch_size = batch_size
        needs = "probabilities" in (loss.output, distance.output)
        self.output: Output = "probabilities" if needs and loss.output != "any" else loss.output
        self.n_rows = 0
        """Observations taken in since the beginning: the clock of the change explainer."""
        self._baseline = array("d")
        self.baseline_until: int | None = None
        """Observations after this one do not enter the baseline."""
        self._birth = array("d")
        self.first = HeldRows()
        """The first half window of observations since the reference was taken."""
        self._reference: ModelFunction | None = None
        self._size = 1
        """Observations that the reference is asked about in one call."""
        self._rows = HeldRows()
        self._waiting: list[Row] = []

    def add(self, n: int, x: Features, y: Any, prediction: Prediction, *, is_label: bool, loss: float) -> None:
        """Take in an observation, as `Row.of` does."""
        self.n_rows += 1
        row = Row.of(n, x, y, prediction, is_label=is_label, loss=loss)
        if self._reference is None:
            self._rows.extend([row])
            self._drop_oldest()
            return
        self._waiting.append(row)
        if len(self._waiting) >= self._size:
            self._ask()

    def compare_with(self, reference: Any, rows: Sequence[Row] = ()) -> None:
        """Compare with this model from now on, and keep only `rows`.

        `rows` are observations that it has not learnt either. None compares with nothing.
        """
        before: list[float] = []
        if reference is not None:
            held, first = self.rows, rows[0].n if rows else math.inf
            before = [loss for n, loss in zip(held.n, held.loss, strict=True) if n < first]
        self._birth = array("d", before[-(self.window // 2) :])
        self._rows, self._baseline, self.first = HeldRows(), array("d"), HeldRows()
        self.baseline_until = None
        self._waiting = []
        self._take(reference)
        if rows and self._reference is not None:
            # The rows are told: who holds them reads what this reference says.
            self._compare(rows)

    def _take(self, reference: Any) -> None:
        if reference is None:
            self._reference = None
            return
        self._reference = model_function(reference, self.output)
        self._size = self.batch_size or (min(_BATCH_SIZE, self.window) if hasattr(self._reference, "many") else 1)

    @property
    def baseline(self) -> array[float]:
        """Losses of the reference on observations that have left the window."""
        return self._baseline[:]

    @property
    def birth(self) -> array[float]:
        """Losses of the model in the half window before it was the reference."""
        return self._birth[:]

    @property
    def is_born_known(self) -> bool:
        """Whether enough losses from before the reference was taken are known."""
        return len(self._birth) >= self.window // 4

    @property
    def then(self) -> array[float]:
        """Losses that show how good the reference is on unchanged data.

        They are its own, since it was taken. Where these are few, they are those of the model shortly before that. The
        model was no better then than the reference, so a loss that is higher is also higher than the reference's was.
        """
        return self.birth if len(self._baseline) < 3 * self.window // 10 and self.is_born_known else self.baseline

    @property
    def rows(self) -> HeldRows:
        """The kept observations, newest last, valid until the next arrives."""
        if self._waiting:
            self._ask()
        return self._rows

    def since(self, n: int) -> list[Row]:
        """Return the observations after observation number `n`."""
        return self.rows.after(n)

    def discrepancy(self, rows: Sequence[Row]) -> float:
        """Return the models' mean distance, relative to that of two targets.

        0 is the same function, 1 as far apart as two observed targets. It is 0 where the targets have no spread. Where
        the loss is a score, there are no targets, and the model's own predictions replace them.
        """
        predicted = [row.prediction for row in rows] if self.loss.is_score else ()
        distances = rows.distance if isinstance(rows, HeldRows) else column_of(rows, "distance")
        return self.discrepancy_of(rows, distances, predicted)

    def discrepancy_of(self, rows: Sequence[Row], distances: Sequence[float], predicted: Sequence[Prediction]) -> float:
        """Return the discrepancy from distances; scores also need `predicted`."""
        if not rows:
            return 0.0
        mean = math.fsum(distances) / len(rows)
        if not self.relative:
            return mean
        unit = spread(predicted if self.loss.is_score else column_of(rows, "y"), self.distance)
        return mean / unit if unit > _LEAST_SPREAD else 0.0

    def apart(self, old: Any, new: Any, rows: Sequence[Row]) -> Array:
        """Compare two models on observations; return shape (rows, 3).

        The columns are the loss of the old one, and how far the new one's prediction is from its; both NaN where one
        has no prediction. Then the new one's prediction where it is a number, else NaN.
        """
        said = predictions(model_function(new, self.output), [row.x for row in rows])
        xs, are_labels = column_of(rows, "x"), column_of(rows, "is_label")
        before = usable_predictions(model_function(old, self.output), xs, are_labels)
        before = [p if is_usable(now) else None for p, now in zip(before, said, strict=True)]
        losses, distances = (
            losses_of(before, column_of(rows, "y"), self.loss),
            distances_between(before, said, self.distance),
        )
        numbers = [math.nan if p is None or isinstance(p, dict) else p for p in said]
        return np.column_stack([np.array(losses), np.array(distances), np.array(numbers, dtype=np.float64)])

    def losses(self, model: Any, rows: Sequence[Row]) -> Array:
        """Return a model's losses on rows; NaN where it has no prediction."""
        return self.losses_of(model).of(rows)

    def losses_of(self, model: Any) -> RecentLosses:
        """Return the losses of another model, where it is asked more than once."""
        return RecentLosses(model_function(model, self.output), self.loss)

    def _ask(self) -> None:
        """Ask the reference about all that wait."""
        waiting, self._waiting = self._waiting, []
        self._compare(waiting)

    def _compare(self, rows: Sequence[Row]) -> None:
        """Add the rows that the reference predicts, with losses and distances."""
        assert self._reference is not None
        xs = [dict(row.x) for row in rows]  # what a model does with them is nothing to the rows
        predicted = usable_predictions(self._reference, xs, [row.is_label for row in rows])
        losses = losses_of(predicted, [row.y for row in rows], self.loss)
        distances = distances_between(predicted, [row.prediction for row in rows], self.distance)
        usable = []
        for row, loss, distance in zip(rows, losses, distances, strict=True):
            if math.isfinite(loss):
                row.reference_loss, row.distance = loss, distance
                usable.append(row)
        self._rows.extend(usable)
        if (n_missing := self.window // 2 - len(self.first)) > 0:
            self.first.extend(usable[:n_missing])
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drop rows beyond the window; a reference's losses enter the baseline."""
        if (n := len(self._rows) - self.window) <= 0:
            return
        left = BASELINE * self.window - len(self._baseline)
        if self._reference is not None and left > 0:
            losses, until = self._rows.reference_loss[:n], self.baseline_until
            if until is not None:
                losses = array("d", [loss for i, loss in zip(self._rows.n, losses, strict=False) if i <= until])
            self._baseline.extend(losses[:left])
        self._rows.drop_oldest(n)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "n_rows": self.n_rows,
            "baseline": self._baseline.tobytes(),
            "baseline_until": self.baseline_until,
            "birth": self._birth.tobytes(),
            "first": self.first.snapshot(),
            "rows": self._rows.snapshot(),
            "waiting": HeldRows(self._waiting).snapshot(),
        }

    def restore(self, snapshot: Snapshot, reference: Any) -> None:
        """Restore the state from `snapshot`, with that time's reference model."""
        self._take(reference)
        self.n_rows, self.baseline_until = snapshot["n_rows"], snapshot["baseline_until"]
        self._baseline = unpack_numbers("d", snapshot["baseline"])
        self._birth = unpack_numbers("d", snapshot["birth"])
        self.first, self._rows = HeldRows.from_snapshot(snapshot["first"]), HeldRows.from_snapshot(snapshot["rows"])
        self._waiting = list(HeldRows.from_snapshot(snapshot["waiting"]))
