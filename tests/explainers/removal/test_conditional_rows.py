"""Rows of the conditional imputer against single draws of its sampler."""

from __future__ import annotations

import numpy as np

from attributary_explainers import ConditionalImputer, GeometricReservoir
from attributary_explainers.removal.conditional import EMPTY

from .test_observational import learnt, mixed


def test_coalitions_that_grow_or_not_have_the_draws_of_each_by_itself():
    """What a tree has not asked for makes no difference to its draws, which are made again only where it may."""
    sampler = learnt(mixed(2000), leaf_size=40, grace_period=100)
    imputer, rng = ConditionalImputer(GeometricReservoir(30), sampler), np.random.default_rng(2)
    rows = list(mixed(60, seed=9))
    for x in rows:
        imputer.reservoir.update(x, rng)
    for x in rows[-6:]:
        players, seed, n = {name: (name,) for name in x}, int(rng.integers(99)), 4
        order = rng.permutation(list(x)).tolist()
        coalitions = [*(order[:size] for size in range(len(x) + 1)), order[2:4], [], order[1:]]
        drawn = imputer.restrict(x, players, coalitions, n, np.random.default_rng(seed)).rows
        again = np.random.default_rng(seed)
        numbers, slots = imputer._numbers(n, len(x), again), imputer._slots(n, again)
        for kept, of_kept in zip(coalitions, drawn, strict=True):
            for row, of_draw, slot in zip(of_kept, numbers.tolist(), slots, strict=True):
                expected, stored = {}, imputer.reservoir.rows[slot]
                for name, u in zip(x, of_draw, strict=True):
                    value = x[name] if name in kept else sampler.draw(name, x, set(kept), u)
                    if value is not EMPTY or name in stored:
                        expected[name] = stored[name] if value is EMPTY else value
                assert repr(row) == repr(expected)  # NaN, and the order of the features
