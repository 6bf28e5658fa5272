"""Splits, taken in by compiled code: a leaf has become a branch by a threshold, whose two leaves have not learnt yet.

It does what `Structure._replace` does. All other splits are left to Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import array_at, compiled
from ...objects import (
    append,
    attribute,
    cut,
    element,
    has_element,
    has_failed,
    is_a,
    item,
    list_of,
    list_size,
    number_at,
    release,
    set_attribute,
    set_item,
    triple,
    type_of,
    value_of,
    whole,
)
from . import entries as of
from .leaves.reading import read_new, renew
from .routes import LEAF, NUMERIC


@compiled(reads_objects=True)
def take_in_split(k: int, slot: int, record: int, tree: int, leaf: int, known: Any, news: Any) -> bool:
    """Take in a split of a leaf, and return whether it could.

    Parameters
    ----------
    k, slot, record, leaf
        The node that was the leaf, its slot and record, and the leaf that was there.
    """
    place = item(known[of.PLACES], k)
    siblings, number_of_place, above = element(place, 0), element(place, 1), element(place, 2)
    n, parent = whole(number_of_place), whole(above)
    branch = element(siblings, n)
    is_split = parent >= 0 and is_a(branch, known[of.BRANCH]) and _are_others_there(siblings, n, parent, known)
    children = attribute(branch, known[of.CHILDREN]) if is_split else 0
    feature = attribute(branch, known[of.FEATURE]) if is_split else 0
    column = value_of(known[of.POSITIONS], feature)
    threshold = number_at(branch, known[of.THRESHOLD]) if is_split else 0.0
    kind = type_of(leaf)
    left, right = item(children, 0), item(children, 1)
    is_split = is_split and column != 0 and list_size(children) == 2 and is_a(left, kind) and is_a(right, kind)
    is_split = is_split and value_of(known[of.CODES], column) == 0
    n_slots = list_size(known[of.FREE_SLOTS])
    other = item(known[of.FREE_SLOTS], n_slots - 1) if n_slots > 0 else 0
    says_left = says_right = -1
    if is_split and other != 0 and list_size(known[of.FREE_NODES]) >= 2:
        says_left = read_new(slot, record, tree, left, known, news)
        if says_left >= 0:
            says_right = read_new(whole(other), record, tree, right, known, news)
    is_split = says_right >= 0 and not has_failed()
    if is_split:
        above_k = item(item(known[of.CHILDREN_OF], parent), n)
        is_split = _grow(k, above_k, branch, children, left, right, other, whole(column), threshold, known)
    if is_split:
        set_item(item(known[of.LIVE_BEFORE], parent), n, branch)
        rule = attribute(record, known[of.RULE])
        one = item(known[of.RECORDS], whole(other))
        cut(known[of.FREE_SLOTS], n_slots - 1)
        set_attribute(one, known[of.RULE], rule)
        set_attribute(one, known[of.TREE], tree)
        _stand_at(record, left, children, known[of.ZERO], says_left, known)
        _stand_at(one, right, children, known[of.ONE], says_right, known)
        release(rule)
    release(feature)
    release(children)
    release(branch)
    release(above)
    release(number_of_place)
    release(siblings)
    return is_split


@compiled(reads_objects=True)
def _are_others_there(siblings: int, n: int, parent: int, known: Any) -> bool:
    """Return whether of the children of a branch all but one are those of before."""
    before = item(known[of.LIVE_BEFORE], parent)
    size = list_size(before)
    are_there = list_size(siblings) == size
    for i in range(size):
        are_there &= i == n or has_element(siblings, i, item(before, i))
    return are_there


@compiled(reads_objects=True)
def _grow(
    k: int,
    number_of_k: int,
    branch: int,
    children: int,
    left: int,
    right: int,
    other: int,
    column: int,
    threshold: float,
    known: Any,
) -> bool:
    """Let a leaf's node be a branch, and two that are not in use its leaves; return whether there was memory for it."""
    free = known[of.FREE_NODES]
    n = list_size(free)
    first, second = item(free, n - 1), item(free, n - 2)
    here, there = triple(children, known[of.ZERO], number_of_k), triple(children, known[of.ONE], number_of_k)
    before = list_of(children)
    is_made = here != 0 and there != 0 and before != 0 and whole(number_of_k) == k and not has_failed()
    if is_made:
        a, b = whole(first), whole(second)
        own, slots = item(known[of.OWNERS], k), known[of.SLOTS]
        slot = item(slots, k)
        fields = array_at(known[of.FIELDS], (known[of.N_FIELDS], 16), np.int32)
        thresholds = array_at(known[of.FIELDS], (known[of.N_FIELDS], 8), np.float64)
        for one in (k, a, b):
            fields[one, 4], fields[one, 5], fields[one, 6] = -1, known[of.EPOCH], -1
        fields[k, 0], fields[k, 1], fields[k, 2], fields[k, 3] = NUMERIC, column, a, b
        fields[a, 0], fields[a, 1], fields[a, 2], fields[a, 3] = LEAF, 0, whole(slot), 0
        fields[b, 0], fields[b, 1], fields[b, 2], fields[b, 3] = LEAF, 0, whole(other), 0
        thresholds[k, 7] = threshold
        set_item(known[of.NODES], k, branch)
        set_item(known[of.NODES], a, left)
        set_item(known[of.NODES], b, right)
        set_item(known[of.OWNERS], a, own)
        set_item(known[of.OWNERS], b, own)
        set_item(known[of.PLACES], a, here)
        set_item(known[of.PLACES], b, there)
        set_item(known[of.LIVE], k, children)
        set_item(known[of.LIVE_BEFORE], k, before)
        set_item(slots, a, slot)
        set_item(slots, b, other)
        set_item(slots, k, known[of.MINUS_ONE])
        ids = item(known[of.CHILDREN_OF], k)
        append(ids, first)
        append(ids, second)
        cut(free, n - 2)
    release(before)
    release(there)
    release(here)
    return is_made


@compiled(reads_objects=True)
def _stand_at(record: int, leaf: int, siblings: int, place: int, says: int, known: Any) -> None:
    """Let a record be that of a new leaf."""
    set_attribute(record, known[of.SIBLINGS], siblings)
    set_attribute(record, known[of.PLACE], place)
    set_attribute(record, known[of.LEAF], leaf)
    stats = attribute(leaf, known[of.STATS])
    set_attribute(record, known[of.STATS], stats)
    release(stats)
    renew(record, leaf, says, known)
