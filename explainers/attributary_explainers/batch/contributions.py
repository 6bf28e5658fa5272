"""Each observation's contribution to the PFI and SAGE of a data set.

Several models of one table of data are evaluated on the same rows and draws: the difference of two of them is then
free of most of the noise that each of them has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import InvalidParameterError, NoPredictionError
from ..incremental.sage import sage_increments_of
from ..leaves.exact import ByRow
from ..leaves.forest import NotExactError
from ..predictions import GivenPredictions, Predictions
from ..removal.imputer import MarginalImputer, keep, replace, walked_coalitions
from ..removal.reservoirs import SlidingWindowReservoir
from ..typing import Array, Importance, Prediction
from .leaves import growth_of, walks_of
from .mixing import BLOCK, Ints, Mixer, NotMixableError, blocks, mixer_of
from .slices import Slice, Steps, finish
from .tables import BatchImportance, DataTable


@dataclass(frozen=True)
class Contributions:
    """Increments of importance by observation, and where draws came from.

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
    drawn
        Shape (d, n): where nothing was drawn, what observation z moves of the mean of `own`, times n, as the row that
        features are taken from. None: there were draws.
    """

    names: tuple[Any, ...]
    own: Array
    parts: Array | None
    rows: npt.NDArray[np.intp] | None
    losses: Array
    through_mean: Array | None = None
    factor: float = 1.0
    drawn: Array | None = None

    @property
    def loss(self) -> float:
        """Mean loss of the model on the data."""
        return float(self.losses.mean())

    @property
    def importance(self) -> Importance:
        """Importance per feature, in the unit of the loss."""
        return dict(zip(self.names, (self.factor * self.own.mean(axis=1)).tolist(), strict=True))

    @property
    def std_error(self) -> Importance:
        """Standard error per feature, for independent observations.

        An observation counts twice, as the one that is explained and as the one that is drawn from. With A_i its own
        deviation, B_i the sum of the deviations of the draws from it, each over k, the variance of the mean is

            [Var(A + B) - sum of the squared deviations of single draws / n] / n,     but at least Var(A) / n:

        in which each draw would else be counted in both roles. What it moves
        through the mean prediction is part of its deviation, too. Where nothing was drawn, B_i is known: there is no
        sum to subtract.
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
        if self.drawn is not None:
            both = both + self.drawn
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
        """Subtract another model's contributions, made with the same draws."""
        return Contributions(
            self.names,
            self.own - other.own,
            _difference(self.parts, other.parts),
            self.rows,
            self.losses - other.losses,
            _difference(self.through_mean, other.through_mean),
            self.factor,
            _difference(self.drawn, other.drawn),
        )


def _difference(a: Array | None, b: Array | None) -> Array | None:
    return None if a is None or b is None else a - b


def pfi_contributions(
    tables: Sequence[DataTable], n_permutations: int, rng: np.random.Generator
) -> list[Contributions]:
    """Do all of `pfi_steps` at once."""
    return finish(pfi_steps(tables, n_permutations, rng))


def pfi_steps(
    tables: Sequence[DataTable],
    n_permutations: int,
    rng: np.random.Generator,
    *,
    most_ns: float = 0.0,
    size: int = BLOCK,
) -> Steps[list[Contributions]]:
    """Find how much permuting features raises each loss (iPFI Definition 2).

    Parameters
    ----------
    tables
        Models on the same data.
    n_permutations
        Valid range >= 1; permutations per feature, drawn once and used for all the models.
    most_ns
        Nanoseconds that exact values of all pairs may take instead, from the leaves of each model; those of one model
        are one slice.
    size
        Rows in a slice.
    """
    if most_ns > 0.0 and (exact := (yield from _exact(tables, partial(growth_of, most_ns=most_ns)))) is not None:
        return exact
    first, n, k = tables[0], len(tables[0].xs), n_permutations
    names = tuple(first.players)
    base = [table.own_losses for table in tables]
    orders: Ints = np.array([[rng.permutation(n) for _ in range(k)] for _ in names], np.intp).reshape(len(names), k, n)
    grown = []
    for table, losses in zip(tables, base, strict=True):
        grown.append((yield from _grown(table, losses, orders, size)))
    # A random permutation leaves one observation in n where it is.
    factor, drawn = n / (n - 1), orders.transpose(0, 2, 1)
    return [
        Contributions(names, of.mean(axis=2), of, drawn, losses, factor=factor)
        for of, losses in zip(grown, base, strict=True)
    ]


def _grown(table: DataTable, base: Array, orders: Ints, size: int) -> Steps[Array]:
    """Return the growth of each loss: (players, observations, permutations).

    Parameters
    ----------
    orders
        Shape (players, permutations, observations): the observation that the player's features come from.
    """
    n, mixer = orders.shape[2], mixer_of(table)
    grown, start = np.zeros(orders.size), 0
    while start < len(grown):
        if mixer is None:  # where rows are dicts, they are those of one permutation
            stop = min(start + size, (start // n + 1) * n)
            found = yield Slice(stop - start, partial(_losses_of_dicts, table, orders, start, stop))
        else:
            stop = min(start + size, len(grown))
            found = yield Slice(stop - start, partial(_losses_of_arrays, mixer, orders, start, stop))
        if found is None:
            mixer, start = None, 0
            continue
        grown[start:stop] = found - base[np.arange(start, stop) % n]
        start = stop
    return np.ascontiguousarray(grown.reshape(orders.shape).transpose(0, 2, 1))


def _losses_of_arrays(mixer: Mixer, orders: Ints, start: int, stop: int) -> Array | None:
    """Return the losses of some mixed rows; None if rows cannot be mixed."""
    _, k, n = orders.shape
    units, rows = orders.reshape(-1, n), np.arange(start, stop) % n
    idx = np.empty((len(rows), mixer.n_columns), np.intp)
    idx[:] = rows[:, None]
    for unit in range(start // n, (stop - 1) // n + 1):
        within = slice(max(unit * n - start, 0), (unit + 1) * n - start)
        idx[within, mixer.columns[unit // k]] = units[unit, rows[within]][:, None]
    try:
        return mixer.losses(mixer.predict(idx), rows)
    except NotMixableError:
        return None


def _losses_of_dicts(table: DataTable, orders: Ints, start: int, stop: int) -> Array:
    """Return the losses of rows, given as dicts, for a single permutation."""
    _, k, n = orders.shape
    unit, first = divmod(start, n)
    features, order = list(table.players.values())[unit // k], orders.reshape(-1, n)[unit]
    rows = range(first, first + stop - start)
    mixed = [replace(table.xs[i], features, table.xs[order[i]]) for i in rows]
    return table.losses(table.predictions(mixed), first)


def _exact(tables: Sequence[DataTable], take: Callable[[DataTable], ByRow]) -> Steps[list[Contributions] | None]:
    """Return all models' exact contributions; None if any model has none."""
    found = []
    for table in tables:
        by_row = yield Slice(0, partial(_or_none, take, table))
        if by_row is None:
            return None
        explained, drawn = by_row
        found.append(Contributions(tuple(table.players), explained, None, None, table.own_losses, drawn=drawn))
    return found


def _or_none(take: Callable[[DataTable], ByRow], table: DataTable) -> Array | None:
    try:
        return np.stack(take(table))
    except NotExactError:
        return None


_Drawn: TypeAlias = tuple[int, Ints, Ints]
"""The observation that a walk is of, its order, and the observations drawn."""


class SageWalks:
    """Walks from the loss of the mean prediction to each model's loss.

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
        self.predictions = [table.own_predictions for table in tables]
        """By model the prediction for each observation."""
        self._imputer = MarginalImputer(SlidingWindowReservoir(len(self.xs)), sampling=sampling)
        for x, prediction in zip(self.xs, self.predictions[-1], strict=True):
            self._imputer.update(x, prediction, np.random.default_rng(0))  # which a full window does not read
        self.full = [table.own_losses for table in tables]
        """By model the loss of each observation's prediction."""
        self.empty = [table.losses([table.mean(table.own_predictions)] * len(self.xs)) for table in tables]
        """By model the loss of the mean prediction for each observation."""
        self._mixers = [mixer_of(table) for table in tables]

    def runs(self, n_walks: int, n_samples: int, size: int = BLOCK) -> Iterator[range]:
        """Split the observations so that a model predicts `size` rows a time."""
        return blocks(len(self.xs), n_samples * max(len(self.names) - 1, 0) * n_walks, size)

    def drawn(self, some: range, n_walks: int, n_samples: int, rng: np.random.Generator) -> list[_Drawn]:
        """Return observation, order and drawn rows for each walk."""
        d, drawn = len(self.names), []
        for i in some:
            for _ in range(n_walks):
                order, slots = rng.permutation(d), np.empty(n_samples, dtype=np.intp)
                self._imputer.draw_slots(slots, rng)
                drawn.append((i, order, slots))
        return drawn

    def taken(self, drawn: Sequence[_Drawn], *, in_halves: bool) -> Array:
        """Walk; return each player's increment and each draw's part in it.

        The shape is (walks, models, players, 1 + draws). Parts that are not known are left out.

        Raises
        ------
        InvalidParameterError
            A loss is not finite.
        """
        predicted = [
            self._predicted(table, mixer, drawn) for table, mixer in zip(self._tables, self._mixers, strict=True)
        ]
        found = []
        for w, (i, order, slots) in enumerate(drawn):
            for t, table in enumerate(self._tables):
                ends = self.empty[t][i], self.full[t][i]
                options = {"in_halves": in_halves, "with_parts": True}
                way = sage_increments_of(
                    table.loss, table.ys[i], predicted[t][w], order[None], len(slots), *ends, **options
                )
                if way == "no_prediction":
                    raise NoPredictionError(f"{table.model_name} predicts both numbers and dicts: choose one")
                if isinstance(way, str):
                    expected = "observations whose loss is finite, whatever is removed"
                    raise InvalidParameterError("data", expected, (self.xs[i], table.ys[i]))
                found.append(np.column_stack([way.increments, way.parts]))
        return np.stack(found).reshape(len(drawn), len(self._tables), *found[0].shape)

    def _predicted(self, table: DataTable, mixer: Mixer | None, drawn: Sequence[_Drawn]) -> list[Predictions]:
        """Return the predictions of each walk."""
        d = len(self.names)
        if mixer is not None and d > 1:
            try:
                P = mixer.predict(_mixed(mixer, d, drawn))
                size = len(P) // len(drawn)
                return [mixer.given(P, w * size) for w in range(len(drawn))]
            except NotMixableError:
                self._mixers = [None if of is mixer else of for of in self._mixers]
        players, found = table.players, []
        for i, order, slots in drawn:
            stored = [self.xs[slot] for slot in slots.tolist()]
            coalitions = walked_coalitions(self.names, order[None])
            rows = [keep(self.xs[i], kept, row, players) for kept in coalitions for row in stored]
            found.append(GivenPredictions(table.predictions(rows), start=0))
        return list(found)


def _mixed(mixer: Mixer, d: int, drawn: Sequence[_Drawn]) -> Ints:
    """Make the walks' rows: kept features, and the others from drawn rows."""
    own = np.array([i for i, *_ in drawn], np.intp)[:, None, None, None]
    orders, slots = np.array([order for _, order, _ in drawn]), np.array([slots for *_, slots in drawn], np.intp)
    ranks = np.full((len(drawn), mixer.n_columns), d)
    places = np.argsort(orders, axis=1)
    for player, columns in enumerate(mixer.columns):
        ranks[:, columns] = places[:, player, None]
    kept = ranks[:, None, :] <= np.arange(d - 1)[None, :, None]
    idx: Ints = np.where(kept[:, :, None, :], own, slots[:, None, :, None])
    return idx.reshape(-1, mixer.n_columns)


def sage_steps(
    tables: Sequence[DataTable], n_samples: int, rng: np.random.Generator, *, most_ns: float = 0.0, size: int = BLOCK
) -> Steps[list[Contributions]]:
    """Estimate SAGE values of a data set from walks (iSAGE Algorithm 5).

    As `IncrementalSAGE` walks: one order per observation, the same m rows for all its coalitions, spread over the data
    by what the last of the models predicts for them, and the bias of few draws subtracted. Efficiency is exact: the
    importances sum to the loss of the model's mean prediction on these data minus that of the model. They estimate
    `exact_sage` of the data. The data are a sample that includes the explained observation, which leaves a bias of the
    order of 1 / n.

    Parameters
    ----------
    tables
        Models on the same data.
    n_samples
        Valid range >= 1; m, draws per coalition. With one draw the bias is unknown and stays.
    most_ns
        Nanoseconds that exact values over all coalitions and rows may take instead, from the leaves of each model;
        those of one model are one slice.
    size
        Rows of each model in a slice.
    """
    take = partial(walks_of, most_ns=most_ns, of_drawn=True)
    if most_ns > 0.0 and (exact := (yield from _exact(tables, take))) is not None:
        return exact
    walks, n = SageWalks(tables, "stratified"), len(tables[0].xs)
    d = len(walks.names)
    found, begins = [], np.zeros((d, n))
    slots = np.zeros((d, n, n_samples), dtype=np.intp)
    for some in walks.runs(1, n_samples, size):
        drawn = walks.drawn(some, 1, n_samples, rng)
        for i, order, of_walk in drawn:
            slots[:, i, :] = of_walk
            begins[order[:1], i] = 1.0
        rows = len(some) * max(d - 1, 1) * n_samples * len(tables)
        found.append((yield Slice(rows, partial(walks.taken, drawn, in_halves=True))))
    taken = np.concatenate(found).transpose(1, 2, 0, 3)
    return [
        Contributions(
            tuple(walks.names),
            np.ascontiguousarray(taken[t, :, :, 0]),
            np.ascontiguousarray(taken[t, :, :, 1:]) if taken.shape[3] > 1 else None,
            slots,
            walks.full[t],
            _through_mean(table, walks.predictions[t], begins),
        )
        for t, table in enumerate(tables)
    ]


def _through_mean(table: DataTable, predictions: Sequence[Prediction], begins: Array) -> Array | None:
    """Return each observation's influence by way of the mean prediction.

    It is the slope of the loss there, times the observation's own deviation.

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
