"""Features that come in nine ways: independent, slow, heavy-tailed, in regimes and seasons; each stream has its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

from attributary_explainers.typing import Array

D = 8
NAMES = tuple(f"x{j}" for j in range(D))

Draw = Callable[[int, np.random.Generator], Array]
"""So many observations, shape (n, 8), of a generator."""


def independent(n: int, rng: np.random.Generator) -> Array:
    """Normal features; two of them are correlated."""
    x = rng.normal(size=(n, D))
    x[:, 1] = 0.6 * x[:, 0] + 0.8 * x[:, 1]
    return x


def autoregressive(rho: float) -> Draw:
    """Each feature has this correlation with its value before."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        noise = rng.normal(size=(n, D))
        noise[1:] *= np.sqrt(1.0 - rho * rho)
        x: Array = lfilter([1.0], [1.0, -rho], noise, axis=0)
        return x

    return draw


def heavy(n: int, rng: np.random.Generator) -> Array:
    """Features with the t distribution of five degrees of freedom, and variance 1."""
    x: Array = rng.standard_t(5, size=(n, D)) * np.sqrt(0.6)
    return x


def regimes(dwell: float) -> Draw:
    """Four hidden states, which last so long on average, shift the features and stretch them."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        shift, stretch = rng.normal(0.0, 0.8, (4, D)), rng.uniform(0.6, 1.5, (4, D))
        state = np.cumsum(np.where(rng.random(n) < 1.0 / dwell, rng.integers(1, 4, n), 0)) % 4
        x: Array = shift[state] + stretch[state] * rng.normal(size=(n, D))
        return x

    return draw


def season(period: float) -> Draw:
    """A sine with its own phase and size in each feature, which moves its spread too."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        phase, size = rng.uniform(0.0, 2.0 * np.pi, D), rng.uniform(0.3, 1.3, D)
        angle = 2.0 * np.pi * np.arange(n)[:, None] / period + phase
        x: Array = size * np.sin(angle) + (1.0 + 0.3 * np.cos(angle)) * rng.normal(size=(n, D))
        return x

    return draw


STREAMS: dict[str, Draw] = {
    "iid": independent,
    "AR(1), rho .9": autoregressive(0.9),
    "t5": heavy,
    "regimes of 300": regimes(300.0),
    "season of 1440": season(1440.0),
    "regimes of 1000": regimes(1000.0),
    "regimes of 3000": regimes(3000.0),
    "regimes of 10 000": regimes(10_000.0),
    "season of 7200": season(7200.0),
}
PROMISED = tuple(STREAMS)[:5]
"""Those on which at most one stream of 50 000 observations in twenty may have a false shift."""
