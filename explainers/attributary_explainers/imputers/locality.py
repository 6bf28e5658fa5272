"""How much stored values resemble the present ones, being near in time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..core.locality import correlate
from ..core.rows import Rows
from ..typing import Array, Features, Snapshot
from ..validation import LARGEST

Columns: TypeAlias = npt.NDArray[np.intp]

EVERY = 50
"""Observations between two that are looked at."""
_ROWS = 50
_CATEGORIES = 12
_FORGOTTEN = 200
_SLOWER = 10.0
_LOOKS = 100
"""A correlation of fewer is mostly noise."""
_WINDOWS = 5.0
_NOTHING: tuple[None, Columns] = None, np.zeros(0, dtype=np.intp)


class Locality:
    """Correlates each feature's value with the mean of its replacements.

    A replacement should be unrelated to the value of x. Where values move slowly, the stored ones follow the present
    one; then, with z the mean of the stored values,

        c = Cov(x, z) / Var(x)

    is the share by which a replacement changes too little: for a linear model under the squared loss, importance is
    too small by about c. On streams with seasons, where stored values may also be opposite to the present one, only the
    size of c says something: importance may be off by about |c|, in either direction. A category counts by the
    indicators of its first twelve values. One observation in fifty is compared, with fifty of the stored ones.

    Parameters
    ----------
    alpha
        Valid range (0, 1]; that of the importance. Moments are smoothed by a tenth of it, over 5000 observations at
        least.
    """

    def __init__(self, alpha: float) -> None:
        self._rate = min(EVERY * alpha / _SLOWER, 1.0 / _LOOKS)
        self._enough = max(_WINDOWS / alpha, _LOOKS * EVERY)
        self._n = 0
        self._known: tuple[tuple[Any, ...] | None, Columns] = _NOTHING
        """The features of the last look that was at numbers alone, and their columns."""
        self._index: dict[tuple[Any, Any], int] = {}
        self._moments: Array = np.zeros((6, 0))
        """Shape (6, columns): mean and variance of x, mean of z, their covariance, sum of weights, variance of z."""

    def count(self, n: int) -> None:
        """Count observations that are not looked at; fewer than `until_look`."""
        self._n += n

    @property
    def until_look(self) -> int:
        """Number of observations until the next look; 1 means the next."""
        return EVERY - self._n % EVERY

    def update(self, x: Features, rows: Sequence[Features]) -> bool:
        """Take in an observation before it is stored; return whether it looked.

        Parameters
        ----------
        rows
            What its features may be replaced by.
        """
        self._n += 1
        if self._n % EVERY or not rows:
            return False
        step = -(-len(rows) // _ROWS)
        first = self._n // EVERY % step
        if not (isinstance(rows, Rows) and self._take_numbers(x, rows, first, step)):
            self._take(x, rows[first::step])
        return True

    def _take_numbers(self, x: Features, rows: Rows, first: int, step: int) -> bool:
        """Take in rows as arrays; return whether all values were numbers."""
        found = rows.means(first, len(rows), step)
        if found is None or found[0] != tuple(x) or not set(map(type, x.values())) <= {float, int}:
            return False
        names, means = found
        if not all(abs(value) < LARGEST for value in x.values()):
            return False
        values = np.array(list(x.values()), dtype=np.float64)
        self._take_in(self._columns_of(names), values, means)
        return True

    def _columns_of(self, names: tuple[Any, ...]) -> Columns:
        """Return the columns of features that are numbers."""
        if self._known[0] != names:
            columns = np.array([self._column(name, None) for name in names], dtype=np.intp)
            self._known = names, columns
        return self._known[1]

    def _take(self, x: Features, rows: Sequence[Features]) -> None:
        found = [(column, *pair) for name in x for column, pair in self._columns(name, x[name], rows)]
        columns = np.array([column for column, _, _ in found], dtype=np.intp)
        values, means = (np.array([pair[i] for _, *pair in found]) for i in range(2))
        self._take_in(columns, values, means)

    def _take_in(self, columns: Columns, values: Array, means: Array) -> None:
        if len(columns):
            # Of numbers near the largest there is no correlation.
            correlate(self._rate, columns, values, means, self._moments)
        if len(self._index) > 2 * len(columns) + _FORGOTTEN:
            self._keep(columns.tolist())

    def _keep(self, columns: list[int]) -> None:
        """Forget all other columns: a stream of ever new names has bounded state."""
        names, self._known = list(self._index), _NOTHING
        self._index = {names[column]: i for i, column in enumerate(columns)}
        self._moments = np.ascontiguousarray(self._moments[:, columns])

    def _columns(self, name: Any, value: Any, rows: Sequence[Features]) -> list[tuple[int, tuple[float, float]]]:
        """Return a feature's columns, with its value and the stored mean of each."""
        stored = [row[name] for row in rows if name in row]
        if is_number(value):
            mean = _mean(stored)
            return [(self._column(name, None), (float(value), mean))] if math.isfinite(mean) else []
        try:
            known = [category for of, category in self._index if of == name and category is not None]
            if value is not None and (name, value) not in self._index and len(known) < _CATEGORIES:
                known.append(value)
            return [
                (self._column(name, category), (float(value == category), stored.count(category) / len(rows)))
                for category in known
            ]
        except (TypeError, ValueError):  # no category: it cannot be hashed, or compared with what is stored
            return []

    def _column(self, name: Any, category: Any) -> int:
        column = self._index.setdefault((name, category), len(self._index))
        if column == self._moments.shape[1]:
            self._moments = np.pad(self._moments, ((0, 0), (0, 1)))
        return column

    def may_exceed(self, bound: float) -> bool:
        """Return whether |c| of some feature may exceed the bound; NaN does not."""
        return self._n >= self._enough and bool((np.abs(self._moments[3]) > bound * self._moments[1]).any())

    def value(self) -> dict[Any, float]:
        """Return c by feature; NaN where there is too little to compare.

        NaN for a feature with one value or none that could be compared, and for all until 5 / alpha observations have
        been seen, 5000 at least.
        """
        covariance: dict[Any, float] = {}
        variance: dict[Any, float] = {}
        for (name, _), column in self._index.items():
            covariance[name] = covariance.get(name, 0.0) + float(self._moments[3, column])
            variance[name] = variance.get(name, 0.0) + float(self._moments[1, column])
        return {
            name: covariance[name] / v
            if self._n >= self._enough and 0.0 < v < math.inf and math.isfinite(covariance[name])
            else math.nan
            for name, v in variance.items()
        }

    def std_error(self, times: Mapping[Any, float]) -> dict[Any, float]:
        """Estimate the standard error of c by feature, where the true c is 0.

        Parameters
        ----------
        times
            Autocorrelation times by feature, in observations: values that stay alike say less.
        """
        products: dict[Any, float] = {}
        variance: dict[Any, float] = {}
        weights: dict[Any, float] = {}
        for (name, _), column in self._index.items():
            _, of_x, _, _, weight, of_z = self._moments[:, column].tolist()
            products[name] = products.get(name, 0.0) + of_x * of_z
            variance[name] = variance.get(name, 0.0) + of_x
            weights[name] = max(weights.get(name, 0.0), weight)
        found = {}
        for name, v in variance.items():
            n = 2.0 / self._rate * weights[name] / (2.0 - weights[name])
            time = times.get(name, 0.0)
            alike = math.exp(-EVERY / time) if time > 0.0 else 0.0
            spread = math.sqrt(products[name]) / v if 0.0 < v < math.inf and products[name] < math.inf else math.nan
            found[name] = spread * math.sqrt((1.0 + alike) / (1.0 - alike) / n) if alike < 1.0 and n else math.inf
        return found

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"n": self._n, "names": [list(key) for key in self._index], "moments": self._moments.tolist()}

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""
        self._n, self._known = state["n"], _NOTHING
        self._index = {(name, category): i for i, (name, category) in enumerate(state["names"])}
        self._moments = np.array(state["moments"], dtype=np.float64).reshape(6, -1)


def _mean(values: Sequence[Any]) -> float:
    """Return the mean of the numbers among values; NaN without any."""
    numbers = [value for value in values if is_number(value)]
    # Added one after the other, to the last bit as in `_take_numbers`: `sum` of later Pythons does otherwise.
    return float(np.cumsum(np.array(numbers, dtype=np.float64))[-1]) / len(numbers) if numbers else math.nan


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, not too large, and no bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST
