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
from ..imputers.requests import walked_coalitions
from ..imputers.reservoirs import SlidingWindowReservoir
from ..imputers.rows import replace
from ..incremental.coalitions import walk_of
from ..predictions import GivenPredictions
from ..typing import Array, Importance, Prediction
from .tables import BatchImportance, DataTable


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

        in which each draw would else be counted in both roles. What it moves
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
        """Return importance and standard error."""
        return BatchImportance(self.importance, self.std_error, self.own.shape[1])

    def minus(self, other: Self) -> Contributions:
        """Return the difference of two models' contributions, of the same rows and draws."""
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
    """Return by how much each model's loss grows where a feature comes from another observation (iPFI Definition 2).

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


class SageWalks:
    """Walks of observations of a data set from the loss of the mean prediction to that of the model, of each model.

    Parameters
    ----------
    tables
        Models on the same data.
    sampling
        How the draws of a walk are spread over the data: see `MarginalImputer`, by what the last model predicts.
    """

    def __init__(self, tables: Sequence[DataTable], sampling: str) -> None:
        self._tables, self.xs = tables, tables[0].xs
        self.names = list(tables[0].players)
        self.predictions = [table.predictions(self.xs) for table in tables]
        """By model the prediction for each observation."""
        self._imputer = MarginalImputer(SlidingWindowReservoir(len(self.xs)), sampling=sampling)
        for x, prediction in zip(self.xs, self.predictions[-1], strict=True):
            self._imputer.update(x, prediction, np.random.default_rng(0))  # which a full window does not read
        both = list(zip(tables, self.predictions, strict=True))
        self.full = [table.losses(of) for table, of in both]
        """By model the loss of each observation's prediction."""
        self.empty = [table.losses([table.mean(of)] * len(self.xs)) for table, of in both]
        """By model the loss of the mean prediction for each observation."""

    def walk(
        self, i: int, n_samples: int, rng: np.random.Generator, *, in_halves: bool
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], list[tuple[Array, Array]]]:
        """Walk observation `i` in one random order, with the same draws for all coalitions and models.

        Returns
        -------
        The order and the observations drawn; by model the increments, shape (players,), and each draw's part in them,
        shape (players, draws), or (players, 0) where it is not known.

        Raises
        ------
        InvalidParameterError
            A loss is not finite.
        """
        players, order = self._tables[0].players, rng.permutation(len(self.names))
        coalitions = walked_coalitions(self.names, order[None])
        draws = self._imputer.restrict(self.xs[i], players, coalitions, n_samples, rng)
        assert draws.slots is not None  # of this imputer, whose slots are the numbers of the observations
        rows, found = [row for of_coalition in draws.rows for row in of_coalition], []
        for table, empty, full in zip(self._tables, self.empty, self.full, strict=True):
            given, ends = GivenPredictions(table.predictions(rows), start=0), (empty[i], full[i])
            options = {"in_halves": in_halves, "with_parts": True}
            way = walk_of(table.loss, table.ys[i], given, order[None], n_samples, *ends, **options)
            if way == "no_prediction":
                raise NoPredictionError(f"{table.model_name} predicts both numbers and dicts: choose one")
            if isinstance(way, str):
                expected = "observations whose loss is finite, whatever is removed"
                raise InvalidParameterError("data", expected, (self.xs[i], table.ys[i]))
            found.append((way.increments, way.parts))
        return order, draws.slots, found


def sage_contributions(tables: Sequence[DataTable], n_samples: int, rng: np.random.Generator) -> list[Contributions]:
    """Return each observation's walk from the loss of the mean prediction to that of the model (iSAGE Algorithm 5).

    As `IncrementalSAGE` walks: one order per observation, the same m rows for all its coalitions, spread over the data
    by what the last of the models predicts for them, and the bias of few draws subtracted. Efficiency is exact: the
    importances sum to the loss of the model's mean prediction on these data minus that of the model. What they estimate
    is `exact_sage` of the data: that the data are a sample, the explained observation in it, leaves a bias of the order
    of 1 / n.

    Parameters
    ----------
    tables
        Models on the same data.
    n_samples
        Valid range >= 1; m, draws per coalition. Of one draw the bias is not known, and stays.
    """
    walks, n = SageWalks(tables, "stratified"), len(tables[0].xs)
    d = len(walks.names)
    own, begins = np.zeros((len(tables), d, n)), np.zeros((d, n))
    parts: list[list[Array]] = [[] for _ in tables]
    drawn = np.zeros((d, n, n_samples), dtype=np.intp)
    for i in range(n):
        order, drawn[:, i, :], found = walks.walk(i, n_samples, rng, in_halves=True)
        begins[order[:1], i] = 1.0
        for t, (increments, of_draws) in enumerate(found):
            own[t, :, i] = increments
            parts[t].append(of_draws)
    return [
        Contributions(
            tuple(walks.names),
            own[t],
            np.stack(parts[t], axis=1) if parts[t][0].shape[1] else None,
            drawn,
            walks.full[t],
            _through_mean(table, walks.predictions[t], begins),
        )
        for t, table in enumerate(tables)
    ]


def _through_mean(table: DataTable, predictions: Sequence[Prediction], begins: Array) -> Array | None:
    """Return what each observation moves through the mean prediction: the loss's slope there times its own deviation.

    Parameters
    ----------
    begins
        Shape (d, n): 1 for the feature that the walk of observation i begins with, which alone reads that loss.
    """
    slope = table.loss.slope
    if slope is None:
        return None
    moved = np.zeros_like(begins)
    n = len(predictions)
    given = GivenPredictions(list(predictions))
    for label, values in zip(given.labels or (None,), given.array.T, strict=True):
        mean = float(values.mean())
        deviations, slopes = values - mean, [slope(y, label, mean) for y in table.ys]
        moved += np.outer(begins @ np.array(slopes) / n, deviations)
    return moved
