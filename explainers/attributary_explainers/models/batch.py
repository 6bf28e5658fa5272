"""Models that predict many rows in a call."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InvalidParameterError, ModelError
from ..missing import is_missing
from ..predictions import Kind, as_output
from ..typing import Features, Output, Prediction


def pandas_or_none() -> ModuleType | None:
    """Return pandas, None where it is not installed."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        return None


class Frames:
    """Makes data frames of rows.

    A column is what pandas makes of its values, which is what it was in `fit`, with two exceptions that one batch
    alone cannot tell: a column without any value, and one of categories.

    Parameters
    ----------
    categorical
        Columns that were of pandas' dtype `category` in `fit`, of a library that asks for it again.
    a_category
        Name of such a column to a category of it, of a library that asks of a column without any value of which kind
        its categories are; None of others.
    """

    def __init__(
        self, pandas: ModuleType, categorical: Collection[Any] = (), a_category: Callable[[Any], Any] | None = None
    ) -> None:
        self._pandas, self._categorical = pandas, frozenset(categorical)
        self._a_category = a_category
        self._met: dict[Any, Any] = {}
        # Since pandas 3 text is a dtype of its own, in which None is NaN: what is missing is NaN in every batch then.
        self._is_missing_nan = pandas.Series(["text", None]).dtype != object

    def make(self, values: list[list[Any]], names: Sequence[Any]) -> Any:
        """Return the rows as a data frame with these columns."""
        # Column by column where kinds differ, so that integers and booleans stay what they are beside floats.
        kinds = {type(value) for row in values for value in row}
        if not self._categorical and kinds in ({float}, {int}):
            table = np.array(values)
            # An integer that 64 bits do not hold makes it one of objects, which pandas takes column by column.
            if table.dtype != object and not np.isnan(table).all(axis=0).any():
                return self._pandas.DataFrame(table, columns=names)
        columns = dict(zip(names, map(list, zip(*values, strict=True)), strict=True))
        return self._pandas.DataFrame({name: self._column(name, column) for name, column in columns.items()})

    def _column(self, name: Any, values: list[Any]) -> Any:
        if name in self._categorical:
            return self._categories(name, values)
        # A column of NaN alone would be one of numbers, and encoders of text refuse that; of objects it is either.
        if self._is_missing_nan and all(map(is_missing, values)):
            return self._pandas.Series([np.nan] * len(values), dtype=object)
        return values

    def _categories(self, name: Any, values: list[Any]) -> Any:
        found = self._pandas.Categorical([None if is_missing(value) else value for value in values])
        if not len(found.categories) and self._a_category is not None:
            if name not in self._met:
                self._met[name] = self._a_category(name)
            found = found.set_categories([self._met[name]])
        return self._pandas.Series(found)


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


class DetectorFunction:
    """A `ModelFunction` with `many`, of a detector with `score_many(X)`.

    `score_many` takes a pandas data frame, as in River's methods for mini-batches and deep-river's detectors. A single
    row, and rows with different features, are scored by `score_one`.

    Parameters
    ----------
    score_one
        The detector's score of one row.
    score_many
        Data frame to as many scores.
    """

    def __init__(self, score_one: Callable[[Any], Any], score_many: Callable[[Any], Any]) -> None:
        self._score_one, self._score_many, self._convert = score_one, score_many, as_output("number")

    def __call__(self, x: Features, /) -> Prediction:
        """Return the score of a row."""
        return self._convert(self._score_one(x))

    def many(self, rows: Sequence[Features]) -> list[Prediction]:
        """Return the scores of a batch of rows."""
        names = list(rows[0])
        pandas = pandas_or_none()
        if pandas is None or any(row.keys() != rows[0].keys() for row in rows):
            return [self(row) for row in rows]
        X = Frames(pandas).make(table(rows, names), names)
        return list(map(self._convert, per_row(self._score_many(X), len(rows))))
