"""Closed forms of a queue with one server: what a worker's records wait for, at a given load."""

from __future__ import annotations

import math


def mean_wait(rate: float, service_s: float, service_cv2: float = 0.0) -> float:
    """Return the mean seconds that a record waits before it is handled: Pollaczek and Khinchine's formula, M/G/1.

    Parameters
    ----------
    rate
        Records a second, arriving independently of each other.
    service_s
        Mean seconds to handle one.
    service_cv2
        Squared coefficient of variation of these seconds: 0 is M/D/1, 1 is M/M/1.

    Returns
    -------
    Infinity where records come faster than they are handled.
    """
    load = rate * service_s
    if load >= 1.0:
        return math.inf
    return load * service_s * (1.0 + service_cv2) / (2.0 * (1.0 - load))


def wait_quantile(q: float, rate: float, service_s: float, service_cv2: float = 0.0) -> float:
    """Return the seconds that a share `q` of the records waits at most, with the tail taken as exponential.

    Exact for M/M/1. A share of 1 - load does not wait at all; the others wait for `mean_wait / load` on average.
    """
    load = rate * service_s
    if load >= 1.0:
        return math.inf
    if q <= 1.0 - load:
        return 0.0
    return mean_wait(rate, service_s, service_cv2) / load * math.log(load / (1.0 - q))
