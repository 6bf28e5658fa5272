"""Splits, taken in by compiled code: a leaf has become a branch by a threshold, whose two leaves have not learnt yet.

It does what `Structure._replace` does. All other splits are left to Python. A split by categories may also have one
leaf more, which has learnt an observation with a category that was new to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import array_at, compiled
from ...objects import (
    append,
    attribute,
    cut,
    dict_size,
    element,
    has_element,
    has_failed,
    is_a,
    item,
    list_of,
    list_size,
    next_entry,
    number,
    number_at,
    release,
    set_attribute,
    set_item,
    triple,
    type_of,
    value_of,
    whole,
    whole_of,
)
from . import entries as of
from .arrays import added as are_added
from .leaves.reading import code_of, read_new, renew
from .routes import LEAF, NOMINAL_MULTIWAY, NUMERIC, ROOM

_MOST_CODES = 2**31

added = compiled(are_added)


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


@compiled(reads_objects=True)
def take_in_growth(k: int, record: int, tree: int, gain: float, known: Any, news: Any) -> int:
    """Take in a leaf that is new under a split by categories and has learnt all that its tree has; return its node.

    Parameters
    ----------
    k, record
        A leaf below the split, and its record.
    gain
        The weight that the tree has learnt.

    Returns
    -------
    -1 where there is no such leaf, or it is left to Python; nothing is changed then.
    """
    while True:
        parent = whole_of(item(known[of.PLACES], k), 2)
        if k == parent or parent < 0:  # the node 0 stands for what cannot be read
            return -1
        live, before = item(known[of.LIVE], parent), item(known[of.LIVE_BEFORE], parent)
        n = list_size(before)
        if list_size(live) != n:
            break
        k = parent
    for i in range(n):
        if item(live, i) != item(before, i):
            return -1
    fields = array_at(known[of.FIELDS], (known[of.N_FIELDS], 16), np.int32)
    targets = array_at(known[of.TARGETS], (known[of.N_TARGETS], 2), np.float64)
    start = fields[parent, 2]
    if list_size(live) != n + 1 or fields[parent, 0] != NOMINAL_MULTIWAY or fields[parent, ROOM] <= n:
        return -1
    leaf, old = item(live, n), attribute(record, known[of.LEAF])
    is_fine = is_a(leaf, type_of(old)) and fields[parent, 3] == n and _has_learnt(leaf, gain, known)
    release(old)
    if not is_fine:
        return -1
    # The category of the last child, and its number.
    branch = item(known[of.NODES], parent)
    mapping, feature = attribute(branch, known[of.MAPPING]), attribute(branch, known[of.FEATURE])
    column = value_of(known[of.POSITIONS], feature)
    value = place = 0
    if dict_size(mapping) == n + 1:
        known[of.GOES_ON] = 0
        while next_entry(mapping, known[of.HERE]):
            value, place = known[of.KEY], known[of.VALUE]
    code = code_of(column, value, _MOST_CODES, known) if column != 0 and place != 0 and whole(place) == n else 0
    made = -1
    free, n_slots = known[of.FREE_NODES], list_size(known[of.FREE_SLOTS])
    n_free = list_size(free)
    if code != 0 and n_free > 0 and n_slots > 0 and fields[parent, 1] == whole(column) and not has_failed():
        node, slot = item(free, n_free - 1), item(known[of.FREE_SLOTS], n_slots - 1)
        one, above = item(known[of.RECORDS], whole(slot)), element(item(known[of.PLACES], k), 2)
        rule = attribute(record, known[of.RULE])
        set_attribute(one, known[of.RULE], rule)
        says = read_new(whole(slot), one, tree, leaf, known, news)
        here = triple(live, place, above) if says >= 0 else 0
        if here != 0 and not has_failed():
            made = whole(node)
            fields[made, 0], fields[made, 1], fields[made, 2], fields[made, 3] = LEAF, 0, whole(slot), 0
            fields[made, 4], fields[made, 5], fields[made, 6] = -1, known[of.EPOCH], -1
            set_item(known[of.NODES], made, leaf)
            set_item(known[of.OWNERS], made, item(known[of.OWNERS], parent))
            set_item(known[of.PLACES], made, here)
            set_item(known[of.SLOTS], made, slot)
            append(before, leaf)
            append(item(known[of.CHILDREN_OF], parent), node)
            targets[start + n, 0], targets[start + n, 1] = number(code), made
            fields[parent, 3] = n + 1
            set_attribute(one, known[of.TREE], tree)
            _stand_at(one, leaf, live, place, says, known)
            cut(free, n_free - 1)
            cut(known[of.FREE_SLOTS], n_slots - 1)
        release(here)
        release(rule)
        release(above)
    release(feature)
    release(mapping)
    return made


@compiled(reads_objects=True)
def _has_learnt(leaf: int, gain: float, known: Any) -> bool:
    """Return whether a leaf has learnt one observation, of this weight."""
    stats = attribute(leaf, known[of.STATS])
    known[of.GOES_ON] = 0
    is_one = dict_size(stats) == 1 and next_entry(stats, known[of.HERE])
    weight = number(known[of.VALUE]) if is_one else 0.0
    release(stats)
    return bool(is_one and (weight == gain or added(0.0, gain, weight)))
