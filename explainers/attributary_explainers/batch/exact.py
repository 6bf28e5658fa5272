"""Exact PFI over all pairs and exact SAGE over all coalitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..errors import InvalidParameterError
from ..leaves.exact import ByRow, coalitions_of, exact_walks
from ..leaves.forest import NotExactError
from ..losses.losses import AnyLoss
from ..notebook.described import suggesting
from ..removal.imputer import keep, replace
from ..typing import Array, Groups
from ..validation import check_integer
from .leaves import check_alike, growth_of, leaf_table
from .mixing import Mixer, NotMixableError, blocks, mixer_of
from .tables import BatchImportance, DataTable


@suggesting
def expected_pfi(
    model: Any,
    data: Any,
    y: Any = None,
    *,
    loss: AnyLoss | None = None,
    groups: Groups | None = None,
) -> BatchImportance:
    """Return PFI averaged over pairs of observations (iPFI Definition 3).

    With growth(n, m) the growth of the loss of n when its features S are taken from m,

        phi(S) = 1 / (N (N - 1)) * sum over n != m of growth(n, m),

    the mean of `batch_pfi` over all N! permutations (iPFI Theorem 1). Equal observations are taken as different.

    Parameters
    ----------
    model, loss, groups
        As for `IncrementalExplainer`.
    data
        N >= 2 observations `(x, y)`, or with `y` their features, as for `batch_pfi`. Cost: of a forest whose leaves can
        be read (see `batch_pfi`) N evaluations, of any other model N + d N (N - 1).
    y
        As for `batch_pfi`.

    Returns
    -------
    BatchImportance
        phi is a U-statistic; the standard error is its jackknife (leave one observation out), conservative,
        (N - 1) / (N - 2) * std(s) / sqrt(N) with s_n = mean over m of growth(n, m) + growth(m, n): an observation
        counts both as explained and as drawn from. NaN for N = 2.

    Raises
    ------
    InvalidParameterError
        Fewer than two observations, a target that gives no finite loss, or a group named like a feature.
    NoPredictionError
        The model has no usable prediction for some row.

    Examples
    --------
    >>> data = [({"a": 0, "b": 5}, 0), ({"a": 1, "b": 6}, 1), ({"a": 1, "b": 5}, 1)]
    >>> result = expected_pfi(lambda x: x["a"], data, loss="squared")  # four of six pairs differ in a
    >>> {name: round(value, 6) for name, value in result.importance.items()}
    {'a': 0.666667, 'b': 0.0}
    """
    table = DataTable(model, data, loss, groups, y)
    table.check_names(groups)
    try:
        return of_pairs(table, growth_of(table))
    except NotExactError:
        return of_pairs(table, _growth(table))


def of_pairs(table: DataTable, grown: ByRow) -> BatchImportance:
    """Return importance and standard error from growths over all pairs."""
    n = len(table.xs)
    means = [math.fsum(of_player) / n for of_player in grown.explained.tolist()]
    spread = (grown.explained + grown.drawn).std(axis=1, ddof=1) / math.sqrt(n)
    errors = (spread * (n - 1) / (n - 2)).tolist() if n > 2 else [math.nan] * len(means)
    named = [dict(zip(table.players, of, strict=True)) for of in (means, errors)]
    return BatchImportance(named[0], named[1], n, exact=True)


def _growth(table: DataTable) -> ByRow:
    base, n = table.own_losses, len(table.xs)
    mixer = mixer_of(table)
    if mixer is not None:
        try:
            return _mixed_growth(table, mixer, base)
        except NotMixableError:
            pass
    explained, drawn = np.zeros((2, len(table.players), n))
    for p, features in enumerate(table.players.values()):
        for i, x in enumerate(table.xs):
            others = [j for j in range(n) if j != i]
            predictions = table.predictions([replace(x, features, table.xs[j]) for j in others])
            growth = [table.loss_of(i, prediction) - base[i] for prediction in predictions]
            explained[p, i] = math.fsum(growth) / (n - 1)
            drawn[p, others] += np.array(growth) / (n - 1)
    return ByRow(explained, drawn)


def _mixed_growth(table: DataTable, mixer: Mixer, base: Array) -> ByRow:
    n = len(table.xs)
    explained, drawn = np.zeros((2, len(table.players), n))
    for p, columns in enumerate(mixer.columns):
        for some in blocks(n, n):
            at = np.array(some, np.intp)
            idx = np.empty((len(at), n, mixer.n_columns), np.intp)
            idx[:] = at[:, None, None]
            idx[:, :, columns] = np.arange(n)[None, :, None]
            losses = mixer.losses(mixer.predict(idx.reshape(-1, mixer.n_columns)), np.repeat(at, n))
            growth = losses.reshape(len(at), n) - base[at, None]
            growth[np.arange(len(at)), at] = 0.0  # with itself: what is left is rounding
            explained[p, at] = growth.sum(axis=1) / (n - 1)
            drawn[p] += growth.sum(axis=0) / (n - 1)
    return ByRow(explained, drawn)


@suggesting
def exact_sage(
    model: Any,
    data: Any,
    y: Any = None,
    *,
    loss: AnyLoss | None = None,
    groups: Groups | None = None,
    max_features: int = 12,
) -> BatchImportance:
    """Return the exact interventional SAGE values of a data set.

    With h(x_S, z_notS) the prediction where S is kept from x and the rest taken, together, from a row z of the data,

        f(x, S) = mean over all z of h(x_S, z_notS),    f(x, {}) = mean prediction,    f(x, all) = h(x),
        phi(j) = mean over (x, y) of the sum over S without j of
                 |S|! (d - |S| - 1)! / d! * (loss(f(x, S), y) - loss(f(x, S + j), y)).

    Importances sum to the loss of the mean prediction minus that of the model (efficiency). It is the reference for
    `batch_sage` and `IncrementalSAGE`, whose finite numbers of draws bias them. Source: iSAGE, Section 2.

    Parameters
    ----------
    model, loss, groups
        As for `IncrementalExplainer`; a group is one of the d players.
    data
        N >= 2 observations `(x, y)`, or with `y` their features, as for `batch_pfi`; z runs over all, x itself
        included. Cost: N + (2^d - 2) N^2 evaluations; N of a forest that is a mean or sum of its leaves' values, with
        a loss of probabilities or numbers: scikit-learn's trees, random forests, extra trees, and boosted trees for
        regression. d then counts the features that its trees split.
    y
        As for `batch_pfi`.
    max_features
        Valid range >= 1. The largest d that is accepted; each further one doubles the cost.

    Returns
    -------
    BatchImportance
        Exact for these data. The standard error says how well they stand for their population: it is that of a mean
        over the observations, with the rows z taken as given.

    Raises
    ------
    InvalidParameterError, NoPredictionError
        As `expected_pfi`, and for more than `max_features` players.

    Examples
    --------
    >>> data = [({"a": a, "b": b, "c": c}, a * b) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    >>> result = exact_sage(lambda x: x["a"] * x["b"], data, loss="squared")  # variance 3/16, shared by two
    >>> {name: abs(round(value, 6)) for name, value in result.importance.items()}
    {'a': 0.09375, 'b': 0.09375, 'c': 0.0}
    """
    check_integer("max_features", max_features, minimum=1)
    table = DataTable(model, data, loss, groups, y)
    table.check_names(groups)
    try:
        leaves = coalitions_of(leaf_table(table), table.players)
        if len(leaves.used) <= max_features:
            check_alike(table, leaves.table)
            return table.summary(exact_walks(leaves, table.players, of_drawn=False).explained.T, exact=True)
    except NotExactError:
        pass
    return _of_coalitions(table, max_features)


def _of_coalitions(table: DataTable, max_features: int) -> BatchImportance:
    names, n, d = list(table.players), len(table.xs), len(table.players)
    if d > max_features:
        raise InvalidParameterError(
            "data",
            f"of at most max_features = {max_features} features or groups ({d} take {n + (2**d - 2) * n * n:,} model "
            "evaluations: use batch_sage, group features that belong together, or raise max_features)",
            d,
        )
    predictions = table.own_predictions
    values = np.zeros((n, d))
    mixer = None if table.loss.output == "label" else mixer_of(table)
    for chosen in (chosen for size in range(d + 1) for chosen in combinations(range(d), size)):
        size, kept = len(chosen), [names[j] for j in chosen]
        if 0 < size < d and mixer is not None:
            try:
                losses = _restricted_losses(table, mixer, chosen)
            except NotMixableError:
                mixer = None
        if 0 < size < d and mixer is None:
            rows = ([keep(x, kept, z, table.players) for z in table.xs] for x in table.xs)
            losses = table.losses(table.mean(table.predictions(of_x)) for of_x in rows)
        if not 0 < size < d:
            losses = table.losses(predictions if size else [table.mean(predictions)] * n)
        # Each coalition is needed once: it is S + j for the players j inside, S for those outside.
        for j in range(d):
            sign, others = (-1.0, size - 1) if j in chosen else (1.0, size)
            values[:, j] += sign * losses / (d * math.comb(d - 1, others))
    return table.summary(values, exact=True)


def _restricted_losses(table: DataTable, mixer: Mixer, chosen: Sequence[int]) -> Array:
    """Return losses of mean predictions with only these players kept."""
    n, kept = len(table.xs), np.concatenate([mixer.columns[j] for j in chosen])
    losses = np.empty(n)
    for some in blocks(n, n):
        at = np.array(some, np.intp)
        idx = np.empty((len(at), n, mixer.n_columns), np.intp)
        idx[:] = np.arange(n)[None, :, None]
        idx[:, :, kept] = at[:, None, None]
        P = mixer.predict(idx.reshape(-1, mixer.n_columns))
        losses[at] = mixer.losses(P.reshape(len(at), n, -1).mean(axis=1), at)
    return losses
