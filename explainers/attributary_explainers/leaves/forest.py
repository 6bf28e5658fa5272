"""Forests of River and scikit-learn as flat arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
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

from ..core.leaves import EXPONENTIAL, LOGISTIC, NUMBER, PROBABILITIES, SECOND_OF_TWO, SOFTMAX, Trees
from ..evaluation.registry import read_as_categories
from ..evaluation.schema import NotEncodableError, Schema, categorical_features
from ..models.sklearn import SklearnModel, estimator_input
from ..ordering import sort_key
from ..typing import Array, Features

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


def read_estimator(model: Any, rows: Sequence[Features]) -> tuple[Forest, Array]:
    """Return an estimator's forest, and the rows as it compares them.

    The rows have the shape (rows, columns).

    Raises
    ------
    NotExactError
        It is of another type, or of a form that is not read.
    """
    estimator = model.estimator if isinstance(model, SklearnModel) else model
    kind = type(estimator)
    read = _KINDS.get(kind.__name__) if kind.__module__.startswith("sklearn.") else None
    if read is None:
        raise NotExactError(f"{kind.__name__} is no forest that can be read")
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise NotExactError("it has more than one output")
    X, names = estimator_input(model, rows)
    X = _preprocessed(estimator, X)
    try:
        numbers = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise NotExactError("a value is no number") from None
    forest: Forest = read(estimator, names)
    if isinstance(model, SklearnModel) and model.classes is not None:
        forest = replace(forest, labels=tuple(model.labels.values()))
    if kind.__name__.startswith("Hist"):
        return forest, numbers
    return forest, numbers.astype(np.float32).astype(np.float64)  # as these trees compare


def _preprocessed(estimator: Any, X: Any) -> Any:
    # What histogram boosting makes of categories before its trees see them; their columns come first.
    if getattr(estimator, "_preprocessor", None) is None:
        return X
    found = np.asarray(estimator._preprocess_X(X, reset=False), dtype=np.float64)
    categorical = np.asarray(estimator.is_categorical_)
    return found if len(categorical) == found.shape[1] else None


def _trees(tree: Any, value: Array) -> tuple[Any, ...]:
    missing = getattr(tree, "missing_go_to_left", None)
    if missing is None:
        missing = np.zeros(tree.node_count)
    return tree.feature, tree.threshold, np.asarray(missing), tree.children_left, tree.children_right, value


def _classes(estimator: Any) -> tuple[Any, ...]:
    return tuple(label.item() if isinstance(label, np.generic) else label for label in estimator.classes_)


def _shares(value: Array) -> Array:
    shares: Array = value[:, 0, :]
    total = shares.sum(axis=1, keepdims=True)
    return shares / np.where(total > 0.0, total, 1.0)


def _classifier(estimator: Any, names: Sequence[Any]) -> Forest:
    classes, members = _classes(estimator), getattr(estimator, "estimators_", [estimator])
    of_two = len(classes) == 2
    values = [_shares(member.tree_.value) for member in members]
    trees = [_trees(m.tree_, v[:, 1:] if of_two else v) for m, v in zip(members, values, strict=True)]
    link = SECOND_OF_TWO if of_two else PROBABILITIES
    base = np.zeros(1 if of_two else len(classes))
    return joined(names, trees, base=base, scale=1.0 / len(members), link=link, labels=classes)


def _regressor(estimator: Any, names: Sequence[Any]) -> Forest:
    members = getattr(estimator, "estimators_", [estimator])
    trees = [_trees(member.tree_, member.tree_.value[:, :, 0]) for member in members]
    return joined(names, trees, base=np.zeros(1), scale=1.0 / len(members))


def _boosting(estimator: Any, names: Sequence[Any]) -> Forest:
    if estimator.init_ != "zero" and not type(estimator.init_).__name__.startswith("Dummy"):
        raise NotExactError("it begins with another model")
    base = np.asarray(estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), np.float32)))[0]
    n_outputs = estimator.estimators_.shape[1]
    trees = []
    for members in estimator.estimators_:
        for k, member in enumerate(members):
            value = np.zeros((member.tree_.node_count, n_outputs))
            value[:, k] = member.tree_.value[:, 0, 0]
            trees.append(_trees(member.tree_, value * estimator.learning_rate))
    more: dict[str, Any] = {"base": base}
    if hasattr(estimator, "classes_"):
        more |= {"link": LOGISTIC if n_outputs == 1 else SOFTMAX, "labels": _classes(estimator), "tie": 1}
        if estimator.loss == "exponential":
            more |= {"base": 2.0 * base, "scale": 2.0}
    return joined(names, trees, **more)


def _histogram_boosting(estimator: Any, names: Sequence[Any]) -> Forest:
    known, place = estimator._bin_mapper.make_known_categories_bitsets()
    base = np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel()
    trees, chosen, start = [], {}, 0
    for predictors in estimator._predictors:
        for k, predictor in enumerate(predictors):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            value = np.zeros((len(nodes), len(base)))
            value[:, k] = nodes["value"]
            left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
            column, missing = nodes["feature_idx"], nodes["missing_go_to_left"].astype(bool)
            trees.append((column, nodes["num_threshold"], missing, left, right, value))
            for i in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf).tolist():
                ours = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][i]]
                chosen[start + i] = _chooser(ours, known[place[column[i]]], bool(missing[i]))
            start += len(nodes)
    more: dict[str, Any] = {"base": base, "chosen": chosen}
    if hasattr(estimator, "classes_"):
        more |= {"link": LOGISTIC if len(base) == 1 else SOFTMAX, "labels": _classes(estimator)}
    else:
        more["link"] = EXPONENTIAL if estimator.loss in ("poisson", "gamma") else NUMBER
    if estimator._preprocessor is not None:
        categorical = np.asarray(estimator.is_categorical_)
        names = [names[i] for i in (*np.flatnonzero(categorical).tolist(), *np.flatnonzero(~categorical).tolist())]
    return joined(names, trees, **more)


def _chooser(left: Any, known: Any, missing_left: bool) -> Callable[[float], bool]:
    """Return a test for going left; unknown categories go as missing ones."""

    def goes_left(value: float) -> bool:
        if value != value or not 0.0 <= value < 256.0:
            return missing_left
        at, bit = divmod(int(value), 32)
        if int(left[at]) >> bit & 1:
            return True
        return False if int(known[at]) >> bit & 1 else missing_left

    return goes_left


_KINDS: dict[str, Callable[[Any, Sequence[Any]], Forest]] = {
    "DecisionTreeClassifier": _classifier,
    "ExtraTreeClassifier": _classifier,
    "DecisionTreeRegressor": _regressor,
    "ExtraTreeRegressor": _regressor,
    "RandomForestClassifier": _classifier,
    "ExtraTreesClassifier": _classifier,
    "RandomForestRegressor": _regressor,
    "ExtraTreesRegressor": _regressor,
    "GradientBoostingClassifier": _boosting,
    "GradientBoostingRegressor": _boosting,
    "HistGradientBoostingClassifier": _histogram_boosting,
    "HistGradientBoostingRegressor": _histogram_boosting,
}
