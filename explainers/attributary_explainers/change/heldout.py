"""Keeps the last observations with what two models predicted for them before either had learnt them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from itertools import starmap
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from ..imputers.packing import Kept, Rows, keep, keep_apart, pack_values, unpack_values
from ..losses.losses import Loss
from ..models.function import model_function
from ..pickling import dump_model, freeze, load_model
from ..predictions import is_usable, most_probable, predict_rows
from ..typing import Array, Features, ModelFunction, Output, Prediction, Snapshot
from ..validation import LARGEST
from .discrepancy import Distance, spread

_BATCH_SIZE = 32

BASELINE = 4
"""Windows after a reference was taken whose losses say how good it was."""


class Frozen:
    """Holds a copy of a model that never changes, and turns it into bytes once."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._bytes: bytes | None = None

    @classmethod
    def of(cls, model: Any) -> Frozen:
        """Copy a model."""
        return cls(freeze(model))

    @classmethod
    def load(cls, data: bytes | None) -> Frozen | None:
        """Return what `dump` gave, or None for None."""
        if data is None:
            return None
        frozen = cls(load_model(data))
        frozen._bytes = data
        return frozen

    def dump(self) -> bytes:
        """Return the model's bytes."""
        if self._bytes is None:
            self._bytes = dump_model(self.model)
        return self._bytes


def dump(frozen: Frozen | None) -> bytes | None:
    """Return the bytes of a frozen model, None for None."""
    return None if frozen is None else frozen.dump()


@dataclass(slots=True)
class Row:
    """Holds an observation, what the model predicted for it before learning it, and the losses of both models.

    Attributes
    ----------
    n
        Number of the observation.
    is_label
        Whether the model's prediction came as a label: the reference's is then taken as one, too.
    loss
        Of the model.
    reference_loss, distance
        Of the reference, and between the two predictions; NaN until the reference has been asked.
    """

    n: int
    kept: Kept
    y: Any
    predicted: Kept | float | None
    """The prediction; probabilities are kept as rows are."""
    is_label: bool
    loss: float
    reference_loss: float = math.nan
    distance: float = math.nan

    @classmethod
    def of(cls, n: int, x: Features, y: Any, prediction: Prediction, *, is_label: bool, loss: float) -> Row:
        """Return the row of an observation, of which nothing is kept that the caller may change."""
        return cls(n, keep(x), y, _kept(prediction), is_label, loss)

    @property
    def x(self) -> dict[Any, Any]:
        """The features, as a new dict."""
        return self.kept.row()

    @property
    def prediction(self) -> Prediction:
        """What the model predicted."""
        return _plain(self.predicted)


_Known: TypeAlias = tuple[dict[Any, Any], Prediction]
"""Features and prediction of a row, as they are before they are kept."""


def _kept(prediction: Prediction) -> Kept | float | None:
    return keep_apart(prediction) if isinstance(prediction, dict) else prediction


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
        Observations that wait for one call at most; None is 32 where the model predicts many at once, else 1.
    """

    def __init__(self, window: int, loss: Loss, distance: Distance, *, relative: bool, batch_size: int | None) -> None:
        self.window, self.loss, self.distance, self.relative = window, loss, distance, relative
        self.batch_size = batch_size
        needs = "probabilities" in (loss.output, distance.output)
        self.output: Output = "probabilities" if needs and loss.output != "any" else loss.output
        self.n_rows = 0
        """Observations taken in since the beginning: the clock of the change explainer."""
        self.baseline: list[float] = []
        self.baseline_until: int | None = None
        """Observations after this one do not enter the baseline."""
        self.birth: list[float] = []
        """Losses of the model on the half window of observations before it became the reference."""
        self.first: list[Row] = []
        """The first half window of observations since the reference was taken."""
        self._reference: ModelFunction | None = None
        self._size = 1
        self._rows: deque[Row] = deque(maxlen=window)
        self._waiting: list[Row] = []
        self._known: list[_Known] = []
        """Of those that wait."""

    def add(self, row: Row, known: _Known | None = None) -> None:
        """Take in an observation.

        Parameters
        ----------
        known
            Its features and prediction, where they need not be unpacked: copies, which stay as they are.
        """
        self.n_rows += 1
        if self._reference is None:
            self._rows.append(row)
            return
        self._waiting.append(row)
        self._known.append((row.x, row.prediction) if known is None else known)
        if len(self._waiting) >= self._size:
            self._ask()

    def compare_with(self, reference: Any, rows: Sequence[Row] = ()) -> None:
        """Compare with this model from now on; of what is kept only `rows` stay, which it has not learnt either.

        None compares with nothing.
        """
        first = rows[0].n if rows else math.inf
        before = [] if reference is None else [row.loss for row in self.rows if row.n < first]
        self.birth = before[-(self.window // 2) :]
        self._rows, self.baseline, self.first = deque(maxlen=self.window), [], []
        self.baseline_until = None
        self._wait_for([])
        self._take(reference)
        if reference is not None:
            self._wait_for(rows)
            self._ask()

    def _wait_for(self, rows: Sequence[Row]) -> None:
        self._waiting, self._known = list(rows), _known(rows)

    def _take(self, reference: Any) -> None:
        if reference is None:
            self._reference = None
            return
        self._reference = function = model_function(reference, self.output)
        waits = hasattr(function, "many")
        self._size = self.batch_size or (min(_BATCH_SIZE, self.window) if waits else 1)

    @property
    def is_born_known(self) -> bool:
        """Whether it is known how good the model was before it became the reference."""
        return len(self.birth) >= self.window // 4

    @property
    def then(self) -> list[float]:
        """Losses that say how good the reference is where the data are as they were.

        They are its own, since it was taken; where there are few, those of the model before. It may have learnt on
        meanwhile, and was no better then: what is worse than that is worse than the reference was.
        """
        return self.birth if len(self.baseline) < 3 * self.window // 10 and self.is_born_known else self.baseline

    @property
    def rows(self) -> list[Row]:
        """The observations that are kept, the newest last."""
        if self._waiting:
            self._ask()
        return list(self._rows)

    def since(self, n: int) -> list[Row]:
        """Return the observations after the one of this number."""
        return [row for row in self.rows if row.n > n]

    def discrepancy(self, rows: Sequence[Row]) -> float:
        """Return the mean distance of both models' predictions, relative to the mean distance of two targets.

        0 is the same function, 1 as far apart as two observed targets are. Where targets have no spread, it is 0. For a
        model without targets, whose loss is its score, the model's own predictions stand for them.
        """
        if not rows:
            return 0.0
        mean = math.fsum(row.distance for row in rows) / len(rows)
        if not self.relative:
            return mean
        targets = [row.prediction if self.loss.name == "score" else row.y for row in rows]
        unit = spread(targets, self.distance)
        return mean / unit if unit > 0.0 else 0.0

    def apart(self, model: Any, rows: Sequence[Row]) -> float:
        """Return the discrepancy between another model and the reference on observations."""
        assert self._reference is not None
        said = _predictions(self._reference, [row.x for row in rows])
        asked = [replace(row, predicted=_kept(prediction)) for row, prediction in zip(rows, said, strict=True)]
        for row, (_, distance) in zip(asked, self._compared(model_function(model, self.output), asked), strict=True):
            row.distance = distance
        return self.discrepancy(asked)

    def losses(self, model: Any, rows: Sequence[Row]) -> Array:
        """Return the losses of another model on observations; NaN where it has no prediction."""
        return np.array([of[0] for of in self._compared(model_function(model, self.output), rows)])

    def _ask(self) -> None:
        waiting, known = self._waiting, self._known
        self._wait_for([])
        assert self._reference is not None
        for row, (loss, distance) in zip(waiting, self._compared(self._reference, waiting, known), strict=True):
            if not math.isfinite(loss):
                continue
            row.reference_loss, row.distance = loss, distance
            if len(self._rows) == self.window and self._enters(oldest := self._rows[0]):
                self.baseline.append(oldest.reference_loss)
            self._rows.append(row)
            if len(self.first) < self.window // 2:
                self.first.append(row)

    def _enters(self, row: Row) -> bool:
        is_late = self.baseline_until is not None and row.n > self.baseline_until
        return not is_late and len(self.baseline) < BASELINE * self.window

    def _compared(
        self, function: ModelFunction, rows: Sequence[Row], known: Sequence[_Known] | None = None
    ) -> list[tuple[float, float]]:
        known = _known(rows) if known is None else known
        found = []
        predictions = _predictions(function, [x for x, _ in known])
        for row, (_, own), prediction in zip(rows, known, predictions, strict=True):
            if not (is_usable(prediction) and is_usable(own)):
                found.append((math.nan, math.nan))
                continue
            if row.is_label and isinstance(prediction, dict):
                prediction = {most_probable(prediction): 1.0}
            distance = min(self.distance(prediction, own), LARGEST)
            found.append((self.loss(row.y, prediction), distance))
        return found

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "n_rows": self.n_rows,
            "baseline": pack_values(self.baseline),
            "baseline_until": self.baseline_until,
            "birth": pack_values(self.birth),
            "first": _packed(self.first),
            "rows": _packed(self._rows),
            "waiting": _packed(self._waiting),
        }

    def restore(self, snapshot: Snapshot, reference: Any) -> None:
        """Take back what `snapshot` gave, over the reference model of then."""
        self._take(reference)
        self.n_rows, self.baseline = snapshot["n_rows"], unpack_values(snapshot["baseline"])
        self.baseline_until, self.birth = snapshot["baseline_until"], unpack_values(snapshot["birth"])
        self.first = _unpacked(snapshot["first"])
        self._wait_for(_unpacked(snapshot["waiting"]))
        self._rows.extend(_unpacked(snapshot["rows"]))


def _known(rows: Sequence[Row]) -> list[_Known]:
    return [(row.x, row.prediction) for row in rows]


def _predictions(function: ModelFunction, rows: Sequence[dict[Any, Any]]) -> list[Prediction]:
    """Return what a frozen model predicts; None for a row on which it raises, as one that lacks a feature may."""
    try:
        return predict_rows(function, rows)
    except Exception:  # noqa: BLE001 - what an old model raises is no fault of the present one or of the observation
        return [None] if len(rows) == 1 else [_predictions(function, [row])[0] for row in rows]


def arrays(rows: Sequence[Row]) -> tuple[Array, Array]:
    """Return the losses of the reference and of the model."""
    return np.array([row.reference_loss for row in rows]), np.array([row.loss for row in rows])


_COLUMNS = tuple(column.name for column in fields(Row))


def _packed(rows: Collection[Row]) -> Snapshot:
    n, x, y, predicted, is_label, *losses = [list(map(attrgetter(name), rows)) for name in _COLUMNS]
    are_kept = set(map(type, predicted)) == {Kept}
    return {
        "n": n,
        "x": Rows(x).snapshot(),
        "y": pack_values(y),
        "predicted": Rows(predicted).snapshot() if are_kept else list(map(_plain, predicted)),
        "is_label": is_label,
        "losses": list(map(pack_values, losses)),
    }


def _unpacked(packed: Snapshot) -> list[Row]:
    said, x = packed["predicted"], Rows.from_snapshot(packed["x"])
    predicted = Rows.from_snapshot(said).all_kept() if isinstance(said, dict) else map(_kept, said)
    columns = packed["n"], x.all_kept(), unpack_values(packed["y"]), predicted, packed["is_label"]
    return list(starmap(Row, zip(*columns, *map(unpack_values, packed["losses"]), strict=True)))


def _plain(predicted: Kept | float | None) -> Prediction:
    return predicted.row() if isinstance(predicted, Kept) else predicted
