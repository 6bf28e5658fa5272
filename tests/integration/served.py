"""A trained model of scikit-learn, as a server has it and in this process."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from attributary_explainers import as_batch

FEATURES = ("a", "b", "c")


@lru_cache
def trained() -> DecisionTreeClassifier:
    """Return a tree, whose predictions are the same bits whatever rows come together."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (2000, 3))
    return DecisionTreeClassifier(max_depth=6, random_state=1).fit(X, X[:, 0] + 0.3 * X[:, 1] * X[:, 2] > 0)


def probabilities(rows: list[dict[str, Any]]) -> list[list[float]]:
    """Predict rows by name, for a server."""
    found: list[list[float]] = trained().predict_proba([[row[name] for name in FEATURES] for row in rows]).tolist()
    return found


def own_model() -> Any:
    """Return the model in this process: the factory of a configuration."""
    return as_batch(trained().predict_proba, features=FEATURES, classes=[False, True])


FACTORY = "tests.integration.served:own_model"
