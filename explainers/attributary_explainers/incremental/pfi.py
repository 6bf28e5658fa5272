"""Permutation feature importance on a stream: iPFI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.losses import NOT_IN_CORE, REASONS, SCORE
from ..evaluation.schema import Encoded
from ..losses.losses import AnyLoss, LossArguments
from ..predictions import GivenPredictions, Predictions, is_usable
from ..removal.imputer import Imputer, Players, Request
from ..removal.reservoirs import Reservoir
from ..typing import Features, Groups, Snapshot
from ..validation import LARGEST, check_number
from .feature_sampling import FeatureSampling
from .removal import RemovalExplainer


class IncrementalPFI(RemovalExplainer):
    """Growth of the loss when a past value replaces a feature (iPFI).

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

    Parameters
    ----------
    model, loss, alpha, n_samples, removal, reservoir, sampling, groups, missing, seed
        As for `RemovalExplainer`.
    feature_share
        Valid range (0, 1]. Below 1, each observation after the first hundred is evaluated for so large a share of its
        features or groups, drawn mostly where increments vary most: the cost is smaller by as much,
        expectations are the same, and standard errors say what it costs in accuracy.

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
    _needs_predictions = False

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
        feature_share: float = 1.0,
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
        self.feature_share = check_number("feature_share", feature_share, above=0.0, maximum=1.0)
        self._sampling = FeatureSampling(self.feature_share) if self.feature_share < 1.0 else None

    def _request(self, x: Features, players: Players, n: int, encoded: Encoded | None) -> Request:
        names, chosen = tuple(players), None
        if self._sampling is not None:
            chosen = self._sampling.choose(names, self.n_observations, self._rng)
            if chosen is not None:
                players = {name: players[name] for name in (names[i] for i in chosen.numbers.tolist())}
        request = self.imputer.request_each(x, players, n, self._rng, encoded)
        request.asked = names, chosen
        return request

    def _update(self, request: Request, y: Any, predictions: Predictions) -> str | None:
        names, chosen = request.asked
        increments = self._smoothed.room_for(names) if chosen is None else np.empty(len(chosen.numbers))
        calculation, read = self._increments, predictions
        arguments: LossArguments | None
        if self.loss.code == NOT_IN_CORE:
            # It is computed here, and the core reads the losses as predictions whose loss is the number itself (SCORE).
            rows = [predictions.own, *predictions.rows(request.n_rows)]
            if not all(map(is_usable, rows)):
                return "no_prediction"
            read = GivenPredictions([self.loss(y, row) for row in rows])
            arguments = (SCORE, 0.0, 0, 0.0)
        else:
            arguments = self.loss.arguments(y, predictions, request.n_rows)
            if arguments is None:
                return "no_prediction"
        reason = REASONS[
            calculation.pfi_increments(read.array, read.start, request.n_rows, *arguments, LARGEST, increments)
        ]
        if reason:
            # Predictions were checked above, so there a NaN is a loss that is not finite.
            return "not_finite" if read is not predictions else reason
        if not self._watch.is_done:
            self._watch.update((calculation.low, calculation.high))
        if self._sampling is None:
            self._smoothed.add(self._times)
            return None
        mean = self._smoothed.means_of(names)
        deviations = increments - (mean if chosen is None else mean[chosen.numbers])
        if chosen is not None:
            increments = chosen.estimates(mean, increments)
        rate = self._smoothed.update_arrays(names, increments, self._times)
        self._sampling.learn(names, chosen, rate, deviations, self._smoothed.names)
        return None

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters as plain data."""
        return {**super().parameters, "feature_share": self.feature_share}

    @classmethod
    def _arguments(cls, parameters: Mapping[str, Any], loss: Any) -> dict[str, Any]:
        return {**super()._arguments(parameters, loss), "feature_share": parameters["feature_share"]}

    def _state(self) -> Snapshot:
        return {**super()._state(), "feature_sampling": self._sampling.snapshot() if self._sampling else None}

    def _restore(self, state: Snapshot) -> None:
        super()._restore(state)
        if self._sampling is not None:
            self._sampling.restore(state["feature_sampling"])
