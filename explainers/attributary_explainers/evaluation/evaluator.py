"""Fast paths: evaluators that predict as the model does, or refuse to."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from ..typing import Array
from .schema import Schema


class NotCoveredError(Exception):
    """A model, or a state of it, has no fast path; the model itself is asked."""


class Evaluator(abc.ABC):
    """Predictions of a model for encoded rows, equal to its own to 1e-12.

    An evaluator only reads the model. What it keeps of it (flat arrays) it compares with the live model at each call,
    and refreshes where that has changed. What it returns depends on the model as it is now and on the rows alone, to
    the last bit, never on earlier calls: sums run in an order that the model or the schema says.

    Parameters
    ----------
    model
        The model; referred to, not copied.
    schema
        The schema of the rows. Its categories may grow.

    Raises
    ------
    NotCoveredError
        The model is of another type or has parameters that are not covered.
    """

    labels: tuple[Any, ...] | None = None
    """For a classifier, the class of each column that the last call returned, in the order of `sort_key`."""

    @abc.abstractmethod
    def predict(self, X: Array) -> Array:
        """Return the predictions for rows.

        Parameters
        ----------
        X
            Shape (rows, features), C order, at least one row; not changed. Often most rows share most values with the
            first one, which is worth using; nothing else may depend on that.

        Returns
        -------
        Array
            Shape (rows, classes): probabilities, 0 for a class that the model does not name. Or shape (rows, 1):
            numbers. A row of NaN where the model has no prediction. May be overwritten by the next call.

        Raises
        ------
        NotCoveredError
            The model is in a state that is not covered: this time, the model itself is to be asked.
        """


Factory = Callable[[Any, Schema], Evaluator]


def check_instance(part: Any) -> None:
    """Refuse a part of a model that hides a method behind an attribute.

    Raises
    ------
    NotCoveredError
        An attribute of the object hides a method of its class.
    """
    for name, value in getattr(part, "__dict__", {}).items():
        if callable(value) and callable(getattr(type(part), name, None)):
            raise NotCoveredError(f"this {type(part).__name__} has a {name} of its own")
