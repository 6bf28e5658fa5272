"""SAGE values: each feature's Shapley share in lowering the loss (iSAGE)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.losses import (
    NOT_IN_CORE,
    REASONS,
    Increments,
    increments_of_losses,
    influence_of,
    loss_of_mean,
    means_of_coalition,
    without_bias,
)
from ..core.reservoir import Uniforms, uniforms_of
from ..evaluation.schema import Encoded
from ..losses.losses import AnyLoss, Loss
from ..losses.watch import warn_of_bias
from ..predictions import GivenPredictions, Predictions, is_usable
from ..removal.imputer import Imputer, Players, Request
from ..removal.reservoirs import Reservoir
from ..smoothing.means import MarginalPrediction, SmoothedMean, mean_prediction, prediction_of
from ..typing import Array, Features, Groups, Prediction, Snapshot
from ..validation import LARGEST, check_integer
from .removal import RemovalExplainer

_NO_PARTS = np.empty((1, 0))


class IncrementalSAGE(RemovalExplainer):
    """SAGE values, updated with every observation (iSAGE Algorithm 1).

    Per observation permutations of the features are drawn and walked. Coalition S grows by one feature at a
    time; its prediction is the mean over m = n_samples draws of the features that are not in it,

        y_S = mean over draws of h_t(x_S, draw_notS),      y_{} = smoothed mean prediction behind the reservoir's gap,
        Delta(feature) = loss_S without it - loss_S with it,
        phi_t = (1 - alpha) phi_{t-1} + alpha Delta.

    The last coalition is all features, y = h_t(x_t). Efficiency holds exactly at every step: the importances
    sum to `marginal_loss - model_loss`. Cost: 1 + (d - 1) * n_samples * n_permutations evaluations per observation.

    **Removal.** `interventional` takes whole stored observations, and explains what the model does; `observational`
    draws given the features of S, and also credits features for what others say of them.

    **The bias of few draws.** The loss of a mean over few draws exceeds that of the expectation where the loss is
    convex, by half its curvature times the variance of the mean: STAGGER concept A.1 under cross-entropy at .95/.05
    has the values 0.152, 0.152, 0, and in the limit for one draw 0.198, 0.198, -0.093. With `bias_correction`

        loss_S = 2 loss(y_S) - (loss(a) + loss(b)) / 2,      y_S = (a + b) / 2,

    a and b the means of two halves of the draws, the first from the older half of the stored rows, the second from the
    younger (`coalitions.sage_increments_of` derives it). It is exact for the squared loss and Brier at any m >= 2. It
    takes the first order off for cross-entropy, where it never subtracts more than 1/2, and for the absolute loss where
    targets are spread; at the corner of the absolute loss itself 59 % of the bias stay. Losses that are linear in the
    prediction (expected_zero_one, score) need none. zero_one, which jumps with the most probable label, has no such
    correction at any number of draws, and one draw has none. The noise of y_{} is taken out of its loss in the same way
    (`coalitions.loss_of_noisy_mean`). Efficiency is not touched: `marginal_loss` is the loss that the walks begin with.

    A feature that the model ignores has the expectation 0, but not 0 at every step: y_{} is smoothed, not drawn.

    Source: Muschalik, Fumagalli, Hammer, Huellermeier, iSAGE: An Incremental Version of SAGE for Online
    Explanation on Data Streams, ECML PKDD 2023, Algorithms 1 to 4, Definitions 3 and 4.
    Deviations: means are weighted with weights that sum to 1 (both for phi and for y_{}), which starts them at
    the first value as Definition 3 says but does not leave that value a weight of (1 - alpha)^n; y_{} leaves out the
    newest predictions, h_t(x_t) among them, where the reservoir has a gap; the reservoir takes the observation after it
    is explained; the m rows are drawn once per observation and serve all its coalitions, which leaves each coalition's
    expectation as it is and takes most of the noise out of the differences; draws are spread over the reservoir by what
    the model predicted for the stored observations; several permutations come in pairs of opposite order; the bias of
    few draws is corrected. `sampling="independent"`, `bias_correction=False` and `reservoir=GeometricReservoir(100)`
    are the paper's estimator but for the shared rows.

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
        loss: AnyLoss | None = None,
        alpha: float = 0.001,
        n_samples: int = 5,
        removal: str | Imputer = "interventional",
        reservoir: Reservoir | None = None,
        sampling: str | None = None,
        groups: Groups | None = None,
        missing: str | Mapping[Any, Any] = "absent",
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
        warn_of_bias(self.loss, self.n_samples)
        self.n_permutations = check_integer("n_permutations", n_permutations, minimum=1)
        self.bias_correction = bool(bias_correction)
        self.imputer.in_halves = self.bias_correction and self.n_samples > 1
        self._uniforms = Uniforms(self._rng)
        self._marginal = MarginalPrediction(self.alpha, self.reservoir.gap)
        self._marginal_loss = SmoothedMean(self.alpha)
        self._model_loss = SmoothedMean(self.alpha)
        self._share_weights()
        self._known_losses: tuple[Any, dict[Any, float]] = (None, {})
        """By label the loss of a mean prediction, and of which one."""
        self._orders: npt.NDArray[np.intp] = np.empty((self.n_permutations, 0), dtype=np.intp)
        """Shape (orders, players): those of the last observation."""

    @property
    def marginal_loss(self) -> float | None:
        """Smoothed loss of predicting without features, less its noise."""
        return self._marginal_loss.value

    @property
    def model_loss(self) -> float | None:
        """Smoothed loss of the model itself, over the same observations."""
        return self._model_loss.value

    def _request(self, x: Features, players: Players, n: int, encoded: Encoded | None) -> Request:
        orders = self._orders
        if orders.shape[1] != len(players):
            orders = self._orders = np.empty((self.n_permutations, len(players)), dtype=np.intp)
        self._uniforms = uniforms_of(self._rng, self._uniforms)
        self._uniforms.permute(orders)
        request = self.imputer.request_coalitions(x, players, orders, n, self._rng, encoded)
        request.asked = tuple(players), orders, n
        return request

    def _update(self, request: Request, y: Any, predictions: Predictions) -> str | None:
        loss = self.loss
        if loss.code != NOT_IN_CORE:
            return self._update_known(request.asked, y, predictions)
        y_pred = predictions.own
        if y_pred is None or not is_usable(y_pred):
            return "no_prediction"
        model_loss = loss(y, y_pred)
        if not abs(model_loss) < LARGEST:
            return "not_finite"
        beside = self._marginal.beside(y_pred)
        marginal_loss = loss_of_noisy_mean(loss, y, *beside, without_noise=self.bias_correction)
        if not abs(marginal_loss) < LARGEST:
            return "not_finite"
        ends = marginal_loss, model_loss
        names, orders, n = request.asked
        walk = sage_increments_of(loss, y, predictions, orders, n, *ends, in_halves=self.bias_correction)
        if isinstance(walk, str):
            return walk
        rate = self._smoothed.update_arrays(names, walk.increments, self._times)
        self._watch.update(chain(ends, walk.losses))
        self._follow(marginal_loss, model_loss, rate)
        return None

    def _update_known(self, asked: Any, y: Any, predictions: Predictions) -> str | None:
        """Update with a loss whose formula is in the core; see `_update`."""
        names, orders, n = asked
        loss, y_pred, in_halves = self.loss, predictions.own, self.bias_correction
        if y_pred is None:
            return "no_prediction"
        array, start = predictions.array, predictions.start
        arguments = loss.arguments(y, predictions, 0)
        if arguments is None:
            return "no_prediction"
        marginal_loss = self._marginal_loss_of(y, y_pred)
        given = array, start, n, *arguments, in_halves and loss.is_smooth, loss.most_bias
        increments = self._smoothed.room_for(names)
        calculation = self._increments
        reason = REASONS[
            calculation.sage_increments(*given, orders, marginal_loss, math.nan, LARGEST, increments, _NO_PARTS)
        ]
        if reason:
            return reason
        if not self._watch.is_done:
            self._watch.update((marginal_loss, calculation.low, calculation.high))
        self._follow(marginal_loss, calculation.model_loss, self._smoothed.add(self._times))
        return None

    def _follow(self, marginal_loss: float, model_loss: float, rate: float) -> None:
        """Add two losses to their means by a share that all three means use."""
        self._marginal_loss.follow(marginal_loss, rate)
        self._model_loss.follow(model_loss, rate)

    def _marginal_loss_of(self, y: Any, y_pred: Prediction) -> float:
        """Return the loss of the mean prediction, cached by label."""
        beside = self._marginal.beside(y_pred)
        if self.loss.output == "number" or not self._marginal.gap:
            return loss_of_noisy_mean(self.loss, y, *beside, without_noise=self.bias_correction)
        of, by_label = self._known_losses
        if of is not beside:
            by_label = {}
            self._known_losses = beside, by_label
        found = by_label.get(y)
        if found is None:
            found = by_label[y] = loss_of_noisy_mean(self.loss, y, *beside, without_noise=self.bias_correction)
        return found

    def _store(self, x: Features, y_pred: Prediction) -> None:
        super()._store(x, y_pred)
        self._marginal.store(y_pred)

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters as plain data."""
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
        self._marginal.restore(state["marginal"])
        self._marginal_loss = SmoothedMean.from_snapshot(state["marginal_loss"])
        self._model_loss = SmoothedMean.from_snapshot(state["model_loss"])
        self._share_weights()

    def _share_weights(self) -> None:
        for mean in (self._marginal_loss, self._model_loss):
            mean.share(self._smoothed.weights)


@dataclass(slots=True)
class SageIncrements:
    """A walk's increments from the mean prediction's loss to the model's."""

    increments: Array
    """Shape (players,): each player's share of the way."""
    parts: Array
    """Shape (players, draws): each draw's part in it; no column where that is not known or not wanted."""
    losses: Iterable[float]
    """Losses on the way: all of them, or the least and the largest."""


def sage_increments_of(
    loss: Loss,
    y: Any,
    predictions: Predictions,
    orders: npt.NDArray[np.intp],
    n: int,
    marginal_loss: float,
    model_loss: float,
    *,
    in_halves: bool,
    with_parts: bool = False,
) -> SageIncrements | str:
    """Walk coalitions of `n` draws each, with the bias of losses taken out.

    The loss of a mean over few draws exceeds that of the expectation mu where the loss is convex: to second order

        E[loss(y_S)] = loss(mu) + 1/2 loss''(mu) V,      V the variance of the mean y_S.

    The first n // 2 draws and the others are independent sets of one expectation. With a and b their means and
    y_S = (a + b) / 2,

        loss_S = 2 loss(y_S) - (loss(a) + loss(b)) / 2

    has the expectation loss(mu) to second order: a and b have twice the variance of y_S, and subtracting their excess
    over y_S once takes that of y_S away. It needs no derivative, and is exact for the squared loss and Brier. What a
    and b have in common stays: the variance of the stored rows, where both are drawn from the same ones.

    Parameters
    ----------
    predictions
        For the draws of the coalitions, those of one coalition after the other; see `orders`.
    orders
        Shape (orders, players): the players by number. Each order grows by one player at a time to a coalition of all
        but one.
    marginal_loss, model_loss
        What all orders begin and end with.
    in_halves
        Whether the bias is taken out. Else the loss is that of the mean of all draws.
    with_parts
        Whether each draw's part in the increments is wanted.

    Returns
    -------
    SageIncrements
        Or the reason why there is none: a prediction is missing, or what it gives cannot be represented.
    """
    n_orders, k = orders.shape
    size = n_orders * max(k - 1, 0)
    known = with_parts and loss.slope is not None and n > 1 and size > 0
    increments, parts = np.empty(k), np.empty((k, n if known else 0))
    halves = in_halves and loss.is_smooth
    way = orders, marginal_loss, model_loss
    if loss.code != NOT_IN_CORE:
        arguments = loss.arguments(y, predictions, size * n)
        if arguments is None:
            return "no_prediction"
        find = Increments()
        status = find.sage_increments(
            predictions.array,
            predictions.start,
            n,
            *arguments,
            halves,
            loss.most_bias,
            *way,
            LARGEST,
            increments,
            parts,
        )
        return REASONS[status] or SageIncrements(increments, parts, (find.low, find.high))
    rows = predictions.rows(size * n)
    if not all(map(is_usable, rows)):
        return "no_prediction"
    plain, corrected = np.empty(size), np.empty(size)
    for s in range(size):
        means = _means(rows[s * n : (s + 1) * n], halves)
        if means is None:
            return "no_prediction"
        found = [loss(y, mean) for mean in means]
        plain[s] = corrected[s] = found[0]
        if len(found) == 3:
            corrected[s] = without_bias(found[0], found[1], found[2], loss.most_bias)
    influence = _influence(loss, y, rows, size, n, halves) if known else np.empty((size, 0))
    status = increments_of_losses(*way, corrected, influence, LARGEST, increments, parts)
    return REASONS[status] or SageIncrements(increments, parts, plain)


def loss_of_noisy_mean(
    loss: Loss, y: Any, names: tuple[Any, ...], means: Array, std_errors: Array, *, without_noise: bool
) -> float:
    """Return the loss of a mean prediction, less the part its noise adds.

    To second order that is half of loss'' times the variance, component by component. The expression

        (loss(mean + s) + loss(mean - s)) / 2 - loss(mean),      s the standard error of the component,

    gives it without a derivative, and exactly for the squared loss and Brier.

    Parameters
    ----------
    names
        Class of each component; (None,) for a number.
    means, std_errors
        Shape (components,).
    without_noise
        Whether it is taken off.
    """
    noise = std_errors if without_noise and loss.is_smooth else np.zeros(len(means))
    if loss.code != NOT_IN_CORE:
        arguments = loss.arguments_at(y, names.index(y) if y in names else -1)
        return float(loss_of_mean(means, noise, *arguments, loss.most_bias))
    plain, bias = loss(y, prediction_of(names, means)), 0.0
    for c in np.flatnonzero(noise).tolist():
        around = []
        for sign in (1.0, -1.0):
            moved = means.copy()
            moved[c] += sign * noise[c]
            around.append(loss(y, prediction_of(names, moved)))
        bias += 0.5 * (around[0] + around[1]) - plain
    return plain - min(bias, loss.most_bias)


def _means(rows: list[Prediction], in_halves: bool) -> list[Prediction] | None:
    """Return the mean, and both halves' if asked; None for mixed kinds."""
    half = len(rows) // 2
    if not in_halves or half == 0:
        means = [mean_prediction(rows)]
    else:
        halves = [mean_prediction(rows[:half]), mean_prediction(rows[half:])]
        means = [mean_prediction(halves), *halves]
    return None if any(mean is None for mean in means) else means


def _influence(loss: Loss, y: Any, rows: Sequence[Prediction], size: int, n: int, in_halves: bool) -> Array:
    """Return each draw's influence on its loss, shape (coalitions, draws)."""
    assert loss.slope is not None
    influence = np.empty((size, n))
    for s in range(size):
        given = GivenPredictions(list(rows[s * n : (s + 1) * n]), start=0)
        means = np.empty((3, given.array.shape[1]))
        means_of_coalition(given.array, 0, n, in_halves, means)
        labels = given.labels or (None,)
        slopes = np.array([loss.slope(y, label, p) for label, p in zip(labels, means[0].tolist(), strict=True)])
        influence_of(given.array, 0, n, in_halves, slopes, means, influence, s)
    return influence
