"""Increments of incremental PFI for fixed models drawn at random, by its formula: a stream in some tenths of a second.

An increment is the loss with a feature replaced by that of a stored row, less the loss, averaged over two draws from a
store like the default one: 500 rows, behind a gap of 200, spread over the last 3000.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attributary_explainers.typing import Array, Ints

from .streams import D, Draw, independent

GAP, SIZE, REACH, DRAWS = 200, 500, 3000, 2
_BENDS = (
    lambda x: x,
    lambda x: np.tanh(2.0 * x),
    np.abs,
    lambda x: (x > 0.5).astype(float),
    lambda x: np.maximum(x, 0.0),
)
_SAMPLE = 40_000


@dataclass(frozen=True)
class World:
    """A model that is the truth: a sum of bent features, and a product of two; numbers, or one of three classes."""

    classes: bool
    bends: Ints
    weights: Array
    directions: Array
    """Shape (8, 3): what a feature says for each class."""

    @classmethod
    def of(cls, classes: bool, rng: np.random.Generator) -> World:
        """Draw a world; its last feature is not read."""
        weights = rng.uniform(0.5, 1.5, D)
        weights[-1] = 0.0
        return cls(classes, rng.integers(0, len(_BENDS), D), weights, rng.normal(0.0, 1.0, (D, 3)))

    def increments(self, x: Array, rng: np.random.Generator, factors: Array | None = None) -> Array:
        """Return the increments of PFI, shape (n, 8): squared loss, or cross-entropy with a tenth of wrong labels.

        `factors`, shape (n, 8), multiply the weights.
        """
        weights = self.weights if factors is None else self.weights * factors
        g = np.stack([_BENDS[b](x[:, j]) for j, b in enumerate(self.bends.tolist())], axis=1)
        rows = stored_rows(len(x), rng)
        of = self._of_classes if self.classes else self._of_numbers
        return of(np.broadcast_to(weights, x.shape), x, g, rows, rng)

    def _of_numbers(self, weights: Array, x: Array, g: Array, rows: Ints, rng: np.random.Generator) -> Array:
        noise = rng.gumbel(size=(len(x), 1))
        noise -= noise.mean()
        found = np.zeros(x.shape)
        for drawn in rows.T:
            apart = weights * (g - g[drawn])
            apart[:, 0] += 0.4 * (x[:, 0] - x[drawn, 0]) * x[:, 1]
            apart[:, 1] += 0.4 * (x[:, 1] - x[drawn, 1]) * x[:, 0]
            found += ((noise + apart) ** 2 - noise**2) / DRAWS
        return found

    def _of_classes(self, weights: Array, x: Array, g: Array, rows: Ints, rng: np.random.Generator) -> Array:
        n = len(x)
        eta = (weights * g) @ self.directions
        y = np.argmax(eta + rng.gumbel(size=(n, 3)), axis=1)
        y = np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), y)
        before = _cross_entropy(eta, y)
        found = np.zeros(x.shape)
        for drawn in rows.T:
            for j in range(D):
                step = weights[:, j] * (g[drawn, j] - g[:, j])
                found[:, j] += (_cross_entropy(eta + step[:, None] * self.directions[j], y) - before) / DRAWS
        return found

    def expected(self, feature: int | None = None, factor: float = 1.0, draw: Draw = independent) -> Array:
        """Return the importance of each feature, shape (8,), with one's weight multiplied, of one sample always."""
        factors = np.ones((_SAMPLE, D))
        if feature is not None:
            factors[:, feature] = factor
        rng = np.random.default_rng(3)
        found: Array = self.increments(draw(_SAMPLE, rng), rng, factors).mean(axis=0)
        return found


def stored_rows(n: int, rng: np.random.Generator) -> Ints:
    """Return the numbers of the rows drawn at each observation, shape (n, 2): those last put into two random slots.

    A row is put into a random slot with the probability 500 / 3000, 200 observations after it came; the first 500 are
    there from the beginning.
    """
    put = np.flatnonzero(rng.random(n) < SIZE / REACH)
    slot = rng.integers(0, SIZE, len(put))
    keys = np.concatenate([np.arange(SIZE) * n, slot * n + np.minimum(put + GAP, n - 1)])
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], np.concatenate([rng.permutation(SIZE), put])[order]
    wanted = rng.integers(0, SIZE, (n, DRAWS)) * n + np.arange(n)[:, None]
    found: Ints = rows[np.searchsorted(keys, wanted, side="right") - 1]
    return found


def _cross_entropy(eta: Array, y: Ints) -> Array:
    top = eta.max(axis=1)
    loss: Array = top + np.log(np.exp(eta - top[:, None]).sum(axis=1)) - eta[np.arange(len(y)), y]
    return loss
