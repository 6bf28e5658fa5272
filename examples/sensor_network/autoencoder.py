"""An autoencoder that learns one observation at a time, in numpy alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Array = npt.NDArray[np.float64]

_BURN_IN = 50
"""Observations that only the scale of the sensors is learnt of."""
_CLIP = 5.0
"""Spreads from the mean beyond which nothing more is learnt: one spike must not undo what was learnt before."""


class Autoencoder:
    """Squeezes observations through a narrow layer; the score is the mean squared error of what comes out.

    The layers are those of the iSAGE paper, d, hidden, latent, hidden, d, with a linear last one; the input is scaled
    by mean and spread of all that came before. The features are those of the first observation. One that is missing
    later counts as average.

    Parameters
    ----------
    hidden, latent
        Units of the outer layers, and of the narrow one.
    learning_rate
        Of the gradient step that each observation makes. Where it is large, a fault that lasts is soon learnt, and is
        no anomaly any more.
    seed
        Of the first weights.
    """

    def __init__(self, hidden: int = 10, latent: int = 3, learning_rate: float = 0.005, seed: int = 1) -> None:
        self.hidden, self.latent, self.learning_rate, self.seed = hidden, latent, learning_rate, seed
        self.names: list[str] = []
        self.n = 0
        self.mean: Array = np.empty(0)
        self.squares: Array = np.empty(0)
        self.weights: list[Array] = []
        self.biases: list[Array] = []

    def score_one(self, x: dict[str, Any]) -> float | None:
        """Return the error of one observation; None before anything was learnt."""
        if self.n <= _BURN_IN:
            return None
        return float(self._errors(self._scaled(self._row(x)[None]))[0])

    def score_many(self, X: pd.DataFrame) -> Any:
        """Return the errors of many, one row each."""
        if self.n <= _BURN_IN:
            return [None] * len(X)
        return self._errors(self._scaled(X.reindex(columns=self.names).to_numpy(dtype=np.float64)))

    def learn_one(self, x: dict[str, Any]) -> None:
        """Take one gradient step towards giving `x` back."""
        if not self.names:
            self._begin(x)
        row = self._row(x)
        self.n += 1
        there = ~np.isnan(row)
        difference = np.where(there, row - self.mean, 0.0)
        self.mean = self.mean + difference / self.n
        self.squares = self.squares + difference * np.where(there, row - self.mean, 0.0)
        if self.n > _BURN_IN:
            self._descend(np.clip(self._scaled(row[None])[0], -_CLIP, _CLIP))

    def _begin(self, x: dict[str, Any]) -> None:
        self.names = sorted(x)
        d = len(self.names)
        self.mean, self.squares = np.nan_to_num(self._row(x)), np.zeros(d)
        sizes = [d, self.hidden, self.latent, self.hidden, d]
        rng = np.random.default_rng(self.seed)
        self.weights = [rng.normal(0.0, n**-0.5, (n, m)) for n, m in pairwise(sizes)]
        self.biases = [np.zeros(m) for m in sizes[1:]]

    def _row(self, x: dict[str, Any]) -> Array:
        values = [x.get(name) for name in self.names]
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    def _scaled(self, X: Array) -> Array:
        spread = np.sqrt(np.maximum(self.squares / max(self.n, 1), 1e-12))
        return np.nan_to_num((X - self.mean) / spread)

    def _layers(self, Z: Array) -> list[Array]:
        found = [Z]
        for i, (weights, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            Z = Z @ weights + bias
            Z = Z if i == len(self.weights) - 1 else np.tanh(Z)
            found.append(Z)
        return found

    def _errors(self, Z: Array) -> Array:
        errors: Array = np.mean((self._layers(Z)[-1] - Z) ** 2, axis=1)
        return errors

    def _descend(self, z: Array) -> None:
        layers = self._layers(z)
        gradient = 2.0 * (layers[-1] - z) / len(z)
        for i in range(len(self.weights) - 1, -1, -1):
            below = (self.weights[i] @ gradient) * (1.0 - layers[i] ** 2)  # not read of the lowest layer
            self.weights[i] = self.weights[i] - self.learning_rate * np.outer(layers[i], gradient)
            self.biases[i] = self.biases[i] - self.learning_rate * gradient
            gradient = below
