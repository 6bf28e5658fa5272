"""Observations from dicts, pandas, named tuples and named arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from ..errors import InvalidParameterError
from ..typing import Features
from .described import suggesting

_MISSING_OF_PANDAS = ("NAType", "NaTType")


def as_row(x: Any) -> Features:
    """Return an observation as a mapping; a mapping stays as it is.

    Parameters
    ----------
    x
        A mapping; a pandas Series, whose index names the features; a data frame with one row; or a named tuple, as
        `DataFrame.itertuples` gives them (its `Index` is no feature). Values of numpy become Python's own, and NA and
        NaT None.

    Raises
    ------
    InvalidParameterError
        The values have no names.

    Examples
    --------
    >>> from collections import namedtuple
    >>> as_row(namedtuple("Row", ["age", "city"])(34, "Bern"))
    {'age': 34, 'city': 'Bern'}
    """
    if isinstance(x, Mapping):
        return x
    if hasattr(x, "columns") and hasattr(x, "iloc"):
        if len(x) != 1:
            raise InvalidParameterError("x", "a data frame with one row; explain_many takes many", f"{len(x)} rows")
        # Column by column: a row of several types would be one of objects, or integers would become floats.
        return {name: as_value(x.iloc[0, i]) for i, name in enumerate(x.columns)}
    if hasattr(x, "index") and hasattr(x, "to_dict"):
        return {name: as_value(value) for name, value in x.to_dict().items()}
    if isinstance(x, tuple) and hasattr(x, "_asdict"):
        named: dict[Any, Any] = x._asdict()
        if type(x).__name__ == "Pandas" and next(iter(named), None) == "Index":
            del named["Index"]
        return {name: as_value(value) for name, value in named.items()}
    raise InvalidParameterError(
        "x",
        "a mapping of features to values, a pandas Series or a named tuple (for arrays: rows(X, names) names the "
        "values, or explain_many(X, y, feature_names=names))",
        x,
    )


def as_value(value: Any) -> Any:
    """Return numpy's values as Python's, pandas' NA and NaT as None."""
    kind = type(value)
    if kind.__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    return None if kind.__name__ in _MISSING_OF_PANDAS else value


@suggesting
def rows(X: Any, feature_names: Iterable[Any] | None = None) -> Iterator[dict[Any, Any]]:
    """Yield the rows of a table as dicts of feature to value.

    Parameters
    ----------
    X
        A pandas data frame; an array, shape (rows, features); or an iterable of rows: mappings, Series, named tuples
        or sequences of values.
    feature_names
        Names of the values, in their order; needed where the rows have none. Of a data frame or of mappings: the
        features to take.

    Raises
    ------
    InvalidParameterError
        Names are missing, or they are more or fewer than the values.

    Examples
    --------
    >>> import numpy as np
    >>> list(rows(np.array([[34, 1.5]]), ["age", "rate"]))
    [{'age': 34.0, 'rate': 1.5}]
    """
    names = _names(feature_names)
    return _rows_of_frame(X, names) if hasattr(X, "itertuples") else _rows(X, names)


@suggesting
def observations(
    X: Any,
    y: Any = None,
    *,
    feature_names: Iterable[Any] | None = None,
) -> Iterator[tuple[Features, Any]]:
    """Yield pairs of features and label, as loops over a stream take them.

    Parameters
    ----------
    X
        As for `rows`; or without `y` an iterable of pairs (x, y), as the data sets of River are.
    y
        Labels or targets, as many as there are rows; None where X has them, or where there are none.
    feature_names
        As for `rows`.

    Raises
    ------
    InvalidParameterError
        There are more rows than labels, or fewer; or as for `rows`.

    Examples
    --------
    >>> list(observations([{"age": 34}, {"age": 51}], [True, False]))
    [({'age': 34}, True), ({'age': 51}, False)]
    """
    if y is None and not hasattr(X, "itertuples"):
        return _pairs(X, _names(feature_names))
    n_rows, n_labels = _length(X), _length(y)
    if y is not None and n_rows is not None and n_labels is not None and n_rows != n_labels:
        raise InvalidParameterError("y", f"as long as X, {n_rows} rows", f"{n_labels} labels")
    labels = repeat(None) if y is None else _labels(y)
    return _zipped(rows(X, feature_names), labels, of_y=y is not None)


def _zipped(given: Iterator[dict[Any, Any]], labels: Iterable[Any], *, of_y: bool) -> Iterator[tuple[Features, Any]]:
    others = iter(labels)
    for row in given:
        try:
            yield row, as_value(next(others))
        except StopIteration:
            raise InvalidParameterError("y", "as long as X", "fewer labels than rows") from None
    if of_y and next(others, others) is not others:
        raise InvalidParameterError("y", "as long as X", "more labels than rows")


def _pairs(X: Iterable[Any], names: Sequence[Any] | None) -> Iterator[tuple[Features, Any]]:
    for item in X:
        is_pair = isinstance(item, tuple) and len(item) == 2 and not hasattr(item, "_asdict")
        if is_pair and not (names is not None and len(names) == 2 and as_value(item[0]) is item[0] and _is_plain(item)):
            yield _row(item[0], names), as_value(item[1])
        else:
            yield _row(item, names), None


def _is_plain(values: Iterable[Any]) -> bool:
    return all(isinstance(value, (int, float, str, bool)) or value is None for value in values)


def _rows(X: Iterable[Any], names: Sequence[Any] | None) -> Iterator[dict[Any, Any]]:
    for x in X:
        yield _row(x, names)


def _row(x: Any, names: Sequence[Any] | None) -> dict[Any, Any]:
    if names is None or isinstance(x, Mapping) or hasattr(x, "to_dict") or hasattr(x, "_asdict"):
        row = dict(as_row(x))
        return row if names is None else {name: row.get(name) for name in names}
    values = x.tolist() if hasattr(x, "tolist") else list(x)
    if len(values) != len(names):
        raise InvalidParameterError("feature_names", f"{len(values)} names, as a row has values", list(names))
    return {name: as_value(value) for name, value in zip(names, values, strict=True)}


def _rows_of_frame(X: Any, names: Sequence[Any] | None) -> Iterator[dict[Any, Any]]:
    chosen = list(X.columns) if names is None else list(names)
    if unknown := [name for name in chosen if name not in X.columns]:
        raise InvalidParameterError("feature_names", f"columns of the data frame, {list(X.columns)}", unknown[0])
    columns = X if names is None else X[chosen]
    # Tuples keep the types of their columns, and are much faster than the Series of `iterrows`.
    for values in columns.itertuples(index=False, name=None):
        yield {name: as_value(value) for name, value in zip(chosen, values, strict=True)}


def _labels(y: Any) -> Iterable[Any]:
    if hasattr(y, "columns") and hasattr(y, "iloc"):
        if len(y.columns) != 1:
            raise InvalidParameterError("y", "one column", list(y.columns))
        y = y.iloc[:, 0]
    values: Iterable[Any] = y.tolist() if hasattr(y, "tolist") else y
    return values


def _length(of: Any) -> int | None:
    return len(of) if hasattr(of, "__len__") else None


def _names(names: Iterable[Any] | None) -> list[Any] | None:
    if isinstance(names, str):
        raise InvalidParameterError("feature_names", "a list of names", names)
    return None if names is None else list(names)
