"""Permutation feature importance: incremental (iPFI) and batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InvalidParameterError, NoPredictionError
from .losses import Loss
from .models import is_usable, predict_rows, show_row
from .removal import replace
from .removal_explainer import RemovalExplainer, is_representable
from .typing import Features, Groups, Importance, Prediction
from .validation import check_integer


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


@dataclass(frozen=True)
class BatchImportance:
    """Importance of a data set: per feature the value and its standard error, in the unit of the loss."""

    importance: Importance
    std_error: Importance
    n_observations: int


def batch_pfi(
    model: Any,
    data: Sequence[tuple[Features, Any]],
    *,
    loss: str | Loss | Callable[[Any, Any], float] | None = None,
    n_permutations: int = 1,
    groups: Groups | None = None,
    seed: int | None = None,
) -> BatchImportance:
    """Permutation feature importance of a data set (iPFI Definition 2).

    Each feature is permuted over the data; the mean growth of the loss is multiplied by N / (N - 1), because
    a random permutation leaves one observation in N where it is. That makes it an unbiased estimate of the
    expected PFI over pairs n != m (iPFI Theorem 1).

    Parameters
    ----------
    model, loss, groups, seed
        As for `IncrementalExplainer`.
    data
        At least two observations `(x, y)`.
    n_permutations
        Valid range >= 1; permutations per feature that are averaged. Cost: N (1 + d n_permutations)
        evaluations.

    Returns
    -------
    BatchImportance
        The standard error takes the observations as independent. An observation counts twice, as the one whose
        feature is replaced and as the one that it is replaced from: with A_i and B_i its mean growth in the two
        roles, over P permutations, the variance of the importance is Var(A + B) - Var(growth) / P, but at least
        Var(A), over N.

    Raises
    ------
    InvalidParameterError
        Fewer than two observations, n_permutations < 1, or a target that gives no finite loss.
    NoPredictionError
        The model has no usable prediction for some row.
    """
    n = len(data)
    if n < 2:
        raise InvalidParameterError("data", "at least two observations", n)
    check_integer("n_permutations", n_permutations, minimum=1)
    explainer = IncrementalPFI(model, loss=loss, groups=groups, seed=seed)  # checks and resolves the parameters
    function, rng = explainer._function, explainer._rng
    players: dict[Any, Sequence[Any]] = {}
    for x, _ in data:
        players.update(explainer._players(x))

    def losses(rows: Sequence[Features]) -> npt.NDArray[np.float64]:
        predictions = predict_rows(function, rows)
        if not all(map(is_usable, predictions)):
            raise NoPredictionError(f"{type(model).__name__} has no prediction for some rows: let it learn first")
        found = np.array([explainer.loss(y, p) for (_, y), p in zip(data, predictions, strict=True)])
        if not np.isfinite(found).all():
            raise InvalidParameterError(
                "data", "observations whose loss is finite", data[int(np.argmin(np.isfinite(found)))]
            )
        return found

    xs = [x for x, _ in data]
    show_row(function, xs[0])
    base = losses(xs)
    importance: Importance = {}
    std_error: Importance = {}
    for name, features in players.items():
        replaced, donated, squares = np.zeros(n), np.zeros(n), 0.0
        for _ in range(n_permutations):
            order = rng.permutation(n)
            rows = [replace(x, features, xs[j]) for x, j in zip(xs, order.tolist(), strict=True)]
            growth = losses(rows) - base
            replaced += growth / n_permutations
            donated[order] += growth / n_permutations
            squares += float(growth @ growth)
        mean = float(replaced.mean())
        spread = squares / (n * n_permutations) - mean * mean
        variance = float((replaced + donated).var(ddof=1)) - spread / n_permutations
        # The difference of two estimates can come out too small in small data: never below the first role alone.
        variance = max(variance, float(replaced.var(ddof=1)))
        importance[name] = mean * n / (n - 1)
        std_error[name] = math.sqrt(variance / n) * n / (n - 1)
    return BatchImportance(importance, std_error, n)
