"""What may happen to one served column: labels follow the true value, the model is given another one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.harm.worlds.subjects import Array

Damage = Callable[[np.random.Generator, Array, Array], Array]
"""Takes clean values of the column, which only say what is usual, and the values; returns those that are served."""


def noise(size: float) -> Damage:
    """Measured with an error of so many standard deviations."""
    return lambda rng, clean, v: v + size * clean.std() * rng.standard_normal(len(v))


def growing_noise(size: float) -> Damage:
    """An error that grows from nothing to so many standard deviations."""
    return lambda rng, clean, v: v + np.linspace(0, size, len(v)) * clean.std() * rng.standard_normal(len(v))


def permuted(share: float = 1.0) -> Damage:
    """In so many rows the value is that of another row."""

    def alter(rng: np.random.Generator, clean: Array, v: Array) -> Array:
        served = v.copy()
        hit = np.flatnonzero(rng.random(len(v)) < share)
        served[hit] = v[rng.permutation(hit)]
        return served

    return alter


def stuck(rng: np.random.Generator, clean: Array, v: Array) -> Array:
    """One usual value again and again."""
    return np.full(len(v), float(np.median(clean)))


def stuck_in_bursts(rng: np.random.Generator, clean: Array, v: Array) -> Array:
    """Outages: the last value before is served for 200 rows, of every 800."""
    at = np.arange(len(v))
    return np.asarray(v[np.where(at % 800 < 200, at - at % 800, at)])


def missing(share: float) -> Damage:
    """So many values are missing, and the mean is served for them."""
    return lambda rng, clean, v: np.where(rng.random(len(v)) < share, clean.mean(), v)


def unit(factor: float, offset: float = 0.0) -> Damage:
    """Another unit."""
    return lambda rng, clean, v: factor * v + offset


def turned(rng: np.random.Generator, clean: Array, v: Array) -> Array:
    """The sign is the other one, about the mean."""
    return np.asarray(2.0 * clean.mean() - v)


def saturated(quantile: float) -> Damage:
    """A sensor that shows no more than this quantile."""
    return lambda rng, clean, v: np.asarray(np.minimum(v, np.quantile(clean, quantile)))


def rounded(steps: float) -> Damage:
    """Only so many steps per standard deviation are kept, cut downwards."""
    return lambda rng, clean, v: np.floor(steps * v / clean.std()) / steps * clean.std()


def moved(by: float) -> Damage:
    """An offset of so many standard deviations."""
    return lambda rng, clean, v: v + by * clean.std()
