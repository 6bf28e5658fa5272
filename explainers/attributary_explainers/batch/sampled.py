"""PFI and SAGE values of a data set by sampling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidParameterError
from ..leaves.forest import NotExactError
from ..losses.losses import AnyLoss
from ..notebook.described import suggesting
from ..removal.imputer import SAMPLING_NAMES
from ..typing import Groups
from ..validation import check_choice, check_integer, generator_of
from .contributions import SageWalks, pfi_contributions
from .exact import of_pairs
from .leaves import CHEAP_NS, Exact, check_exact, growth_of, walks_of
from .tables import BatchImportance, DataTable


@suggesting
def batch_pfi(
    model: Any,
    data: Any,
    y: Any = None,
    *,
    loss: AnyLoss | None = None,
    n_permutations: int = 1,
    groups: Groups | None = None,
    seed: int | None = None,
    exact: Exact = "auto",
) -> BatchImportance:
    """Return permutation feature importance of a data set (iPFI Definition 2).

    Each feature is permuted over the data; the mean growth of the loss is multiplied by N / (N - 1), because
    a random permutation leaves one observation in N where it is. That makes it an unbiased estimate of the
    expected PFI over pairs n != m (iPFI Theorem 1). Of a forest whose leaves can be read it is that exact value.

    Parameters
    ----------
    model, loss, groups, seed
        As for `IncrementalExplainer`.
    data
        At least two observations `(x, y)`; or their features alone where `y` has the labels: a data frame or rows, as
        for `observations`.
    y
        Labels or targets of the rows of `data`, as many as there are; None where `data` has them.
    n_permutations
        Valid range >= 1; permutations per feature that are averaged. Cost: N (1 + d n_permutations)
        evaluations.
    exact
        "auto": `expected_pfi`, without a draw, where the leaves of the model give it in about three seconds or less;
        the result says so, `exact=True`. They do for scikit-learn's decision trees, random forests, extra trees,
        gradient boosting and histogram gradient boosting and River's trees and forests whose leaves predict
        alike for all rows (`leaf_prediction="mc"` or `"mean"`), under any named loss. True: exact, however long it
        takes, or an error that says why not. False: by permutations.

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
        Fewer than two observations, n_permutations < 1, a target that gives no finite loss, or `exact=True` and there
        is no exact value from leaves.
    NoPredictionError
        The model has no usable prediction for some row.
    """
    check_exact(exact)
    check_integer("n_permutations", n_permutations, minimum=1)
    table = DataTable(model, data, loss, groups, y)
    table.check_names(groups)
    return pfi_of(table, n_permutations, seed, exact)


def pfi_of(table: DataTable, n_permutations: int, seed: int | None, exact: Exact = "auto") -> BatchImportance:
    """Return the PFI of a table: `batch_pfi` without its checks."""
    if exact is not False:
        try:
            return of_pairs(table, growth_of(table, _limit(exact)))
        except NotExactError as reason:
            _refuse(exact, reason, "expected_pfi is exact for any model")
    return pfi_contributions([table], n_permutations, generator_of(seed))[0].summary()


def _limit(exact: Exact) -> float | None:
    return CHEAP_NS if exact == "auto" else None


def _refuse(exact: Exact, reason: NotExactError, advice: str) -> None:
    if exact is True:
        raise InvalidParameterError("exact", f'"auto" or False for this model, as {reason} ({advice})', exact) from None


@suggesting
def batch_sage(
    model: Any,
    data: Any,
    y: Any = None,
    *,
    loss: AnyLoss | None = None,
    n_samples: int = 10,
    n_permutations: int = 1,
    sampling: str = "stratified",
    groups: Groups | None = None,
    seed: int | None = None,
    exact: Exact = "auto",
) -> BatchImportance:
    """Return SAGE values of a data set by sampling (iSAGE Algorithm 5).

    They are interventional, and estimates of `exact_sage`. For each observation a random permutation of the features is
    walked. The coalition S grows by one feature, its prediction is the mean over m draws of h(x_S, z_notS), and the
    feature is credited with the drop in loss. The empty coalition predicts the mean prediction of the data, the full
    one h(x): importances sum to the loss of the mean prediction minus that of the model. Deviations, as in
    `IncrementalSAGE`: the m rows z serve the whole walk, which leaves expectations as they are and is less noisy; and
    see `sampling`.

    Parameters
    ----------
    model, loss, groups, seed
        As for `IncrementalExplainer`.
    data
        N >= 2 observations `(x, y)`, or with `y` their features, as for `batch_pfi`. Cost:
        N (1 + (d - 1) n_samples n_permutations) evaluations.
    y
        As for `batch_pfi`.
    n_samples, n_permutations
        Valid range >= 1; m, and the walks per observation, each with its own rows. Larger lowers the variance; more
        samples also lower the bias that the loss of a mean over few draws has, as far as it is left.
    sampling
        "stratified": the m rows are spread over the data by what the model predicts for them, each row is equally
        likely, and with two draws or more the bias of few draws is subtracted, all of it under the squared loss.
        "independent": as published, m independent draws, and the bias stays. At equal cost "stratified" has the smaller
        error: the mean prediction for rows that are spread is near that for all rows.
    exact
        As for `batch_pfi`: "auto" is `exact_sage` where the leaves of the model give it in about three seconds or less.
        They do where a prediction is a mean or sum of leaf values, so not for boosted classifiers, under a loss of
        probabilities or numbers, for up to 16 features that the trees split.

    Returns
    -------
    BatchImportance
        The standard error is that of a mean over observations: draws and permutations are in their spread, the mean
        prediction and the rows of the data are taken as given. Errors are raised as by `expected_pfi`.
    """
    check_exact(exact)
    check_integer("n_samples", n_samples, minimum=1)
    check_integer("n_permutations", n_permutations, minimum=1)
    check_choice("sampling", sampling, SAMPLING_NAMES)
    table = DataTable(model, data, loss, groups, y)
    table.check_names(groups)
    return sage_of(table, n_samples, n_permutations, seed, sampling, exact)


def sage_of(
    table: DataTable, n_samples: int, n_permutations: int, seed: int | None, sampling: str, exact: Exact = "auto"
) -> BatchImportance:
    """Return the SAGE values of a table: `batch_sage` without its checks."""
    if exact is not False:
        try:
            return table.summary(walks_of(table, _limit(exact)).explained.T, exact=True)
        except NotExactError as reason:
            _refuse(exact, reason, "exact_sage is exact for any model")
    rng = generator_of(seed)
    walks, in_halves = SageWalks([table], sampling), sampling == "stratified"
    values = np.zeros((len(table.xs), len(walks.names)))
    for some in walks.runs(n_permutations, n_samples):
        drawn = walks.drawn(some, n_permutations, n_samples, rng)
        increments = walks.taken(drawn, in_halves=in_halves)[:, 0, :, 0]
        np.add.at(values, [i for i, *_ in drawn], increments / n_permutations)
    return table.summary(values)
