"""Compares two importances: shares, ranks, NDCG, shift and significance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .core.shares import shares_of as shares_of
from .core.shares import shift_of as shift_of
from .typing import Importance

SIGNIFICANCE = 0.05
"""Level at which a change of importance is told from noise, for all features together."""

BAND = 1.96
"""Standard errors to either side: an interval of 95 % where the estimate is normal."""


def ranks(importance: Mapping[Any, float]) -> dict[Any, int]:
    """Return each feature's rank, 1 for the most important; ties by name."""
    order = sorted(importance, key=lambda name: (-importance[name], str(name)))
    return {name: rank for rank, name in enumerate(order, start=1)}


def shares(importance: Mapping[Any, float]) -> Importance:
    """Return each feature's share of the positive importance; 0 if none is."""
    return dict(zip(importance, shares_of(importance.values()), strict=True))


def shift(before: Mapping[Any, float], after: Mapping[Any, float]) -> float:
    """Return half the L1 distance of two importances' shares, in [0, 1].

    The part of the importance that has moved to other features. A feature that one side lacks counts as 0
    there; where nothing is positive on exactly one side, everything has moved: 1.

    Examples
    --------
    >>> shift({"age": 3.0, "salary": 1.0}, {"age": 1.0, "salary": 3.0})
    0.5
    """
    a, b = shares(before), shares(after)
    names = dict.fromkeys((*a, *b))
    return shift_of([a.get(name, 0.0) for name in names], [b.get(name, 0.0) for name in names])


def ndcg(before: Mapping[Any, float], after: Mapping[Any, float]) -> float:
    """Return the NDCG of today's ranking, with earlier shares as relevance.

    The normalised discounted cumulative gain is in (0, 1], and 1 for an unchanged ranking. It does not see equals trade
    places: read it beside `shift`.

    Examples
    --------
    >>> ndcg({"age": 3.0, "salary": 1.0}, {"age": 3.0, "salary": 2.0})
    1.0
    """
    names = dict.fromkeys((*before, *after))
    relevance = shares({name: before.get(name, 0.0) for name in names})
    order = ranks({name: after.get(name, 0.0) for name in names})
    ideal = sum(r / math.log2(i + 1) for i, r in enumerate(sorted(relevance.values(), reverse=True), start=1))
    if ideal == 0.0:
        return 1.0
    return sum(r / math.log2(order[name] + 1) for name, r in relevance.items()) / ideal


def largest_first(change: Importance, names: list[Any]) -> list[Any]:
    """Return names by the size of their change, largest first, ties by name."""
    return sorted(names, key=lambda f: (-abs(change[f]), str(f)))


def holm(p_values: Mapping[Any, float]) -> dict[Any, float]:
    """Return p-values adjusted for testing all at once (Holm, 1979).

    The i-th smallest of d is multiplied by d - i + 1, and is at least as large as the one before. If features below the
    level are named, the probability to name any that has not changed is at most the level, however they depend on each
    other.

    Examples
    --------
    >>> holm({"age": 0.01, "salary": 0.04, "loan": 0.03})
    {'age': 0.03, 'salary': 0.06, 'loan': 0.06}
    """
    adjusted, largest = {}, 0.0
    for i, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        largest = max(largest, min(1.0, (len(p_values) - i) * p_values[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


def p_value(change: float, std_error: float) -> float:
    """Return the two-sided normal p-value of a change; 1 for NaN.

    Without any spread a change other than 0 has the p-value 0.
    """
    if math.isnan(change) or math.isnan(std_error):
        return 1.0  # nothing is known
    if std_error == 0.0:  # no spread at all: any change is one
        return 0.0 if change != 0.0 else 1.0
    return math.erfc(abs(change) / std_error / math.sqrt(2.0))
