"""SAGE values: each feature's Shapley share of how much the model's predictions lower the loss (iSAGE)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..evaluation.schema import Encoded
from ..imputers.base import Imputer, Players
from ..imputers.requests import Request
from ..imputers.reservoirs import Reservoir
from ..losses.bias import warn_of_bias
from ..losses.losses import Loss
from ..predictions import Predictions, is_usable
from ..smoothing.means import SmoothedMean, SmoothedPrediction
from ..typing import Features, Groups, Snapshot
from ..validation import LARGEST, check_integer
from .coalitions import walk_of
from .removal import RemovalExplainer


class IncrementalSAGE(RemovalExplainer):
    """SAGE values, updated with every observation (iSAGE Algorithm 1).

    Per observation permutations of the features are drawn and walked. Coalition S grows by one feature at a
    time; its prediction is the mean over m = n_samples draws of the features that are not in it,

        y_S = mean over draws of h_t(x_S, draw_notS),      y_{} = smoothed mean prediction, h_t(x_t) included,
        Delta(feature) = loss(y_S without it) - loss(y_S with it),
        phi_t = (1 - alpha) phi_{t-1} + alpha Delta.

    The last coalition is all features, y = h_t(x_t). Efficiency holds exactly at every step: the importances
    sum to `marginal_loss - model_loss`. Cost: 1 + (d - 1) * n_samples * n_permutations evaluations per observation.

    **Removal.** `interventional` takes whole stored observations, and explains what the model does; `observational`
    draws given the features of S, and also credits features for what others say of them.

    **The bias of few draws.** The loss of a mean over few draws exceeds that of the expectation where the loss is
    convex, by half its curvature times the variance of the mean: STAGGER concept A.1 under cross-entropy at .95/.05
    has the values 0.152, 0.152, 0, and in the limit for one draw 0.198, 0.198, -0.093. `bias_correction` subtracts

        1/2 loss''(y_S) V,      V = (a - b)^2 / 4 + (v + (a - b)^2 / 4) / (L - 1),

    a and b the means of two independent halves of the draws, v the mean square of the draws less the square of their
    mean: V is without bias the variance of y_S over the draws and, in its second term, over what happened to be stored
    (`coalitions.walk_of` derives it, also for an odd m). With independent observations this is exact for the squared
    loss and Brier at any m >= 2, since loss(y_S) = loss(mu) + loss'(mu)(y_S - mu) + 1/2 loss'' (y_S - mu)^2 and the
    middle term has expectation 0. For cross-entropy the expansion goes on; what remains is of the order of m^-2 while
    probabilities are away from 0, and no more than 1/2 is ever subtracted. Losses without curvature (absolute, score)
    and zero_one are left as they are, and so is m = 1. Efficiency is not touched: neither end of the walk is. Sum of
    |bias| over sum of |value|, m = 10, STAGGER A.2, cross-entropy: 0.113, stratified 0.027, corrected 0.004; at m = 2
    0.81, 0.80, 0.39 (`python -m benchmarks.calibration.bias`).

    A feature that the model ignores has the expectation 0, but not 0 at every step: y_{} is smoothed, not drawn.

    Source: Muschalik, Fumagalli, Hammer, Huellermeier, iSAGE: An Incremental Version of SAGE for Online
    Explanation on Data Streams, ECML PKDD 2023, Algorithms 1 to 4, Definitions 3 and 4.
    Deviations: means are weighted with weights that sum to 1 (both for phi and for y_{}), which starts them at
    the first value as Definition 3 says but does not leave that value a weight of (1 - alpha)^n;
    the reservoir takes the observation after it is explained; the m rows are drawn once per observation and serve
    all its coalitions, which leaves each coalition's expectation as it is and takes most of the noise out of the
    differences; draws are spread over the reservoir by what the model predicted for the stored observations; several
    permutations come in pairs of opposite order; the bias is corrected. `sampling="independent"` with
    `bias_correction=False` is the paper's estimator but for the shared rows.

    Parameters
    ----------
    n_samples
        Valid range >= 1; m. A model that is cheap to evaluate on many rows, as an array function is, can have 50.
    n_permutations
        Valid range >= 1; permutations per observation, averaged. Each second one is the reverse of the one before,
        which cancels much of the variance of the order. Larger costs evaluations in proportion.
    bias_correction
        Whether the bias of few draws is subtracted.
    model, loss, alpha, removal, reservoir, sampling, groups, missing, seed
        As for `RemovalExplainer`.

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

    def __init__(
        self,
        model: Any,
        *,
        loss: str | Loss | Callable[[Any, Any], float] | None = None,
        alpha: float = 0.001,
        n_samples: int = 5,
        removal: str | Imputer = "interventional",
        reservoir: Reservoir | None = None,
        sampling: str | None = None,
        groups: Groups | None = None,
        missing: str | Mapping[Any, Any] = "value",
        seed: int | None = None,
        n_permutations: int = 1,
        bias_correction: bool = True,
    ) -> None:
        super().__init__(
            model,
            loss=loss,
            alpha=alpha,
            n_samples=n_samples,
            removal=removal,
            reservoir=reservoir,
            sampling=sampling,
            groups=groups,
            missing=missing,
            seed=seed,
        )
        warn_of_bias(self.loss, self.n_samples, stacklevel=2)
        self.n_permutations = check_integer("n_permutations", n_permutations, minimum=1)
        self.bias_correction = bool(bias_correction)
        self._marginal = SmoothedPrediction(self.alpha)
        self._marginal_loss = SmoothedMean(self.alpha)
        self._model_loss = SmoothedMean(self.alpha)
        self._names: tuple[Any, ...] = ()
        self._n = 0
        self._orders: npt.NDArray[np.intp] = np.empty((0, 0), dtype=np.intp)

    @property
    def marginal_loss(self) -> float | None:
        """Smoothed loss of the smoothed mean prediction: what a model that knows no feature would lose."""
        return self._marginal_loss.value

    @property
    def model_loss(self) -> float | None:
        """Smoothed loss of the model itself, over the same observations."""
        return self._model_loss.value

    def _request(self, x: Features, players: Players, n: int, encoded: Encoded | None) -> Request:
        self._names, self._n = tuple(players), n
        self._orders = self._new_orders(len(players))
        return self.imputer.request_walk(x, players, self._orders, n, self._rng, encoded)

    def _update(self, request: Request, y: Any, predictions: Predictions) -> str | None:
        y_pred = predictions.own
        if y_pred is None or not is_usable(y_pred):
            return "no_prediction"
        # An infinite loss, and the prediction behind it, would stay in the means for ever.
        model_loss = self.loss(y, y_pred)
        if not math.isfinite(model_loss):
            return "not_finite"
        marginal = self._marginal.copy()  # taken over once nothing can be in the way any more
        marginal_loss = self.loss(y, marginal.update(y_pred, self._times))
        if not (abs(model_loss) < LARGEST and abs(marginal_loss) < LARGEST):
            return "not_finite"
        variance = self._variance_of_rows()
        walk = walk_of(self.loss, y, predictions, self._orders, self._n, variance, marginal_loss, model_loss)
        if isinstance(walk, str):
            return walk
        self._smoothed.update_arrays(self._names, walk.increments, walk.parts, request.slots, self._times)
        self._watch.update(chain((model_loss, marginal_loss), walk.losses))
        self._marginal = marginal
        self._marginal_loss.update(marginal_loss, self._times)
        self._model_loss.update(model_loss, self._times)
        return None

    def _new_orders(self, n_players: int) -> npt.NDArray[np.intp]:
        """Draw permutations of the players; each second one is the reverse of the one before."""
        if self.n_permutations == 1:
            return self._rng.permutation(n_players)[None]
        orders = np.empty((self.n_permutations, n_players), dtype=np.intp)
        for i in range(self.n_permutations):
            orders[i] = orders[i - 1][::-1] if i % 2 else self._rng.permutation(n_players)
        return orders

    def _variance_of_rows(self) -> float | None:
        """Return the share of the variance of one draw that the mean over all stored ones has; None: no correction."""
        if not self.bias_correction:
            return None
        return 1.0 / len(self.reservoir) if self.imputer.draws_stored_rows else 0.0

    @property
    def parameters(self) -> dict[str, Any]:
        """What the explainer was made with, as plain data."""
        own = {"n_permutations": self.n_permutations, "bias_correction": self.bias_correction}
        return {**super().parameters, **own}

    @classmethod
    def _arguments(cls, parameters: Mapping[str, Any], loss: Any) -> dict[str, Any]:
        own = {name: parameters[name] for name in ("n_permutations", "bias_correction")}
        return {**super()._arguments(parameters, loss), **own}

    def _state(self) -> Snapshot:
        return {
            **super()._state(),
            "marginal": self._marginal.snapshot(),
            "marginal_loss": self._marginal_loss.snapshot(),
            "model_loss": self._model_loss.snapshot(),
        }

    def _restore(self, state: Snapshot) -> None:
        super()._restore(state)
        self._marginal = SmoothedPrediction.from_snapshot(state["marginal"])
        self._marginal_loss = SmoothedMean.from_snapshot(state["marginal_loss"])
        self._model_loss = SmoothedMean.from_snapshot(state["model_loss"])
