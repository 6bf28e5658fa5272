"""A model on a data set: what the methods on whole data sets have in common."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidParameterError, ModelError, NoPredictionError
from ..imputers.rows import keep
from ..incremental.pfi import IncrementalPFI
from ..predictions import is_usable, predict_rows, show_row
from ..smoothing.means import mean_prediction
from ..typing import Features, Groups, Importance, Prediction
from ..validation import is_representable


@dataclass(frozen=True)
class BatchImportance:
    """Importance of a data set: per feature the value and its standard error, in the unit of the loss."""

    importance: Importance
    std_error: Importance
    n_observations: int


class DataTable:
    """A model, a loss and a data set, checked: what methods on a whole data set have in common."""

    def __init__(self, model: Any, data: Sequence[tuple[Features, Any]], loss: Any, groups: Groups | None) -> None:
        if len(data) < 2:
            raise InvalidParameterError("data", "at least two observations", len(data))
        explainer = IncrementalPFI(model, loss=loss, groups=groups)  # checks and resolves the parameters
        self.model_name, self.function, self.loss = type(model).__name__, explainer._function, explainer.loss
        self.xs, self.ys = [x for x, _ in data], [y for _, y in data]
        show_row(self.function, self.xs[0])
        self.players: dict[Any, Sequence[Any]] = {}
        for x in self.xs:
            if explainer.groups.keys() & x.keys():
                raise InvalidParameterError("groups", "named differently from every feature", groups)
            self.players.update(explainer._players(x))

    def predictions(self, rows: Sequence[Features]) -> list[Prediction]:
        """Return the predictions for many rows, evaluated at once where the model can."""
        predictions = predict_rows(self.function, rows)
        if not all(map(is_usable, predictions)):
            raise NoPredictionError(f"{self.model_name} has no prediction for some rows: let it learn first")
        return predictions

    def restricted(self, x: Features, kept: Collection[Any], drawn: Sequence[Features]) -> Prediction:
        """Return mean prediction with the players `kept` from `x` and the others from the rows `drawn`."""
        return self.mean(self.predictions([keep(x, kept, z, self.players) for z in drawn]))

    def mean(self, predictions: list[Prediction]) -> Prediction:
        """Return the mean of predictions of one kind."""
        if (mean := mean_prediction(predictions)) is None:
            raise ModelError(f"{self.model_name} predicts both numbers and dicts: choose one")
        return mean

    def loss_of(self, i: int, prediction: Prediction) -> float:
        """Return the loss of a prediction for observation `i`."""
        if not is_representable(loss := self.loss(self.ys[i], prediction)):
            raise InvalidParameterError("data", "observations whose loss is finite", (self.xs[i], self.ys[i]))
        return loss

    def losses(self, predictions: Iterable[Prediction]) -> npt.NDArray[np.float64]:
        """Return the losses of one prediction per observation, in their order."""
        return np.array([self.loss_of(i, prediction) for i, prediction in enumerate(predictions)], dtype=np.float64)

    def summary(self, values: npt.NDArray[np.float64]) -> BatchImportance:
        """Return mean and standard error over the observations: `values` has a row for each, a column per player."""
        n = len(values)
        means = [math.fsum(column) / n for column in values.T]
        errors = (values.std(axis=0, ddof=1) / math.sqrt(n)).tolist()
        named = [dict(zip(self.players, of, strict=True)) for of in (means, errors)]
        return BatchImportance(named[0], named[1], n)
