"""Mean decrease in impurity of River's Hoeffding trees and forests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from river import ensemble, forest, tree
from river.ensemble.streaming_random_patches import BaseSRPEstimator
from river.tree.nodes.branch import DTBranch

from ..errors import InvalidParameterError, ModelError
from ..models.river import final_step
from ..ranking import shares
from ..typing import Features, Importance, Prediction, Snapshot
from .base import IncrementalExplainer

# Every member votes on its own features: members of stacking see each other's outputs, EWA's need not be trees.
_ENSEMBLES = (
    forest.ARFClassifier,
    forest.ARFRegressor,
    forest.OXTRegressor,
    ensemble.BaggingClassifier,
    ensemble.BaggingRegressor,
    ensemble.AdaBoostClassifier,
    ensemble.SRPClassifier,
    ensemble.SRPRegressor,
    ensemble.VotingClassifier,
)
_BRANCH: Any = DTBranch  # its subclasses, and only they, declare `feature`
_TREES = (tree.HoeffdingTreeClassifier, tree.HoeffdingTreeRegressor)

_FEWEST = 25  # observations between two reads of `explain_one`, at least


class IncrementalMDI(IncrementalExplainer):
    """Decrease in impurity by each feature's splits, from tree statistics.

    In one tree, with n(v) the weight of the observations at node v and i(v) its impurity, the Gini index
    1 - sum_k p_k(v)^2 of a classifier or the variance (divisor n) of a regressor's target,

        MDI(j) = sum over nodes v that split on j of
                 n(v) / n(root) * (i(v) - sum over children c of n(c) / n(v) * i(c)).

    Over the features of one tree this sums to i(root) minus the weighted impurity of the leaves. An ensemble
    has the plain mean over its trees, vote weights ignored; a tree that has not split counts, with 0.

    n and i are taken bottom-up: those of a leaf from its own statistics, those of a split from its leaves'.
    The statistics that a split keeps itself are left aside, because they stand still in a plain Hoeffding
    tree from the moment it split, and in an adaptive tree they are older than a subtree that was exchanged:
    parent and children would then not be of the same observations, and a decrease could be negative. A new
    leaf starts with the counts that the split estimated for it, so that what was seen before counts too.
    Alternate trees of adaptive trees and background trees of forests predict nothing and are ignored.

    `importance` is of the trees as they are: it walks all of them, O(nodes * classes), and keeps nothing, because a
    leaf's statistics change with every observation that the model learns. `explain_one` only counts, and returns what
    was read last: it reads at the first observation, and anew after as many as the trees have nodes, at least 25. So an
    observation costs the time of one node at most, whatever the size of the trees.

    Parameters
    ----------
    model
        `tree.HoeffdingTreeClassifier` or `HoeffdingTreeRegressor` or a subclass (adaptive, extremely fast,
        LAST; not iSOUP, which has many targets), or an ensemble of such trees: adaptive random forest, OXT,
        bagging, boosting, random patches (SRP), voting. Or a pipeline that ends in one: features are then
        named as they reach the tree, after the transformers.
    features
        Features that are always in the result, with 0 until a tree splits on them. Any other feature that no tree
        splits on is absent.
    normalize
        True divides by the sum over the features, so that importance has no unit and sums to 1 (to 0 where
        nothing is split). Otherwise it is in the unit of the impurity: Gini index, or target squared.

    Raises
    ------
    ModelError
        The model, or a member of the ensemble, is no such tree.
    InvalidParameterError
        `features` is a bare string.

    Source: the MDI that iPFI section 4.1 and iSAGE appendix D.3.3 compare with, after Cassidy and Deviney,
    Calculating Feature Importance in Data Streams with Concept Drift using Online Random Forest, 2014 (Gini).
    Deviation: theirs is computed from the statistics that each split keeps, ours from those of the leaves.

    Examples
    --------
    >>> from river.datasets import synth
    >>> from river.tree import HoeffdingTreeClassifier
    >>> model = HoeffdingTreeClassifier()
    >>> mdi = IncrementalMDI(model, features=["size", "color", "shape"], normalize=True)
    >>> for x, y in synth.STAGGER(classification_function=2, seed=7).take(1000):
    ...     importance = mdi.explain_one(x, y)
    ...     model.learn_one(x, y)
    >>> mdi.importance  # of the trees as they are; this concept: size is medium or large
    {'size': 1.0, 'color': 0.0, 'shape': 0.0}
    >>> IncrementalMDI.from_snapshot(mdi.snapshot(), model).importance == mdi.importance
    True
    """

    name = "mdi"

    def __init__(self, model: Any, *, features: Iterable[Any] = (), normalize: bool = False) -> None:
        if isinstance(features, str):
            raise InvalidParameterError("features", "a list of features", features)
        self.model = model
        self.features = tuple(dict.fromkeys(features))
        self.normalize = bool(normalize)
        self._n = self._left = 0  # observations so far, and until the next read
        self._last: Importance = {}
        _trees(model)

    @property
    def n_observations(self) -> int:
        """Calls of `explain_one`; importance is of all the trees have learnt."""
        return self._n

    @property
    def n_skipped(self) -> int:
        """Always 0."""
        return 0

    @property
    def importance(self) -> Importance:
        """Importance per feature, of the model as it is now.

        Raises
        ------
        ModelError
            The ensemble has got a member that is no tree since the explainer was made.
        """
        return self._read()[0]

    def _read(self) -> tuple[Importance, int]:
        """Walk the trees; return the importance and how many nodes there are."""
        trees = _trees(self.model)
        importance: Importance = dict.fromkeys(self.features, 0.0)
        n_nodes = 0
        for member in trees:
            decreases: Importance = {}
            walk = _means if isinstance(member, tree.HoeffdingTreeRegressor) else _counts
            weight, _, n = walk(member._root, decreases)
            n_nodes += n
            for feature, decrease in decreases.items():
                share = decrease / weight / len(trees) if weight else 0.0
                importance[feature] = importance.get(feature, 0.0) + float(share)
        return (shares(importance) if self.normalize else importance), n_nodes

    def explain_one(self, x: Features, y: Any = None, *, y_pred: Prediction = None) -> Importance:
        """Return the importance as last read; `importance` reads it anew.

        The observation is not read: the arguments are those of every explainer.
        """
        self._n += 1
        if self._left <= 0:
            self._last, n_nodes = self._read()
            self._left = max(_FEWEST, n_nodes)
        self._left -= 1
        return dict(self._last)

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters as plain data."""
        return {"features": list(self.features), "normalize": self.normalize}

    def _state(self) -> Snapshot:
        return {"n": self._n, "left": self._left, "last": list(self._last.items())}  # all else is the model's

    def _restore(self, state: Snapshot) -> None:
        self._n, self._left, self._last = state["n"], state["left"], dict(map(tuple, state["last"]))

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any], model: Any, loss: Any) -> Self:
        return cls(model, **parameters)


def _trees(model: Any) -> list[Any]:
    """Return the trees that `model` predicts with; none in a new forest."""
    final = final_step(model)
    if isinstance(final, BaseSRPEstimator):
        return _trees(final.model)
    if isinstance(final, _TREES) and not isinstance(final, tree.ISOUPTreeRegressor):
        return [final]
    if isinstance(final, _ENSEMBLES):
        # SRP makes its members at the first observation, from the model that it was given.
        unborn = final.model if isinstance(final, (ensemble.SRPClassifier, ensemble.SRPRegressor)) else None
        members = list(final) or ([] if unborn is None else [unborn])
        return [member for part in members for member in _trees(part)]
    raise ModelError(
        f"no mean decrease in impurity for {type(final).__name__}: expected a Hoeffding tree with one target, an "
        "ensemble of them or a pipeline that ends in one; IncrementalPFI and IncrementalSAGE explain any model"
    )


def _counts(node: Any, decreases: Importance) -> tuple[float, dict[Any, float], int]:
    """Return a subtree's weight, class weights and number of nodes.

    Add the decreases of its splits to `decreases`. A decrease is added times the split's weight. The Gini index is the
    variance of the one-hot target, and what a split takes from it is the variance between the children's shares of the
    classes: never negative, and without the cancellation of impurity minus impurity.
    """
    if not isinstance(node, _BRANCH):
        if node is None:
            return 0.0, {}, 0
        counts = node.stats
        if counts and min(counts.values()) < 0:
            counts = {label: max(count, 0.0) for label, count in counts.items()}
        return float(sum(counts.values())), counts, 1
    parts, weight, n_nodes = [], 0.0, 1
    total: dict[Any, float] = {}
    for child in node.children:
        n, counts, n_below = _counts(child, decreases)
        n_nodes += n_below
        if n:
            weight += n
            parts.append((n, counts))
            for label, count in counts.items():
                total[label] = total.get(label, 0.0) + count
    between = 0.0
    for label, count in total.items():
        share = count / weight
        for n, counts in parts:
            between += n * (counts.get(label, 0.0) / n - share) ** 2
    decreases[node.feature] = decreases.get(node.feature, 0.0) + between
    return weight, total, n_nodes


def _means(node: Any, decreases: Importance) -> tuple[float, float, int]:
    """Return a subtree's weight, mean target and node count; add decreases."""
    if not isinstance(node, _BRANCH):
        if node is None:
            return 0.0, 0.0, 0
        mean = node.stats.mean
        return max(float(mean.n), 0.0), float(mean.get()), 1
    parts, weight, n_nodes = [], 0.0, 1
    for child in node.children:
        n, mean, n_below = _means(child, decreases)
        n_nodes += n_below
        if n:
            weight += n
            parts.append((n, mean))
    # From the first child's mean on, so that targets far from 0 keep their digits.
    first = parts[0][1] if parts else 0.0
    moved = first + sum(n * (mean - first) for n, mean in parts) / weight if weight else 0.0
    between = sum(n * (mean - moved) ** 2 for n, mean in parts)
    decreases[node.feature] = decreases.get(node.feature, 0.0) + between
    return weight, moved, n_nodes
