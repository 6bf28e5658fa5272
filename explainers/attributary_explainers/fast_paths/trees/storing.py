"""Kernels that write what has been read of leaves into their arrays."""

from __future__ import annotations

import math
from typing import Any


from ...compiled import compiled

SHARES, BAYES, NOTHING = range(3)
"""What a leaf says: fixed numbers, naive Bayes, or nothing, where River raises an error."""

ABSENT, VOTES, SILENT = range(3)
"""States of a class at a leaf: absent, with weight, or without weight, which naive Bayes gives a vote of 0.0."""


@compiled
def store_classes(news: Any, at: int, C: int, heads: Any, columns: Any, gauss: Any, tables: Any) -> None:
    """Store what has been read of leaves of classifiers.

    Parameters
    ----------
    news
        Four parts from `at` on; the lengths of three are at 2, 3 and 4. The first has, for each leaf that has learnt
        one class and is else as it was, slot, class, its weight, mode and number of features, then the weight, sum of
        squares and mean of each. The second has, for each leaf, its slot, mode, number of features, error and the
        weights of the classes, NaN for one that it has not seen. The third has, for each class that learnt at a leaf
        with naive Bayes, slot, class and number of features, then weight, sum of squares and mean of each. The fourth
        has, for each nominal feature of these, slot, class, feature, row of `tables`, total and length, then so many
        codes and so many weights.
    heads
        By slot: mode, number of features and error, then the weight of each class, then what each says (without naive
        Bayes) or the logarithm of its share, then the state of each.
    columns
        By slot: the bits of the columns that naive Bayes looks at (by 64s), and these columns.
    gauss
        By slot, class and feature: mean, -2 times the variance, 0 where there is none, half the logarithm of the
        variance, and the row of `tables`, -1 for none.
    """
    i = at
    end = i + int(news[2])
    while i < end:
        s = int(news[i])
        c = int(news[i + 1])
        heads[s, 3 + c] = news[i + 2]
        heads[s, 0] = news[i + 3]
        n = int(news[i + 4])
        heads[s, 1] = n
        rate(s, C, heads, columns)
        i += 5
        for f in range(n):
            settle(news, i, gauss, s, c, f)
            i += 3
    end = i + int(news[3])
    while i < end:
        s = int(news[i])
        heads[s, : 3 + C] = news[i + 1 : i + 4 + C]
        rate(s, C, heads, columns)
        i += 4 + C
    end = i + int(news[4])
    while i < end:
        s = int(news[i])
        c = int(news[i + 1])
        n = int(news[i + 2])
        i += 3
        for f in range(n):
            gauss[s, c, f, 3] = -1.0
            settle(news, i, gauss, s, c, f)
            i += 3
    while i < news.shape[0]:
        row = int(news[i + 3])
        gauss[int(news[i]), int(news[i + 1]), int(news[i + 2]), 3] = row
        total = news[i + 4]
        n = int(news[i + 5])
        i += 6
        for v in range(tables.shape[1]):
            tables[row, v] = 0.0
        for q in range(n):
            share = news[i + n + q] / total if total != 0.0 else 0.0
            if share > 0.0:
                tables[row, int(news[i + q])] = math.log(share)
        i += 2 * n


@compiled
def rate(s: int, C: int, heads: Any, columns: Any) -> None:
    """Work out what a leaf says by its weights alone, and at which columns it looks."""
    bayes = heads[s, 0] == BAYES
    bits = 0
    if bayes:
        for f in range(int(heads[s, 1])):
            bits |= 1 << (columns[s, 1 + f] & 63)
    columns[s, 0] = bits
    total = 0.0
    for c in range(C):
        w = heads[s, 3 + c]
        if w == w:
            total += w
    for c in range(C):
        w = heads[s, 3 + c]
        heads[s, 3 + 2 * C + c] = ABSENT if w != w else (VOTES if w > 0.0 else SILENT)
        if w != w:
            base = 0.0
        elif bayes:
            base = math.log(w / total) if w > 0.0 else 0.0
        else:
            base = w * (1.0 / total) if total != 0.0 and total == total else w
        heads[s, 3 + C + c] = base


@compiled
def settle(news: Any, i: int, gauss: Any, s: int, c: int, f: int) -> None:
    """Write the Gaussian of a class and a feature."""
    gauss[s, c, f, 1] = 0.0
    if news[i] > 1.0:
        variance = news[i + 1] / (news[i] - 1.0)
        if variance > 0.0:
            gauss[s, c, f, 0] = news[i + 2]
            gauss[s, c, f, 1] = -2.0 * variance
            gauss[s, c, f, 2] = 0.5 * math.log(variance)


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
