"""What classification trees have learnt from one observation, read into arrays by compiled code.

It does what `Structure.begin` does, where that is all that has happened to a tree: the observation went the way of the
first row of the last call, and one class of the leaf there has learnt. All else is left to Python.

Every kernel here reads `known`, whose entries are named below: numbers of its own, and addresses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from river.tree.splitter import GaussianSplitter

from ...compiled import compiled
from ...objects import (
    addresses_of,
    append,
    attribute,
    cut,
    dict_size,
    element,
    has,
    has_element,
    has_failed,
    is_a,
    is_equal,
    is_subset,
    item,
    list_size,
    next_entry,
    number,
    number_at,
    release,
    set_attribute,
    set_item,
    set_whole_at,
    value_of,
    whole,
    whole_at,
)
from . import arrays
from .leaves.records import ADAPTIVE, BETTER, MAJORITY, NO_GAUSSIAN
from .leaves.storing import BAYES, SHARES, offsets, store_classes

OTHER_TREE, ONE_LEAF, WHOLE_WAY = range(3)
"""Kinds of trees: those in which an observation changes one leaf, or is counted on its whole way, and others."""

_GOES_ON, _KEY, _VALUE, _LEARNT_END, _HEADS_END, _MOVED_END, _C, _F = range(8)
"""Numbers: three for `next_entry`, where three parts of the news end so far, and how many classes there are, and
features that a leaf has room for."""

(
    _HERE, _OWN, _ROOTS, _WEIGHTS, _SIZES, _INACTIVES, _ERRORS, _COUNTS, _PLACES, _NODES, _ALTERNATES, _RECORDS,
    _COLUMNS_OF_CLASSES, _KNOWN_CLASSES, _POSITIONS, _SPARE,
) = range(8, 24)  # fmt: skip
"""Addresses: of `known` itself, and of what `known_of` is given."""

_NAMES = addresses_of(
    "_root", "_train_weight_seen_by_model", "_size_estimate_overhead_fraction", "_n_inactive_leaves",
    "_leaf_prediction", "nba", "_mean_error", "n", "_mean", "_alternate_tree", "leaf", "siblings", "place", "stats",
    "seen", "splitters", "rule", "mode", "count", "error", "n_observers", "classes", "_nb_correct_weight",
    "_mc_correct_weight", "complete", "features", "tables", "column", "variances", "weight", "mean", "_S", "label",
    "columns", "_att_dist_per_class", "_var", None, True, False, SHARES, BAYES, GaussianSplitter, NO_GAUSSIAN,
)  # fmt: skip
(
    _ROOT, _LEARNT, _SIZE, _INACTIVE, _LEAF_PREDICTION, _NBA, _MEAN_ERROR, _N, _MEAN, _ALTERNATE, _LEAF, _SIBLINGS,
    _PLACE, _STATS, _SEEN, _SPLITTERS, _RULE, _MODE, _COUNT, _ERROR, _N_OBSERVERS, _CLASSES, _BAYES_WEIGHT,
    _MAJORITY_WEIGHT, _COMPLETE, _FEATURES, _TABLES, _COLUMN, _VARIANCES, _WEIGHT, _AVERAGE, _SQUARES, _LABEL,
    _COLUMNS, _DISTRIBUTIONS, _VAR, _NONE, _TRUE, _FALSE, _SHARES, _BAYES, _GAUSSIAN, _NO_GAUSSIAN,
) = range(24, 67)  # fmt: skip
"""Addresses of names of attributes, and of constants."""

_FINE, _LEFT, _REPLACED = range(3)
"""What has become of a tree: it is taken in; it is left to Python; it is not the tree, or the root, of before."""

_FIRST = 6
"""Where the first part of `news` begins: see `store_classes`."""

added = compiled(arrays.added)


def known_of(held: tuple[Any, ...], has_categories: bool) -> Any:
    """Return what compiled code has to know; the caller holds the objects.

    Parameters
    ----------
    held
        Lists of a `Structure`: its trees, and by tree the root, the weight that it has learnt, its size, the number of
        inactive leaves, the error of the root and its count; by node its place, itself and its alternate tree. Then
        the list of the records of leaves, by slot, the dict of the columns of classes and its keys, the dict of the
        columns of features, and a list of records of classes that are not in use.
    has_categories
        Whether some of the columns are categories.
    """
    known = np.zeros(_NO_GAUSSIAN + 1, np.int64)
    known[_C] = len(held[_COLUMNS_OF_CLASSES - _OWN])
    known[_HERE] = known.ctypes.data
    known[_OWN:_ROOT] = [*map(id, held)]
    known[_ROOT:] = _NAMES
    if has_categories:
        known[_POSITIONS] = 0
    return known


def room_for(n_trees: int, C: int, F: int) -> int:
    """Return how many numbers the news of so many trees may be, with so many classes, and features of a leaf."""
    return _FIRST + n_trees * (6 + 3 * F + 4 + C + C * (3 + 3 * F))


@compiled(reads_objects=True)
def take_in_all(trees: int, known: Any, table: Any, news: Any, F: int, leaves: Any, marks: Any, tables: Any) -> int:
    """Take in what trees have learnt, as `Structure.begin` does; return 1 and how many are left to it, or 0 for all.

    Parameters
    ----------
    trees
        The address of the live list of trees.
    table
        See `Structure.table`; written: the trees that are left.
    news
        Room, of as many floats as `room_for` says.
    F
        The number of features that a leaf has room for.
    leaves, marks, tables
        See `store_classes`.
    """
    T, C = table.shape[0], known[_C]
    known[_F] = F
    if list_size(trees) != T or list_size(known[_OWN]) != T:
        has_failed()
        return 0
    heads = known[_HEADS_END] = _FIRST + T * (6 + 3 * F)
    moved = known[_MOVED_END] = heads + T * (4 + C)
    known[_LEARNT_END] = _FIRST
    n_left = 0
    is_replaced = False
    for t in range(T):
        ends = known[_LEARNT_END], known[_HEADS_END], known[_MOVED_END]
        tree = item(trees, t)
        learnt = attribute(tree, known[_LEARNT])
        became = _take_in(t, tree, learnt, table[t, 3], table[t, 4], table[t, 5], table[t, 0], known, news, marks)
        if has_failed() or became != _FINE:
            known[_LEARNT_END], known[_HEADS_END], known[_MOVED_END] = ends
            is_replaced |= became == _REPLACED
            table[n_left, 6] = t
            n_left += 1
        else:
            set_item(known[_WEIGHTS], t, learnt)
        release(learnt)
    end = known[_LEARNT_END]
    news[2], news[3], news[4], news[5] = end - _FIRST, known[_HEADS_END] - heads, known[_MOVED_END] - moved, F
    for i in range(heads, known[_HEADS_END]):
        news[end] = news[i]
        end += 1
    for i in range(moved, known[_MOVED_END]):
        news[end] = news[i]
        end += 1
    if end > _FIRST:
        store_classes(news[:end], _FIRST, C, leaves, marks, tables)
    return 0 if is_replaced else 1 + n_left


@compiled(reads_objects=True)
def _take_in(
    t: int, tree: int, learnt: int, last: int, slot: int, kind: int, first: int, known: Any, news: Any, marks: Any
) -> int:
    """Take in a tree that has learnt this weight, of which the first row of the last call reached the leaf `last`."""
    if tree == 0 or tree != item(known[_OWN], t) or not has(tree, known[_ROOT], item(known[_ROOTS], t)):
        return _REPLACED
    before = item(known[_WEIGHTS], t)
    # Each time that a tree learns, or estimates its size, it makes another number.
    if learnt == before:
        return _FINE
    if not has(tree, known[_SIZE], item(known[_SIZES], t)):
        return _LEFT
    gain = number(learnt) - number(before)
    if gain != gain or whole_at(tree, known[_INACTIVE]) != whole(item(known[_INACTIVES], t)):
        return _LEFT
    record = item(known[_RECORDS], slot)
    if record == 0:
        return _LEFT
    if kind == ONE_LEAF:
        if not gain > 0.0 or _is_gone(record, known):
            return _LEFT
        return _of_leaf(slot, record, tree, gain, False, known, news, marks)
    if kind != WHOLE_WAY:
        return _LEFT
    root = attribute(tree, known[_ROOT])
    error = attribute(root, known[_MEAN_ERROR])
    counted = attribute(error, known[_N])
    became = _LEFT
    # Where it is another error, or counts anew, it has fallen.
    if error == item(known[_ERRORS], t) and number(counted) == number(item(known[_COUNTS], t)) + 1.0:
        if _has_no_alternate(last, first, known):
            became = _of_leaf(slot, record, tree, gain, True, known, news, marks)
        if became == _FINE:
            set_item(known[_COUNTS], t, counted)
    release(counted)
    release(error)
    release(root)
    return became


@compiled(reads_objects=True)
def _is_gone(record: int, known: Any) -> bool:
    """Return whether a leaf is not where it was."""
    siblings, leaf = attribute(record, known[_SIBLINGS]), attribute(record, known[_LEAF])
    is_there = has_element(siblings, whole_at(record, known[_PLACE]), leaf)
    release(siblings)
    release(leaf)
    return not is_there


@compiled(reads_objects=True)
def _has_no_alternate(k: int, first: int, known: Any) -> bool:
    """Return whether the way from a root to a leaf is as it was, and meets no alternate tree."""
    none = known[_NONE]
    while True:
        place = item(known[_PLACES], k)
        siblings, i, above = element(place, 0), element(place, 1), element(place, 2)
        parent = whole(above)
        is_there = place != 0 and (parent < 0 or has_element(siblings, whole(i), item(known[_NODES], k)))
        release(siblings)
        release(i)
        release(above)
        if not is_there or parent < 0:
            return bool(is_there and k == first)
        k = parent
        if item(known[_ALTERNATES], k) != none or not has(item(known[_NODES], k), known[_ALTERNATE], none):
            return False


@compiled(reads_objects=True)
def _of_leaf(slot: int, record: int, tree: int, gain: float, counts: bool, known: Any, news: Any, marks: Any) -> int:
    """Write the news of a leaf, as `ClassLeaves.take_in` does.

    Parameters
    ----------
    gain, counts
        The weight that the tree has learnt; whether the leaf counts observations, whatever they weigh.
    """
    leaf, stats = attribute(record, known[_LEAF]), attribute(record, known[_STATS])
    seen, splitters = attribute(record, known[_SEEN]), attribute(record, known[_SPLITTERS])
    error = attribute(leaf, known[_MEAN_ERROR]) if counts else 0
    counted = attribute(error, known[_N])
    is_known = has(leaf, known[_SPLITTERS], splitters)
    mean = 0.0
    if counts:
        is_known &= has(record, known[_ERROR], error)
        is_known &= number(counted) == number_at(record, known[_COUNT]) + 1.0
        mean = number_at(error, known[_MEAN])
    learnt = _class_that_learnt(stats, seen, gain, counts, known) if is_known else -1
    is_new = learnt == list_size(seen)
    if is_new:
        classes = attribute(tree, known[_CLASSES])
        is_known = is_subset(classes, known[_KNOWN_CLASSES])
        release(classes)
    is_fine = False
    if is_known and learnt >= 0 and not has_failed():
        weight = known[_VALUE]
        says = _says(record, tree, leaf, splitters, known)
        if says == whole_at(record, known[_MODE]) and not is_new:
            is_fine = _of_class(slot, record, splitters, learnt, says, mean, known, news)
        if says >= 0 and not is_fine and not has_failed():
            is_fine = _read_again(slot, record, stats, splitters, says, mean, known, news, marks)
        if is_fine:
            if is_new:
                append(seen, weight)
            else:
                set_item(seen, learnt, weight)
            if counts:
                set_attribute(record, known[_COUNT], counted)
    release(counted)
    release(error)
    release(splitters)
    release(seen)
    release(stats)
    release(leaf)
    return _FINE if is_fine else _LEFT


@compiled(reads_objects=True)
def _class_that_learnt(stats: int, seen: int, gain: float, counts: bool, known: Any) -> int:
    """Return the place of the only class that has another weight than was seen, -1 for none; `known` has its entry."""
    n, n_seen = dict_size(stats), list_size(seen)
    if n_seen < 0 or n < n_seen or n > n_seen + 1:
        return -1
    found = -1
    label = weight = 0
    before = 0.0
    known[_GOES_ON] = 0
    for i in range(n):
        if not next_entry(stats, known[_HERE]):
            return -1
        one = item(seen, i) if i < n_seen else 0
        if one != known[_VALUE] and (one == 0 or number(one) != number(known[_VALUE])):
            if found >= 0:
                return -1
            found, label, weight = i, known[_KEY], known[_VALUE]
            before = number(one) if one != 0 else 0.0
    if found < 0:
        return -1
    now = number(weight)
    # An observation counts 1 at a leaf that counts them, whatever its weight.
    if not now > 0.0 or not (counts or before + gain == now or added(before, gain, now)):
        return -1
    known[_KEY], known[_VALUE] = label, weight
    return found


@compiled(reads_objects=True)
def _says(record: int, tree: int, leaf: int, splitters: int, known: Any) -> int:
    """Return what a leaf says now, see `storing.SHARES`; -1 where that takes settings of its tree."""
    rule = whole_at(record, known[_RULE])
    if rule == MAJORITY or splitters == known[_NONE]:
        return SHARES
    if rule == ADAPTIVE:
        setting = attribute(tree, known[_LEAF_PREDICTION])
        is_better = is_equal(setting, known[_NBA])
        release(setting)
        if not is_better:
            return -1
    elif rule != BETTER:
        return -1
    if number_at(leaf, known[_BAYES_WEIGHT]) >= number_at(leaf, known[_MAJORITY_WEIGHT]):
        return BAYES
    return SHARES


@compiled(reads_objects=True)
def _of_class(
    slot: int, record: int, splitters: int, learnt: int, says: int, error: float, known: Any, news: Any
) -> bool:
    """Write what a class has learnt at a leaf that says the same as before; return whether that was possible."""
    at, weight = known[_LEARNT_END], known[_VALUE]
    n = 0
    if says == BAYES:
        classes = attribute(record, known[_CLASSES])
        observed = element(classes, learnt)
        release(classes)
        column = whole_at(observed, known[_COLUMN])
        is_fine = whole_at(record, known[_N_OBSERVERS]) == dict_size(splitters)
        is_fine &= has(observed, known[_COMPLETE], known[_TRUE])
        if is_fine:
            n = _gaussians(observed, at + 6, known, news)
            is_fine = n >= 0 and not has_failed()
        if is_fine:
            set_attribute(observed, known[_WEIGHT], weight)
        release(observed)
    else:
        found = value_of(known[_COLUMNS_OF_CLASSES], known[_KEY])
        column = whole(found)
        is_fine = found != 0 and not has_failed()
    if is_fine:
        news[at], news[at + 1], news[at + 2] = slot, column, number(weight)
        news[at + 3], news[at + 4], news[at + 5] = says, n, error
        known[_LEARNT_END] = at + 6 + 3 * n
    return is_fine


@compiled(reads_objects=True)
def _gaussians(observed: int, at: int, known: Any, news: Any) -> int:
    """Write weight, sum of squares and mean of each feature of a class; return how many there are, -1 for not known."""
    tables, variances = attribute(observed, known[_TABLES]), attribute(observed, known[_VARIANCES])
    n = list_size(variances)
    if list_size(tables) != 0 or at + 3 * n > news.shape[0]:
        n = -1
    for f in range(n):
        variance = item(variances, f)
        average = attribute(variance, known[_AVERAGE])
        news[at + 3 * f] = number_at(average, known[_N])
        news[at + 3 * f + 1] = number_at(variance, known[_SQUARES])
        news[at + 3 * f + 2] = number_at(average, known[_MEAN])
        release(average)
    release(variances)
    release(tables)
    return n


@compiled(reads_objects=True)
def _read_again(
    slot: int,
    record: int,
    stats: int,
    splitters: int,
    says: int,
    error: float,
    known: Any,
    news: Any,
    marks: Any,
) -> bool:
    """Read a leaf as `ClassLeaves` does that says something else, or knows more; return whether that was possible."""
    head, end, C = known[_HEADS_END], known[_MOVED_END], known[_C]
    classes, features = attribute(record, known[_CLASSES]), attribute(record, known[_FEATURES])
    n = 0
    is_fine = True
    if says == BAYES:
        # Of categories the counts are read, which is left to Python.
        is_fine = known[_POSITIONS] != 0 and _choose_features(slot, record, splitters, classes, known, marks)
        is_fine = is_fine and _add_classes(stats, classes, known) and not has_failed()
        n = list_size(features)
    news[head], news[head + 1], news[head + 2], news[head + 3] = slot, says, n, error
    for c in range(C):
        news[head + 4 + c] = np.nan
    known[_GOES_ON] = 0
    i = 0
    while is_fine and next_entry(stats, known[_HERE]):
        found, w = value_of(known[_COLUMNS_OF_CLASSES], known[_KEY]), number(known[_VALUE])
        c = whole(found)
        is_fine = found != 0 and w >= 0.0 and not has_failed()
        if not is_fine:
            break
        news[head + 4 + c] = w
        if says == BAYES:
            observed = item(classes, i)
            # The observers of a class are as they were read while its weight is.
            if w > 0.0 and number_at(observed, known[_WEIGHT]) != w:
                if not has(observed, known[_COMPLETE], known[_TRUE]):
                    _find(observed, features, known)
                news[end], news[end + 1], news[end + 2] = slot, c, n
                is_fine = _gaussians(observed, end + 3, known, news) == n and not has_failed()
                end += 3 + 3 * n
        i += 1
    if is_fine:
        known[_HEADS_END], known[_MOVED_END] = head + 4 + C, end
        set_attribute(record, known[_MODE], known[_BAYES] if says == BAYES else known[_SHARES])
        known[_GOES_ON] = i = 0
        while says == BAYES and next_entry(stats, known[_HERE]):
            if number(known[_VALUE]) > 0.0:
                set_attribute(item(classes, i), known[_WEIGHT], known[_VALUE])
            i += 1
    release(features)
    release(classes)
    return is_fine


@compiled(reads_objects=True)
def _choose_features(slot: int, record: int, splitters: int, classes: int, known: Any, marks: Any) -> bool:
    """Note which features a leaf observes, where it has come to observe more; return whether all are numbers."""
    n = dict_size(splitters)
    if whole_at(record, known[_N_OBSERVERS]) == n:
        return True
    if n < 0:
        return False
    n_known = 0
    for i in range(list_size(classes)):
        tables = attribute(item(classes, i), known[_TABLES])
        n_known += list_size(tables)
        release(tables)
    if n_known != 0:
        return False
    known[_GOES_ON] = 0
    while next_entry(splitters, known[_HERE]):
        if value_of(known[_POSITIONS], known[_KEY]) != 0:
            n_known += 1
            if not is_a(known[_VALUE], known[_GAUSSIAN]):
                return False
    if n_known > known[_F] or has_failed():
        return False
    features, columns = attribute(record, known[_FEATURES]), attribute(record, known[_COLUMNS])
    cut(classes, 0)
    cut(features, 0)
    cut(columns, 0)
    set_whole_at(record, known[_N_OBSERVERS], n)
    _, _, start, _, _ = offsets(known[_C], 0)
    i = 0
    known[_GOES_ON] = 0
    while next_entry(splitters, known[_HERE]):
        column = value_of(known[_POSITIONS], known[_KEY])
        if column != 0:
            append(features, known[_VALUE])
            append(columns, column)
            marks[slot, start + i] = whole(column)
            i += 1
    release(columns)
    release(features)
    return True


@compiled(reads_objects=True)
def _add_classes(stats: int, classes: int, known: Any) -> bool:
    """Add records of the classes that a leaf has met; return whether there were enough spare ones."""
    n, i = list_size(classes), 0
    known[_GOES_ON] = 0
    while next_entry(stats, known[_HERE]):
        if i >= n:
            n_spare = list_size(known[_SPARE])
            column = value_of(known[_COLUMNS_OF_CLASSES], known[_KEY])
            if n_spare < 1 or column == 0:
                return False
            observed = item(known[_SPARE], n_spare - 1)
            set_attribute(observed, known[_LABEL], known[_KEY])
            set_attribute(observed, known[_COLUMN], column)
            append(classes, observed)
            cut(known[_SPARE], n_spare - 1)
        i += 1
    return i == list_size(classes)


@compiled(reads_objects=True)
def _find(observed: int, features: int, known: Any) -> None:
    """Look up the Gaussians of a class; some may not be there before it is first learnt."""
    tables, variances = attribute(observed, known[_TABLES]), attribute(observed, known[_VARIANCES])
    label = attribute(observed, known[_LABEL])
    if list_size(tables) == 0 and label != 0:
        cut(variances, 0)
        is_complete = True
        for f in range(list_size(features)):
            distributions = attribute(item(features, f), known[_DISTRIBUTIONS])
            gaussian = value_of(distributions, label)
            if gaussian == 0:
                is_complete = False
                append(variances, known[_NO_GAUSSIAN])
            else:
                variance = attribute(gaussian, known[_VAR])
                if variance != 0:
                    append(variances, variance)
                release(variance)
            release(distributions)
        set_attribute(observed, known[_COMPLETE], known[_TRUE] if is_complete else known[_FALSE])
    release(label)
    release(variances)
    release(tables)
