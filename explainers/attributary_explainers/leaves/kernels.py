"""Kernels of forests: where rows go, and the losses of each row with a feature of every other one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import compiled
from ..losses.kernels import OF_THE_USER, loss_of

_NOTHING = 1e-12
"""A probability that is nearer to 0 or 1 than this is 0 or 1: sums over leaves round, and logarithms show that."""

NUMBER, EXPONENTIAL, PROBABILITIES, SECOND_OF_TWO, LOGISTIC, SOFTMAX = range(6)
"""What becomes of the sum over the leaves: the number, its exponential, the probabilities, that of the second of two
classes, its logit, the logits of all classes."""


@compiled
def goes_left(nodes: Any, node: int, code: int) -> bool:
    """Return whether a row whose bin is `code` goes left."""
    at = nodes.table[node]
    if at >= 0:
        return bool(nodes.flat[at + code])
    if code == nodes.n_bins[nodes.column[node]]:
        return bool(nodes.missing_left[node])
    return bool(code < nodes.cut[node])


@compiled
def leaf_numbers(nodes: Any, roots: Any, bins: Any) -> Any:
    """Return the leaf that each row comes to, shape (trees, rows)."""
    found = np.empty((len(roots), len(bins)), np.int32)
    for t in range(len(roots)):
        for i in range(len(bins)):
            node = roots[t]
            while nodes.column[node] >= 0:
                left = goes_left(nodes, node, bins[i, nodes.column[node]])
                node = nodes.left[node] if left else nodes.right[node]
            found[t, i] = node
    return found


@compiled
def rounded(p: float) -> float:
    """Return a probability, 0 or 1 where it is one of them but for rounding."""
    if p < _NOTHING:
        return 0.0
    return 1.0 if p > 1.0 - _NOTHING else p


@compiled
def link_row(raw: Any, r: int, link: int, P: Any) -> None:
    """Write the prediction of row r of raw predictions to row r of P."""
    # No `in` of a tuple: a kernel with it loads numba's tables.
    if link == SECOND_OF_TWO:
        P[r, 1] = rounded(raw[r, 0])
        P[r, 0] = 1.0 - P[r, 1]
    elif link == LOGISTIC:
        P[r, 1] = 1.0 / (1.0 + math.exp(-raw[r, 0]))
        P[r, 0] = 1.0 - P[r, 1]
    elif link == SOFTMAX:
        most, total = raw[r, 0], 0.0
        for k in range(raw.shape[1]):
            most = max(most, raw[r, k])
        for k in range(raw.shape[1]):
            P[r, k] = math.exp(raw[r, k] - most)
            total += P[r, k]
        for k in range(raw.shape[1]):
            P[r, k] /= total
    elif link == PROBABILITIES:
        for k in range(raw.shape[1]):
            P[r, k] = rounded(raw[r, k])
    else:
        P[r, 0] = math.exp(raw[r, 0]) if link == EXPONENTIAL else raw[r, 0]


@compiled
def label_row(raw: Any, r: int, link: int, tie: int, P: Any) -> None:
    """Write the label of row r of raw predictions to row r of P, 1 in its column."""
    best = 0
    if link == LOGISTIC:
        best = 1 if raw[r, 0] > 0.0 or (raw[r, 0] == 0.0 and tie == 1) else 0
    elif link == SECOND_OF_TWO:
        best = 1 if raw[r, 0] > 0.5 + _NOTHING else 0
    else:
        for k in range(1, raw.shape[1]):
            if raw[r, k] > raw[r, best] + _NOTHING:
                best = k
    for k in range(P.shape[1]):
        P[r, k] = 1.0 if k == best else 0.0


@compiled
def predictions(raw: Any, link: int, tie: int, as_label: bool, P: Any) -> None:
    """Write the predictions of all rows of raw predictions to P."""
    for r in range(len(raw)):
        if as_label:
            label_row(raw, r, link, tie, P)
        else:
            link_row(raw, r, link, P)


@compiled
def scored(P: Any, r: int, code: int, epsilon: float, column: int, target: float) -> float:
    """Return the loss of row r; that of the user stands for the share of wrong labels."""
    if code == OF_THE_USER:
        return 1.0 - P[r, column] if column >= 0 else 1.0
    return loss_of(P, r, code, epsilon, column, target)


@compiled
def _add_tree(nodes: Any, value: Any, root: int, row: Any, j: int, stack: Any, steps: Any, missing: Any) -> None:
    """Add what a tree says of a row to `steps`: by bin of column j, what is added from there on."""
    n_bins = nodes.n_bins[j]
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = root, 0, n_bins, 1
    top = 1
    while top > 0:
        top -= 1
        node, low, high, with_missing = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        while nodes.column[node] >= 0:
            if nodes.column[node] != j:
                left = goes_left(nodes, node, row[nodes.column[node]])
                node = nodes.left[node] if left else nodes.right[node]
                continue
            cut = min(max(nodes.cut[node], low), high)
            missing_left = nodes.missing_left[node]
            has_left = cut > low or (with_missing == 1 and missing_left)
            has_right = high > cut or (with_missing == 1 and not missing_left)
            if has_left and has_right:
                stack[top, 0], stack[top, 1], stack[top, 2] = nodes.right[node], cut, high
                stack[top, 3] = 1 if with_missing == 1 and not missing_left else 0
                top += 1
            if has_left:
                node, high = nodes.left[node], cut
                with_missing = 1 if with_missing == 1 and missing_left else 0
            else:
                node, low = nodes.right[node], cut
        for k in range(value.shape[1]):
            v = value[node, k]
            steps[low, k] += v
            steps[high, k] -= v
            if with_missing == 1:
                missing[k] += v


@compiled
def grown_by_feature(
    nodes: Any, value: Any, roots: Any, base: Any, scale: float, link: int, tie: int, as_label: bool,
    bins: Any, own: Any, used: Any, j: int, counts: Any, code: int, epsilon: float, columns: Any, targets: Any,
    P: Any, explained: Any, drawn: Any,
) -> bool:  # fmt: skip
    """Add up by how much the loss of each row grows with the value of column j of all other rows.

    Parameters
    ----------
    own
        Shape (trees, rows): the leaf of each row.
    counts
        Shape (bins + 1,): rows in each bin of the column, the last those without a value.
    columns, targets
        Shape (rows,): the column of each row's label, and its target.
    P
        Shape (bins + 1, classes): room.
    explained
        Shape (rows,): sum over all other rows.
    drawn
        Shape (bins + 1,): sum over all rows, of a value of that bin.

    Returns
    -------
    Whether all losses are finite.
    """
    n, n_bins, k_all = len(bins), nodes.n_bins[j], value.shape[1]
    steps, raw, missing = np.zeros((n_bins + 1, k_all)), np.zeros((n_bins + 1, k_all)), np.zeros(k_all)
    same = np.zeros(k_all)
    stack = np.zeros((len(nodes.column) + 2, 4), np.int64)
    grown = np.zeros(n_bins + 1)
    for i in range(n):
        steps[:] = 0.0
        missing[:] = 0.0
        same[:] = 0.0
        for t in range(len(roots)):
            if used[t, j]:
                _add_tree(nodes, value, roots[t], bins[i], j, stack, steps, missing)
            else:
                for k in range(k_all):
                    same[k] += value[own[t, i], k]
        for k in range(k_all):
            total = same[k]
            for b in range(n_bins):
                total += steps[b, k]
                raw[b, k] = base[k] + scale * total
            raw[n_bins, k] = base[k] + scale * (same[k] + missing[k])
        predictions(raw, link, tie, as_label, P)
        if not _add_losses(P, i, bins[i, j], counts, code, epsilon, columns[i], targets[i], grown, explained, drawn):
            return False
    return True


@compiled
def _add_losses(
    P: Any, i: int, of_row: int, counts: Any, code: int, epsilon: float, column: int, target: float,
    grown: Any, explained: Any, drawn: Any,
) -> bool:  # fmt: skip
    own_loss = scored(P, of_row, code, epsilon, column, target)
    if not math.isfinite(own_loss):
        return False
    total = 0.0
    for b in range(len(counts)):
        if counts[b] > 0:
            grown[b] = scored(P, b, code, epsilon, column, target) - own_loss
            total += counts[b] * grown[b]
            drawn[b] += grown[b]
    explained[i] = total
    return math.isfinite(total)


@compiled
def grown_by_patterns(
    nodes: Any, value: Any, roots: Any, base: Any, scale: float, link: int, tie: int, as_label: bool,
    bins: Any, own: Any, used: Any, group: Any, patterns: Any, of_rows: Any, counts: Any,
    code: int, epsilon: float, columns: Any, targets: Any, P: Any, explained: Any, drawn: Any,
) -> bool:  # fmt: skip
    """Add up the growth of losses as `grown_by_feature`, with several columns of all other rows at once.

    Parameters
    ----------
    group
        The columns.
    patterns
        Shape (patterns, columns of the group): the bins that rows have there.
    of_rows
        Shape (rows,): the pattern of each row.
    counts
        Shape (patterns,): rows of each pattern.
    """
    n, n_patterns, k_all = len(bins), len(patterns), value.shape[1]
    raw, same, grown = np.zeros((n_patterns, k_all)), np.zeros(k_all), np.zeros(n_patterns)
    row = np.empty_like(bins[0])
    moved = np.zeros(len(roots), np.bool_)
    for t in range(len(roots)):
        for c in group:
            moved[t] |= used[t, c]
    for i in range(n):
        same[:] = 0.0
        row[:] = bins[i]
        for t in range(len(roots)):
            if not moved[t]:
                for k in range(k_all):
                    same[k] += value[own[t, i], k]
        for u in range(n_patterns):
            for c in range(len(group)):
                row[group[c]] = patterns[u, c]
            for k in range(k_all):
                raw[u, k] = same[k]
            for t in range(len(roots)):
                if moved[t]:
                    node = roots[t]
                    while nodes.column[node] >= 0:
                        left = goes_left(nodes, node, row[nodes.column[node]])
                        node = nodes.left[node] if left else nodes.right[node]
                    for k in range(k_all):
                        raw[u, k] += value[node, k]
            for k in range(k_all):
                raw[u, k] = base[k] + scale * raw[u, k]
        predictions(raw, link, tie, as_label, P)
        if not _add_losses(P, i, of_rows[i], counts, code, epsilon, columns[i], targets[i], grown, explained, drawn):
            return False
    return True
