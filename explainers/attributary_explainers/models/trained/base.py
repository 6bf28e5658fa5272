"""Shared parts of other libraries' trained models: kind, column order."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ModelError
from ...predictions import Kind
from ...typing import Features, Output
from ..batch import check_names, per_row


class TrainedModel(abc.ABC):
    """A model trained elsewhere that predicts batches and does not learn.

    Parameters
    ----------
    features
        Names of its columns in their order; None takes the features of the first row that is seen.
    classes
        Labels of a classifier, in the order of its columns; None for a model that has none, or says them itself.
    n_columns
        How many columns it takes; None where that is not known.
    """

    kind: Kind
    has_probabilities: bool

    def __init__(
        self, features: Iterable[Any] | None, classes: Iterable[Any] | None, n_columns: int | None = None
    ) -> None:
        self.features = None if features is None else check_names("features", features)
        self.classes = None if classes is None else check_names("classes", classes)
        self.n_columns = n_columns
        self._seen: tuple[Any, ...] | None = None
        if self.features is not None and n_columns not in (None, len(self.features)):
            raise ModelError(
                f"{self.title} takes {n_columns} columns, and features names {len(self.features)}: name each column, "
                "in the order in which the model was trained"
            )

    @property
    def title(self) -> str:
        """How messages call it."""
        return type(self).__name__

    @property
    def feature_kinds(self) -> Mapping[Any, str]:
        """Kind of each named feature: number, category or boolean."""
        return dict.fromkeys(self.features or (), "number")

    @abc.abstractmethod
    def predict_many(self, rows: Sequence[Features], output: Output) -> list[Any]:
        """Return a dict of probabilities, a label or a number for each row."""

    def see(self, x: Features) -> None:
        """Take the order of the columns from this row where nothing else gives it."""
        if self.features is not None or self._seen is not None:
            return
        if self.n_columns not in (None, len(x)):
            raise ModelError(
                f"{self.title} takes {self.n_columns} columns, the first row has {len(x)}: name its columns "
                f"in order, features: […]"
            )
        self._seen = tuple(x)

    def columns(self, rows: Sequence[Features]) -> tuple[Any, ...]:
        """Return the names of the columns in their order.

        Raises
        ------
        ModelError
            The rows have none of them: they are of something else.
        """
        self.see(rows[0])
        names = tuple(self._in_rows(self.features or self._seen or (), rows))
        if not any(name in row for row in rows for name in names):
            raise ModelError(
                f"{self.title} takes {_some(names)}, and the observation has {_some(rows[0])}: name the columns as "
                "the observations do, features: […]"
            )
        return names

    def _in_rows(self, names: Sequence[Any], rows: Sequence[Features]) -> Sequence[Any]:
        """Return the names of the columns as the rows spell them."""
        return names


def _some(names: Iterable[Any]) -> str:
    found = list(map(str, names))
    return ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")


def check_probabilities(title: str, found: npt.NDArray[np.float64], remedy: str) -> None:
    """Refuse non-probabilities, such as logits; NaN and rounding pass."""
    if ((found < -1e-6) | (found > 1.0 + 1e-3)).any():
        raise ModelError(
            f"{title} returns numbers from {np.nanmin(found):.3g} to {np.nanmax(found):.3g}, which are no "
            f"probabilities: {remedy}"
        )


def is_of_second(found: npt.NDArray[np.float64], n: int, classes: Sequence[Any]) -> bool:
    """Return whether a result is only the second class's probabilities."""
    return found.size == n and len(classes) == 2


def by_class(found: npt.NDArray[np.float64], n: int, classes: Sequence[Any]) -> list[Any]:
    """Return a dict of probabilities for each of n rows."""
    if not is_of_second(found, n, classes):
        return per_row(found, n, classes)
    first, second = classes
    return [{first: 1.0 - p, second: p} for p in found.ravel().tolist()]
