"""Slow features: how far off their importance may be, and warnings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..core.rows import Rows
from ..errors import LocalReservoirWarning, SlowFeatureWarning, warn_caller
from ..typing import Array, Features, Importance, Snapshot
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
            moments = self._moments[:, columns]
            moments[4] += self._rate * (1.0 - moments[4])
            share = np.minimum(self._rate / moments[4], 1.0)
            of_x, of_z = values - moments[0], means - moments[2]
            moments[0] += share * of_x
            moments[2] += share * of_z
            for row, product in ((1, share * of_x * of_x), (3, share * of_x * of_z), (5, share * of_z * of_z)):
                moments[row] = (1.0 - share) * (moments[row] + product)
            self._moments[:, columns] = moments
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


_LAGS = 20.0
"""So many lags are 1 / alpha."""
_LEAST_LOOKS = 40
_PAIRS = 100

_Moments = tuple[float, ...]
_NO_MOMENTS: _Moments = (0.0,) * 6


class Persistence:
    """Estimates the autocorrelation time of each numeric feature.

    With r the correlation of a value with that of `lag` observations before, it is lag / ln (1 / r) observations: 100
    for an AR(1) whose correlation from one observation to the next is .99. An average over 2 / alpha observations holds
    about 1 / (alpha time) independent values of the feature. Where these are few, importance is that of the latest
    values, and no formula for its standard error can know how others would have been. One observation in `lag`, which
    is 1 / 20 of 1 / alpha, is compared.

    Parameters
    ----------
    alpha
        Valid range (0, 1]; that of the importance. Moments are smoothed over 5 / alpha observations.
    """

    def __init__(self, alpha: float) -> None:
        self.lag = max(1, round(1.0 / (_LAGS * alpha)))
        self._n = 0
        self._last: dict[Any, float] = {}
        self._moments: dict[Any, _Moments] = {}
        """By feature the number of pairs, the means of the earlier and the later value, variances and covariance."""

    def count(self, n: int) -> None:
        """Count observations that are not looked at; fewer than `until_look`."""
        self._n += n

    @property
    def until_look(self) -> int:
        """Number of observations until the next look; 1 means the next."""
        return self.lag - self._n % self.lag

    def update(self, x: Features) -> bool:
        """Take in an observation; return whether it was looked at."""
        self._n += 1
        if self._n % self.lag:
            return False
        numbers = {name: float(value) for name, value in x.items() if is_number(value)}
        for name, value in numbers.items():
            if name in self._last:
                self._add(name, self._last[name], value)
        self._last = numbers
        if len(self._moments) > 2 * len(numbers) + _FORGOTTEN:
            self._moments = {name: self._moments[name] for name in numbers if name in self._moments}
        return True

    def _add(self, name: Any, earlier: float, later: float) -> None:
        # A few numbers: arrays would take several times as long.
        n, mean, mean_later, variance, variance_later, both = self._moments.get(name, _NO_MOMENTS)
        rate = max(1.0 / (n + 1.0), 1.0 / _PAIRS)
        off, off_later, kept = earlier - mean, later - mean_later, 1.0 - rate
        self._moments[name] = (
            n + 1.0,
            mean + rate * off,
            mean_later + rate * off_later,
            kept * (variance + rate * off * off),
            kept * (variance_later + rate * off_later * off_later),
            kept * (both + rate * off * off_later),
        )

    def value(self) -> dict[Any, float]:
        """Return the autocorrelation time by feature; 0 without correlation.

        NaN until 40 pairs have been seen, and for a feature with one value. Infinity for a trend.
        """
        return {name: self._time(moments) for name, moments in self._moments.items()}

    def _time(self, moments: _Moments) -> float:
        n, _, _, earlier, later, both = moments
        if n < _LEAST_LOOKS or not (0.0 < earlier < math.inf and 0.0 < later < math.inf and math.isfinite(both)):
            return math.nan
        r = both / math.sqrt(earlier) / math.sqrt(later)
        if r <= 0.0:
            return 0.0
        return math.inf if r >= 1.0 else -self.lag / math.log(r)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        moments = [[name, *values] for name, values in self._moments.items()]
        return {"n": self._n, "last": [list(pair) for pair in self._last.items()], "moments": moments}

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""
        self._n = state["n"]
        self._last = dict(map(tuple, state["last"]))
        self._moments = {name: tuple(values) for name, *values in state["moments"]}


_TOO_LOCAL = 0.05
_CERTAIN = 2.0
"""So many standard errors a correlation has to be beyond that."""
_TOO_SLOW = 0.2
"""Autocorrelation time, times alpha: below, intervals hold on all streams of `make calibration`."""
_LARGEST_ALPHA = 0.05
"""Of a larger one an average is over fewer than 40 observations: too few to tell slow values from chance."""
_NAMED = 5


class SlowFeatures:
    """A watch for features whose values stay alike too long; warns once.

    Parameters
    ----------
    alpha
        Valid range (0, 1]; that of the importance.
    """

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha
        self._locality, self._persistence = Locality(alpha), Persistence(alpha)
        self._told_of: dict[str, set[Any]] = {"local": set(), "slow": set()}
        self.until = self._counted = self._next_look()
        """In how many observations one of the two looks at one, 1 for the next one: the explainer counts down and calls
        `look` at 0. And what it was when both had counted all."""

    def _next_look(self) -> int:
        """Return in how many observations the next look of either is due."""
        return min(self._locality.until_look, self._persistence.until_look)

    def look(self, x: Features, rows: Sequence[Features]) -> None:
        """Look at `x`, before it is stored, and at the rows that may replace it."""
        self.until = 1
        self._count_passed()
        if self._locality.update(x, rows):
            self._tell_of_locality()
        if self._persistence.update(x) and self._alpha <= _LARGEST_ALPHA:
            self._tell_of_slowness()
        self.until = self._counted = self._next_look()

    def _count_passed(self) -> None:
        """Let both count the observations that neither looks at."""
        passed, self._counted = self._counted - self.until, self.until
        self._locality.count(passed)
        self._persistence.count(passed)

    def locality(self) -> Importance:
        """Return |c| of `Locality` by feature."""
        self._count_passed()
        return {name: abs(c) for name, c in self._locality.value().items()}

    def autocorrelation_time(self) -> Importance:
        """Return the time of `Persistence` by feature, in observations."""
        return self._persistence.value()

    def _tell_of_locality(self) -> None:
        if not self._locality.may_exceed(_TOO_LOCAL):
            return
        local = {name: c for name, c in self.locality().items() if c > _TOO_LOCAL}
        if not local:  # of most streams, and always before enough is known: errors are more to reckon with
            return
        noise = self._locality.std_error(self._persistence.value())
        certain = {name: c for name, c in local.items() if c - _CERTAIN * noise[name] > _TOO_LOCAL}
        found = self._not_told("local", certain, _TOO_LOCAL)
        if found:
            warn_caller(
                LocalReservoirWarning(
                    f"importances may be off: that of {_named(found, _share)}. These values move so slowly that "
                    "the stored ones, which replace them, follow them. A reservoir that reaches further helps: "
                    "LaggedReservoir(gap=..., reach=...), with a gap longer than a value lasts and a reach of several "
                    "seasons or regimes"
                )
            )

    def _tell_of_slowness(self) -> None:
        found = self._not_told("slow", self.autocorrelation_time(), _TOO_SLOW / self._alpha)
        if found:
            # Half of what is enough by this estimate: it is the first that is beyond the bound, and grows as a rule.
            enough = _rounded_down(0.5 * _TOO_SLOW / max(found.values()))
            remedy = f"; an alpha of {enough:g} averages over enough of them" if enough > 0.0 else ""
            warn_caller(
                SlowFeatureWarning(
                    "where values stay alike for long, importances and their intervals are those of the latest values: "
                    f"those of {_named(found, _time)}. An importance is averaged over "
                    f"{2.0 / self._alpha:.0f}{remedy}"
                )
            )

    def _not_told(self, of: str, values: Mapping[Any, float], most: float) -> dict[Any, float]:
        """Return values above `most` of features not named yet; note these."""
        told = self._told_of[of]
        found = {name: value for name, value in values.items() if value > most and name not in told}
        told.update(found)
        return found

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        self._count_passed()
        return {
            "locality": self._locality.snapshot(),
            "persistence": self._persistence.snapshot(),
            "told_of": {of: list(names) for of, names in self._told_of.items()},
        }

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""
        self._locality.restore(state["locality"])
        self._persistence.restore(state["persistence"])
        self._told_of = {of: set(names) for of, names in state["told_of"].items()}
        self.until = self._counted = self._next_look()


def _named(found: Mapping[Any, float], how: Callable[[float], str]) -> str:
    first = sorted(found, key=lambda name: -found[name])[:_NAMED]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(f"{name!r} {how(found[name])}" for name in first) + more


def _share(value: float) -> str:
    return f"by about {value:.0%}"


def _time(observations: float) -> str:
    if math.isinf(observations):  # the estimate for a row number or a time
        return "throughout, moving in one direction"
    return f"for about {observations:.0f} observations"


def _rounded_down(value: float) -> float:
    """Return the value cut to its first digit; 0 below 1e-6."""
    if value < 1e-6:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value))
    return math.floor(value / unit) * unit
