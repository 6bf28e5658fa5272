"""Intervals of rates and shares, and quantiles of delays of which some are infinite."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

LEVEL = 0.95


def wilson(k: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of the probability behind k successes in n trials."""
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    centre, spread = k + z * z / 2.0, z * math.sqrt(k * (n - k) / n + z * z / 4.0)
    # At the ends rounding would leave a trace of the other side.
    return 0.0 if k == 0 else (centre - spread) / (n + z * z), 1.0 if k == n else (centre + spread) / (n + z * z)


def poisson(k: int, level: float = LEVEL) -> tuple[float, float]:
    """Garwood's exact interval of the mean behind a count of k.

    At its ends, k or more and k or fewer events have the probability (1 - level) / 2 each.
    """
    tail = (1.0 - level) / 2.0
    low = 0.0 if k == 0 else _solve(lambda mean: 1.0 - _at_most(k - 1, mean), tail, k)
    return low, _solve(lambda mean: 1.0 - _at_most(k, mean), 1.0 - tail, k)


def quantile(values: Sequence[float], q: float) -> float:
    """Least value that at least the share q of all do not exceed; infinite values are values."""
    return sorted(values)[max(math.ceil(q * len(values)) - 1, 0)] if values else math.nan


def _at_most(k: int, mean: float) -> float:
    if mean <= 0.0:
        return 1.0
    return math.fsum(math.exp(i * math.log(mean) - mean - math.lgamma(i + 1)) for i in range(k + 1))


def _solve(increasing: Callable[[float], float], target: float, k: int) -> float:
    """Where the function of the mean reaches the target, by halving."""
    low, high = 0.0, k + 10.0 * math.sqrt(k + 1.0) + 10.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if increasing(middle) < target else (low, middle)
    return (low + high) / 2.0
