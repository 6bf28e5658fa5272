"""Faulty sensors by iSAGE of an autoencoder's reconstruction error (iSAGE, section 4.1, Figs. 2 right and 13).

SIMULATED: the paper's readings of the L-Town network are not at hand. This stand-in has what the experiment needs, 29
pressures that go together, with a daily and a weekly course, hour by hour for a year, and two sensors that fail at the
paper's times. It is no hydraulic model, and its figures are not the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from attributary_explainers.typing import Features
from benchmarks.papers.explainers import as_batch, paper_sage
from benchmarks.papers.rows import Band, Quantity, Row, Run

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


N_SENSORS = 29
N_HOURS = 8760
WARM_UP = 168
"""Hours in which the model only learns: the errors of one that has just begun would outweigh a thousand later hours."""
FAULTS = (2160, 6840)
FAULT_DEVIATIONS = 8.0
"""How far a failing sensor's readings are off, in standard deviations of its own course: a few metres of pressure."""
WITHIN = 100
"""A faulty sensor has to rank first so many observations after its fault: the paper's figure shows it at once."""


def readings(
    seed: int, *, n: int = N_HOURS, faults: Sequence[int] = FAULTS
) -> tuple[npt.NDArray[np.float64], list[int]]:
    """Pressures, shape (hours, sensors), and which sensor fails at each of the times, for good.

    Demand has a daily and a weekly course and an autoregressive part; two slow, unseen levels move parts of the
    network. Each sensor reads its own mixture of the three, with a little noise. A fault is an offset.
    """
    rng = np.random.default_rng(seed)
    hours = np.arange(n)
    wander = np.zeros((n, 3))
    for t in range(1, n):
        wander[t] = (0.9, 0.99, 0.99) * wander[t - 1] + rng.normal(0.0, (0.1, 0.05, 0.05))
    daily = np.sin(2 * np.pi * (hours - 7) / 24) + 0.4 * np.sin(4 * np.pi * (hours - 3) / 24)
    weekly = np.where(hours // 24 % 7 >= 5, -0.3, 0.1)
    sources = np.column_stack([daily + weekly, np.zeros(n), np.zeros(n)]) + wander
    mixture = np.vstack([-rng.uniform(0.5, 1.5, N_SENSORS), rng.normal(0.0, 0.6, (2, N_SENSORS))])
    clean = rng.uniform(30.0, 60.0, N_SENSORS) + sources @ mixture
    pressures = clean + rng.normal(0.0, 0.05, clean.shape)
    faulty = rng.choice(N_SENSORS, len(faults), replace=False).tolist()
    for time, sensor in zip(faults, faulty, strict=True):
        pressures[time:, sensor] += FAULT_DEVIATIONS * clean[:, sensor].std()
    return pressures, faulty


def fault_detection(
    seed: int,
    *,
    n: int = N_HOURS,
    faults: Sequence[int] = FAULTS,
    n_samples: int = 10,
    within: int = WITHIN,
    warm_up: int = WARM_UP,
) -> Run:
    """Explain, then learn, reading by reading; how long each faulty sensor took to rank first, by absolute importance.

    A sensor that makes the reconstruction worse has a negative importance: without it the error would be lower. When
    the reservoir has filled with readings of the faulty sensor, removing it changes nothing any more; what then remains
    of its importance is what the smoothing has kept.
    """
    pressures, faulty = readings(seed, n=n, faults=faults)
    names = [f"p{i:02}" for i in range(N_SENSORS)]
    model = OnlineAutoencoder(names, seed=seed)
    sage = paper_sage(
        as_batch(model.score_many, features=names), loss="score", alpha=0.001, n_samples=n_samples, seed=seed
    )
    first: list[int | None] = [None] * len(faults)
    n_first = [0] * len(faults)
    for t, row in enumerate(pressures.tolist()):
        x = dict(zip(names, row, strict=True))
        importance = sage.explain_one(x) if t >= warm_up else {}
        top = max(importance, key=lambda name: abs(importance[name])) if importance else ""
        for k, (time, sensor) in enumerate(zip(faults, faulty, strict=True)):
            if t >= time and top == names[sensor]:
                first[k] = t - time if first[k] is None else first[k]
                n_first[k] += time + within <= t < time + 10 * within
        model.learn_one(x)
    values: dict[str, float] = {}
    for k, taken in enumerate(first):
        values[f"steps until fault {k + 1} ranks first"] = float("nan") if taken is None else float(taken)
        values[f"share of steps {within} to {10 * within} it ranks first, fault {k + 1}"] = n_first[k] / (9 * within)
    return Run(values)


def _quantities() -> tuple[Quantity, ...]:
    found = []
    for k in (1, 2):
        found += [
            Quantity(f"steps until fault {k} ranks first", "soon", "", Band.limit(0, WITHIN), "every"),
            Quantity(f"share of steps {WITHIN} to {10 * WITHIN} it ranks first, fault {k}"),
        ]
    return tuple(found)


ROWS = (
    Row(
        name="isage-sensors",
        title="iSAGE Sect. 4.1, Figs. 2 (right) and 13: SIMULATED stand-in, 29 sensors, faults at 2160 and 6840, "
        "autoencoder, m 10, alpha .001",
        quantities=_quantities(),
        run=lambda seed, settings: fault_detection(seed),
        n_short=3,
        n_full=10,
    ),
)
