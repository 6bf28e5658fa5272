"""Keeps the last observations with what two models predicted for them before either had learnt them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ...keeping.alike import Alike, keep_alike, numbers_of
from ...keeping.kept import Kept, keep
from ...keeping.values import unpack_numbers
from ...losses.kernels import BRIER
from ...losses.losses import Loss
from ...models.function import model_function
from ...typing import Array, Features, Output, Prediction, Snapshot
from ..discrepancy import Distance, spread
from .comparing import Batch, Compared, FrozenFunction, Known, brier_of_two, predictions
from .other import Other
from .rows import HeldRows, Row, batch_of, column_of, floats_of, kept_prediction

_BATCH_SIZE = 32
_BATCHES = 4
"""Batches that wait for a fast path at most, as long as nobody looks at the rows."""

BASELINE = 4
"""Windows after a reference was taken whose losses say how good it was."""


_Waiting: TypeAlias = tuple[int, Kept, Any, bool, float | None, Prediction]
"""An observation that waits for the reference: number, features, target, whether the prediction is a label, its loss,
None where that has not been taken yet, and the prediction. Many at once take less time than one by one."""


class HeldOut:
    """Keeps the last `window` observations since the reference was taken, the first ones, and its first losses.

    The reference does not change, so observations can wait for one call of it; `rows` asks for all that wait.

    Parameters
    ----------
    window
        Observations that are kept. The losses of the reference on those that leave are its baseline, at most four
        windows of them: how good it is where the data are as they were.
    loss, distance
        What is taken of the predictions.
    relative
        Whether the discrepancy is divided by the spread of the targets.
    batch_size
        Observations that wait for one call at most; None is 128 where the model has a fast path, 32 where it predicts
        many at once, else 1.
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
        self._reference: FrozenFunction | None = None
        self._size = self._most = 1
        """Observations that make a batch, and that wait at most."""
        self.takes_later = False
        """Whether there is `add_later`."""
        self._rows = HeldRows()
        self._waiting: list[_Waiting] = []

    def add(self, n: int, x: Features, y: Any, prediction: Prediction, *, is_label: bool, loss: float) -> None:
        """Take in an observation, as `Row.of` does."""
        self.n_rows += 1
        if self._reference is None:
            self._rows.append(Row.of(n, x, y, prediction, is_label=is_label, loss=loss))
            self._drop_oldest()
            return
        said = dict(prediction) if isinstance(prediction, dict) else prediction
        self._waiting.append((n, keep(x), y, is_label, loss, said))
        if len(self._waiting) >= self._most:
            self._ask()

    def add_later(self, n: int, x: Features, y: Any, said: dict[Any, float]) -> None:
        """Take in an observation whose loss, which is finite, is taken later, of probabilities that do not change."""
        self.n_rows += 1
        waiting = self._waiting
        waiting.append((n, keep(x), y, False, None, said))
        if len(waiting) >= self._most:
            self._ask()

    def compare_with(self, reference: Any, rows: Sequence[Row] = ()) -> None:
        """Compare with this model from now on; of what is kept only `rows` stay, which it has not learnt either.

        None compares with nothing.
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
            self._take_in(rows, self._reference.compare(batch_of(rows), self.loss, self.distance))

    def _take(self, reference: Any) -> None:
        if reference is None:
            self._reference, self.takes_later = None, False
            return
        self._reference = FrozenFunction(model_function(reference, self.output))
        waits = self._reference.takes_many
        self._size = self.batch_size or (min(_BATCH_SIZE, self.window) if waits else 1)
        self._most = self._size * (_BATCHES if self._reference.is_fast and not self.batch_size else 1)
        self.takes_later = self._size > 1 and self.loss.code == BRIER

    @property
    def baseline(self) -> array[float]:
        """Losses of the reference, since it was taken, on observations that have left the window."""
        return self._baseline[:]

    @property
    def birth(self) -> array[float]:
        """Losses of the model on the half window of observations before it became the reference."""
        return self._birth[:]

    @property
    def is_born_known(self) -> bool:
        """Whether it is known how good the model was before it became the reference."""
        return len(self._birth) >= self.window // 4

    @property
    def then(self) -> array[float]:
        """Losses that say how good the reference is where the data are as they were.

        They are its own, since it was taken; where there are few, those of the model before. It may have learnt on
        meanwhile, and was no better then: what is worse than that is worse than the reference was.
        """
        return self.birth if len(self._baseline) < 3 * self.window // 10 and self.is_born_known else self.baseline

    @property
    def rows(self) -> HeldRows:
        """The observations that are kept, the newest last, until the next one comes."""
        if self._waiting:
            self._ask()
        return self._rows

    def since(self, n: int) -> list[Row]:
        """Return the observations after the one of this number."""
        return self.rows.after(n)

    def discrepancy(self, rows: Sequence[Row]) -> float:
        """Return the mean distance of both models' predictions, relative to the mean distance of two targets.

        0 is the same function, 1 as far apart as two observed targets are. Where targets have no spread, it is 0. For a
        model without targets, whose loss is its score, the model's own predictions stand for them.
        """
        predicted = [row.prediction for row in rows] if self.loss.is_score else ()
        distances = rows.distance if isinstance(rows, HeldRows) else column_of(rows, "distance")
        return self.discrepancy_of(rows, distances, predicted)

    def discrepancy_of(self, rows: Sequence[Row], distances: Sequence[float], predicted: Sequence[Prediction]) -> float:
        """Return the discrepancy from distances on rows, and from the predictions where the loss is a score."""
        if not rows:
            return 0.0
        mean = math.fsum(distances) / len(rows)
        if not self.relative:
            return mean
        unit = spread(predicted if self.loss.is_score else column_of(rows, "y"), self.distance)
        return mean / unit if unit > 0.0 else 0.0

    def apart(self, old: Any, new: Any, rows: Sequence[Row]) -> Array:
        """Return what two models make of observations, shape (rows, 3).

        That is the loss of the old one, and how far the new one's prediction is from its; both NaN where one has no
        prediction. Then the new one's prediction where it is a number, else NaN.
        """
        xs = [row.x for row in rows]
        said = predictions(model_function(new, self.output), xs)
        batch = batch_of(rows, list(zip(xs, said, strict=True)))
        asked = FrozenFunction(model_function(old, self.output)).compare(batch, self.loss, self.distance)
        numbers = [math.nan if p is None or isinstance(p, dict) else p for p in said]
        return np.column_stack([*map(np.array, asked), np.array(numbers, dtype=np.float64)])

    def losses(self, model: Any, rows: Sequence[Row]) -> Array:
        """Return the losses of another model on observations; NaN where it has no prediction."""
        return self.other(model).losses(rows)

    def other(self, model: Any) -> Other:
        """Return what asks another model about observations, where it is asked more than once."""
        return Other(partial(self._losses_by, FrozenFunction(model_function(model, self.output))))

    def _losses_by(self, function: FrozenFunction, batch: Batch) -> Sequence[float]:
        return function.compare(batch, self.loss, self.distance)[0]

    def _ask(self) -> None:
        """Ask the reference about all that wait, as if each batch had been asked about once it was full."""
        waiting, size = self._waiting, self._size
        self._waiting = []
        if len(waiting) > size and self._has_asked(waiting, at_once=True):
            return
        for first in range(0, len(waiting), size):
            self._has_asked(waiting[first : first + size])

    def _has_asked(self, waiting: Sequence[_Waiting], *, at_once: bool = False) -> bool:
        """Ask the reference about observations; return False where that is not possible `at_once`: nothing is done."""
        assert self._reference is not None
        numbers, kept, losses, batch = self._columns(waiting)
        compared = self._reference.compare(batch, self.loss, self.distance, at_once=at_once)
        if compared is None:
            return False
        n_missing = max(self.window // 2 - len(self.first), 0)
        is_alike = batch.said is not None and all(map(math.isfinite, compared[0]))
        if is_alike and (n_missing == 0 or n_missing >= len(numbers)):
            for rows in (self._rows, self.first) if n_missing else (self._rows,):
                rows.extend_by(numbers, kept, batch, losses, compared)
            self._drop_oldest()
        else:
            self._take_in(self._made(waiting), compared)
        return True

    def _take_in(self, rows: Sequence[Row], compared: Compared) -> None:
        """Put the rows behind the newest one for which the reference has a prediction; let them have its losses."""
        usable = []
        for row, loss, distance in zip(rows, *compared, strict=True):
            if math.isfinite(loss):
                row.reference_loss, row.distance = loss, distance
                usable.append(row)
        if (n_missing := self.window // 2 - len(self.first)) > 0:
            self.first.extend(usable[:n_missing])
        if len(usable) == 1:
            self._rows.append(usable[0])
        else:
            self._rows.extend(usable)
        self._drop_oldest()

    def _made(self, waiting: Sequence[_Waiting]) -> list[Row]:
        return [
            Row(n, kept, y, kept_prediction(said), is_label, self.loss(y, said) if loss is None else loss)
            for n, kept, y, is_label, loss, said in waiting
        ]

    def _columns(self, waiting: Sequence[_Waiting]) -> tuple[Sequence[int], Sequence[Kept], Sequence[float], Batch]:
        """Return of observations, at least one, numbers, features, losses, and what the reference is asked."""
        numbers, kept, y, are_labels, losses, said = zip(*waiting, strict=True)

        def known() -> list[Known]:
            return [(row.row(), of_row) for row, of_row in zip(kept, said, strict=True)]

        together = None
        if len(kept) > 1:
            together = keep_alike(said) if {*map(type, said)} == {dict} else floats_of(said)
        batch = Batch(None if len(kept) == 1 else numbers_of(kept), together, y, are_labels, known)
        return numbers, kept, self._taken(losses, batch, said) if None in losses else losses, batch

    def _taken(self, losses: Sequence[float | None], batch: Batch, said: Sequence[Prediction]) -> Sequence[float]:
        """Return the model's losses, of which some have not been taken yet."""
        if isinstance(batch.said, Alike) and len(names := batch.said.layout.names) == 2:
            values = batch.said.floats()
            found = None if values is None else brier_of_two(values, names, batch.y)
            if found is not None:
                return [now if loss is None else loss for now, loss in zip(found, losses, strict=True)]
        return [
            self.loss(y, of_row) if loss is None else loss
            for y, of_row, loss in zip(batch.y, said, losses, strict=True)
        ]

    def _drop_oldest(self) -> None:
        """Let what is more than the window leave it; where there is a reference, its losses enter the baseline."""
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
        n_full = len(self._waiting) // self._size * self._size
        if n_full and self._reference is not None:
            left, self._waiting = self._waiting[n_full:], self._waiting[:n_full]
            self._ask()
            self._waiting = left
        return {
            "n_rows": self.n_rows,
            "baseline": self._baseline.tobytes(),
            "baseline_until": self.baseline_until,
            "birth": self._birth.tobytes(),
            "first": self.first.snapshot(),
            "rows": self._rows.snapshot(),
            "waiting": HeldRows(self._made(self._waiting)).snapshot(),
        }

    def restore(self, snapshot: Snapshot, reference: Any) -> None:
        """Take back what `snapshot` gave, over the reference model of then."""
        self._take(reference)
        self.n_rows, self.baseline_until = snapshot["n_rows"], snapshot["baseline_until"]
        self._baseline = unpack_numbers("d", snapshot["baseline"])
        self._birth = unpack_numbers("d", snapshot["birth"])
        self.first, self._rows = HeldRows.from_snapshot(snapshot["first"]), HeldRows.from_snapshot(snapshot["rows"])
        self._waiting = _waiting(HeldRows.from_snapshot(snapshot["waiting"]))


def _waiting(rows: Sequence[Row]) -> list[_Waiting]:
    return [(row.n, row.kept, row.y, row.is_label, row.loss, row.prediction) for row in rows]
