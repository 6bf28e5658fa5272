"""Kernels that write what has been read of leaves into their arrays."""

from __future__ import annotations

import math
from typing import Any

from ....compiled import compiled
from ..routes import ONE, ZERO

SHARES, BAYES, NOTHING = range(3)
"""What a leaf says: fixed numbers, naive Bayes, or nothing, where River raises an error."""

ABSENT, VOTES, SILENT = range(3)
"""States of a class at a leaf: absent, with weight, or without weight, which naive Bayes gives a vote of 0.0."""


MODE, N_FEATURES, ERROR, COLUMNS, SAYS = range(5)
"""Where the array of a leaf has these; at `COLUMNS` a bit for each column (by 64s) at which naive Bayes looks."""


@compiled
def offsets(C: int, F: int) -> tuple[int, int, int, int, int]:
    """Return where the array of a leaf has the states and weights of classes, columns and Gaussians, and its length.

    From `SAYS` on it has what each class gets, or with naive Bayes the logarithm of its share. The columns of features
    and their bits are there as integers. A Gaussian, by feature and class, is its mean, -2 times the variance, 0 where
    there is none, half the logarithm of the variance, and the row of `tables`, -1 for none. Groups of 8 are a cache
    line: what is not needed is not fetched.
    """
    states = SAYS + C
    weights = states + C
    columns = weights + C
    gauss = (columns + F + 7) // 8 * 8
    return states, weights, columns, gauss, (gauss + 4 * C * F + 7) // 8 * 8


@compiled
def store_classes(news: Any, at: int, C: int, leaves: Any, marks: Any, tables: Any) -> None:
    """Store what has been read of leaves of classifiers.

    Parameters
    ----------
    news
        Four parts from `at` on; the lengths of three are at 2, 3 and 4, and at 5 is the number of features that a leaf
        has room for. The first part has, for each leaf that has learnt one class and is else as it was, slot, class,
        its weight, mode, number of features and error, then the weight, sum of squares and mean of each. The second
        has, for each leaf, its slot, mode, number of features, error and the weights of the classes, NaN for one that
        it has not seen. The third has, for each class that learnt at a leaf with naive Bayes, slot, class and number of
        features, then weight, sum of squares and mean of each. The fourth has, for each nominal feature of these, slot,
        class, feature, row of `tables` and length, then so many codes and so many weights.
    leaves, marks
        By slot, what `offsets` says, as floats and as integers.
    """
    _, weights, _, gauss, _ = offsets(C, int(news[5]))
    i = at
    end = i + int(news[2])
    while i < end:
        s = int(news[i])
        c = int(news[i + 1])
        leaves[s, weights + c] = news[i + 2]
        leaves[s, MODE] = news[i + 3]
        n = int(news[i + 4])
        leaves[s, N_FEATURES] = n
        leaves[s, ERROR] = news[i + 5]
        rate(leaves[s], marks[s], C)
        i += 6
        for f in range(n):
            settle(news, i, leaves[s], gauss + 4 * (f * C + c))
            i += 3
    end = i + int(news[3])
    while i < end:
        s = int(news[i])
        leaves[s, MODE] = news[i + 1]
        leaves[s, N_FEATURES] = news[i + 2]
        leaves[s, ERROR] = news[i + 3]
        for c in range(C):
            leaves[s, weights + c] = news[i + 4 + c]
        rate(leaves[s], marks[s], C)
        i += 4 + C
    end = i + int(news[4])
    while i < end:
        s = int(news[i])
        c = int(news[i + 1])
        n = int(news[i + 2])
        i += 3
        for f in range(n):
            g = gauss + 4 * (f * C + c)
            leaves[s, g + 3] = -1.0
            settle(news, i, leaves[s], g)
            i += 3
    while i < news.shape[0]:
        row = int(news[i + 3])
        leaves[int(news[i]), gauss + 4 * (int(news[i + 2]) * C + int(news[i + 1])) + 3] = row
        n = int(news[i + 4])
        i += 5
        total = 0.0
        for q in range(n):
            total += news[i + n + q]
        for v in range(tables.shape[1]):
            tables[row, v] = 0.0
        for q in range(n):
            share = news[i + n + q] / total if total != 0.0 else 0.0
            if share > 0.0:
                tables[row, int(news[i + q])] = math.log(share)
        i += 2 * n


@compiled
def rate(leaf: Any, marks: Any, C: int) -> None:
    """Work out what a leaf says by its weights alone, and at which columns it looks."""
    states, weights, columns, _, _ = offsets(C, 0)
    bayes = leaf[MODE] == BAYES
    bits = ZERO
    if bayes:
        for f in range(int(leaf[N_FEATURES])):
            bits |= ONE << (marks[columns + f] & 63)
    marks[COLUMNS] = bits
    total = 0.0
    for c in range(C):
        w = leaf[weights + c]
        if w == w:
            total += w
    for c in range(C):
        w = leaf[weights + c]
        leaf[states + c] = ABSENT if w != w else (VOTES if w > 0.0 else SILENT)
        if w != w:
            base = 0.0
        elif bayes:
            base = math.log(w / total) if w > 0.0 else 0.0
        else:
            base = w * (1.0 / total) if total != 0.0 and total == total else w
        leaf[SAYS + c] = base


@compiled
def settle(news: Any, i: int, leaf: Any, g: int) -> None:
    """Write the Gaussian of a class and a feature."""
    leaf[g + 1] = 0.0
    if news[i] > 1.0:
        variance = news[i + 1] / (news[i] - 1.0)
        if variance > 0.0:
            leaf[g] = news[i + 2]
            leaf[g + 1] = -2.0 * variance
            leaf[g + 2] = 0.5 * math.log(variance)


@compiled
def store_numbers(news: Any, modes: Any, base: Any, linear: Any) -> None:
    """Store what has been read of leaves of regressors, from 1 on.

    That is slot, 0 and the mean of each, or slot, 1, the intercept and the weights.
    """
    d = linear.shape[1]
    i = 1
    while i < news.shape[0]:
        s = int(news[i])
        modes[s] = int(news[i + 1])
        base[s] = news[i + 2]
        i += 3
        if modes[s] == 1:
            for j in range(d):
                linear[s, j] = news[i + j]
            i += d
