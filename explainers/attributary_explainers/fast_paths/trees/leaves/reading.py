"""Leaves of classifiers that have learnt, read by compiled code: what one class has learnt, or all that there is.

It does what `ClassLeaves` does, and leaves to Python what it does not know. Its kernels read `known`: see `entries`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiled import compiled
from ....objects import (
    append,
    attribute,
    cut,
    dict_size,
    element,
    has,
    has_failed,
    is_a,
    is_equal,
    item,
    list_size,
    next_entry,
    number,
    number_at,
    release,
    set_attribute,
    set_whole_at,
    type_of,
    value_of,
    values_of,
    whole,
    whole_at,
)
from .. import entries as of
from .records import ADAPTIVE, BETTER, MAJORITY
from .storing import BAYES, SHARES, offsets


@compiled(reads_objects=True)
def says_now(record: int, tree: int, leaf: int, splitters: int, known: Any) -> int:
    """Return what a leaf says now, see `storing.SHARES`; -1 where that takes settings of its tree."""
    rule = whole_at(record, known[of.RULE])
    if rule == MAJORITY or splitters == known[of.NONE]:
        return SHARES
    if rule == ADAPTIVE:
        setting = attribute(tree, known[of.LEAF_PREDICTION])
        is_better = is_equal(setting, known[of.NBA])
        release(setting)
        if not is_better:
            return -1
    elif rule != BETTER:
        return -1
    if number_at(leaf, known[of.BAYES_WEIGHT]) >= number_at(leaf, known[of.MAJORITY_WEIGHT]):
        return BAYES
    return SHARES


@compiled(reads_objects=True)
def read_class(
    slot: int, record: int, splitters: int, learnt: int, says: int, error: float, known: Any, news: Any
) -> bool:
    """Write what a class has learnt at a leaf that says the same as before; return whether that was possible."""
    at, weight = known[of.LEARNT_END], known[of.VALUE]
    n = 0
    if says == BAYES:
        is_fine = whole_at(record, known[of.N_OBSERVERS]) == dict_size(splitters)
        classes = attribute(record, known[of.CLASSES])
        observed = element(classes, learnt) if is_fine else 0  # where it is not, there may be no record of the class
        release(classes)
        column = whole_at(observed, known[of.COLUMN])
        is_fine &= has(observed, known[of.COMPLETE], known[of.TRUE])
        if is_fine:
            n = _gaussians(observed, at + 6, known, news)
            end = _counts(slot, observed, known[of.COUNTS_END], known, news)
            is_fine = n >= 0 and end >= 0 and not has_failed()
            if is_fine:
                known[of.COUNTS_END] = end
                set_attribute(observed, known[of.WEIGHT], weight)
        release(observed)
    else:
        found = value_of(known[of.COLUMNS_OF_CLASSES], known[of.KEY])
        column = whole(found)
        is_fine = found != 0 and not has_failed()
    if is_fine:
        news[at], news[at + 1], news[at + 2] = slot, column, number(weight)
        news[at + 3], news[at + 4], news[at + 5] = says, n, error
        known[of.LEARNT_END] = at + 6 + 3 * n
    return is_fine


@compiled(reads_objects=True)
def _gaussians(observed: int, at: int, known: Any, news: Any) -> int:
    """Write weight, sum of squares and mean of each feature of a class; return how many there are, -1 for not known."""
    variances = attribute(observed, known[of.VARIANCES])
    n = list_size(variances)
    if at + 3 * n > news.shape[0]:
        n = -1
    for f in range(n):
        variance = item(variances, f)
        average = attribute(variance, known[of.AVERAGE])
        news[at + 3 * f] = number_at(average, known[of.N])
        news[at + 3 * f + 1] = number_at(variance, known[of.SQUARES])
        news[at + 3 * f + 2] = number_at(average, known[of.MEAN])
        release(average)
    release(variances)
    return n


@compiled(reads_objects=True)
def _counts(slot: int, observed: int, at: int, known: Any, news: Any) -> int:
    """Write the counts of categories of a class; return where they end, -1 where they are left to Python."""
    tables, label = attribute(observed, known[of.TABLES]), attribute(observed, known[of.LABEL])
    for i in range(list_size(tables)):
        if at >= 0:
            at = _counts_of(slot, observed, item(tables, i), label, at, known, news)
    release(label)
    release(tables)
    return at


@compiled(reads_objects=True)
def _counts_of(slot: int, observed: int, table: int, label: int, at: int, known: Any, news: Any) -> int:
    """Write the counts of categories of a class and a feature; return as `_counts` does."""
    splitter, codes = attribute(table, known[of.SPLITTER]), attribute(table, known[of.CODES_SEEN])
    distributions, column = attribute(splitter, known[of.DISTRIBUTIONS]), attribute(table, known[of.COLUMN])
    shares = value_of(distributions, label)
    n, n_codes = dict_size(shares) if shares != 0 else 0, list_size(codes)
    first = at + 5
    if n < n_codes or n_codes < 0 or first + 2 * n > news.shape[0]:
        first = -1
    else:
        news[at], news[at + 1] = slot, whole_at(observed, known[of.COLUMN])
        news[at + 2], news[at + 3], news[at + 4] = whole_at(table, known[of.NUMBER]), whole_at(table, known[of.ROW]), n
    outer = known[of.GOES_ON]  # this may be within a walk through the classes
    known[of.GOES_ON] = i = 0
    while first >= 0 and i < n and next_entry(shares, known[of.HERE]):
        if i >= n_codes:
            code = code_of(column, known[of.KEY], known[of.WIDTH], known)
            if code == 0:
                first = -1
                break
            append(codes, code)
        news[first + i], news[first + n + i] = number(item(codes, i)), number(known[of.VALUE])
        i += 1
    known[of.GOES_ON] = outer
    release(column)
    release(distributions)
    release(codes)
    release(splitter)
    return first + 2 * n if first >= 0 else -1


@compiled(reads_objects=True)
def code_of(column: int, value: int, end: int, known: Any) -> int:
    """Return the code of a category, as `Schema.code` does; 0 where it has none yet, or not one before an end."""
    kind = type_of(value)
    if kind != known[of.STR] and kind != known[of.INT] and kind != known[of.BOOL]:
        return 0
    found = value_of(value_of(known[of.CODES], column), value)
    code = int(number(found)) if found != 0 else end
    if code >= end:
        return 0
    if not is_a(item(value_of(known[of.CATEGORIES], column), code), kind):  # 1 equals True
        return 0
    return found


@compiled(reads_objects=True)
def read_again(
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
    head, end, counts, C = known[of.HEADS_END], known[of.MOVED_END], known[of.COUNTS_END], known[of.C]
    classes, features = attribute(record, known[of.CLASSES]), attribute(record, known[of.FEATURES])
    n = 0
    is_fine = True
    if says == BAYES:
        is_fine = _choose_features(slot, record, splitters, classes, known, marks)
        is_fine = is_fine and _add_classes(stats, classes, known) and not has_failed()
        n = list_size(features)
    news[head], news[head + 1], news[head + 2], news[head + 3] = slot, says, n, error
    for c in range(C):
        news[head + 4 + c] = np.nan
    known[of.GOES_ON] = 0
    i = 0
    while is_fine and next_entry(stats, known[of.HERE]):
        found, w = value_of(known[of.COLUMNS_OF_CLASSES], known[of.KEY]), number(known[of.VALUE])
        c = whole(found)
        is_fine = found != 0 and w >= 0.0 and not has_failed()
        if not is_fine:
            break
        news[head + 4 + c] = w
        if says == BAYES:
            observed = item(classes, i)
            # The observers of a class are as they were read while its weight is.
            if w > 0.0 and number_at(observed, known[of.WEIGHT]) != w:
                if not has(observed, known[of.COMPLETE], known[of.TRUE]):
                    is_fine = _find(record, observed, features, known)
                news[end], news[end + 1], news[end + 2] = slot, c, n
                is_fine = is_fine and _gaussians(observed, end + 3, known, news) == n
                counts = _counts(slot, observed, counts, known, news) if is_fine else -1
                is_fine = counts >= 0 and not has_failed()
                end += 3 + 3 * n
        i += 1
    if is_fine:
        known[of.HEADS_END], known[of.MOVED_END], known[of.COUNTS_END] = head + 4 + C, end, counts
        set_attribute(record, known[of.MODE], known[of.BAYES] if says == BAYES else known[of.SHARES])
        known[of.GOES_ON] = i = 0
        while says == BAYES and next_entry(stats, known[of.HERE]):
            if number(known[of.VALUE]) > 0.0:
                set_attribute(item(classes, i), known[of.WEIGHT], known[of.VALUE])
            i += 1
    release(features)
    release(classes)
    return is_fine


@compiled(reads_objects=True)
def _choose_features(slot: int, record: int, splitters: int, classes: int, known: Any, marks: Any) -> bool:
    """Note which features a leaf observes, where it has come to observe more; return whether rows read them so, too."""
    n = dict_size(splitters)
    if whole_at(record, known[of.N_OBSERVERS]) == n:
        return True
    if n < 0:
        return False
    n_known = 0
    known[of.GOES_ON] = 0
    while next_entry(splitters, known[of.HERE]):
        column = value_of(known[of.POSITIONS], known[of.KEY])
        if column != 0:
            n_known += 1
            is_coded = value_of(known[of.CODES], column) != 0
            if not is_a(known[of.VALUE], known[of.NOMINAL] if is_coded else known[of.GAUSSIAN]):
                return False
    if n_known > known[of.F] or has_failed():
        return False
    features, columns = attribute(record, known[of.FEATURES]), attribute(record, known[of.COLUMNS])
    _give_back(classes, known)
    cut(features, 0)
    cut(columns, 0)
    set_whole_at(record, known[of.N_OBSERVERS], n)
    _, _, start, _, _ = offsets(known[of.C], 0)
    i = 0
    known[of.GOES_ON] = 0
    while next_entry(splitters, known[of.HERE]):
        column = value_of(known[of.POSITIONS], known[of.KEY])
        if column != 0:
            append(features, known[of.VALUE])
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
    known[of.GOES_ON] = 0
    while next_entry(stats, known[of.HERE]):
        if i >= n:
            n_spare = list_size(known[of.SPARE])
            column = value_of(known[of.COLUMNS_OF_CLASSES], known[of.KEY])
            if n_spare < 1 or column == 0:
                return False
            observed = item(known[of.SPARE], n_spare - 1)
            set_attribute(observed, known[of.LABEL], known[of.KEY])
            set_attribute(observed, known[of.COLUMN], column)
            append(classes, observed)
            cut(known[of.SPARE], n_spare - 1)
        i += 1
    return i == list_size(classes)


@compiled(reads_objects=True)
def _find(record: int, observed: int, features: int, known: Any) -> bool:
    """Look up the Gaussians and counts of a class; return whether there were enough spare tables.

    Some may not be there before it is first learnt.
    """
    tables, variances = attribute(observed, known[of.TABLES]), attribute(observed, known[of.VARIANCES])
    label, columns = attribute(observed, known[of.LABEL]), attribute(record, known[of.COLUMNS])
    n_tables, is_fine, is_complete = 0, True, True
    cut(variances, 0)
    for f in range(list_size(features)):
        if is_a(item(features, f), known[of.NOMINAL]):
            append(variances, known[of.NO_GAUSSIAN])
            if n_tables == list_size(tables):
                is_fine &= _add_table(tables, f, item(columns, f), item(features, f), known)
            n_tables += 1
        else:
            distributions = attribute(item(features, f), known[of.DISTRIBUTIONS])
            gaussian = value_of(distributions, label)
            if gaussian == 0:
                is_complete = False
                append(variances, known[of.NO_GAUSSIAN])
            else:
                variance = attribute(gaussian, known[of.VAR])
                if variance != 0:
                    append(variances, variance)
                release(variance)
            release(distributions)
    if is_fine:
        set_attribute(observed, known[of.COMPLETE], known[of.TRUE] if is_complete else known[of.FALSE])
    release(columns)
    release(label)
    release(variances)
    release(tables)
    return is_fine


@compiled(reads_objects=True)
def _add_table(tables: int, f: int, column: int, splitter: int, known: Any) -> bool:
    """Give a class a table for the feature of this number; return whether there was a spare one."""
    spare = known[of.SPARE_TABLES]
    n = list_size(spare)
    if n < 1 or column == 0:
        return False
    one = item(spare, n - 1)
    set_whole_at(one, known[of.NUMBER], f)
    set_attribute(one, known[of.COLUMN], column)
    set_attribute(one, known[of.SPLITTER], splitter)
    append(tables, one)
    cut(spare, n - 1)
    return True


@compiled(reads_objects=True)
def _give_back(classes: int, known: Any) -> None:
    """Empty a list of classes, whose tables are spare ones then."""
    for i in range(list_size(classes)):
        tables = attribute(item(classes, i), known[of.TABLES])
        for j in range(list_size(tables)):
            one = item(tables, j)
            _empty_at(one, known[of.CODES_SEEN])
            append(known[of.SPARE_TABLES], one)
        cut(tables, 0)
        release(tables)
    cut(classes, 0)


@compiled(reads_objects=True)
def read_new(slot: int, record: int, tree: int, leaf: int, known: Any, news: Any) -> int:
    """Read a leaf that observes no feature yet; return what it says, -1 where that is left to Python.

    Parameters
    ----------
    record
        One that has its rule.
    """
    stats, splitters = attribute(leaf, known[of.STATS]), attribute(leaf, known[of.SPLITTERS])
    says = says_now(record, tree, leaf, splitters, known)
    if whole_at(record, known[of.RULE]) == ADAPTIVE or (says == BAYES and dict_size(splitters) != 0):
        says = -1
    head, C = known[of.HEADS_END], known[of.C]
    news[head], news[head + 1], news[head + 2], news[head + 3] = slot, says, 0.0, 0.0
    for c in range(C):
        news[head + 4 + c] = np.nan
    total = 0.0
    known[of.GOES_ON] = 0
    while next_entry(stats, known[of.HERE]):
        column, w = value_of(known[of.COLUMNS_OF_CLASSES], known[of.KEY]), number(known[of.VALUE])
        if column == 0 or not w >= 0.0:
            says = -1
            break
        news[head + 4 + whole(column)] = w
        total += w
    # Python knows what River does with a leaf of which no class has weight.
    if not total > 0.0 or has_failed():
        says = -1
    if says >= 0:
        known[of.HEADS_END] = head + 4 + C
    release(splitters)
    release(stats)
    return says


@compiled(reads_objects=True)
def renew(record: int, leaf: int, says: int, known: Any) -> None:
    """Note that a leaf was read that observes no feature yet."""
    stats, splitters = attribute(record, known[of.STATS]), attribute(leaf, known[of.SPLITTERS])
    seen = values_of(stats)
    set_attribute(record, known[of.SPLITTERS], splitters)
    if seen != 0:
        set_attribute(record, known[of.SEEN], seen)
    set_attribute(record, known[of.MODE], known[of.BAYES] if says == BAYES else known[of.SHARES])
    set_attribute(record, known[of.N_OBSERVERS], known[of.MINUS_ONE])
    classes = attribute(record, known[of.CLASSES])
    _give_back(classes, known)
    release(classes)
    _empty_at(record, known[of.FEATURES])
    _empty_at(record, known[of.COLUMNS])
    release(seen)
    release(splitters)
    release(stats)


@compiled(reads_objects=True)
def _empty_at(record: int, name: int) -> None:
    """Empty a list of a record."""
    found = attribute(record, name)
    cut(found, 0)
    release(found)
