"""SAGE values: each feature's Shapley share of how much the model's predictions lower the loss (iSAGE)."""

from __future__ import annotations

import math
from typing import Any

from .base import IncrementalExplainer
from .models import is_usable
from .removal import keep
from .smoothing import SmoothedMean, SmoothedPrediction, mean_prediction
from .typing import Features, Importance, Prediction, Snapshot


class IncrementalSAGE(IncrementalExplainer):
    """Interventional SAGE values, updated with every observation (iSAGE Algorithm 1).

    Per observation a permutation of the features is drawn and walked. Coalition S grows by one feature at a
    time; its prediction is the mean over m = n_samples whole rows of the reservoir,

        y_S = mean over draws of h_t(x_S, draw_notS),      y_{} = smoothed mean prediction, h_t(x_t) included,
        Delta(feature) = loss(y_S without it) - loss(y_S with it),
        phi_t = (1 - alpha) phi_{t-1} + alpha Delta.

    The last coalition is all features, y = h_t(x_t). Efficiency holds exactly at every step: the importances
    sum to `marginal_loss - model_loss`. Cost: 1 + (d - 1) * n_samples model evaluations per observation.

    With few draws a convex loss is biased: loss(mean of draws) exceeds loss(expectation). STAGGER concept A.1
    under cross-entropy at .95/.05 has the values 0.152, 0.152, 0, and 0.198, 0.198, -0.093 in the limit for
    one draw. Use ten draws or more where the model is cheap, and a reservoir larger than that: draws repeat rows.

    Source: Muschalik, Fumagalli, Hammer, Huellermeier, iSAGE: An Incremental Version of SAGE for Online
    Explanation on Data Streams, ECML PKDD 2023, Algorithms 1 and 2, Definition 3.
    Deviations: means are weighted with weights that sum to 1 (both for phi and for y_{}), which starts them at
    the first value as Definition 3 says but does not leave that value a weight of (1 - alpha)^n;
    the reservoir takes the observation after it is explained; the m rows are drawn once per observation and serve
    all its coalitions, which leaves each coalition's expectation as it is and takes most of the noise out of the
    differences.

    Parameters are those of `IncrementalExplainer`.

    Examples
    --------
    >>> from river.datasets import synth
    >>> concept = lambda x: float(x["size"] == 0 and x["color"] == 0)
    >>> sage = IncrementalSAGE(concept, loss="squared", alpha=0.001, seed=7)
    >>> for x, y in synth.STAGGER(classification_function=0, seed=7).take(2000):
    ...     importance = sage.explain_one(x, y)
    >>> abs(sum(importance.values()) - (sage.marginal_loss - sage.model_loss)) < 1e-9
    True
    """

    name = "sage"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._marginal = SmoothedPrediction(self.alpha)
        self._marginal_loss = SmoothedMean(self.alpha)
        self._model_loss = SmoothedMean(self.alpha)

    @property
    def marginal_loss(self) -> float | None:
        """Smoothed loss of the smoothed mean prediction: what a model that knows no feature would lose."""
        return self._marginal_loss.value

    @property
    def model_loss(self) -> float | None:
        """Smoothed loss of the model itself, over the same observations."""
        return self._model_loss.value

    def _increments(self, x: Features, y: Any, y_pred: Prediction) -> Importance | None:
        players = self._players(x)
        names = list(players)
        order = [names[i] for i in self._rng.permutation(len(names)).tolist()]
        n = self.n_samples
        # The same rows for every coalition: a feature that the model ignores then changes no prediction on the walk.
        stored = [self.reservoir.rows[i] for i in self._rng.integers(len(self.reservoir), size=n).tolist()]
        rows = [keep(x, order[: k + 1], draw, players) for k in range(len(order) - 1) for draw in stored]
        predictions = self._evaluate(rows)
        if y_pred is None or not all(map(is_usable, predictions)):
            return None
        # An infinite loss, and the prediction behind it, would stay in the means for ever.
        model_loss = self.loss(y, y_pred)
        if not math.isfinite(model_loss):
            return None
        marginal_loss = previous = self.loss(y, self._marginal.update(y_pred))
        increments: Importance = {}
        for k, name in enumerate(order):
            last = k == len(order) - 1
            loss = model_loss if last else self.loss(y, mean_prediction(predictions[k * n : (k + 1) * n]))
            increments[name] = previous - loss
            previous = loss
        if not all(map(math.isfinite, increments.values())):
            return None  # before the two means below: one infinite loss would stay in them for ever
        self._marginal_loss.update(marginal_loss)
        self._model_loss.update(previous)
        return increments

    def _extra_snapshot(self) -> Snapshot:
        return {
            "marginal": self._marginal.snapshot(),
            "marginal_loss": self._marginal_loss.snapshot(),
            "model_loss": self._model_loss.snapshot(),
        }

    def _restore_extra(self, snapshot: Snapshot) -> None:
        self._marginal = SmoothedPrediction.from_snapshot(snapshot["marginal"])
        self._marginal_loss = SmoothedMean.from_snapshot(snapshot["marginal_loss"])
        self._model_loss = SmoothedMean.from_snapshot(snapshot["model_loss"])
