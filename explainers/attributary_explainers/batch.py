"""SAGE values of a data set by sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .exact import _Table
from .losses import Loss
from .pfi import BatchImportance
from .typing import Features, Groups
from .validation import check_integer


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
    names, n, predictions = list(table.players), len(data), table.predictions(table.xs)
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
