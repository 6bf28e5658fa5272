"""Rows of users: frames, arrays and mappings; many in a single call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Self, TypeVar

from ..errors import InvalidParameterError
from ..missing import drop_missing, read_missing
from ..typing import Features
from ..wording import did_you_mean
from .described import suggesting

_SHOWN = 10


def check_groups_there(groups: Mapping[Any, Sequence[Any]], x: Collection[Any]) -> None:
    """Refuse groups if a group has no feature in the first row.

    Raises
    ------
    InvalidParameterError
        Names the group, what the row has, and what may have been meant.
    """
    for group, features in groups.items():
        if not any(feature in x for feature in features):
            expected = (
                f"made of features that the rows have; the first row has none of the group {group!r} (it has {_of(x)})"
            )
            raise InvalidParameterError("groups", expected, list(features), hint=did_you_mean(features[0], x))


def check_features_there(parameter: str, features: Collection[Any], x: Collection[Any]) -> None:
    """Refuse features if the first row has none, or any looks misspelt.

    Raises
    ------
    InvalidParameterError
        Names the feature, what the row has, and what may have been meant.
    """
    absent = [feature for feature in features if feature not in x]
    others = [feature for feature in x if feature not in features]
    for feature in absent:
        hint = did_you_mean(feature, others)
        if hint or len(absent) == len(features):
            expected = f"made of features that the rows have (the first row has {_of(x)})"
            raise InvalidParameterError(parameter, expected, feature, hint=hint)


def _of(x: Collection[Any]) -> str:
    names = [repr(name) for name in x]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "") or "none"


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


T = TypeVar("T")


class ExplainsMany:
    """An explainer with `explain_one`, which gives it `explain_many`."""

    def explain_many(
        self,
        X: Any,
        y: Any = None,
        *,
        learn: bool = False,
        feature_names: Iterable[Any] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Explain observations in sequence; return the explainer.

        Parameters
        ----------
        X
            A pandas data frame; an array, shape (rows, features), with `feature_names`; an iterable of rows (mappings,
            Series, named tuples); or, without `y`, an iterable of pairs (x, y), as the data sets of River are. It may
            be endless: stop it, and what has been explained is kept.
        y
            Labels or targets, as many as there are rows.
        learn
            Whether the model learns each observation after it has been explained, by `learn_one`: for a model that
            learns on the stream. False leaves the model as it is.
        feature_names
            Names of the columns of an array; of a data frame the columns that are features.
        progress
            Whether a bar is shown. None shows one in a notebook and on a terminal.

        Raises
        ------
        InvalidParameterError
            `learn` is asked of a model without `learn_one`; or X and y do not fit each other, or have no names.

        Examples
        --------
        >>> from river.datasets import synth
        >>> from river.tree import HoeffdingTreeClassifier
        >>> from attributary_explainers import IncrementalPFI
        >>> pfi = IncrementalPFI(HoeffdingTreeClassifier(grace_period=50), alpha=0.01, seed=7)
        >>> pfi.explain_many(synth.STAGGER(classification_function=2, seed=7).take(1000), learn=True)
        IncrementalPFI(HoeffdingTreeClassifier(...), alpha=0.01, seed=7)
        >>> max(pfi.importance, key=pfi.importance.get)
        'size'
        """
        model: Any = getattr(self, "model", None)
        if learn and not hasattr(model, "learn_one"):
            raise InvalidParameterError(
                "learn",
                f"False for a {type(model).__name__}, which has no learn_one (fit a scikit-learn model before, or "
                "wrap it by river.compat.convert_sklearn_to_river)",
                learn,
            )
        total = len(X) if hasattr(X, "__len__") else getattr(X, "n_samples", None)
        total = total if isinstance(total, int) else None
        pairs = observations(X, y, feature_names=feature_names)
        missing = getattr(self, "missing", "absent")
        for x, label in with_progress(pairs, total, type(self).__name__, progress):
            self.explain_one(x, label)  # type: ignore[attr-defined]
            if learn:  # the row that it has predicted; of one that is skipped, what is there
                row = read_missing(x, missing)
                model.learn_one(drop_missing(x) if row is None else row, label)
        return self


def with_progress(items: Iterable[T], total: int | None, text: str, shown: bool | None) -> Iterator[T]:
    """Yield the items, with a bar on standard error where wanted."""
    if shown is None:
        shown = _is_notebook() or sys.stderr.isatty()
    if shown and (bar := _bar()) is not None:
        yield from bar(items, text, total)
    else:
        yield from items


def _bar() -> Callable[[Iterable[Any], str, int | None], Iterable[Any]] | None:
    """Return a function that shows a progress bar; None without rich."""
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        return None
    console = Console(stderr=True, force_terminal=None if _is_notebook() else True)
    return partial(track, console=console, transient=True)


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
