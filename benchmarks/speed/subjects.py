"""The models that are explained, each on its stream; and the streams that grow."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Number
from typing import Any

from river import compose, ensemble, forest, linear_model, naive_bayes, neighbors, preprocessing, tree
from river.datasets import synth

Observation = tuple[dict[str, Any], Any]

DRIFT = 20_000
"""Observations after which `agrawal` goes on with another function."""


TEXTS = ("car", "elevel", "zipcode")
"""Features of Agrawal that are categories."""


@dataclass(frozen=True)
class Subject:
    """A model on a stream.

    Parameters
    ----------
    targets
        The largest ratios of processor time that are aimed at, of iPFI and of iSAGE with ten draws; None: no aim.
    quick
        Whether an observation takes so little time that more of them are measured.
    """

    name: str
    title: str
    stream: Callable[[], Iterator[Observation]]
    make: Callable[[], Any]
    loss: str = "cross_entropy"
    targets: tuple[float, float] | None = None
    quick: bool = False

    def predict(self, model: Any) -> Callable[[dict[str, Any]], Any]:
        """River's own method, which predicts what the loss reads."""
        method: Callable[[dict[str, Any]], Any]
        method = model.predict_one if self.loss == "squared" else model.predict_proba_one
        return method


def agrawal() -> Iterator[Observation]:
    """Nine features; functions 1, 3 and 6 in turn."""
    rounds = 0
    while True:
        for function in (1, 3, 6):
            yield from synth.Agrawal(classification_function=function, seed=1 + rounds).take(DRIFT)
            rounds += 1


def mixed() -> Iterator[Observation]:
    """Agrawal's features, three of them text."""
    for x, y in agrawal():
        yield {name: f"{name[0]}{value}" if name in TEXTS else value for name, value in x.items()}, y


def canonical() -> Any:
    """What River's documentation shows for numbers and text: a scaler for the ones, one-hot columns for the others."""
    numbers = compose.SelectType(Number) | preprocessing.StandardScaler()
    texts = compose.SelectType(str) | preprocessing.OneHotEncoder()
    return (numbers + texts) | linear_model.LogisticRegression()


def rbf(d: int) -> Iterator[Observation]:
    """d numbers around 50 centroids of two classes."""
    stream = synth.RandomRBF(seed_model=1, seed_sample=2, n_classes=2, n_features=d, n_centroids=50)
    for x, y in stream:
        yield {f"f{feature}": value for feature, value in x.items()}, y


def friedman() -> Iterator[Observation]:
    """Friedman's regression: ten numbers in [0, 1], five of which matter."""
    rng = random.Random(1)
    while True:
        v = [rng.random() for _ in range(10)]
        y = 10 * math.sin(math.pi * v[0] * v[1]) + 20 * (v[2] - 0.5) ** 2 + 10 * v[3] + 5 * v[4] + rng.gauss(0, 1)
        yield {f"f{feature}": value for feature, value in enumerate(v)}, y


def arf(n_models: int) -> Any:
    """An adaptive random forest."""
    return forest.ARFClassifier(n_models=n_models, seed=1)


SUBJECTS = (
    Subject("arf10", "ARF of 10, Agrawal, d 9", agrawal, lambda: arf(10), targets=(1.05, 1.1)),
    Subject("arf10-rbf", "ARF of 10, RBF, d 30", lambda: rbf(30), lambda: arf(10), targets=(1.25, 1.25)),
    Subject("arf50", "ARF of 50, Agrawal, d 9", agrawal, lambda: arf(50), targets=(1.15, 1.15)),
    Subject(
        "arf-regressor",
        "ARF regressor of 10, Friedman, d 10",
        friedman,
        lambda: forest.ARFRegressor(n_models=10, seed=1),
        loss="squared",
        targets=(1.3, 1.3),
    ),
    Subject(
        "tree", "Hoeffding tree, d 9", agrawal, lambda: tree.HoeffdingTreeClassifier(), targets=(1.4, 1.6), quick=True
    ),
    Subject(
        "hat",
        "Hoeffding adaptive tree, d 9",
        agrawal,
        lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
        targets=(1.25, 1.4),
        quick=True,
    ),
    Subject(
        "leveraging-bagging",
        "leveraging bagging of 10 trees, d 9",
        agrawal,
        lambda: ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), n_models=10, seed=1),
        targets=(1.05, 1.05),
    ),
    Subject(
        "linear",
        "scaler, logistic regression, d 9",
        agrawal,
        lambda: compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
        targets=(1.6, 2.2),
        quick=True,
    ),
    Subject("mixed", "scaler, one-hot encoder, logistic regression, d 9", mixed, canonical, quick=True),
    Subject(
        "naive-bayes",
        "Gaussian naive Bayes, d 9",
        agrawal,
        lambda: naive_bayes.GaussianNB(),  # type: ignore[no-untyped-call]
        targets=(0.4, 0.4),
        quick=True,
    ),
    Subject(
        "knn",
        "kNN of the last 1000, d 9",
        agrawal,
        lambda: neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=1000)),
        targets=(0.8, 0.8),
    ),
)

SUBJECTS_BY_NAME = {subject.name: subject for subject in SUBJECTS}
