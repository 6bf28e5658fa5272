"""A model on a data set, as shared by all methods on whole data sets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import plots
from ..errors import InvalidParameterError, ModelError, NoPredictionError
from ..incremental.pfi import IncrementalPFI
from ..losses.labels import check_label
from ..notebook.cards import IMPORTANCE_COLUMNS, Card, Shown, figure, importance_rows
from ..notebook.frames import importance_frame
from ..notebook.rows import as_row, as_value, check_groups_there, observations
from ..predictions import is_usable, predict_rows, show_row
from ..ranking import BAND
from ..smoothing.means import mean_prediction
from ..typing import Features, Groups, Importance, Prediction
from ..validation import is_representable
from .slices import Slice, Steps


@dataclass(frozen=True)
class BatchImportance(Shown):
    """Importances of a data set and standard errors, in the loss's unit.

    Attributes
    ----------
    exact
        Whether nothing was drawn: for these data there is no error but rounding. The standard error then says only how
        well the data stand for their population.
    """

    importance: Importance
    std_error: Importance
    n_observations: int
    exact: bool = False

    @property
    def half_width(self) -> Importance:
        """Half-width of each 95 % interval: 1.96 standard errors."""
        return {name: BAND * error for name, error in self.std_error.items()}

    def to_frame(self) -> Any:
        """Return the importances as a pandas frame, the largest first.

        Columns: importance, std_error, half_width, low and high (the 95 % interval).

        Raises
        ------
        ExplainerError
            pandas is not installed.
        """
        return importance_frame(self.importance, self.std_error)

    def plot(self, top: int = 20, ax: Any = None) -> Any:
        """Draw the importance as `plots.bars` does; return the matplotlib Axes."""
        return plots.bars(self, top, ax)

    def _card(self) -> Card:
        facts = [("n_observations", figure(self.n_observations)), ("exact", "yes" if self.exact else "no")]
        rows = importance_rows(self.importance, self.half_width)
        return Card(type(self).__name__, facts=facts, columns=IMPORTANCE_COLUMNS, rows=rows)


class DataTable:
    """A checked model, loss and data set, for methods on whole data sets."""

    def __init__(self, model: Any, data: Any, loss: Any, groups: Groups | None, y: Any = None) -> None:
        if y is not None or hasattr(data, "itertuples"):
            if y is None:
                raise InvalidParameterError("y", "the labels of the rows: batch_pfi(model, X, y)", y)
            data = list(observations(data, y))
        data = data if isinstance(data, Sequence) else list(data)
        if len(data) < 2:
            raise InvalidParameterError("data", "at least two observations", len(data))
        explainer = IncrementalPFI(model, loss=loss, groups=groups)  # checks and resolves the parameters
        self.model = model
        self.model_name, self.function, self.loss = type(model).__name__, explainer._function, explainer.loss
        self.xs, self.ys = [as_row(x) for x, _ in data], [as_value(y) for _, y in data]
        show_row(self.function, self.xs[0])
        self.players: dict[Any, Sequence[Any]] = {}
        for x in self.xs:
            if explainer.groups.keys() & x.keys():
                raise InvalidParameterError("groups", "named differently from every feature", groups)
            self.players.update(explainer._players.of(x))

    def check_names(self, groups: Groups | None) -> None:
        """Refuse a group if no observation has any of its features."""
        if names := dict.fromkeys(chain.from_iterable(self.xs)):
            check_groups_there(groups or {}, names)

    @cached_property
    def own_predictions(self) -> list[Prediction]:
        """The model's predictions for the observations."""
        return self.predictions(self.xs)

    def own_steps(self, size: int) -> Steps[None]:
        """Ask for `own_predictions`, `size` rows in a slice."""
        found: list[Prediction] = []
        for start in range(0, len(self.xs), size):
            rows = self.xs[start : start + size]
            found += yield Slice(len(rows), partial(self.predictions, rows))
        self.own_predictions = found

    @cached_property
    def own_losses(self) -> npt.NDArray[np.float64]:
        """The losses of the model's predictions for the observations."""
        return self.losses(self.own_predictions)

    def predictions(self, rows: Sequence[Features]) -> list[Prediction]:
        """Return the predictions for rows, in a single call where the model can."""
        predictions = predict_rows(self.function, rows)
        if not all(map(is_usable, predictions)):
            raise NoPredictionError(f"{self.model_name} has no prediction for some rows: let it learn first")
        return predictions

    def mean(self, predictions: list[Prediction]) -> Prediction:
        """Return the mean of predictions of the same kind."""
        if (mean := mean_prediction(predictions)) is None:
            raise ModelError(f"{self.model_name} predicts both numbers and dicts: choose one")
        return mean

    def loss_of(self, i: int, prediction: Prediction) -> float:
        """Return the loss of a prediction for observation `i`."""
        if i == 0:
            check_label(self.loss, self.ys[0], prediction)
        if not is_representable(loss := self.loss(self.ys[i], prediction)):
            raise InvalidParameterError("data", "observations whose loss is finite", (self.xs[i], self.ys[i]))
        return loss

    def losses(self, predictions: Iterable[Prediction], first: int = 0) -> npt.NDArray[np.float64]:
        """Return the losses of predictions for observations from `first` on."""
        found = [self.loss_of(i, prediction) for i, prediction in enumerate(predictions, start=first)]
        return np.array(found, dtype=np.float64)

    def summary(self, values: npt.NDArray[np.float64], *, exact: bool = False) -> BatchImportance:
        """Return mean and standard error of `values`: (observations, players)."""
        n = len(values)
        means = [math.fsum(column) / n for column in values.T]
        errors = (values.std(axis=0, ddof=1) / math.sqrt(n)).tolist()
        named = [dict(zip(self.players, of, strict=True)) for of in (means, errors)]
        return BatchImportance(named[0], named[1], n, exact)
