"""The methods of the tables: ours, and those of others where they are installed.

shap and shapiq attribute single predictions. Here they are given the game of SAGE, minus the loss of the mean
prediction of a coalition over 30 of the rows: what they add is how they choose coalitions.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.inspection import permutation_importance

from attributary_explainers import batch_pfi, batch_sage

from .subjects import Array, Subject

Take = Callable[[Subject, int], Array]
"""A subject and a seed to importances."""

PEERS = {"shap": "shap", "shapiq": "shapiq", "sage": "sage-importance"}
_BACKGROUND = 30


@dataclass(frozen=True)
class Method:
    """One row of a table."""

    measure: str
    name: str
    take: Take
    needs: str | None = None
    is_standard: bool = False
    """Whether it is what the others are compared with."""


def absent() -> list[str]:
    """Return the names of what is not installed."""
    return [name for module, name in PEERS.items() if find_spec(module) is None]


def ours(method: Callable[..., Any], **options: Any) -> Take:
    def take(subject: Subject, seed: int) -> Array:
        given = {"loss": subject.loss, "seed": seed, **options}
        found = method(subject.model, subject.rows, subject.y.tolist(), **given)
        return np.array(list(found.importance.values()))

    return take


def of_sklearn(n_repeats: int) -> Take:
    def take(subject: Subject, seed: int) -> Array:
        def score(_estimator: Any, X: Array, y: Array) -> float:  # its own log loss clips probabilities elsewhere
            return -float(subject.losses(subject.predict(X), y).mean())

        options = {"n_repeats": n_repeats, "random_state": seed, "n_jobs": 1, "scoring": score}
        found: Array = permutation_importance(subject.estimator, subject.X, subject.y, **options).importances_mean
        return found

    return take


def of_sage(n_background: int, n_permutations: int) -> Take:
    def take(subject: Subject, seed: int) -> Array:
        sage = importlib.import_module("sage")
        rng = np.random.default_rng(seed)
        background = subject.X[rng.permutation(len(subject.X))[:n_background]]
        imputer = sage.MarginalImputer(subject.predict, background)
        loss = "mse" if subject.loss == "squared" else "cross entropy"
        estimator = sage.PermutationEstimator(imputer, loss, random_state=seed)
        options = {"n_permutations": n_permutations, "batch_size": min(n_permutations, 128), "bar": False}
        found = estimator(subject.X, subject.y, detect_convergence=False, verbose=False, **options)
        return np.asarray(found.values)

    return take


class Game:
    """Minus the mean loss of coalitions, each as a row of zeros and ones."""

    def __init__(self, subject: Subject, seed: int) -> None:
        self._subject = subject
        self._background = subject.X[np.random.default_rng(seed).permutation(len(subject.X))[:_BACKGROUND]]

    def __call__(self, coalitions: Array) -> Array:
        subject, z = self._subject, self._background
        found = []
        for kept in np.asarray(coalitions).astype(bool):
            rows = np.tile(z, (len(subject.X), 1))
            rows[:, kept] = np.repeat(subject.X[:, kept], len(z), axis=0)
            P = subject.predict(rows)
            mean = P.reshape(len(subject.X), len(z), *P.shape[1:]).mean(axis=1)
            found.append(-subject.losses(mean, subject.y).mean())
        return np.array(found)


def of_shap(subject: Subject, seed: int) -> Array:
    shap = importlib.import_module("shap")
    d = subject.X.shape[1]
    explainer = shap.PermutationExplainer(Game(subject, seed), np.zeros((1, d)), seed=seed)
    found: Array = explainer(np.ones((1, d)), max_evals=4 * d + 2, silent=True).values[0]
    return found


def of_shapiq(subject: Subject, seed: int) -> Array:
    shapiq = importlib.import_module("shapiq")
    d = subject.X.shape[1]
    approximator = shapiq.KernelSHAP(n=d, random_state=seed)
    found = approximator.approximate(budget=4 * d + 2, game=Game(subject, seed))
    return np.array([found[(j,)] for j in range(d)])


METHODS = (
    Method("PFI", "batch_pfi", ours(batch_pfi)),
    Method("PFI", "batch_pfi, 5 permutations", ours(batch_pfi, exact=False, n_permutations=5), is_standard=True),
    Method("PFI", "scikit-learn, 5 repeats", of_sklearn(5)),
    Method("SAGE", "batch_sage", ours(batch_sage)),
    Method("SAGE", "batch_sage, 10 draws", ours(batch_sage, exact=False, n_samples=10), is_standard=True),
    Method("SAGE", "sage-importance, 128 rows", of_sage(128, 256), "sage"),
    Method("SAGE", "shap, permutations", of_shap, "shap"),
    Method("SAGE", "shapiq, KernelSHAP", of_shapiq, "shapiq"),
)
