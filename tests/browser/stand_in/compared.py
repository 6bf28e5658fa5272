"""Answers a comparison of two moments, of one model or of two, from the walks of the stand-in's models."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np

from attributary_agents.serve import answers as wire

from .answers import Answers
from .walks import Walk, number, walk


def compare(answers: Answers, a: str, b: str, explainer: str | None = None) -> wire.Comparison:
    """Compare two sides, each written `ID@now`, `ID@#OBSERVATION`, `ID@MILLISECONDS` or `ID@TIME`."""
    (walk_a, i), (walk_b, j) = (_found(answers, one, explainer) for one in (a, b))
    same = walk_a.spec.loss.name == walk_b.spec.loss.name
    names = [*walk_a.spec.features, *(one for one in walk_b.spec.features if one not in walk_a.spec.features)]
    rows = [_row(name, (walk_a, i), (walk_b, j), same) for name in names]
    rows.sort(key=lambda one: -_moved(one, same))
    note = None if same else (
        f"The losses differ: {walk_a.spec.loss.name.replace('_', '-')} and {walk_b.spec.loss.name.replace('_', '-')}. "
        "Only shares and ranks are compared.")  # fmt: skip
    moved = 0.5 * sum(abs((one.b_share or 0.0) - (one.a_share or 0.0)) for one in rows)
    return wire.Comparison(a=_side(walk_a, i), b=_side(walk_b, j), is_same_loss=same, note=note, shift=number(moved),
                             ndcg=0.93, features=rows)  # fmt: skip


def _found(answers: Answers, written: str, explainer: str | None) -> tuple[Walk, int]:
    model_id, _, at = written.rpartition("@")
    spec = answers.spec(model_id or at)
    name = explainer if explainer in spec.explainers else spec.explainers[0]
    numbers = walk(spec, name, answers.now_ms)
    if not model_id or at == "now":
        return numbers, numbers.n - 1
    if at.startswith("#"):
        place = int(numbers.observation.searchsorted(int(at[1:]), "right")) - 1
    else:
        time_ms = int(at) if at.isdigit() else datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000.0
        place = int(numbers.time_ms.searchsorted(time_ms, "right")) - 1
    return numbers, max(place, 0)


def _row(name: str, a: tuple[Walk, int], b: tuple[Walk, int], same: bool) -> wire.ComparedFeature:
    (a_value, a_half, a_share, a_rank), (b_value, b_half, b_share, b_rank) = (_of(name, *one) for one in (a, b))
    is_known = same and a_value is not None and b_value is not None
    delta = b_value - a_value if is_known and a_value is not None and b_value is not None else None
    half = None if delta is None or a_half is None or b_half is None else math.hypot(a_half, b_half)
    return wire.ComparedFeature(
        feature=name, a=a_value, a_half_width=a_half, b=b_value, b_half_width=b_half, delta=delta,
        delta_half_width=half, a_share=a_share, b_share=b_share, a_rank=a_rank, b_rank=b_rank,
    )  # fmt: skip


def _of(name: str, numbers: Walk, at: int) -> tuple[float | None, float | None, float | None, int | None]:
    if name not in numbers.spec.features:
        return None, None, None, None
    i = numbers.spec.features.index(name)
    return (number(numbers.importance[at, i]), number(numbers.half_width[at, i]), number(numbers.share[at, i]),
            int(numbers.rank[at, i]))  # fmt: skip


def _moved(row: wire.ComparedFeature, same: bool) -> float:
    if same:
        return abs(row.delta) if row.delta is not None else -1.0
    if row.a_share is None or row.b_share is None:
        return -1.0
    return abs(row.b_share - row.a_share)


def _side(numbers: Walk, at: int) -> wire.Side:
    spec = numbers.spec
    loss, baseline = (number(np.asarray(one)[at]) for one in (numbers.model_loss, numbers.baseline_loss))
    return wire.Side(
        model_id=spec.model_id, model_version=spec.version or "", explainer=numbers.explainer,
        removal="interventional" if numbers.explainer == "pfi" else "observational", loss=spec.loss,
        time_ms=int(numbers.time_ms[at]), observation=int(numbers.observation[at]), model_loss=loss,
        baseline_loss=baseline,
    )  # fmt: skip
