"""Kernels of exact SAGE values: what the leaves of a forest predict for every coalition, and each row's part in it.

A coalition, or a set of a leaf's players, is a number: bit b stands for player b. A leaf's own sets count its players
from 0, in their order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import compiled
from ..losses.kernels import OF_THE_USER, slope_of
from .kernels import SECOND_OF_TWO, goes_left, link_row, scored


@compiled
def satisfied(nodes: Any, roots: Any, player: Any, row: Any, leaf_of: Any, sets: Any, stack: Any, found: Any) -> None:
    """Write to `found`, by leaf, the set of its players all of whose conditions on the path to it a row meets.

    Parameters
    ----------
    player
        Shape (columns,): the player that a column belongs to.
    leaf_of
        Shape (nodes,): the number of a leaf.
    sets
        Shape (leaves,): the players on the path to each leaf.
    """
    for t in range(len(roots)):
        stack[0, 0], stack[0, 1] = roots[t], 0
        top = 1
        while top > 0:
            top -= 1
            node, failed = stack[top, 0], stack[top, 1]
            while nodes.column[node] >= 0:
                column = nodes.column[node]
                left = goes_left(nodes, node, row[column])
                bit = 1 << player[column]
                stack[top, 0] = nodes.right[node] if left else nodes.left[node]
                stack[top, 1] = failed | bit
                top += 1
                node = nodes.left[node] if left else nodes.right[node]
            leaf = leaf_of[node]
            found[leaf] = _of_leaf(sets[leaf], failed)


@compiled
def _of_leaf(players: int, failed: int) -> int:
    """Return a leaf's own set of the players that have not failed."""
    own, bit = 0, 1
    while players > 0:
        lowest = players & -players
        if failed & lowest == 0:
            own |= bit
        bit <<= 1
        players ^= lowest
    return own


@compiled
def background(
    nodes: Any, roots: Any, player: Any, bins: Any, leaf_of: Any, sets: Any, starts: Any, sizes: Any, weights: Any
) -> None:
    """Write to `weights`, by leaf and set of its players, the share of rows that meet the conditions on these."""
    stack = np.zeros((len(nodes.column) + 2, 2), np.int64)
    found = np.zeros(len(sets), np.int64)
    for i in range(len(bins)):
        satisfied(nodes, roots, player, bins[i], leaf_of, sets, stack, found)
        for leaf in range(len(sets)):
            weights[starts[leaf] + found[leaf]] += 1.0
    n = len(bins)
    for leaf in range(len(sets)):
        start = starts[leaf]
        for b in range(sizes[leaf]):
            for s in range(1 << sizes[leaf]):
                if s >> b & 1 == 0:
                    weights[start + s] += weights[start + (s | 1 << b)]
        for s in range(1 << sizes[leaf]):
            weights[start + s] /= n


@compiled
def _predicted(
    value: Any, leaves: Any, group_of: Any, sizes: Any, starts: Any, weights: Any, masks: Any,
    places: Any, group_sizes: Any, parents: Any, projections: Any, projected: Any, sums: Any,
) -> None:  # fmt: skip
    """Write the sums over the leaves for every coalition to the part of `sums` of the last group, that of all players.

    Leaves with the same players are one group. What a group has by set of its players is handed on to the smallest
    group that has these players and more, and so to that of all.
    """
    sums[:] = 0.0
    for leaf in range(len(leaves)):
        full = (1 << sizes[leaf]) - 1
        place, start, mine = places[group_of[leaf]], starts[leaf], masks[leaf]
        kept = mine
        while True:
            w = weights[start + (full ^ kept)]
            if w != 0.0:
                for k in range(value.shape[1]):
                    sums[place + kept, k] += w * value[leaves[leaf], k]
            if kept == 0:
                break
            kept = (kept - 1) & mine
    for g in range(len(places) - 1):
        up, at = places[parents[g]], projected[g]
        for s in range(1 << group_sizes[parents[g]]):
            for k in range(value.shape[1]):
                sums[up + s, k] += sums[places[g] + projections[at + s], k]


@compiled
def _handed_back(
    value: Any, leaves: Any, group_of: Any, sizes: Any, starts: Any, masks: Any,
    places: Any, group_sizes: Any, parents: Any, projections: Any, projected: Any, sums: Any, into: Any,
) -> None:  # fmt: skip
    """Add to `into` what each weight of `_predicted` moves, where `sums` has what each coalition's sum moves."""
    for g in range(len(places) - 2, -1, -1):
        for s in range(1 << group_sizes[g]):
            for k in range(value.shape[1]):
                sums[places[g] + s, k] = 0.0
        up, at = places[parents[g]], projected[g]
        for s in range(1 << group_sizes[parents[g]]):
            for k in range(value.shape[1]):
                sums[places[g] + projections[at + s], k] += sums[up + s, k]
    for leaf in range(len(leaves)):
        full = (1 << sizes[leaf]) - 1
        place, start, mine = places[group_of[leaf]], starts[leaf], masks[leaf]
        kept = mine
        while True:
            moved = 0.0
            for k in range(value.shape[1]):
                moved += sums[place + kept, k] * value[leaves[leaf], k]
            into[start + (full ^ kept)] += moved
            if kept == 0:
                break
            kept = (kept - 1) & mine


@compiled
def shapley(losses: Any, weights: Any, bits: Any, found: Any) -> None:
    """Write each player's Shapley value of the drop in loss to `found`.

    Parameters
    ----------
    losses
        Shape (coalitions,).
    weights
        Shape (players,): by size of a coalition without the player.
    bits
        Shape (coalitions,): their sizes.
    """
    for j in range(len(found)):
        total = 0.0
        for s in range(len(losses)):
            if s >> j & 1 == 0:
                total += weights[bits[s]] * (losses[s] - losses[s | 1 << j])
        found[j] = total


@compiled
def _slopes(P: Any, s: int, link: int, code: int, epsilon: float, column: int, target: float, of_sum: Any) -> None:
    """Write the derivative of the loss of row s in each sum over the leaves to row s of `of_sum`."""
    if link == SECOND_OF_TWO:  # of which the first is 1 - p
        first = _slope(P[s, 0], code, epsilon, column == 0, target)
        of_sum[s, 0] = _slope(P[s, 1], code, epsilon, column == 1, target) - first
    else:
        for k in range(P.shape[1]):
            of_sum[s, k] = _slope(P[s, k], code, epsilon, column == k, target)


@compiled
def _slope(p: float, code: int, epsilon: float, is_label: bool, target: float) -> float:
    if code == OF_THE_USER:
        return -1.0 if is_label else 0.0
    return slope_of(p, code, epsilon, is_label, target)


@compiled
def all_coalitions(
    nodes: Any, value: Any, roots: Any, base: Any, scale: float, link: int, player: Any, bins: Any, leaf_of: Any,
    sets: Any, leaves: Any, group_of: Any, sizes: Any, starts: Any, weights: Any,
    places: Any, group_sizes: Any, parents: Any, projections: Any, projected: Any,
    code: int, epsilon: float, columns: Any, targets: Any, of_size: Any, bits: Any, n_classes: int,
    own: Any, moved: Any,
) -> bool:  # fmt: skip
    """Write each row's Shapley values to `own`, and what the weights move of the sums of these to `moved`.

    Parameters
    ----------
    own
        Shape (rows, players).
    moved
        Shape (players, weights), or (players, 0) where it is not wanted.

    Returns
    -------
    Whether all losses are finite.
    """
    n, d, k_all = len(bins), own.shape[1], value.shape[1]
    n_coalitions = 1 << d
    top = places[len(places) - 1]
    sums = np.zeros((top + n_coalitions, k_all))
    raw, P = np.zeros((n_coalitions, k_all)), np.zeros((n_coalitions, n_classes))
    losses, of_sum = np.zeros(n_coalitions), np.zeros((n_coalitions, k_all))
    stack = np.zeros((len(nodes.column) + 2, 2), np.int64)
    masks = np.zeros(len(sets), np.int64)
    tree = places, group_sizes, parents, projections, projected
    for i in range(n):
        satisfied(nodes, roots, player, bins[i], leaf_of, sets, stack, masks)
        _predicted(value, leaves, group_of, sizes, starts, weights, masks, *tree, sums)
        for s in range(n_coalitions):
            for k in range(k_all):
                raw[s, k] = base[k] + scale * sums[top + s, k]
            link_row(raw, s, link, P)
            losses[s] = scored(P, s, code, epsilon, columns[i], targets[i])
            if not math.isfinite(losses[s]):
                return False
        shapley(losses, of_size, bits, own[i])
        if moved.shape[1] == 0:
            continue
        for s in range(n_coalitions):
            _slopes(P, s, link, code, epsilon, columns[i], targets[i], of_sum)
        for j in range(d):
            for s in range(n_coalitions):
                others = bits[s] - 1 if s >> j & 1 else bits[s]
                w = scale * (-of_size[others] if s >> j & 1 else of_size[others])
                for k in range(k_all):
                    sums[top + s, k] = w * of_sum[s, k]
            _handed_back(value, leaves, group_of, sizes, starts, masks, *tree, sums, moved[j])
    return True


@compiled
def of_background(
    nodes: Any, roots: Any, player: Any, bins: Any, leaf_of: Any, sets: Any, starts: Any, sizes: Any, moved: Any,
    found: Any,
) -> None:  # fmt: skip
    """Write to `found`, shape (players, rows), what each row moves as one of those that features are taken from.

    Parameters
    ----------
    moved
        Shape (players, weights), of `all_coalitions`; overwritten.
    """
    for j in range(len(moved)):
        for leaf in range(len(sets)):
            start = starts[leaf]
            for b in range(sizes[leaf]):
                for s in range(1 << sizes[leaf]):
                    if s >> b & 1:
                        moved[j, start + s] += moved[j, start + (s ^ 1 << b)]
    stack = np.zeros((len(nodes.column) + 2, 2), np.int64)
    masks = np.zeros(len(sets), np.int64)
    for i in range(len(bins)):
        satisfied(nodes, roots, player, bins[i], leaf_of, sets, stack, masks)
        for j in range(len(moved)):
            total = 0.0
            for leaf in range(len(sets)):
                total += moved[j, starts[leaf] + masks[leaf]]
            found[j, i] = total
