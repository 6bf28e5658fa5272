"""Exact answers by enumeration, written from the papers' definitions without a line of the package.

STAGGER has 27 equiprobable points, so every expectation is a finite sum. `test_oracles.py` is their proof: they give
the table of docs/known-values.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy import stats

Point = dict[str, int]
NumberModel = Callable[[Point], float]
NumberLoss = Callable[[int, float], float]

FEATURES = ("size", "color", "shape")
POINTS: tuple[Point, ...] = tuple(dict(zip(FEATURES, values, strict=True)) for values in product(range(3), repeat=3))


def small_and_red(x: Point) -> int:
    """Concept A.1: size small (0) and color red (0); river's classification function 0."""
    return int(x["size"] == 0 and x["color"] == 0)


def medium_or_large(x: Point) -> int:
    """Concept A.2: size medium (1) or large (2); river's classification function 2."""
    return int(x["size"] in (1, 2))


def squared(y: int, p: float) -> float:
    return (y - p) ** 2


def log_loss(y: int, p: float) -> float:
    """Cross-entropy of a probability p of class 1."""
    return -math.log(p if y == 1 else 1.0 - p)


def hybrid(x: Point, other: Point, kept: Iterable[str]) -> Point:
    """The features in `kept` from x, the rest from `other`."""
    kept = set(kept)
    return {f: x[f] if f in kept else other[f] for f in FEATURES}


def exact_pfi(concept: Callable[[Point], int]) -> dict[str, Fraction]:
    """Expected PFI under 0/1 loss of the concept itself: P(the label changes when the feature is redrawn)."""
    return {
        feature: Fraction(
            sum(concept(x) != concept(hybrid(x, z, set(FEATURES) - {feature})) for x in POINTS for z in POINTS),
            len(POINTS) ** 2,
        )
        for feature in FEATURES
    }


def exact_pfi_of_pairs(concept: Callable[[Point], int]) -> dict[str, float]:
    """The same over pairs of different points: those of a point with itself add nothing."""
    return {feature: float(exact * Fraction(27, 26)) for feature, exact in exact_pfi(concept).items()}


def shapley(value: Callable[[frozenset[str]], float]) -> dict[str, float]:
    """Mean over all orders of value(before) - value(after): the share of the drop from value({}) to value(all)."""
    orders = list(permutations(FEATURES))
    phi = dict.fromkeys(FEATURES, 0.0)
    for order in orders:
        for k, feature in enumerate(order):
            phi[feature] += (value(frozenset(order[:k])) - value(frozenset(order[: k + 1]))) / len(orders)
    return phi


def mean_prediction(model: NumberModel) -> float:
    return sum(map(model, POINTS)) / len(POINTS)


def exact_sage(concept: Callable[[Point], int], model: NumberModel, loss: NumberLoss) -> dict[str, float]:
    """SAGE values with interventional removal: the loss of the expected prediction of each coalition."""

    def value(kept: frozenset[str]) -> float:
        return _mean(loss(concept(x), _mean(model(hybrid(x, z, kept)) for z in POINTS)) for x in POINTS)

    return shapley(value)


def one_draw_limit(concept: Callable[[Point], int], model: NumberModel, loss: NumberLoss) -> dict[str, float]:
    """Limit of iSAGE at m = 1: expected loss of one draw, except for the empty coalition, whose mean is smoothed."""

    def value(kept: frozenset[str]) -> float:
        if not kept:
            return _mean(loss(concept(x), mean_prediction(model)) for x in POINTS)
        return _mean(loss(concept(x), model(hybrid(x, z, kept))) for x in POINTS for z in POINTS)

    return shapley(value)


def draws_limit(
    concept: Callable[[Point], int], model: NumberModel, loss: NumberLoss, n_draws: int, n_rows: Mapping[int, float]
) -> dict[str, float]:
    """Expected iSAGE increments with `n_draws` draws, with replacement, from a reservoir.

    The model has two outputs, low < high. Of the rows of the reservoir a binomial number gives `high`, and so does, of
    the draws among them, a binomial number: that mixture is exact. `n_rows` gives the number of rows in the reservoir
    and how likely it is; it bounds what many draws can mend.
    """
    low, high = min(map(model, POINTS)), max(map(model, POINTS))
    hits = np.arange(n_draws + 1)
    outcomes = low + (high - low) * hits / n_draws

    @cache
    def probabilities(q: float) -> np.ndarray:
        mixed = np.zeros(n_draws + 1)
        for n, weight in n_rows.items():
            rows = np.arange(n + 1)
            mixed += weight * (stats.binom.pmf(rows, n, q) @ stats.binom.pmf(hits, n_draws, rows[:, None] / n))
        return mixed

    @cache
    def value(kept: frozenset[str]) -> float:
        if not kept:
            return _mean(loss(concept(x), mean_prediction(model)) for x in POINTS)
        total = 0.0
        for x in POINTS:
            q = _mean(float(model(hybrid(x, z, kept)) == high) for z in POINTS)
            total += float(probabilities(q) @ [loss(concept(x), outcome) for outcome in outcomes])
        return total / len(POINTS)

    return shapley(value)


def agrawal_pfi() -> dict[str, Fraction]:
    """Expected 0/1 PFI of salary and age for Agrawal function 1 (river's count from 0), integer ages 20 to 80.

    Salary is uniform on [20 000, 150 000]; each age group accepts an interval of it that is 50 000 long.
    """
    ages = [20, 20, 21]  # 20-39, 40-59, 60-80
    accepted = [(50_000, 100_000), (75_000, 125_000), (25_000, 75_000)]
    width, n_ages = 130_000, sum(ages)

    def difference(a: tuple[int, int], b: tuple[int, int]) -> Fraction:
        shared = max(0, min(a[1], b[1]) - max(a[0], b[0]))
        return Fraction((a[1] - a[0]) + (b[1] - b[0]) - 2 * shared, width)

    salary = sum(
        (Fraction(n, n_ages) * 2 * Fraction(b - a, width) * (1 - Fraction(b - a, width)))
        for n, (a, b) in zip(ages, accepted, strict=True)
    )
    age = sum(
        Fraction(ages[i] * ages[j], n_ages**2) * difference(accepted[i], accepted[j])
        for i in range(3)
        for j in range(3)
        if i != j
    )
    return {"salary": Fraction(salary), "age": Fraction(age)}


def agrawal_function_1(x: dict[str, Any]) -> int:
    """The group A of Agrawal function 1: written from the papers' definition."""
    low, high = ((50e3, 100e3), (75e3, 125e3), (25e3, 75e3))[(x["age"] >= 40) + (x["age"] >= 60)]
    return int(low <= x["salary"] <= high)


def stagger_stream(concept: Callable[[Point], int], n: int, seed: int) -> list[tuple[Point, int]]:
    """`n` independent points with their label. Seeded apart from the explainer's own generator."""
    rng = np.random.default_rng([seed, 27])
    return [(dict(POINTS[i]), concept(POINTS[i])) for i in rng.integers(len(POINTS), size=n).tolist()]


def smoothing_weights(alpha: float, n: int) -> np.ndarray:
    """alpha (1 - alpha)^(n - i) for i = 1..n, normalised to the sum 1 (iPFI Theorem 2)."""
    weights = alpha * (1.0 - alpha) ** np.arange(n - 1, -1, -1)
    return np.asarray(weights / weights.sum())


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean over independent runs and its standard error, from the spread of the runs themselves."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
