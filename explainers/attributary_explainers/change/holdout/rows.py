"""Columns of observations that neither of two models had learnt."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np

from ...core.rows import Rows
from ...errors import SnapshotError
from ...packing import Values, unpack_numbers
from ...typing import Array, Features, Prediction, Snapshot


@dataclass(slots=True)
class Row:
    """An observation, predicted before it was learnt, with both losses.

    Attributes
    ----------
    n
        Number of the observation.
    x, prediction
        Features and prediction, which nobody changes.
    is_label
        Whether the model's prediction came as a label: the reference's is then taken as one, too.
    loss
        Of the model.
    reference_loss, distance
        Of the reference, and between the two predictions; NaN until the reference has been asked.
    """

    n: int
    x: dict[Any, Any]
    y: Any
    prediction: Prediction
    is_label: bool
    loss: float
    reference_loss: float = math.nan
    distance: float = math.nan

    @classmethod
    def of(cls, n: int, x: Features, y: Any, prediction: Prediction, *, is_label: bool, loss: float) -> Row:
        """Return the row of an observation, copied so that no caller changes it."""
        prediction = dict(prediction) if isinstance(prediction, dict) else prediction
        return cls(n, dict(x), y, prediction, is_label, loss)


_FORGED = "stored rows are not what an explainer has written: start a new explainer"


class HeldRows(Sequence[Row]):
    """Rows with usable predictions in columns, oldest first, made on demand.

    Attributes
    ----------
    n, x, y, is_label, loss, reference_loss, distance
        Columns, as the attributes of `Row`.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.n = array("q")
        self.y = Values()
        self.loss, self.reference_loss, self.distance = array("d"), array("d"), array("d")
        self.x = Rows()
        self.is_label = bytearray()
        self._said = Rows()
        """Predictions that are probabilities; nothing where they are numbers."""
        self._numbers = Values()
        """Predictions that are numbers; NaN where they are probabilities."""
        self.extend(list(rows))

    def extend(self, rows: Sequence[Row]) -> None:
        """Append rows behind the newest."""
        predictions = [row.prediction for row in rows]
        self.n.extend([row.n for row in rows])
        self.x.extend([row.x for row in rows])
        self.y.extend([row.y for row in rows])
        self.is_label.extend([row.is_label for row in rows])
        self.loss.extend([row.loss for row in rows])
        self.reference_loss.extend([row.reference_loss for row in rows])
        self.distance.extend([row.distance for row in rows])
        self._said.extend([p if isinstance(p, dict) else {} for p in predictions])
        self._numbers.extend([math.nan if isinstance(p, dict) else p for p in predictions])

    def drop_oldest(self, n: int) -> None:
        """Forget the oldest rows."""
        for column in (self.n, self.y, self.loss, self.reference_loss, self.distance, self.is_label, self._numbers):
            del column[:n]
        self.x.drop_first(n)
        self._said.drop_first(n)

    def after(self, n: int) -> list[Row]:
        """Return the rows after observation number `n`."""
        return [self[i] for i, number in enumerate(self.n) if number > n]

    def __len__(self) -> int:
        return len(self.n)

    @overload
    def __getitem__(self, i: int) -> Row: ...
    @overload
    def __getitem__(self, i: slice) -> list[Row]: ...
    def __getitem__(self, i: int | slice) -> Row | list[Row]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        number = self._numbers[i]
        return Row(
            self.n[i],
            self.x[i],
            self.y[i],
            self._said[i] if _is_nan(number) else number,
            bool(self.is_label[i]),
            self.loss[i],
            self.reference_loss[i],
            self.distance[i],
        )

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "n": self.n.tobytes(),
            "x": self.x.snapshot(),
            "y": self.y.snapshot(),
            "said": self._said.snapshot(),
            "numbers": self._numbers.snapshot(),
            "is_label": bytes(self.is_label),
            "losses": [losses.tobytes() for losses in (self.loss, self.reference_loss, self.distance)],
        }

    @classmethod
    def from_snapshot(cls, packed: Snapshot) -> Self:
        """Return the rows that the snapshot was taken of.

        Raises
        ------
        SnapshotError
            The columns are not of the same rows.
        """
        rows = cls()
        rows.n = unpack_numbers("q", packed["n"])
        rows.x, rows._said = Rows.from_snapshot(packed["x"]), Rows.from_snapshot(packed["said"])
        rows.y, rows._numbers = Values.from_snapshot(packed["y"]), Values.from_snapshot(packed["numbers"])
        if not isinstance(packed["is_label"], bytes) or len(packed["losses"]) != 3:
            raise SnapshotError(_FORGED)
        rows.loss, rows.reference_loss, rows.distance = (unpack_numbers("d", losses) for losses in packed["losses"])
        rows.is_label = bytearray(packed["is_label"])
        columns = (rows.x, rows._said, rows.y, rows._numbers, rows.is_label, rows.loss, rows.reference_loss)
        if any(len(column) != len(rows) for column in (*columns, rows.distance)):
            raise SnapshotError(_FORGED)
        return rows


def _is_nan(number: Any) -> bool:
    return bool(number != number)


def column_of(rows: Sequence[Row], name: str, first: int = 0) -> list[Any]:
    """Return the attribute `name` of each row, from row `first` on."""
    if isinstance(rows, HeldRows):
        return list(getattr(rows, name)[first:])
    return [getattr(row, name) for row in rows[first:]]


def arrays(rows: Sequence[Row]) -> tuple[Array, Array]:
    """Return the losses of the reference and of the model."""
    if isinstance(rows, HeldRows):  # from memory to memory, without a number in between
        return np.array(rows.reference_loss), np.array(rows.loss)
    return np.array(column_of(rows, "reference_loss")), np.array(column_of(rows, "loss"))
