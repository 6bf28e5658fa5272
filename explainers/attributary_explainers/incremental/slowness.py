"""Slow features: how far off their importance may be, and warnings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import LocalReservoirWarning, SlowFeatureWarning, warn_caller
from ..imputers.locality import Locality
from ..imputers.persistence import Persistence
from ..typing import Features, Importance, Snapshot

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
        """In how many observations one of the two looks at one, 1 for the next one: above, it only has to be counted
        down. And what it was when both had counted all."""

    def _next_look(self) -> int:
        """Return in how many observations the next look of either is due."""
        return min(self._locality.until_look, self._persistence.until_look)

    def update(self, x: Features, rows: Sequence[Features]) -> None:
        """Take in `x`, before it is stored, and the rows that may replace it."""
        if self.until > 1:
            self.until -= 1
            return
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
