"""A forest as flat arrays, and where a data set's rows go at its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.leaves import NUMBER, PROBABILITIES, SECOND_OF_TWO, Trees
from ..typing import Array

Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

ADDITIVE = frozenset((NUMBER, PROBABILITIES, SECOND_OF_TWO))
"""Where the prediction itself is a sum over the leaves, so that a mean over rows is, too."""


class NotExactError(Exception):
    """Leaves give no exact value, as the message says: ask the model itself."""


@dataclass(frozen=True)
class Forest:
    """Trees as arrays, where a row's leaves add up to its prediction.

    raw prediction = base + scale * sum over the trees of the value of the row's leaf.

    Attributes
    ----------
    features
        Names of the columns.
    column
        Shape (nodes,): the column that is split; -1 at a leaf.
    cut
        Shape (nodes,): a row goes left where its number is <= cut.
    missing_left
        Shape (nodes,): whether it goes left where that is missing (NaN).
    left, right
        Shape (nodes,): the children.
    value
        Shape (nodes, outputs).
    roots
        Shape (trees,).
    link
        What becomes of the sum, see `core.leaves.NUMBER` and the others.
    labels
        The classes; None for numbers.
    tie
        Of two classes with a logit of 0: the one that the model names.
    chosen
        By node that splits categories: whether a value of the column goes left, NaN included.
    """

    features: tuple[Any, ...]
    column: Ints
    cut: Array
    missing_left: Bools
    left: Ints
    right: Ints
    value: Array
    roots: Ints
    base: Array
    scale: float = 1.0
    link: int = NUMBER
    labels: tuple[Any, ...] | None = None
    tie: int = 0
    chosen: Mapping[int, Callable[[float], bool]] = field(default_factory=dict)

    @property
    def is_additive(self) -> bool:
        """Whether the prediction itself is a sum over the leaves."""
        return self.link in ADDITIVE


@dataclass(frozen=True)
class Routed:
    """A forest and a data set's rows, each value as the number of its bin.

    Two values of a column are in one bin where no node of the forest tells them apart: all that the forest can know of
    a row is its bins.

    Attributes
    ----------
    trees
        The forest, its nodes comparing bins.
    bins
        Shape (rows, columns).
    n_bins
        Shape (columns,): the bins; the next number is that of a missing value.
    used
        Shape (trees, columns): whether a tree splits a column.
    """

    forest: Forest
    trees: Trees
    bins: Ints
    n_bins: Ints
    used: Bools

    @cached_property
    def own(self) -> Ints:
        """Shape (trees, rows): the leaf that each row comes to."""
        found = np.empty((len(self.forest.roots), len(self.bins)), np.int32)
        self.trees.leaf_numbers(self.bins, found)
        return found

    def raw(self) -> Array:
        """Return the raw predictions for the rows, shape (rows, outputs)."""
        forest = self.forest
        total = np.zeros((len(self.bins), forest.value.shape[1]))
        for leaves in self.own:
            total += forest.value[leaves]
        raw: Array = forest.base + forest.scale * total
        return raw


def route(forest: Forest, X: Array) -> Routed:
    """Return where the rows go.

    Parameters
    ----------
    X
        Shape (rows, columns), numbers as the forest compares them; NaN is missing.
    """
    n, d = X.shape
    bins, n_bins = np.zeros((n, d), np.int32), np.zeros(d, np.int32)
    cut, table = np.zeros(len(forest.column), np.int32), np.full(len(forest.column), -1, np.int64)
    flat: list[Bools] = []
    size = 0
    of_column: dict[int, list[int]] = {}
    for node in forest.chosen:
        of_column.setdefault(int(forest.column[node]), []).append(node)
    for j in range(d):
        values, codes = np.unique(X[:, j], return_inverse=True)  # equal_nan: one NaN, the last
        known = values[~np.isnan(values)]
        at = np.flatnonzero(forest.column == j)
        cuts = np.searchsorted(known, forest.cut[at], side="right")
        special = of_column.get(j, [])
        edges = np.arange(1, len(known)) if special else np.unique(cuts[(cuts > 0) & (cuts < len(known))])
        bins[:, j] = np.searchsorted(edges, codes, side="right")
        n_bins[j] = len(edges) + 1 if len(known) else 0
        bins[codes == len(known), j] = n_bins[j]
        cut[at] = np.where(cuts == 0, 0, np.searchsorted(edges, cuts, side="left") + 1)
        for node in special:
            chosen = forest.chosen[node]
            table[node] = size
            flat.append(np.array([chosen(v) for v in (*known.tolist(), float("nan"))], np.bool_))
            size += len(flat[-1])
    trees = Trees(
        forest.column, cut, forest.missing_left, table, np.concatenate(flat) if flat else np.zeros(1, np.bool_),
        forest.left, forest.right, n_bins, forest.value, forest.roots, np.array(forest.base), forest.scale,
        forest.link, forest.tie,
    )  # fmt: skip
    return Routed(forest, trees, bins, n_bins, _used(forest, d))


def _used(forest: Forest, d: int) -> Bools:
    used = np.zeros((len(forest.roots), d), np.bool_)
    ends = [*forest.roots[1:].tolist(), len(forest.column)]
    for t, (start, end) in enumerate(zip(forest.roots.tolist(), ends, strict=True)):
        columns = forest.column[start:end]
        used[t, columns[columns >= 0]] = True
    return used


def joined(features: Sequence[Any], trees: Sequence[tuple[npt.NDArray[Any], ...]], **more: Any) -> Forest:
    """Return the forest that consists of these trees.

    Each is column, cut, missing_left, left, right and value, with nodes numbered from 0.
    """
    sizes = [len(tree[0]) for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    column, cut, missing, left, right, value = (
        np.concatenate(parts) for parts in zip(*_numbered(trees, roots.tolist()), strict=True)
    )
    return Forest(tuple(features), column, cut, missing, left, right, value, roots, **more)


def _numbered(trees: Sequence[Any], roots: Sequence[int]) -> list[tuple[Any, ...]]:
    found = []
    for (column, cut, missing, left, right, value), root in zip(trees, roots, strict=True):
        leaf = left < 0
        column = np.where(leaf, -1, column).astype(np.int32)
        children = [np.where(leaf, -1, child + root).astype(np.int32) for child in (left, right)]
        found.append((column, cut.astype(np.float64), missing.astype(np.bool_), *children, value.astype(np.float64)))
    return found
