"""Orders features by how much they may have to do with a shift of the loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...losses.losses import Loss
from ...ranking import SIGNIFICANCE, holm, p_value
from ...typing import Features, Groups, ModelFunction
from ..events import Suspect
from .importance import bounded, importance, losses, repaired
from .moved import moved
from .rows import Row

_FAINT = 0.01
"""Weight of what is not significant: it orders the features that are below."""
_NAMED = 0.05
"""Share of the largest score that a feature must have to be named."""


def suspects(
    function: ModelFunction,
    loss: Loss,
    before: Sequence[Row],
    after: Sequence[Row],
    *,
    groups: Groups | None = None,
    missing: str | Mapping[Any, Any] = "absent",
    seed: int = 0,
    n_permutations: int | None = None,
) -> tuple[Suspect, ...]:
    """Return all features, the most suspicious first, by observations of before and after a shift of the loss.

    With phi the permutation importance (iPFI Definition 2), m how far the distribution of the feature's values has
    moved beyond chance (`moved`), and r by how much the loss after falls where a feature that has moved is drawn from
    before, the score is, in the unit of the loss,

        |phi_after - phi_before| [significant] + m max(0, phi_before) + r [r > 0, significant]
            + .01 (|phi_after - phi_before| + m max(0, phi_before)).

    The first term sees a feature whose values no longer belong to their observations. It is blind to noise that is
    added to a feature: the importance stays. The second one sees that, and does not see features that move where the
    model does not care. The third one tells a feature of values far out (another unit) from those whose importance
    goes because no other feature counts any more. A feature that the model does not read has importances and r 0
    exactly, and the score 0. No part of this says that a feature is the cause: one that goes with the damaged one may
    be named beside it.

    Parameters
    ----------
    function
        The model, from `model_function` with the output that the loss reads.
    loss
        Of one prediction, see `naming_loss`. Where it has no largest value, one observation counts at most 200 times
        the median loss, of before or after, whichever is larger.
    before, after
        Observations `(x, y)` of the clean reference and of after the onset. Those for which the model has no prediction
        of finite loss count for `moved` alone.
    groups
        Features that are permuted together and named as one; `moved` is the largest of theirs.
    missing
        How the model is asked about missing values: see `IncrementalExplainer`. For `moved` they are a value.
    seed, n_permutations
        Of the permutations; their number is in the range >= 1. None is 3 where the model predicts many rows at once,
        else 1, with which features are named somewhat less often. Cost: (2 + d (n_permutations + 1)) evaluations at
        most for each observation, d features.

    Returns
    -------
    tuple[Suspect, ...]
        `p_value` is of the change of the importance (two-sided normal test, Holm). `significant`: that is at most .05,
        or the feature has moved and was important before, or is better drawn from before (each one-sided, Holm) at
        that level; and the score is at least .05 of the largest one. Without 20 observations that the model can be
        asked about the importances of that side are NaN, and without those of before features are ordered by `moved`.
    """
    players = _players([x for x, _ in (*before, *after)], groups or {})
    if n_permutations is None:
        n_permutations = 3 if hasattr(function, "many") else 1
    rng = np.random.default_rng(seed)
    loss = bounded(loss, *(losses(function, loss, rows, missing) for rows in (before, after)))
    phi, error = importance(function, loss, before, players, missing, n_permutations, rng)
    phi_after, error_after = importance(function, loss, after, players, missing, n_permutations, rng)
    level = SIGNIFICANCE / max(1, sum(map(len, players.values())))
    distances = {
        name: max((_moved(before, after, feature, level) for feature in features), default=0.0)
        for name, features in players.items()
    }
    delta = {name: phi_after[name] - phi[name] for name in players}
    errors = {name: math.hypot(error[name], error_after[name]) for name in players}
    p_values = holm({name: p_value(delta[name], errors[name]) for name in players})
    worth = holm({name: _one_sided(phi[name], error[name]) for name in players})
    gains = repaired(function, loss, before, after, {n: f for n, f in players.items() if distances[n]}, missing, rng)
    better = holm({name: _one_sided(*gain) for name, gain in gains.items()})
    scores = {}
    for name in players:
        # What is not known adds nothing: damage may be such that the model cannot be asked at all.
        size = abs(delta[name]) if delta[name] == delta[name] else 0.0
        exposed = distances[name] * max(0.0, phi[name]) if phi[name] == phi[name] else 0.0
        scores[name] = size * (p_values[name] <= SIGNIFICANCE) + exposed + _FAINT * (size + exposed)
        if better.get(name, 1.0) <= SIGNIFICANCE:
            scores[name] += gains[name][0]
    least = _NAMED * max(scores.values(), default=0.0)
    found = [
        Suspect(
            name=name,
            score=scores[name],
            importance_before=phi[name],
            importance_after=phi_after[name],
            delta=delta[name],
            delta_std_error=errors[name],
            p_value=p_values[name],
            moved=distances[name],
            significant=scores[name] >= least
            and scores[name] > 0.0
            and min(p_values[name], better.get(name, 1.0), worth[name] if distances[name] else 1.0) <= SIGNIFICANCE,
        )
        for name in players
    ]
    return tuple(sorted(found, key=lambda one: (-one.score, -one.moved, str(one.name))))


def _one_sided(value: float, std_error: float) -> float:
    return p_value(value, std_error) / 2.0 if value > 0.0 else 1.0


def _players(xs: Sequence[Features], groups: Groups) -> dict[Any, tuple[Any, ...]]:
    """Return what is permuted at a time: features and groups in the order in which the first of each comes."""
    of_group = {feature: name for name, features in groups.items() for feature in features}
    players: dict[Any, tuple[Any, ...]] = {}
    for feature in dict.fromkeys(feature for x in xs for feature in x):
        name = of_group.get(feature, feature)
        players[name] = tuple(groups[name]) if feature in of_group else (feature,)
    return players


def _moved(before: Sequence[Row], after: Sequence[Row], feature: Any, level: float) -> float:
    return moved([x.get(feature) for x, _ in before], [x.get(feature) for x, _ in after], level)
