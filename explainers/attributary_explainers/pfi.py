"""Permutation feature importance on a stream: iPFI."""

from __future__ import annotations

from typing import Any

import numpy as np

from .removal_explainer import RemovalExplainer, is_representable
from .typing import Features, Prediction


class IncrementalPFI(RemovalExplainer):
    """How much the loss grows when a feature is replaced by one of a past observation (iPFI Algorithm 1).

    For each feature or group S, with M draws from the reservoir,

        lambda_t(S) = mean over draws of loss(h_t(x_t with S from the draw), y_t) - loss(h_t(x_t), y_t),
        phi_t(S) = (1 - alpha) phi_{t-1}(S) + alpha lambda_t(S),   phi_0 = 0.

    Every feature has its own draws. Cost: 1 + d * n_samples model evaluations per observation. With stratified draws,
    the default, four have about the standard error of ten independent ones; what more draws cannot lower is the share
    of the observations themselves, in alpha and in the size of the reservoir.

    Source: Fumagalli, Muschalik, Huellermeier, Hammer, Incremental Permutation Feature Importance (iPFI):
    Towards Online Explanations on Data Streams, Machine Learning 112, 2023, Definition 4 and Algorithm 1.
    Deviations: `importance` is divided by 1 - (1 - alpha)^n (their Theorem 2; `raw_importance` is the paper's); draws
    are spread over the reservoir by the values of the feature (`sampling="independent"` is the paper's).

    Parameters are those of `RemovalExplainer`.

    Examples
    --------
    >>> from river.datasets import synth
    >>> from river.naive_bayes import GaussianNB
    >>> model = GaussianNB()
    >>> pfi = IncrementalPFI(model, loss="zero_one", alpha=0.01, n_samples=5, seed=7)
    >>> for x, y in synth.STAGGER(classification_function=2, seed=7).take(1000):
    ...     importance = pfi.explain_one(x, y)
    ...     model.learn_one(x, y)
    >>> max(importance, key=importance.get)  # this concept: size is medium or large
    'size'
    >>> again = IncrementalPFI.from_snapshot(pfi.snapshot(), model)
    >>> again.explain_one(x, y) == pfi.explain_one(x, y)
    True
    """

    name = "pfi"

    def _update(self, x: Features, y: Any, y_pred: Prediction) -> str | None:
        players = self._players(x)
        n = self.n_samples if self.imputer.n_independent else 1
        draws = self.imputer.replace_each(x, players, n, self._rng)
        predictions = self._evaluate([row for rows in draws.rows for row in rows])
        if predictions is None:
            return "no_prediction"
        # The mean of differences, not the difference of means: exactly 0 where no draw changes the prediction.
        loss = self.loss(y, y_pred)
        losses = [self.loss(y, prediction) for prediction in predictions]
        with np.errstate(all="ignore"):
            growth = np.array(losses).reshape(len(players), n) - loss
        if not is_representable(growth):
            return "not_finite"
        self._watch.update((loss, *losses))
        self._smoothed.update(
            dict(zip(players, growth.mean(axis=1).tolist(), strict=True)), parts=growth, slots=draws.slots
        )
        return None
