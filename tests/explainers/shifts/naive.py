"""Shifts from the whole history: every sum is written out again at each block, every reference from its rows."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.stats import chi2, t

BLOCK, RATES = 128, (0.25, 0.5, 1.0)
SIZES = (40, 80, 160, 320)


def reference(rows):
    """Per feature (mean, slack, scale, low, high, error), and whether all is settled and precise; without a season."""
    n, d = rows.shape
    table, settled = [], True
    clipped = np.empty_like(rows)
    for j in range(d):
        middle = sorted(rows[:, j])
        median = (middle[(n - 1) // 2] + middle[n // 2]) / 2
        usual = 6 * sum(abs(v - median) for v in rows[:, j]) / n
        clipped[:, j] = [min(max(v, median - usual), median + usual) for v in rows[:, j]]
        table.append([clipped[:, j].mean(), 0, 0, median - usual, median + usual, 0])
    total = sum(abs(row[0]) for row in table)
    for j in range(d):
        variances, uppers, length = [], [], 1
        while n // length >= 10:
            m = n // length
            batches = [clipped[n - (i + 1) * length : n - i * length, j].mean() for i in range(m)][::-1]
            variances.append(length * np.var(batches, ddof=1))
            uppers.append(variances[-1] * (m - 1) / chi2.ppf(0.05, m - 1))
            length *= 2
        error = math.sqrt(max(variances) / n)
        slack = max(0.01 * total, error * t.ppf(1 - 0.01 / d, m - 1))
        table[j][1:3] = slack, max(math.sqrt(max(uppers)), slack)
        table[j][3] = min(table[j][3], table[j][0] - 4 * table[j][2])
        table[j][4] = max(table[j][4], table[j][0] + 4 * table[j][2])
        table[j][5] = error
        steps = sum((b - a) ** 2 for a, b in pairwise(batches))
        apart = sum((b - np.mean(batches)) ** 2 for b in batches)
        settled &= steps >= 0.7 * apart or apart <= m * (0.01 * total) ** 2
    return table, settled, all(row[1] <= 0.05 * total for row in table), total


def gain(value, row, side, rate):
    mean, slack, scale, low, high, _ = row
    u = rate * ((1 if side == 0 else -1) * (min(max(value, low), high) - mean) - slack) / scale
    psi = math.log(1 + u + u * u / 2) if u > 0 else -math.log(1 - u + u * u / 2)
    return min(psi, 3.0) - rate * rate / 2


def evidence(blocks, table):
    """Sum over all beginnings of the product of what came since: shape (features, 2, rates)."""
    found = np.zeros((len(table), 2, len(RATES)))
    for j, row in enumerate(table):
        for side in (0, 1):
            for i, rate in enumerate(RATES):
                gains = [gain(v, row, side, rate) for v in blocks[:, j]]
                found[j, side, i] = sum(math.exp(sum(gains[begin:])) for begin in range(len(gains)))
    return found


def onset(blocks, row, side):
    """Number of blocks before the shift began: after the last at which no sum of gains up to it is positive."""
    gains = [gain(v, row, side, 0.5) for v in blocks]
    before = 0
    for k in range(1, len(gains) + 1):
        if max(sum(gains[i:k]) for i in range(before, k)) <= 0:
            before = k
    return before


def shifts(increments, once_in=1e6):
    """Tuples (feature, direction, observation told, onset, before, after, level, reference) of all shifts told."""
    n = len(increments) // BLOCK
    blocks = increments[: n * BLOCK].reshape(n, BLOCK, -1).mean(axis=1)
    told, rows_from, size, watch = [], 0, SIZES[0], None
    for k in range(1, n + 1):
        if watch is not None:
            begin, table, length = watch
            found = evidence(blocks[begin:k], table)
            level = found.mean() * BLOCK
            if level >= once_in:
                j = int(found.sum(axis=(1, 2)).argmax())
                side = int(found[j].sum(axis=1).argmax())
                at = begin + onset(blocks[begin:k, j], table[j], side)
                told.append(
                    (
                        j,
                        ("up", "down")[side],
                        k * BLOCK,
                        at * BLOCK + 1,
                        table[j][0],
                        blocks[at:k, j].mean(),
                        level,
                        length,
                    )
                )
                rows_from, size, watch = k, SIZES[0], None
                continue
        if rows_from is None or k - rows_from != size:
            continue
        if watch is not None and evidence(blocks[watch[0] : k], watch[1]).mean() * BLOCK >= 0.01 * once_in:
            rows_from, size = k, SIZES[0]
            continue
        table, settled, precise, _ = reference(blocks[rows_from:k])
        last = size == SIZES[-1]
        if not settled and size > SIZES[0]:
            rows_from, last = k - size // 2, False
            table, settled, precise, _ = reference(blocks[rows_from:k])
        length = k - rows_from
        size = 2 * length
        if settled and (precise or last):
            watch = (k, table, length * BLOCK)
            rows_from = None if last else rows_from
    return told
