"""The methods of the tables, ours and those of others, and what they take of a subject."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.inspection import permutation_importance

from attributary_explainers import batch_pfi, batch_sage, exact_sage, expected_pfi
from benchmarks.batch.subjects import Array, Subject

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


SEEDS = range(3)


@dataclass(frozen=True)
class Row:
    """What a method took of a subject, the mean over the seeds."""

    measure: str
    method: str
    error: float
    """Root mean square over features and seeds."""
    scale: float
    """The largest importance."""
    seconds: float
    calls: int
    rows: int
    is_standard: bool


def exact_of(subject: Subject, measure: str) -> Array:
    """Return the exact values of a subject's data."""
    method = expected_pfi if measure == "PFI" else exact_sage
    found = method(subject.model, subject.rows, subject.y.tolist(), loss=subject.loss)
    return np.array(list(found.importance.values()))


def measured(subject: Subject, methods: Sequence[Method]) -> list[Row]:
    """Return a row for each method that is installed and that the subject is for."""
    return list(_measured(subject, methods))


def _measured(subject: Subject, methods: Sequence[Method]) -> Iterator[Row]:
    exact: dict[str, Array] = {}
    for method in methods:
        if method.measure == "SAGE" and not subject.has_sage:
            continue
        if method.needs is not None and find_spec(method.needs) is None:
            continue
        if method.measure not in exact:
            exact[method.measure] = exact_of(subject, method.measure)
        truth = exact[method.measure]
        subject.counted.calls = subject.counted.rows = 0
        began = time.process_time()
        found = [method.take(subject, seed) for seed in SEEDS]
        seconds = (time.process_time() - began) / len(SEEDS)
        yield Row(
            method.measure,
            method.name,
            float(np.sqrt(np.mean([(of - truth) ** 2 for of in found]))),
            float(np.abs(truth).max()),
            seconds,
            subject.counted.calls // len(SEEDS),
            subject.counted.rows // len(SEEDS),
            method.is_standard,
        )
