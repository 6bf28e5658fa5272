"""Streams with a known change, cheap models, and what a change explainer tells of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from river import base, linear_model, optim, preprocessing

from attributary_explainers import ChangeExplainer, ChangeExplanation

Row = tuple[dict[str, float], Any]


def regression(
    n: int, coefficients: Callable[[int], tuple[float, ...]], *, seed: int, noise: float = 1.0, scale: float = 1.0
) -> Iterator[Row]:
    """y = scale (c(t) x + noise), x three uniform features in [-2, 2]; c of the observation, counted from 0."""
    rng = np.random.default_rng(seed)
    xs, errors = rng.uniform(-2, 2, size=(n, 3)), rng.logistic(size=n)
    for t in range(n):
        yield dict(zip("abc", xs[t].tolist(), strict=True)), scale * float(xs[t] @ coefficients(t) + noise * errors[t])


def linear(rate: float = 0.01) -> Any:
    """A linear regression that learns at any scale of inputs and targets."""
    regressor = linear_model.LinearRegression(optimizer=optim.SGD(rate), intercept_lr=rate)
    return preprocessing.TargetStandardScaler(preprocessing.StandardScaler() | regressor)


class Cells(base.Classifier):
    """Predicts the smoothed share of each label in the cell of a row: what two or three binary features say.

    Parameters
    ----------
    rate
        Of smoothing; 0 does not learn.
    """

    def __init__(self, features: str = "ab", rate: float = 0.02, n_classes: int = 2) -> None:
        self.features, self.rate, self.n_classes = features, rate, n_classes
        self.cells: dict[tuple[Any, ...], list[float]] = {}

    def _cell(self, x: dict[str, Any]) -> list[float]:
        key = tuple(x[f] for f in self.features)
        return self.cells.setdefault(key, [1.0 / self.n_classes] * self.n_classes)

    def predict_proba_one(self, x: dict[str, Any], **_: Any) -> dict[Any, float]:
        """The shares."""
        return dict(enumerate(self._cell(x)))

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        """Smooth."""
        if self.rate == 0.0:
            return
        cell = self._cell(x)
        for label in range(self.n_classes):
            cell[label] += self.rate * (float(label == y) - cell[label])


def bits(n: int, rule: Callable[[dict[str, int], int], int], *, seed: int, flips: float = 0.1) -> Iterator[Row]:
    """Three fair bits; the label is a rule of them and of the observation, counted from 0, with some labels flipped."""
    rng = np.random.default_rng(seed)
    xs, flipped = rng.integers(2, size=(n, 3)).tolist(), rng.random(n) < flips
    for t in range(n):
        x = dict(zip("abc", xs[t], strict=True))
        yield x, rule(x, t) ^ int(flipped[t])


def told(change: ChangeExplainer, model: Any, stream: Iterable[Row], wrap: Any = None) -> list[Any]:
    """Prediction, learning, update: all events."""
    predict = getattr(model, "predict_proba_one", None) or model.predict_one
    found = []
    for x, y in stream:
        y_pred = predict(x)
        model.learn_one(x, y)
        found += change.update(x, y, y_pred)
    return found


def verdicts(events: Iterable[Any]) -> list[str | None]:
    """What the explanations say, in their order."""
    return [event.verdict for event in events if isinstance(event, ChangeExplanation)]
