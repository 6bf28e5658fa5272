"""For how many observations a feature's values stay alike."""

from __future__ import annotations

import math
from typing import Any

from ..typing import Features, Snapshot
from .locality import is_number

_LAGS = 20.0
"""So many lags are 1 / alpha."""
_LEAST_LOOKS = 40
_LOOKS = 100
_FORGOTTEN = 200

_Moments = tuple[float, ...]
_NOTHING: _Moments = (0.0,) * 6


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
        n, mean, mean_later, variance, variance_later, both = self._moments.get(name, _NOTHING)
        rate = max(1.0 / (n + 1.0), 1.0 / _LOOKS)
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
