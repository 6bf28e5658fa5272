"""How the cost of explaining grows: with features, draws, trees, stored observations and explainers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.speed.loops import Kind
from benchmarks.speed.subjects import Subject, agrawal, arf, rbf
from benchmarks.speed.table import OURS, REFERENCE, Plan, measure

ONE, TEN, SAGE = Kind("iPFI, M 1", pfi=1), Kind("iPFI, M 10", pfi=10), Kind("iSAGE, m 10", sage=10)

PAPER_SLOPE = 0.104
"""iPFI, section 4.1: by how much the ratio grows with each feature, at one draw (benchmarks/papers/ipfi/cost.py)."""
PAPER_FEATURES = 30
"""Up to so many features the paper's line goes."""


@dataclass(frozen=True)
class Axis:
    """One thing that grows; `case` gives the subject and the kinds for a size."""

    name: str
    title: str
    sizes: tuple[int, ...]
    case: Callable[[int], tuple[Subject, Sequence[Kind]]]


def _forest(n_models: int) -> Subject:
    return Subject(f"arf{n_models}", f"ARF of {n_models}", agrawal, partial(arf, n_models))


def _features(d: int) -> tuple[Subject, Sequence[Kind]]:
    return Subject(f"rbf{d}", f"RBF, d {d}", partial(rbf, d), partial(arf, 10)), (ONE, TEN, SAGE)


def _draws(n: int) -> tuple[Subject, Sequence[Kind]]:
    return _forest(10), (Kind("iPFI", pfi=n), Kind("iSAGE", sage=n))


def _trees(n: int) -> tuple[Subject, Sequence[Kind]]:
    return _forest(n), (ONE, TEN, SAGE)


def _stored(n: int) -> tuple[Subject, Sequence[Kind]]:
    return _forest(10), (replace(TEN, reservoir=n), replace(SAGE, reservoir=n))


def _explainers(n: int) -> tuple[Subject, Sequence[Kind]]:
    return _forest(10), (replace(TEN, copies=n), replace(SAGE, copies=n))


AXES = (
    Axis("features", "features (ARF of 10, RBF)", (5, 10, 30, 100, 300, 1000, 3000, 10_000), _features),
    Axis("draws", "draws (ARF of 10, Agrawal)", (1, 2, 5, 10, 20, 50, 100), _draws),
    Axis("trees", "trees (Agrawal)", (1, 3, 10, 30, 100), _trees),
    Axis("stored", "stored observations (ARF of 10, Agrawal)", (10, 100, 1000, 10_000), _stored),
    Axis("explainers", "explainers of each kind (ARF of 10, Agrawal)", (1, 2, 4, 8), _explainers),
)

MOST_ROWS = 40_000
"""Rows that are evaluated for a kind, in all observations of a point: with more rows there are fewer observations."""


WIDE = 2000
"""From so many features on ours is measured alone, on fewer observations: each row of the others takes milliseconds."""
_WIDE_LEARNED, _WIDE_SETTLED = 600, 1200


def plan_of(kinds: Sequence[Kind], d: int, plan: Plan) -> Plan:
    """Fewer observations where each has many rows, but eight at least; ours alone where features are very many."""
    most = max(kind.rows(d) for kind in kinds)
    n = max(min(plan.observations, MOST_ROWS // most), min(plan.observations, 8))
    plan = replace(plan, observations=n, block=max(1, min(plan.block, n // 8)))
    if d < WIDE:
        return plan
    learned, settled = min(plan.learned, _WIDE_LEARNED), min(plan.settled, _WIDE_SETTLED)
    return replace(plan, columns=(OURS,), checked=0, learned=learned, settled=settled)


def point(axis: Axis, size: int, plan: Plan) -> dict[str, Any]:
    """The results of `measure` at one size, and the `size`."""
    subject, kinds = axis.case(size)
    d = len(next(subject.stream())[0])
    return {"size": size, **measure(subject, kinds, plan_of(kinds, d, plan))}


def slope(points: Sequence[dict[str, Any]], kind: str, column: str, *, largest: float = float("inf")) -> float | None:
    """By how much the ratio grows with each unit of the size, along the line of least squares; None without figures."""
    found = [
        (point["size"], point["kinds"][kind][column]["median"])
        for point in points
        if point["size"] <= largest and column in point["kinds"].get(kind, {})
    ]
    if len(found) < 2:
        return None
    sizes, ratios = zip(*found, strict=True)
    return float(np.polyfit(sizes, ratios, 1)[0])


def slopes(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Per feature at one draw: over the paper's range and over all, ours and iXAI's."""
    return {
        column: {
            "paper's range": slope(points, ONE.name, column, largest=PAPER_FEATURES),
            "all": slope(points, ONE.name, column),
        }
        for column in (OURS, REFERENCE)
    }
