"""Rows whose features depend on each other in a known way, and an imputer that has seen them."""

from __future__ import annotations

import numpy as np

from attributary_explainers import (
    GeometricReservoir,
    ShiftedImputer,
)


def filled(rows, *, size=500, alpha=0.00025, seed=0):
    imputer, rng = ShiftedImputer(GeometricReservoir(size), alpha=alpha), np.random.default_rng(seed)
    for x in rows:
        imputer.update(x, 0.0, rng)
    return imputer, rng


def alone(x):
    return {name: (name,) for name in x}


def gaussian(n, seed=3, d=4):
    rng = np.random.default_rng(seed)
    A = 0.6 * rng.standard_normal((d, d)) + np.eye(d)
    return rng.standard_normal((n, d)) @ A.T, A @ A.T


def named(X):
    return [{f"g{j}": float(v) for j, v in enumerate(row)} for row in X]


def kite(n, rng):
    """Two numbers on the edges of a square that stands on a corner: no linear dependence, spread by the other one."""
    side, along = rng.integers(4, size=n), rng.random(n)
    p, q = np.where(side % 2, along, -along), np.where(side < 2, 1.0 - along, along - 1.0)
    return np.stack([2.0 * p, 2.0 * q], axis=1) + 0.15 * rng.standard_normal((n, 2))
