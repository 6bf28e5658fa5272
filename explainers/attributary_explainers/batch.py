"""Baselines that start afresh on a batch: interval PFI, batch SAGE, and SAGE on a sliding window."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .errors import InvalidParameterError, NoPredictionError
from .exact import _Table
from .losses import Loss
from .models import resolve_loss
from .pfi import BatchImportance, batch_pfi
from .typing import Features, Groups, Importance, Prediction
from .validation import check_groups, check_integer


class IntervalPFI:
    """Batch PFI on consecutive intervals of a stream, the baseline of the iPFI paper.

    Call `update(x, y)` once per observation, before the model learns it. Learning is the caller's, between the calls:
    an interval is explained with the model as it is at its last observation. One that cannot be explained (a missing
    prediction, a loss that is not finite) is counted in `n_skipped`. Memory: the interval's observations, copied.

    Parameters
    ----------
    model, loss, groups, n_permutations
        As for `batch_pfi`.
    interval
        Valid range >= 2; observations per interval. Larger is less noisy and later to notice change.
    seed
        Seed of the generator whose next integer below 2^63 is each interval's seed. `interval_pfi` has an example.
    """

    def __init__(
        self,
        model: Any,
        *,
        interval: int,
        loss: str | Loss | Callable[[Any, Any], float] | None = None,
        n_permutations: int = 1,
        groups: Groups | None = None,
        seed: int | None = None,
    ) -> None:
        self.model, self.loss, self.groups = model, resolve_loss(model, loss), check_groups(groups)
        self.interval = check_integer("interval", interval, minimum=2)
        self.n_permutations = check_integer("n_permutations", n_permutations, minimum=1)
        self.n_skipped, self._rng = 0, np.random.default_rng(seed)
        self._data: list[tuple[Features, Any]] = []

    def update(self, x: Features, y: Any = None) -> BatchImportance | None:
        """The importance of the interval that this observation completes, or None."""
        self._data.append((dict(x), y))
        if len(self._data) < self.interval:
            return None
        data, self._data, seed = self._data, [], int(self._rng.integers(2**63))
        options: dict[str, Any] = {"n_permutations": self.n_permutations, "groups": self.groups}
        try:
            return batch_pfi(self.model, data, loss=self.loss, **options, seed=seed)
        except (NoPredictionError, InvalidParameterError):
            self.n_skipped += 1
            return None


def interval_pfi(
    model: Any, stream: Iterable[tuple[Features, Any]], *, interval: int, **parameters: Any
) -> Iterator[tuple[int, BatchImportance]]:
    """Run `IntervalPFI`, whose parameters and errors these are, over a stream.

    Gives per complete interval the number of observations so far and the importance. The model learns where the caller
    lets it: in the loop over the results, or in the stream, which goes on once an observation is taken in, as here.

    Examples
    --------
    >>> from river import datasets, naive_bayes
    >>> model = naive_bayes.GaussianNB()
    >>> def test_then_train(stream):
    ...     for x, y in stream:
    ...         yield x, y
    ...         model.learn_one(x, y)
    >>> stream = test_then_train(datasets.synth.STAGGER(classification_function=2, seed=7).take(500))
    >>> [(n, result.importance["size"] > 0.3) for n, result in interval_pfi(model, stream, interval=250, seed=7)]
    [(250, True), (500, True)]
    """
    explainer = IntervalPFI(model, interval=interval, **parameters)
    return ((n, result) for n, (x, y) in enumerate(stream, 1) if (result := explainer.update(x, y)) is not None)


def batch_sage(
    model: Any,
    data: Sequence[tuple[Features, Any]],
    *,
    loss: str | Loss | Callable[[Any, Any], float] | None = None,
    n_samples: int = 10,
    n_permutations: int = 1,
    groups: Groups | None = None,
    seed: int | None = None,
) -> BatchImportance:
    """Interventional SAGE values of a data set by sampling (iSAGE Algorithm 5): an estimate of `exact_sage`.

    For each observation a random permutation of the features is walked. The coalition S grows by one feature, its
    prediction is the mean over m draws of h(x_S, z_notS), and the feature is credited with the drop in loss. The
    empty coalition predicts the mean prediction of the data, the full one h(x): importances sum to the loss of the
    mean prediction minus that of the model. Deviation: the m rows z, drawn from all of the data with replacement,
    serve the whole walk, as in `IncrementalSAGE`; that leaves expectations as they are and is less noisy.

    Parameters
    ----------
    model, loss, groups, seed
        As for `IncrementalExplainer`.
    data
        N >= 2 observations `(x, y)`. Cost: N (1 + (d - 1) n_samples n_permutations) evaluations.
    n_samples, n_permutations
        Valid range >= 1; m, and the walks per observation, each with its own rows. Larger lowers the variance; more
        samples also lower the bias that the loss of a mean over few draws has.

    Returns
    -------
    BatchImportance
        The standard error is that of a mean over observations: draws and permutations are in their spread, the mean
        prediction and the rows of the data are taken as given. Errors are raised as by `expected_pfi`.
    """
    check_integer("n_samples", n_samples, minimum=1)
    check_integer("n_permutations", n_permutations, minimum=1)
    table, rng = _Table(model, data, loss, groups), np.random.default_rng(seed)
    names, n, predictions = list(table.players), len(data), [table.predict(x) for x in table.xs]
    marginal = table.losses([table.mean(predictions)] * n).tolist()
    values = np.zeros((n, len(names)))
    for i in [i for i in range(n) for _ in range(n_permutations)]:
        order = rng.permutation(len(names)).tolist()
        drawn = [table.xs[k] for k in rng.integers(n, size=n_samples).tolist()]
        kept = [[names[j] for j in order[:size]] for size in range(1, len(order))]
        walk = [*(table.restricted(table.xs[i], coalition, drawn) for coalition in kept), predictions[i]]
        losses = [marginal[i], *(table.loss_of(i, prediction) for prediction in walk)]
        values[i, order] -= np.diff(losses) / n_permutations
    return table.summary(values)


class SlidingWindowSAGE:
    """SW-SAGE: `batch_sage` on the last `window` observations, anew after every `stride` (iSAGE, Section 3.0.1).

    Call `explain_one(x, y)` once per observation, before the model learns it. Until the window is full it is what there
    is, at least two observations; all of them are kept, copied. `importance`, `std_error`: of the last computation;
    one that fails (a missing prediction, a loss that is not finite) leaves them, and is counted in `n_skipped`.

    Parameters
    ----------
    model, loss, n_samples, groups
        As for `batch_sage`.
    window
        Valid range >= 2. Larger is less noisy, slower to follow change, and dearer in proportion.
    stride
        Valid range >= 1. Larger is cheaper, and the importance is older.
    seed
        Seed of the generator whose next integer below 2^63 is each computation's seed.

    Examples
    --------
    >>> sage = SlidingWindowSAGE(lambda x: x["a"], window=4, stride=2, loss="squared", seed=1)
    >>> [sage.explain_one({"a": a}, a) for a in (0, 2, 4)]  # the mean prediction 1 has the loss 1
    [{}, {'a': 1.0}, {'a': 1.0}]
    """

    def __init__(
        self,
        model: Any,
        *,
        window: int,
        stride: int,
        loss: str | Loss | Callable[[Any, Any], float] | None = None,
        n_samples: int = 10,
        groups: Groups | None = None,
        seed: int | None = None,
    ) -> None:
        self.model, self.loss, self.groups = model, resolve_loss(model, loss), check_groups(groups)
        self.window = check_integer("window", window, minimum=2)
        self.stride = check_integer("stride", stride, minimum=1)
        self.n_samples = check_integer("n_samples", n_samples, minimum=1)
        self.n_observations, self.n_skipped, self._rng = 0, 0, np.random.default_rng(seed)
        self.importance: Importance = {}
        self.std_error: Importance = {}
        self._data: deque[tuple[Features, Any]] = deque(maxlen=self.window)

    def explain_one(self, x: Features, y: Any = None, *, y_pred: Prediction = None) -> Importance:
        """Take in one observation and return the importance, at first empty; `y_pred` is not read."""
        self._data.append((dict(x), y))
        self.n_observations += 1
        if self.n_observations % self.stride == 0 and len(self._data) >= 2:
            options: dict[str, Any] = {"loss": self.loss, "n_samples": self.n_samples, "groups": self.groups}
            try:
                batch = batch_sage(self.model, self._data, **options, seed=int(self._rng.integers(2**63)))
                self.importance, self.std_error = batch.importance, batch.std_error
            except (NoPredictionError, InvalidParameterError) as error:
                if getattr(error, "parameter", "data") != "data":
                    raise
                self.n_skipped += 1
        return dict(self.importance)
