"""Calibrates a classifier's probabilities on reference observations."""

from __future__ import annotations

from typing import Self

import numpy as np

from ...typing import Array, Ints, Snapshot

CLIP = 1e-3
"""Probabilities are at least this before a logarithm: one surprise costs 6.9 nats at most."""

_RIDGE = 4.0
"""So many observations speak for a temperature of 1 and no bias."""
_EDGES = (0.005, 0.01, 0.025, *(i / 20 for i in range(1, 20)), 0.975, 0.99, 0.995)


def clipped(p: Array) -> Array:
    """Return probabilities >= `CLIP` that sum to 1; shape (rows, classes)."""
    q: Array = np.minimum(np.maximum(p, CLIP), 1.0)
    return np.asarray(q / np.add.reduce(q, axis=1, keepdims=True))


def entropies(q: Array) -> Array:
    """Return each row's expected log loss under q, in nats; shape (rows,)."""
    return np.asarray(-np.einsum("nk,nk->n", q, np.log(q)))


class Calibration:
    """Reads probabilities as they came true on the reference observations.

    q = softmax(a log p + b), where a and b make the reference observations most likely: a model that is too sure of
    itself, or not sure enough, then expects to lose what it lost there. A second correction (`expected_excess`) is what
    it lost beyond that, by how sure it was. Without reference observations q is p.
    """

    def __init__(self, n_classes: int) -> None:
        self.temperature = 1.0
        self.bias: Array = np.zeros(n_classes)
        self.centre: Array = np.zeros(n_classes)
        self.excess: Array = np.zeros(len(_EDGES) + 1)
        """By bin of what is expected to be lost (of two classes: of the second one's probability)."""

    @classmethod
    def of(cls, p: Array, y: Ints) -> Self:
        """Return the calibration of probabilities p against true classes y.

        p has the shape (rows, classes); y holds the column of each row's class.
        """
        found = cls(p.shape[1])
        logs, hits = np.log(clipped(p)), _one_hot(y, p.shape[1])
        found._fit(logs, hits)
        q = found(p)
        # The slope does not move with the base rate, to first order, where each log q is taken from this centre.
        weights = np.diag(q.sum(axis=0)) - q.T @ q
        logq = np.log(q)
        pull = (q * logq).sum(axis=0) - q.T @ (q * logq).sum(axis=1)
        found.centre = np.linalg.lstsq(weights, pull, rcond=None)[0]
        found.excess = _by_bin(_place(q), ((q - hits) * logq).sum(axis=1))
        return found

    def __call__(self, p: Array) -> Array:
        """Return q; shapes (rows, classes)."""
        return self.of_logs(np.log(clipped(p)))

    def of_logs(self, logs: Array) -> Array:
        """Return q from log clipped probabilities; shapes (rows, classes)."""
        z = np.exp(self.temperature * logs + (self.bias - self.bias.max()))
        return clipped(z / np.add.reduce(z, axis=1, keepdims=True))

    def expected_excess(self, q: Array) -> Array:
        """Return what reference rows with like q lost beyond q; shape (rows,)."""
        return np.asarray(self.excess[np.searchsorted(_EDGES, _place(q), side="right")])

    def _fit(self, logs: Array, hits: Array) -> None:
        n_classes = logs.shape[1]
        theta, start = np.zeros(n_classes + 1), np.zeros(n_classes + 1)
        theta[0] = start[0] = 1.0
        for _ in range(25):
            z = theta[0] * logs + theta[1:]
            z -= z.max(axis=1, keepdims=True)
            q = np.exp(z)
            q /= q.sum(axis=1, keepdims=True)
            off = q - hits
            slope = np.r_[(off * logs).sum(), off.sum(axis=0)] + _RIDGE * (theta - start)
            mean = (q * logs).sum(axis=1, keepdims=True)
            across = (q * (logs - mean)).sum(axis=0)
            bend = np.zeros((n_classes + 1, n_classes + 1))
            bend[0, 0] = (q * (logs - mean) ** 2).sum()
            bend[0, 1:] = bend[1:, 0] = across
            bend[1:, 1:] = np.diag(q.sum(axis=0)) - q.T @ q
            step = np.linalg.solve(bend + _RIDGE * np.eye(n_classes + 1), slope)
            theta = theta - np.clip(step, -2.0, 2.0)
            if abs(step).max() < 1e-9:
                break
        # A model whose probabilities say nothing has a temperature near 0: its order is not to be turned round.
        self.temperature, self.bias = max(float(theta[0]), 0.05), theta[1:]

    def with_classes(self, n_classes: int) -> None:
        """Know more classes, of which the reference observations had none."""
        more = (0, n_classes - len(self.bias))
        self.bias, self.centre = np.pad(self.bias, more), np.pad(self.centre, more)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "temperature": self.temperature,
            "bias": self.bias.tolist(),
            "centre": self.centre.tolist(),
            "excess": self.excess.tolist(),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the calibration that the snapshot was taken of."""
        found = cls(len(snapshot["bias"]))
        found.temperature = snapshot["temperature"]
        found.bias, found.centre = np.array(snapshot["bias"]), np.array(snapshot["centre"])
        found.excess = np.array(snapshot["excess"])
        return found


def _one_hot(y: Ints, n_classes: int) -> Array:
    hits = np.zeros((len(y), n_classes))
    hits[np.arange(len(y)), y] = 1.0
    return hits


def _place(q: Array) -> Array:
    """Return the second of two probabilities, or entropies in [0, 1]."""
    if q.shape[1] == 2:
        return np.asarray(q[:, 1])
    return np.asarray(entropies(q) / np.log(max(q.shape[1], 2)))


def _by_bin(place: Array, values: Array) -> Array:
    """Return the mean value of each bin, shrunk towards 0 by its noise.

    This is empirical Bayes: only the spread of the means beyond their errors is kept.
    """
    at = np.searchsorted(_EDGES, place, side="right")
    n = np.bincount(at, minlength=len(_EDGES) + 1).astype(np.float64)
    known = n >= 2
    many = np.maximum(n, 1.0)
    mean = np.bincount(at, weights=values, minlength=len(n)) / many
    error = np.maximum(np.bincount(at, weights=values**2, minlength=len(n)) / many - mean**2, 1e-12) / many
    if not known.any():
        return np.zeros(len(n))
    weights = n[known] / n[known].sum()
    beyond = max(0.0, float((weights * (mean[known] ** 2 - error[known])).sum()))
    return np.where(known, mean * beyond / (beyond + error), 0.0)
