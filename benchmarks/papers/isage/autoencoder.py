"""The undercomplete autoencoder of the sensor experiment, in numpy (iSAGE, appendix D.3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from attributary_explainers.typing import Features

Array = npt.NDArray[np.float64]


class OnlineAutoencoder:
    """Learns to give back standardised readings; a reading's score is the mean squared error.

    Layers d - 10 - 3 - 10 - d with tanh between them, one gradient step per observation, readings scaled by the running
    mean and standard deviation. The paper's is deep-river's, whose activation it does not name.

    Parameters
    ----------
    names
        The sensors, in the order of the input.
    rate
        Learning rate; the paper's is 0.05.
    """

    def __init__(
        self, names: Sequence[str], *, hidden: int = 10, latent: int = 3, rate: float = 0.05, seed: int
    ) -> None:
        self.names, self.rate = tuple(names), rate
        rng = np.random.default_rng(seed)
        sizes = (len(self.names), hidden, latent, hidden, len(self.names))
        self._weights: list[Array] = []
        for n_in, n_out in pairwise(sizes):
            self._weights.append(rng.normal(0.0, np.sqrt(2.0 / (n_in + n_out)), (n_in, n_out)))
        self._biases = [np.zeros(n_out) for n_out in sizes[1:]]
        self._n, self._mean, self._squares = 0, np.zeros(sizes[0]), np.zeros(sizes[0])

    def score_many(self, readings: Array) -> Array:
        """Reconstruction error of each row; 0 before there is anything to scale by."""
        if self._n < 2:
            return np.zeros(len(readings))
        scaled = self._scaled(readings)
        error: Array = ((self._forward(scaled)[-1] - scaled) ** 2).mean(axis=1)
        return error

    def learn_one(self, x: Features) -> None:
        """Take one reading into the scaling, and one gradient step."""
        reading = np.array([x[name] for name in self.names], dtype=np.float64)
        self._n += 1
        step = reading - self._mean
        self._mean = self._mean + step / self._n
        self._squares = self._squares + step * (reading - self._mean)
        if self._n < 2:
            return
        layers = self._forward(self._scaled(reading[None, :]))
        gradient = 2.0 * (layers[-1] - layers[0]) / len(self.names)
        for k in reversed(range(len(self._weights))):
            if k < len(self._weights) - 1:
                gradient = gradient * (1.0 - layers[k + 1] ** 2)
            passed = gradient @ self._weights[k].T
            self._weights[k] -= self.rate * layers[k].T @ gradient
            self._biases[k] -= self.rate * gradient.sum(axis=0)
            gradient = passed

    def _scaled(self, readings: Array) -> Array:
        deviation = np.sqrt(self._squares / self._n)
        return (readings - self._mean) / np.where(deviation > 0.0, deviation, 1.0)

    def _forward(self, scaled: Array) -> list[Array]:
        layers = [scaled]
        last = len(self._weights) - 1
        for k, (weights, biases) in enumerate(zip(self._weights, self._biases, strict=True)):
            passed = layers[-1] @ weights + biases
            layers.append(passed if k == last else np.tanh(passed))
        return layers
