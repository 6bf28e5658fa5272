"""Leaves of classifiers as they were when they were read, and the rules by which they take to naive Bayes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from river.stats import Var
from river.tree.nodes.arf_htc_nodes import RandomLeafMajorityClass, RandomLeafNaiveBayes, RandomLeafNaiveBayesAdaptive
from river.tree.nodes.efdtc_nodes import EFDTLeafMajorityClass, EFDTLeafNaiveBayes, EFDTLeafNaiveBayesAdaptive
from river.tree.nodes.hatc_nodes import AdaLeafClassifier
from river.tree.nodes.htc_nodes import LeafMajorityClass, LeafNaiveBayes, LeafNaiveBayesAdaptive

MAJORITY, THRESHOLD, BETTER, ADAPTIVE = range(4)
"""When a leaf uses naive Bayes: never, from a weight on, while that is right more often, or as its tree says."""

RULES: dict[type, int] = {
    LeafMajorityClass: MAJORITY,
    RandomLeafMajorityClass: MAJORITY,
    EFDTLeafMajorityClass: MAJORITY,
    LeafNaiveBayes: THRESHOLD,
    RandomLeafNaiveBayes: THRESHOLD,
    EFDTLeafNaiveBayes: THRESHOLD,
    LeafNaiveBayesAdaptive: BETTER,
    RandomLeafNaiveBayesAdaptive: BETTER,
    EFDTLeafNaiveBayesAdaptive: BETTER,
    AdaLeafClassifier: ADAPTIVE,
}

_NAN = math.nan
NO_GAUSSIAN = Var()
"""Stands for a class that has not been seen, and in the place of a nominal feature."""


class NoLeaf:
    """Stands for the leaf of a tree that has not learnt."""

    def __init__(self) -> None:
        self.stats: dict[Any, float] = {}
        self.splitters = None


class TableRecord:
    """A nominal feature of a class at a leaf: what observes it, and the row of `ClassLeaves.tables` that it has."""

    __slots__ = ("codes", "column", "number", "row", "splitter")

    def __init__(self, row: int) -> None:
        self.row = row
        self.number = self.column = -1
        """Of the feature among those of the leaf, and its column."""
        self.splitter: Any = None
        self.codes: list[float] = []
        """Of the values, in the order of the observer."""


class ClassRecord:
    """Where a leaf keeps its Gaussians and counts of one class, and the weight of the class when they were read."""

    __slots__ = ("column", "complete", "label", "tables", "variances", "weight")

    def __init__(self, label: Any, column: int) -> None:
        self.label, self.column = label, column
        self.weight = _NAN
        self.complete = False
        self.variances: list[Any] = []
        """The variance of each feature, which has the mean, too."""
        self.tables: list[TableRecord] = []


class LeafRecord:
    """A leaf, its place in the tree, and its state when it was read.

    After each observation, all of this has to come into the cache again: few objects are fast.
    """

    __slots__ = (
        "classes",
        "columns",
        "count",
        "error",
        "features",
        "leaf",
        "mode",
        "n_observers",
        "place",
        "rule",
        "seen",
        "siblings",
        "splitters",
        "stats",
        "tree",
    )

    def __init__(self, leaf: Any, tree: Any, rule: int, siblings: Sequence[Any] | None, place: int) -> None:
        self.leaf, self.tree, self.rule = leaf, tree, rule
        self.siblings = (leaf,) if siblings is None else siblings
        self.place = place
        """The live list of children that holds the leaf, and where."""
        self.stats: dict[Any, float] = leaf.stats
        """The live weights."""
        self.seen: list[float] | None = None
        """The weights, in their order; None, which equals nothing, until the leaf is first reached."""
        self.mode = -1
        """What it says: see `storing.SHARES`."""
        self.splitters: dict[Any, Any] | None = None
        self.error: Any = None
        self.count = 0.0
        """The error that an adaptive leaf estimates, and how much that was made of."""
        self.classes: list[ClassRecord] = []
        """What is known of the first classes, in the order of the weights."""
        self.features: list[Any] = []
        self.columns: list[int] = []
        """The observers of features that the rows have, and their columns."""
        self.n_observers = -1
