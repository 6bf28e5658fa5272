"""What compiled code knows of trees and of their leaves: the entries of one array, numbers of its own and addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
from river.tree.nodes.branch import NumericBinaryBranch
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from ...objects import addresses_of
from .leaves import records, storing

(
    GOES_ON, KEY, VALUE, LEARNT_END, HEADS_END, MOVED_END, COUNTS_END, C, F, WIDTH, EPOCH, HAS_DETOURS, N_FIELDS,
    FIELDS, N_TARGETS, TARGETS,
) = range(16)  # fmt: skip
"""Numbers: three for `next_entry`, where four parts of the news end so far, how many classes there are, features that
a leaf has room for, and categories that a table has, the epoch of a tree, whether rows have met detours, how many nodes
there is room for, and the address of their fields; and those of `Structure.targets`."""

(
    HERE, OWN, ROOTS, WEIGHTS, SIZES, INACTIVES, ERRORS, COUNTS, PLACES, NODES, ALTERNATES, OWNERS, LIVE,
    LIVE_BEFORE, CHILDREN_OF, SLOTS, FREE_NODES, RECORDS, COLUMNS_OF_CLASSES, KNOWN_CLASSES, POSITIONS, SPARE,
    FREE_SLOTS, SPARE_TABLES, CODES, CATEGORIES,
) = range(16, 42)  # fmt: skip
"""Addresses: of `known` itself, and of what `known_of` is given."""

_NAMES = addresses_of(
    "_root", "_train_weight_seen_by_model", "_size_estimate_overhead_fraction", "_n_inactive_leaves",
    "_leaf_prediction", "nba", "_mean_error", "n", "_mean", "_alternate_tree", "leaf", "siblings", "place", "stats",
    "seen", "splitters", "rule", "mode", "count", "error", "n_observers", "classes", "_nb_correct_weight",
    "_mc_correct_weight", "complete", "features", "tables", "column", "variances", "weight", "mean", "_S", "label",
    "columns", "_att_dist_per_class", "_var", None, True, False, storing.SHARES, storing.BAYES, GaussianSplitter,
    records.NO_GAUSSIAN, "children", "feature", "threshold", "tree", 0, 1, -1, NumericBinaryBranch,
    NominalSplitterClassif, "splitter", "codes", "row", "number", str, int, bool, "_mapping",
)  # fmt: skip
(
    ROOT, LEARNT, SIZE, INACTIVE, LEAF_PREDICTION, NBA, MEAN_ERROR, N, MEAN, ALTERNATE, LEAF, SIBLINGS,
    PLACE, STATS, SEEN, SPLITTERS, RULE, MODE, COUNT, ERROR, N_OBSERVERS, CLASSES, BAYES_WEIGHT,
    MAJORITY_WEIGHT, COMPLETE, FEATURES, TABLES, COLUMN, VARIANCES, WEIGHT, AVERAGE, SQUARES, LABEL,
    COLUMNS, DISTRIBUTIONS, VAR, NONE, TRUE, FALSE, SHARES, BAYES, GAUSSIAN, NO_GAUSSIAN,
    CHILDREN, FEATURE, THRESHOLD, TREE, ZERO, ONE, MINUS_ONE, BRANCH, NOMINAL, SPLITTER, CODES_SEEN, ROW,
    NUMBER, STR, INT, BOOL, MAPPING,
) = range(42, 102)  # fmt: skip
"""Addresses of names of attributes, and of constants."""


def known_of(held: tuple[Any, ...], fields: Any, targets: Any) -> Any:
    """Return what compiled code has to know; the caller holds the objects.

    Parameters
    ----------
    held
        Lists of a `Structure`: its trees, and by tree the root, the weight that it has learnt, its size, the number of
        inactive leaves, the error of the root and its count; by node its place, itself, its alternate tree, its tree,
        its live children and those of before, their indices, and its slot; and the list of indices that are not in use.
        Then the list of the records of leaves, by slot, the dict of the columns of classes and its keys, the dict of
        the columns of features, lists of records of classes, of slots, and of records of tables that are not in use,
        and the codes and categories of a `Schema`.
    fields, targets
        What a `Structure` knows of nodes, and of children of multiway splits.
    """
    known = np.zeros(MAPPING + 1, np.int64)
    known[C] = len(held[COLUMNS_OF_CLASSES - OWN])
    known[HERE], known[N_FIELDS], known[FIELDS] = known.ctypes.data, len(fields), fields.ctypes.data
    known[N_TARGETS], known[TARGETS] = len(targets), targets.ctypes.data
    known[OWN:ROOT] = [*map(id, held)]
    known[ROOT:] = _NAMES
    return known
