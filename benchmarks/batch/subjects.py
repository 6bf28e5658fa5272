"""Models and data of the tables: a forest, boosted trees, deep trees, many features, and a model without leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

import numpy as np
import numpy.typing as npt
from river.datasets import synth
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attributary_explainers import SklearnModel

Array = npt.NDArray[Any]


class Counted:
    """Counts what is asked of an estimator's predictions; everything else is the estimator's."""

    def __init__(self, estimator: Any) -> None:
        self.calls = self.rows = 0
        for method in ("predict", "predict_proba"):
            if hasattr(estimator, method):
                setattr(estimator, method, self._counting(getattr(estimator, method)))

    def _counting(self, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @wraps(method)
        def counted(X: Any) -> Any:
            self.calls, self.rows = self.calls + 1, self.rows + len(X)
            return method(X)

        return counted


@dataclass
class Subject:
    """A fitted estimator, and the observations to explain."""

    title: str
    estimator: Any
    X: Array
    y: Array
    loss: str
    has_sage: bool = True

    def __post_init__(self) -> None:
        self.counted = Counted(self.estimator)

    @cached_property
    def names(self) -> list[str]:
        """Names of the features."""
        return [f"f{j}" for j in range(self.X.shape[1])]

    @cached_property
    def model(self) -> SklearnModel:
        """The estimator as we take it."""
        return SklearnModel(self.estimator, features=self.names)

    @cached_property
    def rows(self) -> list[dict[str, float]]:
        """The observations as we take them."""
        return [dict(zip(self.names, row, strict=True)) for row in self.X.tolist()]

    def predict(self, X: Array) -> Array:
        """Return probabilities, or numbers."""
        found: Array = self.estimator.predict(X) if self.loss == "squared" else self.estimator.predict_proba(X)
        return found

    def losses(self, P: Array, y: Array) -> Array:
        """Return the loss of each prediction; classes are 0, 1, …."""
        if self.loss == "squared":
            squared: Array = (P - y) ** 2
            return squared
        of_label = P[np.arange(len(y)), y.astype(int)]
        found: Array = -np.log(np.clip(of_label, 1e-15, 1.0 - 1e-15))
        return found


def _agrawal() -> tuple[Array, Array]:
    rows = list(synth.Agrawal(classification_function=4, seed=5, perturbation=0.05).take(3000))
    return np.array([[float(v) for v in x.values()] for x, _ in rows]), np.array([int(y) for _, y in rows])


def _classes(title: str, estimator: Any, n: int, *, has_sage: bool = True) -> Subject:
    X, y = _agrawal()
    return Subject(title, estimator.fit(X[:2000], y[:2000]), X[2000:][:n], y[2000:][:n], "cross_entropy", has_sage)


def _made() -> tuple[Array, Array]:
    """Numbers as of houses: eight features, of which some act together."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.gamma(2.0, 2.0, 3000), rng.integers(1, 53, 3000), rng.normal(size=(3000, 6))])
    return X, X[:, 0] + 0.02 * X[:, 1] * X[:, 2] + np.abs(X[:, 3]) * X[:, 4] + 0.3 * rng.normal(size=3000)


def forest(n: int | None) -> Subject:
    estimator = RandomForestClassifier(n_estimators=20, max_depth=6, random_state=0, n_jobs=1)
    return _classes("random forest of 20 trees, depth 6, Agrawal", estimator, n or 1000)


def boosted(n: int | None) -> Subject:
    X, y = _made()
    estimator = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(X[:2000], y[:2000])
    title = "histogram gradient boosting, 60 iterations, made data"
    return Subject(title, estimator, X[2000:][: n or 200], y[2000:][: n or 200], "squared")


def boosted_classes(n: int | None) -> Subject:
    estimator = GradientBoostingClassifier(n_estimators=100, random_state=0)
    return _classes("gradient boosting of 100 trees, Agrawal", estimator, n or 1000, has_sage=False)


def deep(n: int | None) -> Subject:
    X, y = load_diabetes(return_X_y=True)
    estimator = RandomForestRegressor(100, random_state=0, n_jobs=1).fit(X[:300], y[:300])
    return Subject("random forest of 100 deep trees, diabetes", estimator, X[300:][:n], y[300:][:n], "squared")


def digits(n: int | None) -> Subject:
    X, y = load_digits(return_X_y=True)
    estimator = RandomForestClassifier(100, random_state=0, n_jobs=1).fit(X[:1200], y[:1200])
    X, y = X[1200:][:n], y[1200:][:n]
    return Subject("random forest of 100 deep trees, ten digits", estimator, X, y, "cross_entropy", has_sage=False)


def linear(n: int | None) -> Subject:
    return _classes("logistic regression, Agrawal", make_pipeline(StandardScaler(), LogisticRegression()), n or 200)


SUBJECTS: dict[str, Callable[[int | None], Subject]] = {
    "forest": forest,
    "boosted": boosted,
    "boosted_classes": boosted_classes,
    "deep": deep,
    "digits": digits,
    "linear": linear,
}
