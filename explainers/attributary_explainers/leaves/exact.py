"""Exact PFI and SAGE of a forest on a data set, from its leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.leaves import Growth
from ..core.losses import NOT_IN_CORE
from ..losses.labels import is_of_labels
from ..losses.losses import Loss
from ..models.sklearn import is_estimator
from ..typing import Array, Features
from .forest import NotExactError, Routed, route
from .river import read_river
from .sklearn import read_estimator

Players = Mapping[Any, Sequence[Any]]


class LeafTable:
    """A forest, a data set routed through it, and its predictions' losses.

    Parameters
    ----------
    model
        The model.
    xs, ys
        The observations.
    loss
        A loss that the core knows, or of labels.

    Raises
    ------
    NotExactError
        The model is not a forest that can be read, or the loss is the user's own.
    """

    def __init__(self, model: Any, xs: Sequence[Features], ys: Sequence[Any], loss: Loss) -> None:
        if loss.code == NOT_IN_CORE and not is_of_labels(loss):
            raise NotExactError(f"the loss {loss.name} is a function of the user's")
        if loss.output == "any" and not is_estimator(model):
            raise NotExactError("what the loss reads is not known")
        forest, X = (read_estimator if is_estimator(model) else read_river)(model, xs)
        if (forest.labels is None) != (loss.output == "number"):
            raise NotExactError("the loss reads something else than the leaves have")
        self.as_label = is_of_labels(loss)
        self.n, self.forest = len(X), forest
        self.routed: Routed = route(forest, X)
        self.place = {feature: j for j, feature in enumerate(forest.features)}
        readings = [loss.arguments_at(y, self._column(y)) for y in ys]
        self.code, self.epsilon = loss.code, loss.epsilon
        self.columns = np.array([column for *_, column, _ in readings], np.int64)
        self.targets = np.array([target for *_, target in readings], np.float64)

    def _column(self, y: Any) -> int:
        labels = self.forest.labels or ()
        return labels.index(y) if y in labels else -1

    @property
    def n_classes(self) -> int:
        """Columns of a prediction."""
        return 1 if self.forest.labels is None else len(self.forest.labels)

    def predictions(self) -> Array:
        """Return the predictions as the loss reads them.

        Shape (rows, classes), or (rows, 1) for numbers.
        """
        raw = self.routed.raw()
        P = np.empty((len(raw), self.n_classes))
        self.routed.trees.predictions(raw, self.as_label, P)
        return P

    def columns_of(self, features: Sequence[Any]) -> list[int]:
        """Return the columns of the features that the forest splits."""
        used = set(np.flatnonzero(self.routed.used.any(axis=0)).tolist())
        return [self.place[f] for f in features if self.place.get(f) in used]


class ByRow(NamedTuple):
    """Contributions of each row to an exact importance."""

    explained: Array
    """Shape (players, rows): as the one whose features are replaced."""
    drawn: Array
    """Shape (players, rows): as one of those that features are taken from; nan where that is not wanted."""


def pfi_cost(table: LeafTable, players: Players) -> float:
    """Return about how many nanoseconds `exact_growth` takes."""
    routed, total = table.routed, 0.0
    nodes = max(len(routed.forest.column) / len(routed.forest.roots), 2.0)
    depth = np.log2(nodes) + 2.0
    for features in players.values():
        columns = table.columns_of(features)
        if not columns:
            continue
        trees = int(routed.used[:, columns].any(axis=1).sum())
        if _is_one_number(table, columns):
            bins = int(routed.n_bins[columns[0]]) + 1
            total += table.n * (10.0 * trees * nodes**0.65 + 15.0 * bins * table.n_classes)
        else:
            patterns = min(table.n, int(np.prod(routed.n_bins[columns].astype(float) + 1.0)))
            total += table.n * patterns * (3.0 * trees * depth + 15.0 * table.n_classes)
    return float(total)


def _is_one_number(table: LeafTable, columns: Sequence[int]) -> bool:
    column = table.routed.forest.column
    return len(columns) == 1 and not any(column[node] == columns[0] for node in table.routed.forest.chosen)


def exact_growth(table: LeafTable, players: Players) -> ByRow:
    """Return by how much the losses grow on average (iPFI Definition 3).

    The average is over all pairs of different rows. A row's prediction as a function of one feature is a step function
    with steps at the cuts of the trees. It is added up once per row, and then read at the values of all other rows:
    rows in one bin get one value.

    Raises
    ------
    NotExactError
        A loss is not finite.
    """
    n, routed = table.n, table.routed
    explained, drawn = np.zeros((len(players), n)), np.zeros((len(players), n))
    growth = Growth(
        routed.trees, table.as_label, routed.bins, routed.own, routed.used,
        table.code, table.epsilon, table.columns, table.targets, table.n_classes,
    )  # fmt: skip
    for j, features in enumerate(players.values()):
        columns = table.columns_of(features)
        if not columns:
            continue
        if _is_one_number(table, columns):
            (column,) = columns
            of_rows: npt.NDArray[Any] = routed.bins[:, column]
            counts = np.bincount(of_rows, minlength=int(routed.n_bins[column]) + 1)
            by_value = np.zeros(len(counts))
            are_finite = growth.by_feature(column, counts, explained[j], by_value)
        else:
            found = np.unique(routed.bins[:, columns], axis=0, return_inverse=True, return_counts=True)
            patterns, of_rows, counts = np.ascontiguousarray(found[0]), found[1].ravel(), found[2]
            by_value = np.zeros(len(counts))
            group = np.array(columns, np.intp)
            are_finite = growth.by_patterns(group, patterns, of_rows, counts, explained[j], by_value)
        if not are_finite:
            raise NotExactError("a loss is not finite")
        drawn[j] = by_value[of_rows]
    return ByRow(explained / (n - 1), drawn / (n - 1))
