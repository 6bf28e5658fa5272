"""Permutation feature importance on a stream: iPFI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..evaluation.schema import Encoded
from ..imputers.base import Players
from ..imputers.requests import Request, Slots
from ..losses.kernels import pfi_growth
from ..predictions import is_usable
from ..typing import Features, Snapshot
from ..validation import check_number, is_representable
from .batching import Answer
from .feature_sampling import Chosen, FeatureSampling
from .kernels import pfi_step
from .removal import Reading, RemovalExplainer

_Array: TypeAlias = npt.NDArray[np.float64]
_Found: TypeAlias = tuple[_Array, _Array, Sequence[float]]
_REASONS = ("", "no_prediction", "not_finite")  # by the status of pfi_growth


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

    Parameters
    ----------
    feature_share
        Valid range (0, 1]. Below 1, each observation after the first hundred is evaluated for so large a share of its
        features or groups, drawn in proportion to how much their increments differ: the cost is smaller by as much,
        expectations are the same, and standard errors say what it costs in accuracy.
    model, loss, alpha, n_samples, removal, reservoir, sampling, groups, missing, seed
        As for `RemovalExplainer`.

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
    _by_prediction = False
    _names: tuple[Any, ...] = ()
    _all_names: tuple[Any, ...] = ()

    def __init__(self, model: Any, *, feature_share: float = 1.0, **parameters: Any) -> None:
        super().__init__(model, **parameters)
        self.feature_share = check_number("feature_share", feature_share, above=0.0, maximum=1.0)
        self._sampling = FeatureSampling(self.feature_share) if self.feature_share < 1.0 else None
        self._chosen: Chosen | None = None

    def _request(self, x: Features, players: Players, n: int, encoded: Encoded | None) -> Request:
        self._names = self._all_names = tuple(players)
        if self._sampling is not None:
            chosen = self._chosen = self._sampling.choose(self._names, self.n_observations, self._rng)
            if chosen is not None:
                self._names = tuple(self._all_names[i] for i in chosen.numbers.tolist())
                players = {name: players[name] for name in self._names}
        return self.imputer.request_each(x, players, n, self._rng, encoded)

    def _update(self, request: Request, y: Any, answer: Answer) -> str | None:
        reading = self._reading(y, answer)
        losses = None if reading is None else self._at_once(request, answer, reading)
        if losses is None:
            losses = self._by_parts(request, y, answer, reading)
        if isinstance(losses, str):
            return losses
        self._watch.update(losses)
        self._smoothed.counted(self._times)
        return None

    def _at_once(self, request: Request, answer: Answer, reading: Reading) -> Sequence[float] | str | None:
        """From predictions to importance in one call; None where that cannot be."""
        smoothed, slots = self._smoothed, request.slots
        if self._sampling is not None or slots is None:
            return None
        room = smoothed.room(self._names)
        if room is None:  # a new name gets room when its first increment is there
            return None
        columns, state = room
        rate = smoothed.weights.rate(self._times)
        status, *losses = pfi_step(answer.array, answer.start, *reading, rate, columns, slots, *state)
        return _REASONS[status] or losses

    def _by_parts(self, request: Request, y: Any, answer: Answer, reading: Reading | None) -> Sequence[float] | str:
        found = None if reading is None else self._compiled(request, answer, reading)
        if found is None:
            found = self._plain(request, y, answer)
        if isinstance(found, str):
            return found
        growth, means, losses = found
        if self._sampling is None:
            self._smoothed.update_arrays(self._names, means, growth, request.slots, self._times)
        else:
            self._update_sampled(self._sampling, growth, means, request.slots)
        return losses

    def _update_sampled(self, sampling: FeatureSampling, growth: _Array, means: _Array, slots: Slots | None) -> None:
        names, chosen = self._all_names, self._chosen
        mean = self._smoothed.means_of(names)
        deviations = means - (mean if chosen is None else mean[chosen.numbers])
        if chosen is not None:
            means, growth, slots = chosen.estimates(mean, means, growth, slots)
        rate = self._smoothed.update_arrays(names, means, growth, slots, self._times)
        sampling.learn(names, chosen, rate, deviations, self._smoothed.names)

    def _compiled(self, request: Request, answer: Answer, reading: Reading) -> _Found | str:
        k = len(self._names)
        growth, means = np.empty((k, request.n_rows // k)), np.empty(k)
        status, *losses = pfi_growth(answer.array, answer.start, *reading, growth, means)
        return _REASONS[status] or (growth, means, losses)

    def _plain(self, request: Request, y: Any, answer: Answer) -> _Found | str:
        predictions = self._predictions(request, answer)
        if predictions is None or not is_usable(answer.y_pred):
            return "no_prediction"
        # The mean of differences, not the difference of means: exactly 0 where no draw changes the prediction.
        loss = self.loss(y, answer.y_pred)
        losses = [self.loss(y, prediction) for prediction in predictions]
        with np.errstate(all="ignore"):
            growth = np.array(losses).reshape(len(self._names), -1) - loss
            found = growth, growth.mean(axis=1), (loss, *losses)
        return found if is_representable(growth) else "not_finite"

    # Where all features are evaluated, parameters and state are those of releases that always did.
    @property
    def parameters(self) -> dict[str, Any]:
        """What the explainer was made with, as plain data."""
        own = {"feature_share": self.feature_share} if self._sampling else {}
        return {**super().parameters, **own}

    @classmethod
    def _arguments(cls, parameters: Mapping[str, Any], loss: Any) -> dict[str, Any]:
        own = {"feature_share": parameters.get("feature_share", 1.0)}
        return {**super()._arguments(parameters, loss), **own}

    def _state(self) -> Snapshot:
        own = {"feature_sampling": self._sampling.snapshot()} if self._sampling else {}
        return {**super()._state(), **own}

    def _restore(self, state: Snapshot) -> None:
        super()._restore(state)
        if self._sampling is not None:
            self._sampling.restore(state["feature_sampling"])
