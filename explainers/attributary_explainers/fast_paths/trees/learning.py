"""What classification trees have learnt from one observation, read into arrays by compiled code.

It does what `Structure.begin` does, where that is all that has happened to a tree: the observation went the way of the
first row of the last call, and one class of the leaf there has learnt. All else is left to Python.

Every kernel here reads `known`: see `entries`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...compiled import array_at, compiled
from ...objects import (
    append,
    attribute,
    dict_size,
    element,
    has,
    has_element,
    has_failed,
    is_subset,
    item,
    list_size,
    next_entry,
    number,
    number_at,
    release,
    set_attribute,
    set_item,
    whole,
    whole_at,
    whole_of,
)
from . import entries as of
from .leaves.reading import read_again, read_class, read_new, renew, says_now
from .leaves.storing import store_classes
from .routes import DETOUR, MARGIN
from .splits import added, take_in_growth, take_in_split

OTHER_TREE, ONE_LEAF, WHOLE_WAY = range(3)
"""Kinds of trees: those in which an observation changes one leaf, or is counted on its whole way, and others."""

_FINE, _LEFT, _REPLACED = range(3)
"""What has become of a tree: it is taken in; it is left to Python; it is not the tree, or the root, of before."""

_FIRST = 6
"""Where the first part of `news` begins: see `store_classes`."""

_MOST_COUNTS = 2**16
"""So many numbers at most of counts of categories are read at once: Python reads the rest."""


def room_for(n_trees: int, C: int, F: int, n_nominal: int, width: int) -> int:
    """Return how many numbers the news of so many trees may be.

    Parameters
    ----------
    C, F, n_nominal, width
        The number of classes, of features of a leaf and of those that are nominal, and categories that a table has.
    """
    counts = min(n_trees * C * n_nominal * (5 + 2 * width), _MOST_COUNTS)
    return _FIRST + n_trees * (6 + 3 * F + 2 * (4 + C) + C * (3 + 3 * F)) + counts


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
    T, C = table.shape[0], known[of.C]
    known[of.F], known[of.WIDTH] = F, tables.shape[1]
    if list_size(trees) != T or list_size(known[of.OWN]) != T:
        has_failed()
        return 0
    heads = known[of.HEADS_END] = _FIRST + T * (6 + 3 * F)
    moved = known[of.MOVED_END] = heads + 2 * T * (4 + C)
    counts = known[of.COUNTS_END] = moved + T * C * (3 + 3 * F)
    known[of.LEARNT_END] = _FIRST
    n_left = 0
    is_replaced = False
    for t in range(T):
        ends = known[of.LEARNT_END], known[of.HEADS_END], known[of.MOVED_END], known[of.COUNTS_END]
        tree = item(trees, t)
        learnt = attribute(tree, known[of.LEARNT])
        known[of.EPOCH] = table[t, 1]
        became = _take_in(t, tree, learnt, table[t, 3], table[t, 4], table[t, 5], table[t, 0], known, news, marks)
        if has_failed() or became != _FINE:
            known[of.LEARNT_END], known[of.HEADS_END], known[of.MOVED_END], known[of.COUNTS_END] = ends
            is_replaced |= became == _REPLACED
            table[n_left, 6] = t
            n_left += 1
        else:
            set_item(known[of.WEIGHTS], t, learnt)
        release(learnt)
    end = known[of.LEARNT_END]
    news[2], news[3], news[4], news[5] = end - _FIRST, known[of.HEADS_END] - heads, known[of.MOVED_END] - moved, F
    for i in range(heads, known[of.HEADS_END]):
        news[end] = news[i]
        end += 1
    for i in range(moved, known[of.MOVED_END]):
        news[end] = news[i]
        end += 1
    for i in range(counts, known[of.COUNTS_END]):
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
    if tree == 0 or tree != item(known[of.OWN], t) or not has(tree, known[of.ROOT], item(known[of.ROOTS], t)):
        return _REPLACED
    before = item(known[of.WEIGHTS], t)
    # Each time that a tree learns, or estimates its size, it makes another number.
    if learnt == before:
        return _FINE
    if not has(tree, known[of.SIZE], item(known[of.SIZES], t)):
        return _LEFT
    gain = number(learnt) - number(before)
    if gain != gain or whole_at(tree, known[of.INACTIVE]) != whole(item(known[of.INACTIVES], t)):
        return _LEFT
    record = item(known[of.RECORDS], slot)
    if record == 0:
        return _LEFT
    if kind == ONE_LEAF:
        # See `Structure._look`.
        renews, is_gone = whole_at(tree, known[of.INACTIVE]) == 0, _is_gone(record, known)
        if not gain > 0.0 or (is_gone and not renews):
            return _LEFT
        became = _of_leaf(slot, record, tree, gain, False, renews, last if is_gone else -1, known, news, marks)
        if became == _LEFT and not is_gone and not has_failed():
            last = take_in_growth(last, record, tree, gain, known, news)
            became = _FINE if last >= 0 else _LEFT
        if became == _FINE and known[of.HAS_DETOURS] != 0:
            _keep_detours(last, gain, is_gone, known)
        return became
    if kind != WHOLE_WAY:
        return _LEFT
    root = attribute(tree, known[of.ROOT])
    error = attribute(root, known[of.MEAN_ERROR])
    counted = attribute(error, known[of.N])
    became = _LEFT
    # Where it is another error, or counts anew, it has fallen.
    if error == item(known[of.ERRORS], t) and number(counted) == number(item(known[of.COUNTS], t)) + 1.0:
        if _has_no_alternate(last, first, known):
            became = _of_leaf(slot, record, tree, gain, True, False, -1, known, news, marks)
        if became == _FINE:
            set_item(known[of.COUNTS], t, counted)
            if known[of.HAS_DETOURS] != 0:
                _keep_detours(last, math.inf, False, known)  # what the leaf has learnt is drawn
    release(counted)
    release(error)
    release(root)
    return became


@compiled(reads_objects=True)
def _is_gone(record: int, known: Any) -> bool:
    """Return whether a leaf is not where it was."""
    siblings, leaf = attribute(record, known[of.SIBLINGS]), attribute(record, known[of.LEAF])
    is_there = has_element(siblings, whole_at(record, known[of.PLACE]), leaf)
    release(siblings)
    release(leaf)
    return not is_there


@compiled(reads_objects=True)
def _keep_detours(k: int, gain: float, is_gone: bool, known: Any) -> None:
    """Forget which child rows without one take, above a leaf that has learnt a weight, or is gone, where it may change.

    A child that has the largest weight has it still when it has learnt.
    """
    fields = array_at(known[of.FIELDS], (known[of.N_FIELDS], 16), np.int32)
    floats = array_at(known[of.FIELDS], (known[of.N_FIELDS], 8), np.float64)
    while True:
        place = item(known[of.PLACES], k)
        parent = whole_of(place, 2)
        if place == 0 or parent < 0:
            return
        if fields[parent, DETOUR] >= 0 and (is_gone or fields[parent, DETOUR] != k):
            floats[parent, MARGIN] -= gain
            if is_gone or not floats[parent, MARGIN] > 0.0:
                fields[parent, DETOUR] = -1
        k = parent


@compiled(reads_objects=True)
def _has_no_alternate(k: int, first: int, known: Any) -> bool:
    """Return whether the way from a root to a leaf is as it was, and meets no alternate tree."""
    none = known[of.NONE]
    while True:
        place = item(known[of.PLACES], k)
        siblings, i, above = element(place, 0), element(place, 1), element(place, 2)
        parent = whole(above)
        is_there = place != 0 and (parent < 0 or has_element(siblings, whole(i), item(known[of.NODES], k)))
        release(siblings)
        release(i)
        release(above)
        if not is_there or parent < 0:
            return bool(is_there and k == first)
        k = parent
        if item(known[of.ALTERNATES], k) != none or not has(item(known[of.NODES], k), known[of.ALTERNATE], none):
            return False


@compiled(reads_objects=True)
def _of_leaf(
    slot: int,
    record: int,
    tree: int,
    gain: float,
    counts: bool,
    renews: bool,
    gone: int,
    known: Any,
    news: Any,
    marks: Any,
) -> int:
    """Write the news of a leaf, as `ClassLeaves.take_in` does, or of a split of it.

    Parameters
    ----------
    gain, counts
        The weight that the tree has learnt; whether the leaf counts observations, whatever they weigh.
    renews, gone
        Whether its observers may be others, too; its node, where it is not there any more, otherwise -1.
    """
    leaf, stats = attribute(record, known[of.LEAF]), attribute(record, known[of.STATS])
    seen, splitters = attribute(record, known[of.SEEN]), attribute(record, known[of.SPLITTERS])
    error = attribute(leaf, known[of.MEAN_ERROR]) if counts else 0
    counted = attribute(error, known[of.N])
    is_same = has(leaf, known[of.SPLITTERS], splitters)
    is_known = is_same or renews
    mean = 0.0
    if counts:
        is_known &= has(record, known[of.ERROR], error)
        is_known &= number(counted) == number_at(record, known[of.COUNT]) + 1.0
        mean = number_at(error, known[of.MEAN])
    learnt = _class_that_learnt(stats, seen, gain, counts, known) if is_known else -1
    is_new = learnt == list_size(seen)
    if is_new:
        classes = attribute(tree, known[of.CLASSES])
        is_known = is_subset(classes, known[of.KNOWN_CLASSES])
        release(classes)
    is_fine = False
    if is_known and learnt >= 0 and not has_failed() and (gone >= 0 or not is_same):
        if gone >= 0:
            is_fine = take_in_split(gone, slot, record, tree, leaf, known, news)
        else:
            says = read_new(slot, record, tree, leaf, known, news)
            is_fine = says >= 0
            if is_fine:
                renew(record, leaf, says, known)
    elif is_known and learnt >= 0 and not has_failed():
        weight = known[of.VALUE]
        says = says_now(record, tree, leaf, splitters, known)
        if says == whole_at(record, known[of.MODE]) and not is_new:
            is_fine = read_class(slot, record, splitters, learnt, says, mean, known, news)
        if says >= 0 and not is_fine and not has_failed():
            is_fine = read_again(slot, record, stats, splitters, says, mean, known, news, marks)
        if is_fine:
            if is_new:
                append(seen, weight)
            else:
                set_item(seen, learnt, weight)
            if counts:
                set_attribute(record, known[of.COUNT], counted)
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
    known[of.GOES_ON] = 0
    for i in range(n):
        if not next_entry(stats, known[of.HERE]):
            return -1
        one = item(seen, i) if i < n_seen else 0
        if one != known[of.VALUE] and (one == 0 or number(one) != number(known[of.VALUE])):
            if found >= 0:
                return -1
            found, label, weight = i, known[of.KEY], known[of.VALUE]
            before = number(one) if one != 0 else 0.0
    if found < 0:
        return -1
    now = number(weight)
    # An observation counts 1 at a leaf that counts them, whatever its weight.
    if not now > 0.0 or not (counts or before + gain == now or added(before, gain, now)):
        return -1
    known[of.KEY], known[of.VALUE] = label, weight
    return found
