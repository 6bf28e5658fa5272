"""What single observations contribute to the importances of a data set, by PFI and by SAGE.

Several models of one table of data are evaluated on the same rows and draws: the difference of two of them is then
free of most of the noise that each of them has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import InvalidParameterError, NoPredictionError
from ..imputers.marginal import MarginalImputer
from ..imputers.reservoirs import SlidingWindowReservoir
from ..imputers.rows import replace
from ..incremental.coalitions import coalition_losses, components
from ..incremental.sage import walk
from ..typing import Importance, Prediction
from ..validation import is_representable
from .tables import BatchImportance, DataTable

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Contributions:
    """Increments of importance by observation, and where their replacements came from.

    Attributes
    ----------
    names
        The d features or groups.
    own
        Shape (d, n): what observation i contributes as the one that is explained; importance is `factor` times their
        mean.
    parts, rows
        Shape (d, n, k): the part of each of its k draws, whose mean is `own`, and the observation that it drew from.
        None: not known.
    through_mean
        Shape (d, n): what observation z moves through the mean prediction that the walk of SAGE begins with. None: not
        known, or there is none.
    losses
        Shape (n,): the model's losses.
    """

    names: tuple[Any, ...]
    own: Array
    parts: Array | None
    rows: npt.NDArray[np.intp] | None
    losses: Array
    through_mean: Array | None = None
    factor: float = 1.0

    @property
    def loss(self) -> float:
        """Mean loss of the model on the data."""
        return float(self.losses.mean())

    @property
    def loss_std_error(self) -> float:
        """Its standard error."""
        return float(self.losses.std(ddof=1)) / math.sqrt(len(self.losses))

    @property
    def importance(self) -> Importance:
        """Importance per feature, in the unit of the loss."""
        return dict(zip(self.names, (self.factor * self.own.mean(axis=1)).tolist(), strict=True))

    @property
    def std_error(self) -> Importance:
        """Standard error per feature, the observations taken as independent.

        An observation counts twice, as the one that is explained and as the one that is drawn from. With A_i its own
        deviation, B_i the sum of the deviations of the draws from it, each over k, the variance of the mean is

            [Var(A + B) - sum of the squared deviations of single draws / n] / n,     but at least Var(A) / n:

        the same form as that of `RowInfluence`, in which each draw would else be counted in both roles. What it moves
        through the mean prediction is part of its deviation, too.
        """
        n = self.own.shape[1]
        mean = self.own.mean(axis=1, keepdims=True)
        own = self.own - mean
        least = (own * own).sum(axis=1) / (n - 1)
        both, twice = own, np.zeros(len(own))
        if self.parts is not None and self.rows is not None:
            deviations = (self.parts - mean[:, :, None]) / self.parts.shape[2]
            both = own.copy()
            for of_feature, rows, drawn in zip(both, self.rows, deviations, strict=True):
                of_feature += np.bincount(rows.ravel(), weights=drawn.ravel(), minlength=n)
            twice = (deviations * deviations).sum(axis=(1, 2)) / n
        if self.through_mean is not None:
            both = both + self.through_mean
        both = both - both.mean(axis=1, keepdims=True)
        # The difference of two estimates can come out too small in small data: never below the first role alone.
        variance = np.maximum((both * both).sum(axis=1) / (n - 1) - twice, least)
        return dict(zip(self.names, (self.factor * np.sqrt(variance / n)).tolist(), strict=True))

    def summary(self) -> BatchImportance:
        """Importance and standard error."""
        return BatchImportance(self.importance, self.std_error, self.own.shape[1])

    def minus(self, other: Self) -> Contributions:
        """The difference of two models' contributions, of the same rows and draws."""
        return Contributions(
            self.names,
            self.own - other.own,
            _difference(self.parts, other.parts),
            self.rows,
            self.losses - other.losses,
            _difference(self.through_mean, other.through_mean),
            self.factor,
        )


def _difference(a: Array | None, b: Array | None) -> Array | None:
    return None if a is None or b is None else a - b


def pfi_contributions(
    tables: Sequence[DataTable], n_permutations: int, rng: np.random.Generator
) -> list[Contributions]:
    """Growth of each model's loss where a feature comes from another observation (iPFI Definition 2).

    Parameters
    ----------
    tables
        Models on the same data.
    n_permutations
        Valid range >= 1; permutations per feature, drawn once and used for all the models.
    """
    first, n, k = tables[0], len(tables[0].xs), n_permutations
    names = tuple(first.players)
    base = [table.losses(table.predictions(table.xs)) for table in tables]
    parts = np.zeros((len(tables), len(names), n, k))
    drawn = np.zeros((len(names), n, k), dtype=np.intp)
    for j, features in enumerate(first.players.values()):
        for p in range(k):
            order = rng.permutation(n)
            drawn[j, :, p] = order
            rows = [replace(x, features, first.xs[i]) for x, i in zip(first.xs, order.tolist(), strict=True)]
            for t, table in enumerate(tables):
                parts[t, j, :, p] = table.losses(table.predictions(rows)) - base[t]
    # A random permutation leaves one observation in n where it is.
    factor = n / (n - 1)
    return [
        Contributions(names, of.mean(axis=2), of, drawn, losses, factor=factor)
        for of, losses in zip(parts, base, strict=True)
    ]


def sage_contributions(tables: Sequence[DataTable], n_samples: int, rng: np.random.Generator) -> list[Contributions]:
    """Each observation's walk from the loss of the mean prediction to that of the model (iSAGE Algorithm 5).

    As `IncrementalSAGE` walks: one order per observation, the same m rows for all its coalitions, spread over the data
    by what the last of the models predicts for them, and the bias of few draws subtracted where the loss has
    derivatives. Efficiency is exact: the importances sum to the loss of the model's mean prediction on these data minus
    that of the model. What they estimate is `exact_sage` of the data: that the data are a sample, the explained
    observation in it, leaves a bias of the order of 1 / n.

    Parameters
    ----------
    tables
        Models on the same data.
    n_samples
        Valid range >= 1; m, draws per coalition. Of one draw the bias is not known, and stays.
    """
    first, n = tables[0], len(tables[0].xs)
    names = list(first.players)
    predictions = [table.predictions(table.xs) for table in tables]
    imputer = MarginalImputer(SlidingWindowReservoir(n))
    for x, prediction in zip(first.xs, predictions[-1], strict=True):
        imputer.update(x, prediction, rng)
    full = [table.losses(of) for table, of in zip(tables, predictions, strict=True)]
    empty = [table.losses([table.mean(of)] * n) for table, of in zip(tables, predictions, strict=True)]
    own = np.zeros((len(tables), len(names), n))
    swayed: list[list[Array | None]] = [[] for _ in tables]
    begins = np.zeros((len(names), n))
    drawn = np.zeros((len(names), n, n_samples), dtype=np.intp)
    for i, x in enumerate(first.xs):
        order = [names[j] for j in rng.permutation(len(names)).tolist()]
        if order:
            begins[names.index(order[0]), i] = 1.0
        coalitions = [order[: size + 1] for size in range(len(order) - 1)]
        draws = imputer.restrict(x, first.players, coalitions, n_samples, rng)
        if draws.slots is not None:  # of this imputer never: slots are the data's own numbers
            drawn[:, i, :] = draws.slots
        rows = [row for rows in draws.rows for row in rows]
        for t, table in enumerate(tables):
            found = coalition_losses(table.loss, table.ys[i], table.predictions(rows), n_samples, 0.0)
            if found is None:
                raise NoPredictionError(f"{table.model_name} predicts both numbers and dicts: choose one")
            increments, parts = walk(names, [order], float(empty[t][i]), float(full[t][i]), found)
            own[t, :, i] = list(increments.values())
            swayed[t].append(parts)
    if not is_representable(own):
        raise InvalidParameterError("data", "observations whose loss is finite, whatever is removed", "an infinite one")
    return [
        Contributions(
            tuple(names),
            own[t],
            None if any(part is None for part in swayed[t]) else np.stack(swayed[t], axis=1),  # type: ignore[arg-type]
            drawn,
            full[t],
            _through_mean(table, predictions[t], begins),
        )
        for t, table in enumerate(tables)
    ]


def _through_mean(table: DataTable, predictions: Sequence[Prediction], begins: Array) -> Array | None:
    """What each observation moves through the mean prediction: the slope of the loss there times its own deviation.

    Parameters
    ----------
    begins
        Shape (d, n): 1 for the feature that the walk of observation i begins with, which alone reads that loss.
    """
    derivatives = table.loss.derivatives
    if derivatives is None:
        return None
    moved = np.zeros_like(begins)
    n = len(predictions)
    for label, values in components(predictions, n):
        deviations, mean = values[0] - values[0].mean(), values[0].mean(keepdims=True)
        slopes = [found[0][0] if (found := derivatives(y, label, mean)) else 0.0 for y in table.ys]
        moved += np.outer(begins @ np.array(slopes) / n, deviations)
    return moved
