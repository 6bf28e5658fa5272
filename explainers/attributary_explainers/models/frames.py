"""Rows as a pandas data frame, with the column kinds known from `fit`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..missing import is_missing


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
