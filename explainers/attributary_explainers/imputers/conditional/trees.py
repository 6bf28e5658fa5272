"""River's trees, whose leaves give draws (iSAGE Algorithms 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from river import drift, stats, tree

from .encoding import Code
from .leaves import EMPTY, ClassifierLeaf, RecentRows, RegressorLeaf
from .splitters import DELTA, BinnedObserver

TIE = 0.1
"""Hoeffding bound below which the better of two splits is taken though they are nearly equal. Twice River's: every
split that is weighed here has evidence of its own, so that the choice only orders good ones."""

ROWS_PER_LEAF_SIZE = 20
"""The number of observations kept to move stored values with, and of visits that halve a split's counts.

In leaf sizes.
"""


class RelativeADWIN(drift.ADWIN):
    """Detects drift by ADWIN over absolute errors relative to their mean.

    Each error counts as its share of four times the mean so far, at most 1. ADWIN's bound is for numbers in [0, 1]: fed
    with raw errors, as River's tree does, it never alarms for a feature in thousandths and has lost its guarantee for
    one in thousands.
    """

    def _reset(self) -> None:
        super()._reset()  # type: ignore[no-untyped-call]  # River's drift detectors and leaves are untyped
        self._n = 0
        self._mean = 0.0

    def update(self, x: float) -> None:
        """Take in an absolute error."""
        self._n += 1
        self._mean += (x - self._mean) / self._n
        share = min(x / (4.0 * self._mean), 1.0) if self._mean > 0.0 else 0.0
        super().update(share)  # type: ignore[no-untyped-call]


class SamplingTree:
    """Makes River's trees, of both kinds, keep values in leaves and draw them.

    Values are kept in the leaves of alternate trees too, so that these have something to draw from when they
    take over, but are never drawn from there. When a leaf splits, its values move to the children by the split,
    as far as their observations are still in `recent`.
    """

    # Of River's tree.
    _root: Any
    _rng: Any
    drift_detector: Any
    splitter: Any
    # Of each kind: its leaves, and what these know of the target at first.
    leaf: Any
    no_stats: Any

    def __init__(self, leaf_size: int, max_leaves: int, recent: RecentRows, **settings: Any) -> None:
        # Without bootstrap weights, so that counts are of observations.
        super().__init__(**{"delta": DELTA, "tau": TIE, "bootstrap_sampling": False, **settings})
        self.leaf_size = leaf_size
        self.max_leaves = max_leaves
        self.recent = recent
        self._counted: list[Any] = []

    def learn(self, row: dict[Any, Code], y: Code) -> None:
        """Learn to tell the target from the other features."""
        try:
            self.learn_one(row, y)  # type: ignore[attr-defined]
        except ZeroDivisionError:
            # River's z-test of a subtree against its alternate, where neither has erred by different amounts.
            for node in self._nodes():
                alternate = getattr(node, "_alternate_tree", None)
                if alternate is not None and not (node._error_tracker.get() or alternate._error_tracker.get()):
                    node._alternate_tree = None
            self.learn_one(row, y)  # type: ignore[attr-defined]

    def keep(self, row: dict[Any, Code], value: Any, number: int) -> None:
        """Store the target's value in the row's leaf, and count the way there.

        Where the row lacks the feature of a split it leads to no leaf. River's tree has learnt it on the commonest
        way; stored there, it would mix values of every condition into one.
        """
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            while node.counts is not None:
                if node._alternate_tree is not None:
                    waiting.append(node._alternate_tree)
                child = _way(node, row)
                if child is None:
                    break
                if not any(node is counted for counted in self._counted):
                    self._count(node, child)
                node = node.children[child]
            else:
                node.keep(value, number, self._slot, self.leaf_size)
        self._counted.clear()

    def _slot(self, size: int) -> int:
        return int(self._rng.random() * size)

    def _count(self, branch: Any, child: int) -> None:
        counts = branch.counts
        counts.extend([0.0] * (len(branch.children) - len(counts)))  # a category that the split had not seen
        counts[child] += 1.0
        # Without an end to their memory the shares of the children would be those of the stream's first years.
        if counts[child] > ROWS_PER_LEAF_SIZE * self.leaf_size:
            counts[:] = [0.5 * count for count in counts]

    def sample(self, code: Callable[[Any], Code | None], numbers: Sequence[float]) -> list[Any]:
        """Walk to a leaf and draw a value, for each number (iSAGE Algorithm 4).

        Parameters
        ----------
        code
            Feature to its code; None for one that the draw must not depend on, or that the observation lacks.
        numbers
            Valid range [0, 1) each; one number chooses both the way and the value.
        """
        return _drawn(self._root, code, numbers)

    def leaves(self, code: Callable[[Any], Code | None]) -> Iterator[tuple[Any, float]]:
        """Yield each leaf that `sample` can reach, by u, with its probability."""
        waiting = [(self._root, 1.0)]
        while waiting:
            node, probability = waiting.pop()
            if node.counts is None:
                yield node, probability
                continue
            known = code(node.feature)
            child = None if known is None else _way(node, {node.feature: known})
            if child is not None:
                waiting.append((node.children[child], probability))
            else:
                total = sum(node.counts)
                # strict=False: a child that no value has been kept in has no count yet.
                shares = [(c, probability * n / total) for c, n in zip(node.children, node.counts, strict=False) if n]
                waiting.extend(reversed(shares))

    def forget(self, features: Collection[Any]) -> bool:
        """Forget features that are gone; return False if the tree splits on any."""
        for node in self._nodes():
            if node.counts is not None:
                if node.feature in features:
                    return False
            elif node.splitters is not None:
                for feature in features:
                    node.splitters.pop(feature, None)
        return True

    def _nodes(self) -> Iterator[Any]:
        waiting = [] if self._root is None else [self._root]
        while waiting:
            node = waiting.pop()
            yield node
            if node.counts is not None:
                waiting.extend(node.children)
                if node._alternate_tree is not None:
                    waiting.append(node._alternate_tree)

    def _new_leaf(self, initial_stats: Any = None, parent: Any = None, is_active: bool = True) -> Any:
        depth, known = 0 if parent is None else parent.depth + 1, initial_stats or self.no_stats()
        return self.leaf(known, depth, self.splitter, drift_detector=self.drift_detector.clone(), rng=self._rng)

    def _attempt_to_split(self, leaf: Any, parent: Any, parent_branch: Any, **kwargs: Any) -> None:
        """Split as River does, below `max_leaves`, and move the stored values.

        The leaf may be an alternate: River then puts the new split in place of the subtree that it is alternate to.
        """

        def place() -> Any:
            return self._root if parent is None else parent.children[parent_branch]

        before = place()
        if self._root.n_leaves - before.n_leaves + 1 >= self.max_leaves:
            return
        super()._attempt_to_split(leaf, parent, parent_branch, **kwargs)  # type: ignore[misc]
        branch = place()
        if branch is before:
            return
        # Of the observations since the leaf was made, the one that is being learnt included.
        branch.counts = [float(child.total_weight) for child in branch.children]
        self._counted.append(branch)
        for value, number in zip(leaf.values, leaf.numbers, strict=True):
            row = self.recent.get(number)
            child = None if row is None else _way(branch, row)
            if child is not None:
                branch.children[child].keep(value, number, self._slot, self.leaf_size)


class NominalTree(SamplingTree, tree.HoeffdingAdaptiveTreeClassifier):
    """Predicts the category of a nominal feature."""

    leaf, no_stats = ClassifierLeaf, dict

    def __init__(self, *args: Any, **settings: Any) -> None:
        # Every split has passed a test, also one that cuts off the rarest category.
        super().__init__(
            *args,
            leaf_prediction="mc",
            splitter=BinnedObserver(numeric_target=False),
            min_branch_fraction=0.0,
            max_share_to_split=1.0,
            **settings,
        )


class NumericTree(SamplingTree, tree.HoeffdingAdaptiveTreeRegressor):
    """Predicts the value of a numeric feature."""

    leaf, no_stats = RegressorLeaf, stats.Var

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(
            *args,
            leaf_prediction="mean",
            splitter=BinnedObserver(numeric_target=True),
            drift_detector=RelativeADWIN(),  # type: ignore[no-untyped-call]
            **settings,
        )


def _way(branch: Any, row: dict[Any, Code]) -> int | None:
    """Return the child that a row goes to; None where the split cannot tell."""
    try:
        return branch.branch_no(row)  # type: ignore[no-any-return]
    except KeyError:
        return None


def _drawn(node: Any, code: Callable[[Any], Code | None], numbers: Sequence[float]) -> list[Any]:
    """Return a value from below a node for each of the numbers."""
    while (counts := node.counts) is not None:
        known = code(node.feature)
        child = None if known is None else _way(node, {node.feature: known})
        if child is None:
            ways = [_share(counts, u) for u in numbers]
            return [_drawn(node.children[child], code, (u,))[0] for child, u in ways]
        node = node.children[child]
    values = node.ordered
    n = len(values)
    return [values[min(int(u * n), n - 1)] if n else EMPTY for u in numbers]


def _share(counts: list[float], u: float) -> tuple[int, float]:
    """Return the child whose share of [0, 1) holds `u`, and u's place in it."""
    u *= sum(counts)
    for child, count in enumerate(counts):
        if u < count:
            return child, u / count
        u -= count
    return max(child for child, count in enumerate(counts) if count), 1.0  # by rounding
