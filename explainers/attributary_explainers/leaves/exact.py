"""Exact PFI and SAGE of a forest on a data set, from its leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.leaves import CoalitionSums, Growth
from ..core.losses import NOT_IN_CORE
from ..losses.labels import is_of_labels
from ..losses.losses import Loss
from ..models.sklearn import is_estimator
from ..typing import Array, Features
from .forest import NotExactError, Routed, read_estimator, read_river, route

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


MOST_PLAYERS = 16
"""Players that the forest uses; each further one doubles time and memory."""

_MOST_WEIGHTS = 1 << 24
"""Numbers by leaf and set of its players, 8 bytes each."""

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Coalitions:
    """A forest's predictions for coalitions: its leaves by their players.

    Attributes
    ----------
    used
        The names of the players that the forest uses.
    sums
        The leaves by their players.
    sizes
        Shape (leaves,): how many players are on the path to each.
    sizes_above
        Shape (groups - 1,): leaves with the same players are one group; how many players the one has that the sums of
        each are handed on to.
    """

    table: LeafTable
    used: tuple[Any, ...]
    sums: CoalitionSums
    sizes: Longs
    sizes_above: Longs

    def cost(self, *, of_drawn: bool) -> float:
        """Estimate the nanoseconds that `exact_walks` takes with this `of_drawn`."""
        d, k = len(self.used), self.table.forest.value.shape[1]
        met = float((1.6**self.sizes).sum())
        walk = 2.0 * (met + float((1 << self.sizes_above).sum())) * (1.0 + k)
        once = walk + (d / 2 + 30.0 * self.table.n_classes) * 2.0**d + 20.0 * len(self.table.forest.column)
        return float(self.table.n * once * (1.0 + d * of_drawn))


def coalitions_of(table: LeafTable, players: Players) -> Coalitions:
    """Return the leaves of a forest by their players.

    Raises
    ------
    NotExactError
        The prediction is not a sum over the leaves, or there are too many coalitions.
    """
    forest = table.forest
    if not forest.is_additive or table.as_label:
        raise NotExactError("what the loss reads is no sum over its leaves")
    used = {name: columns for name, features in players.items() if (columns := table.columns_of(features))}
    if len(used) > MOST_PLAYERS:
        raise NotExactError(f"it uses {len(used)} features, and there are 2^{len(used)} coalitions")
    player = np.zeros(max(len(forest.features), 1), np.int64)
    for number, columns in enumerate(used.values()):
        player[columns] = number
    nodes, of_leaf = [], []
    stack = [(int(root), 0) for root in forest.roots]
    column, left, right, bits = forest.column.tolist(), forest.left.tolist(), forest.right.tolist(), player.tolist()
    while stack:
        node, met = stack.pop()
        if column[node] < 0:
            nodes.append(node)
            of_leaf.append(met)
        else:
            met |= 1 << bits[column[node]]
            stack += [(left[node], met), (right[node], met)]
    found = np.array(of_leaf, np.int64)
    full = (1 << len(used)) - 1
    groups = sorted({*of_leaf, full}, key=lambda s: (s.bit_count(), s))
    number_of = {s: g for g, s in enumerate(groups)}
    group = np.array([number_of[s] for s in of_leaf], np.int64)
    order = np.argsort(group, kind="stable")
    sizes = np.array([s.bit_count() for s in of_leaf], np.int64)[order]
    if int((1 << sizes).sum()) > _MOST_WEIGHTS:
        raise NotExactError("its trees are too deep")
    leaf_of = np.full(len(column), -1, np.int64)
    leaves = np.array(nodes, np.int64)[order]
    leaf_of[leaves] = np.arange(len(leaves))
    parents, group_sizes, projections, projected = _handing_on(groups)
    sums = CoalitionSums(
        table.routed.trees, player=player, leaf_of=leaf_of, leaves=leaves, sets=found[order], sizes=sizes,
        starts=_begins(1 << sizes), group_of=group[order], places=_begins(1 << group_sizes), group_sizes=group_sizes,
        parents=parents, projections=projections, projected=projected,
    )  # fmt: skip
    return Coalitions(table, tuple(used), sums, sizes, group_sizes[parents[:-1]])


def _begins(lengths: Any) -> Longs:
    begins: Longs = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return begins


def _handing_on(groups: list[int]) -> tuple[Longs, Longs, Longs, Longs]:
    sets, sizes = np.array(groups, np.int64), np.array([s.bit_count() for s in groups], np.int64)
    parents, projections, projected = np.full(len(groups), -1, np.int64), [np.zeros(0, np.int64)], []
    size = 0
    for g, mine in enumerate(groups[:-1]):
        above = np.flatnonzero(sets[g + 1 :] & mine == mine)
        parent = parents[g] = g + 1 + int(above[0])  # the smallest: groups are in the order of their sizes
        projected.append(size)
        projections.append(_projection(mine, groups[parent]))
        size += len(projections[-1])
        if size > _MOST_WEIGHTS:
            raise NotExactError("its leaves have too many sets of features")
    return parents, sizes, np.concatenate(projections), np.array([*projected, 0], np.int64)


def _projection(mine: int, theirs: int) -> Longs:
    """Return for each subset of `theirs` its part in `mine`, each renumbered."""
    at, found, bit = np.arange(1 << theirs.bit_count()), np.zeros(1 << theirs.bit_count(), np.int64), 0
    for place, player in enumerate(p for p in range(theirs.bit_length()) if theirs >> p & 1):
        if mine >> player & 1:
            found |= (at >> place & 1) << bit
            bit += 1
    return found


def exact_walks(coalitions: Coalitions, players: Players, *, of_drawn: bool) -> ByRow:
    """Return the Shapley values of each observation over all coalitions.

    With A the players whose conditions on the path to a leaf the observation meets, and K all players on it, the
    prediction for a coalition S is the sum over the leaves of

        value * [S & K in A] * share of the rows z that meet the conditions on K without S.

    Parameters
    ----------
    of_drawn
        Whether to return also how much each row, as one that features are taken from, moves the mean of these, to
        first order.

    Raises
    ------
    NotExactError
        A loss is not finite.
    """
    c, table = coalitions, coalitions.table
    bins, d = table.routed.bins, len(coalitions.used)
    weights = np.zeros(int((1 << c.sizes).sum()))  # by leaf and set of its players
    c.sums.background(bins, weights)
    of_size = np.array([1.0 / (d * math.comb(d - 1, size)) for size in range(d)])
    own, moved = np.zeros((table.n, d)), np.zeros((d, len(weights) if of_drawn else 0))
    if not c.sums.all_coalitions(
        bins, weights, table.code, table.epsilon, table.columns, table.targets, of_size, table.n_classes, own, moved
    ):
        raise NotExactError("a loss is not finite")
    at = [list(players).index(name) for name in c.used]
    explained, drawn = np.zeros((2, len(players), table.n))
    explained[at] = own.T
    if not of_drawn:
        return ByRow(explained, np.full_like(drawn, np.nan))
    found = np.zeros((d, table.n))
    c.sums.of_background(bins, moved, found)
    # The mean over the rows, each against the mean of all.
    drawn[at] = (found - found.mean(axis=1, keepdims=True)) / table.n
    return ByRow(explained, drawn)
