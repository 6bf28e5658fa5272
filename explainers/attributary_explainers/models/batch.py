"""Models that predict a whole batch of rows in a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InvalidParameterError, ModelError
from ..predictions import Kind, as_output
from ..typing import Features, Output, Prediction

_NAN = float("nan")


class BatchModel:
    """A callable from rows to predictions, made by `as_batch`.

    Raises
    ------
    InvalidParameterError
        See `as_batch`.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        features: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidParameterError("function", "a callable rows -> predictions", function)
        self.function = function
        self.features = None if features is None else check_names("features", features)
        self.classes = None if classes is None else check_names("classes", classes)

    @property
    def kind(self) -> Kind | None:
        """Kind of the model; None where only a loss tells."""
        return None if self.classes is None else "classifier"

    def predict_many(self, rows: Sequence[Features]) -> list[Any]:
        """Return the callable's results for `rows`, an element per row.

        Raises
        ------
        ModelError
            A value is no number where `features` asks for an array, or the result has another length or shape.
        """
        given: Any = rows
        if self.features is not None:
            given = number_array(table(rows, self.features), self.features, _ADVICE)
        return per_row(
            self.function(given),
            len(rows),
            self.classes,
            advice="" if self.classes else "; for an array of probabilities name its columns, as_batch(classes=[...])",
        )


def as_batch(
    function: Callable[[Any], Any], features: Iterable[Any] | None = None, classes: Iterable[Any] | None = None
) -> BatchModel:
    """Mark a callable that predicts many rows in a single call.

    Parameters
    ----------
    function
        Takes a sequence of n rows (mappings of feature to value, not to be changed), or a 2-D array of floats where
        `features` is given. Returns n predictions: a sequence or 1-D array of numbers, labels or dicts of
        probabilities, or with `classes` an array (n, k) of probabilities. An element None, or None for all of them,
        is no prediction. To be saved with `dump_model` it must be picklable: a function that can be imported, a
        method, an object with `__call__`.
    features
        The columns of the array, in order, each once. A feature that a row lacks, or that is None there, is NaN;
        others in the row are left out. None hands over the rows.
    classes
        The k labels of the columns of an array of probabilities, each once.

    Returns
    -------
    BatchModel
        A model for any explainer. A single row is a batch of one.

    Raises
    ------
    InvalidParameterError
        `function` is no callable; `features` or `classes` is a string, empty, or names something twice.

    Examples
    --------
    >>> model = as_batch(lambda table: table @ [2.0, -1.0], features=["a", "b"])
    >>> model.predict_many([{"a": 1, "b": 0}, {"b": 3, "a": 1}])
    [2.0, -1.0]
    >>> from attributary_explainers import IncrementalPFI
    >>> pfi = IncrementalPFI(model, loss="squared", n_samples=5, seed=1)
    >>> for i in range(20):
    ...     importance = pfi.explain_one({"a": i % 2, "b": 0}, 2.0 * (i % 2))
    >>> importance["a"] > 0 == importance["b"]
    True
    """
    return BatchModel(function, features, classes)


class Mixing(NamedTuple):
    """Predictions for rows mixed from given ones, column by column."""

    features: Sequence[Any]
    """Names of the columns."""
    labels: tuple[Any, ...] | None
    """The class of each column of a prediction; None for numbers."""
    predict: Callable[[npt.NDArray[np.intp]], npt.NDArray[np.float64]]
    """From which given row each value is, shape (rows, columns), to predictions, shape (rows, classes) or (rows, 1)."""


IN_ONE_CALL = "by the model itself, the rows of an observation in one call"
"""How a `BatchFunction` is evaluated, in words."""


class BatchFunction:
    """A `ModelFunction` with `many`, over a function that predicts rows.

    Parameters
    ----------
    predict_many
        Rows to as many raw predictions.
    output
        What the loss reads.
    see
        Called with a row that is complete and in the stream's order of features; None for a model that needs none.
    """

    def __init__(
        self,
        predict_many: Callable[[Sequence[Features]], list[Any]],
        output: Output,
        see: Callable[[Features], None] | None = None,
    ) -> None:
        self._predict_many, self._convert = predict_many, as_output(output)
        self.see = see

    def __call__(self, x: Features, /) -> Prediction:
        """Return the prediction for a row."""
        return self.many([x])[0]

    def many(self, rows: Sequence[Features]) -> list[Prediction]:
        """Return the predictions for a batch of rows."""
        return list(map(self._convert, self._predict_many(rows)))


def per_row(predicted: Any, n: int, classes: Sequence[Any] | None = None, advice: str = "") -> list[Any]:
    """Return a model's result for n rows as a list of n predictions.

    An array's elements become builtins. `advice` ends the message about an array of a wrong shape.

    Raises
    ------
    ModelError
        Says which length or shape was expected and which came.
    """
    if predicted is None:
        return [None] * n
    expected = f"{n} predictions, one per row"
    if hasattr(predicted, "shape"):
        array = np.asarray(predicted)
        if array.ndim == 2 and classes is not None:
            if array.shape != (n, len(classes)):
                raise ModelError(
                    f"expected probabilities as an array {(n, len(classes))}, a row per row and a column per class in "
                    f"{list(classes)!r}, got one of shape {array.shape}"
                )
            return [dict(zip(classes, row, strict=True)) for row in array.tolist()]
        if array.shape not in ((n,), (n, 1)):
            raise ModelError(f"expected {expected}, got an array of shape {array.shape}{advice}")
        found: list[Any] = array.ravel().tolist()
        return found
    if isinstance(predicted, (str, bytes, Mapping)) or not hasattr(predicted, "__iter__"):
        raise ModelError(f"expected a sequence of {expected}, got {predicted!r}")
    found = list(predicted)
    if len(found) != n:
        raise ModelError(f"expected {expected}, got {len(found)}")
    return found


def table(rows: Iterable[Features], features: Sequence[Any]) -> list[list[Any]]:
    """Return the rows' values in the order of `features`, NaN where absent."""
    return [[row.get(feature, _NAN) for feature in features] for row in rows]


def is_numeric(values: Iterable[Iterable[Any]]) -> bool:
    """Return whether all values are numbers, booleans or None."""
    kinds = set(map(type, chain.from_iterable(values)))
    return all(issubclass(kind, (int, float, np.integer, np.floating, np.bool_, type(None))) for kind in kinds)


def object_array(values: list[list[Any]]) -> npt.NDArray[np.object_]:
    """Return a table of values of several kinds as an array; None is NaN."""
    found = np.empty((len(values), len(values[0])), dtype=object)
    for i, row in enumerate(values):
        found[i] = [_NAN if value is None else value for value in row]
    return found


_ADVICE = "encode it in the callable, which is given the rows themselves where features is left out"


def number_array(values: list[list[Any]], features: Sequence[Any], advice: str) -> npt.NDArray[np.float64]:
    """Return a table with a column per feature as floats; None is NaN.

    `advice` ends the message about a value that is no number.

    Raises
    ------
    ModelError
        A value is no number; the message names its feature.
    """
    if not is_numeric(values):
        for row in values:
            for feature, value in zip(features, row, strict=True):
                if not is_numeric([[value]]):
                    raise ModelError(f"expected a number as feature {feature!r}, got {value!r}: {advice}")
    return np.array(values, dtype=np.float64).reshape(len(values), len(features))


def check_names(parameter: str, names: Iterable[Any]) -> tuple[Any, ...]:
    """Return distinct names as a tuple, or raise InvalidParameterError."""
    checked = () if isinstance(names, (str, bytes)) else tuple(names)
    if not checked or len(set(checked)) != len(checked):
        raise InvalidParameterError(parameter, "a list of names, at least one, each once", names)
    return checked
