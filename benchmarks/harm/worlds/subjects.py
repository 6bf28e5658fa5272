"""Frozen models of the populations, with the columns in the order of what they are worth to the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attributary_explainers import as_batch
from benchmarks.harm.worlds.measures import log_loss
from benchmarks.harm.worlds.populations import LOANS, PUMPS, UNREAD, Array, Population, labels, latent

TAUGHT = 60_000
READ = [j for j in range(20) if j not in UNREAD]


@dataclass
class Subject:
    """A population and a model that was taught on it once. `scale` multiplies the logits of the model."""

    name: str
    population: Population
    fitted: Any
    scale: float = 1.0

    def predict(self, x: Array) -> Array:
        """Probability of label 1, of rows (n, 20)."""
        p = self.fitted.predict_proba(x[:, READ])[:, 1]
        return p if self.scale == 1.0 else np.asarray(expit(self.scale * logit(np.clip(p, 1e-9, 1 - 1e-9))))

    def table(self, x: Array) -> Array:
        """Probabilities (n, 2)."""
        p = self.predict(x)
        return np.column_stack((1.0 - p, p))

    @property
    def model(self) -> Any:
        """What an explainer takes."""
        return as_batch(self.table, features=self.population.names, classes=[0, 1])

    @cached_property
    def sample(self) -> Array:
        """Clean rows that no trial sees."""
        return self.population.inputs(latent(np.random.default_rng(31), 20_000))

    @cached_property
    def ranked(self) -> tuple[int, ...]:
        """Columns by what the log loss rises by when they are permuted, the most important first."""
        rng = np.random.default_rng(32)
        truth = self.population.probability(self.sample)
        clean = log_loss(truth, self.predict(self.sample))
        order = rng.permutation(len(truth))
        rise = {}
        for j in READ:
            x = self.sample.copy()
            x[:, j] = x[order, j]
            rise[j] = log_loss(truth, self.predict(x)) - clean
        return tuple(sorted(rise, key=lambda j: -rise[j]))


@lru_cache
def _fitted(name: str) -> Any:
    population, make, seed = _MODELS[name]
    rng = np.random.default_rng(seed)
    x = population.inputs(latent(rng, TAUGHT))
    return make().fit(x[:, READ], labels(rng, population.probability(x)))


_MODELS: dict[str, tuple[Population, Callable[[], Any], int]] = {
    "linear": (LOANS, lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)), 11),
    "boosted": (
        PUMPS,
        lambda: HistGradientBoostingClassifier(
            max_iter=150, max_leaf_nodes=16, min_samples_leaf=200, l2_regularization=10.0, random_state=0
        ),
        12,
    ),
}

SUBJECTS = tuple(_MODELS)


@lru_cache
def subject(name: str, scale: float = 1.0) -> Subject:
    """`linear` or `boosted`; taught once a process."""
    return Subject(name, _MODELS[name][0], _fitted(name), scale)
