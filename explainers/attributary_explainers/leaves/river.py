"""Reads River's trees, forests and bags with constant leaf predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from river import ensemble, forest, tree
from river.tree.nodes.branch import (
    DTBranch,
    NominalBinaryBranch,
    NominalMultiwayBranch,
    NumericBinaryBranch,
    NumericMultiwayBranch,
)
from river.tree.nodes.htc_nodes import LeafMajorityClass, LeafNaiveBayes, LeafNaiveBayesAdaptive
from river.tree.nodes.htr_nodes import LeafAdaptive, LeafMean, LeafModel

from ..core.leaves import NUMBER, PROBABILITIES, SECOND_OF_TWO
from ..evaluation.registry import read_as_categories
from ..evaluation.schema import NotEncodableError, Schema, categorical_features
from ..ordering import sort_key
from ..typing import Array, Features
from .forest import Forest, NotExactError, joined

_TREES = (tree.HoeffdingTreeClassifier, tree.HoeffdingTreeRegressor, tree.ExtremelyFastDecisionTreeClassifier)
_BAGS = (ensemble.BaggingClassifier, ensemble.LeveragingBaggingClassifier, ensemble.ADWINBaggingClassifier)


def read_river(model: Any, rows: Sequence[Features]) -> tuple[Forest, Array]:
    """Return a model's forest, and the rows as it compares them.

    The rows have the shape (rows, columns).

    Raises
    ------
    NotExactError
        It is of another type, a leaf's prediction depends on the row, or the rows have different features.
    """
    members, weights = _members(model)
    row = rows[0]
    schema = Schema(row, (read_as_categories(model) & row.keys()) | categorical_features(row))
    try:
        X = schema.encode_many(rows)
    except NotEncodableError as reason:
        raise NotExactError(str(reason)) from None
    is_classifier = not isinstance(model, (tree.HoeffdingTreeRegressor, forest.ARFRegressor))
    labels = tuple(sorted({c for m in members for c in m.classes}, key=sort_key)) if is_classifier else None
    readers = [_Reader(schema, member, labels) for member in members]
    chosen: dict[int, Callable[[float], bool]] = {}
    start = 0
    for reader in readers:
        chosen |= {start + node: goes_left for node, goes_left in reader.chosen.items()}
        start += len(reader.column)
    of_two = labels is not None and len(labels) == 2
    trees = [reader.arrays(weight, of_two=of_two) for reader, weight in zip(readers, weights, strict=True)]
    link = NUMBER if labels is None else SECOND_OF_TWO if of_two else PROBABILITIES
    base = np.zeros(trees[0][-1].shape[1])
    return joined(schema.features, trees, base=base, link=link, labels=labels, chosen=chosen), X


def _members(model: Any) -> tuple[list[Any], list[float]]:
    """Return the trees, and the weight of each in the prediction."""
    kind = type(model)
    if kind in _TREES:
        return [model], [1.0]
    members = list(model.data) if kind in (forest.ARFClassifier, forest.ARFRegressor, *_BAGS) else []
    if not members:
        raise NotExactError(f"{kind.__name__} is no forest that can be read")
    if kind in _BAGS and not all(type(member) in _TREES for member in members):
        raise NotExactError("a member of the ensemble is no tree that can be read")
    scores = [1.0] * len(members)
    if kind is forest.ARFClassifier and not model.disable_weighted_vote:
        scores = [score if score > 0.0 else 1.0 for score in (metric.get() for metric in model._metrics)]
    elif kind is forest.ARFRegressor:
        if model.aggregation_method != "mean":
            raise NotExactError("a median of trees is no sum of their leaves")
        n = len(members)
        errors = [metric.get() for metric in model._metrics]
        if not model.disable_weighted_vote and (total := sum(errors)) != 0:
            # As River weighs them, by what the errors of the others sum to; and it divides by their number once more.
            of_others = [total - error for error in errors]
            return members, [weight / sum(of_others) / n for weight in of_others]
    return members, [score / sum(scores) for score in scores]


class _Reader:
    """A tree as arrays; a split into many is a chain of splits in two."""

    def __init__(self, schema: Schema, member: Any, labels: tuple[Any, ...] | None) -> None:
        self._schema, self._member, self._labels = schema, member, labels
        self.column: list[int] = []
        self._cut: list[float] = []
        self._children: list[tuple[int, int]] = []
        self._values: list[list[float]] = []
        self.chosen: dict[int, Callable[[float], bool]] = {}
        if member._root is None:
            raise NotExactError("a tree has seen nothing")
        self._read(member._root)

    def arrays(self, weight: float, *, of_two: bool) -> tuple[Any, ...]:
        """Return the arrays, as `joined` takes them."""
        left, right = np.array(self._children).T
        value = weight * np.array(self._values)
        n = len(self.column)
        missing = np.zeros(n, np.bool_)  # rows of these trees have no missing values
        return np.array(self.column), np.array(self._cut), missing, left, right, value[:, 1:] if of_two else value

    def _read(self, given: Any) -> int:
        at = self._new()
        if not isinstance(given, DTBranch):
            self._values[at] = self._leaf(given)
            return at
        node: Any = given
        column = self._schema.position.get(node.feature)
        if column is None:
            raise NotExactError(f"the rows lack {node.feature!r}, which a tree splits")
        if isinstance(node, NumericBinaryBranch):
            if column in self._schema.codes:
                raise NotExactError(f"a tree reads {node.feature!r} as a number, and the rows as a category")
            left, right = node.children
            self.column[at], self._cut[at] = column, float(node.threshold)
            self._children[at] = (self._read(left), self._read(right))
        else:
            self._chain(at, column, node, list(range(len(node.children))))
        return at

    def _new(self) -> int:
        """Return the number of a new node, a leaf so far."""
        self.column.append(-1)
        self._cut.append(0.0)
        self._children.append((-1, -1))
        self._values.append([0.0] * len(self._labels or (0,)))
        return len(self.column) - 1

    def _chain(self, at: int, column: int, node: Any, others: list[int]) -> None:
        """Split off the first of some children, and go on with the others."""
        first, *rest = others
        taken = self._branch_of(column, node)
        if not rest:
            raise NotExactError("a split has one branch")
        self.column[at] = column
        self.chosen[at] = lambda value: taken(value) == first
        left = self._read(node.children[first])
        if len(rest) == 1:
            right = self._read(node.children[rest[0]])
        else:
            right = self._new()
            self._chain(right, column, node, rest)
        self._children[at] = (left, right)

    def _branch_of(self, column: int, node: Any) -> Callable[[float], int]:
        """Return a function from a value to its branch, or the commonest branch."""
        usual = int(node.most_common_path()[0])
        codes = column in self._schema.codes

        def taken(value: float) -> int:
            if value != value:
                return usual
            given = self._schema.values(column)[int(value)] if codes else value
            if isinstance(node, NominalBinaryBranch):
                return 0 if given == node.value else 1
            if isinstance(node, NumericMultiwayBranch):
                given = math.floor(given / node.radius)
            elif not isinstance(node, NominalMultiwayBranch):
                raise NotExactError(f"a split of the type {type(node).__name__}")
            return int(node._mapping.get(given, usual))

        return taken

    def _leaf(self, leaf: Any) -> list[float]:
        if self._labels is None:
            if not isinstance(leaf, LeafMean) or _is_modelled(leaf):
                raise NotExactError("the model of a leaf depends on the row")
            return [float(leaf.stats.mean.get())]
        if not isinstance(leaf, LeafMajorityClass) or _is_bayesian(leaf):
            raise NotExactError("naive Bayes in a leaf depends on the row")
        total = sum(leaf.stats.values())
        if not total > 0:
            raise NotExactError("a leaf has seen nothing")
        return [leaf.stats.get(label, 0.0) / total for label in self._labels]


def _is_modelled(leaf: Any) -> bool:
    """Return whether a leaf predicts by a model of the features as it is now."""
    if isinstance(leaf, LeafAdaptive):
        return not leaf._fmse_mean < leaf._fmse_model
    return isinstance(leaf, LeafModel)


def _is_bayesian(leaf: Any) -> bool:
    """Return whether a leaf may predict by naive Bayes as it is now."""
    if isinstance(leaf, LeafNaiveBayesAdaptive):
        adaptive: Any = leaf
        return bool(adaptive.is_active()) and leaf._nb_correct_weight >= leaf._mc_correct_weight
    return isinstance(leaf, LeafNaiveBayes)
