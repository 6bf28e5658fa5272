"""Leaves of classifiers as they were when they were read, and the rules by which they take to naive Bayes."""

from __future__ import annotations

import math
from typing import Any

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


class NoLeaf:
    """Stands for the leaf of a tree that has not learnt."""

    def __init__(self) -> None:
        self.stats: dict[Any, float] = {}
        self.splitters = None


class ClassRecord:
    """Where a leaf keeps its Gaussians and counts of one class, and the weight of the class when they were read."""

    __slots__ = ("column", "complete", "pairs", "tables", "weight")

    def __init__(self, column: int) -> None:
        self.column = column
        self.weight = _NAN
        self.complete = False
        self.pairs: list[tuple[Any, Any]] = []
        """The variance and the mean of each feature."""
        self.tables: list[tuple[int, int, Any, int, list[float]]] = []
        """Nominal features: number, column, observer, row of the table, and codes in the order of the observer."""


class LeafRecord:
    """A leaf, and its state when it was read."""

    __slots__ = (
        "columns",
        "count",
        "error",
        "features",
        "leaf",
        "mode",
        "n_observers",
        "observed",
        "rule",
        "seen",
        "splitters",
        "stats",
        "tree",
    )

    def __init__(self, leaf: Any, tree: Any, rule: int) -> None:
        self.leaf, self.tree, self.rule = leaf, tree, rule
        self.stats: dict[Any, float] = leaf.stats
        """The live weights."""
        self.seen: dict[Any, float] | None = None
        """A copy of the weights; None, which equals nothing, until the leaf is first reached."""
        self.mode = -1
        """What it says: see `storing.SHARES`."""
        self.splitters: dict[Any, Any] | None = None
        self.error: Any = None
        self.count = 0.0
        """The error that an adaptive leaf estimates, and how much that was made of."""
        self.observed: dict[Any, ClassRecord] = {}
        self.features: list[Any] = []
        self.columns: list[int] = []
        """The observers of features that the rows have, and their columns."""
        self.n_observers = -1
