"""Orders features by how much they may have to do with a shift of the loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..batch.contributions import Contributions, pfi_contributions
from ..batch.tables import DataTable
from ..errors import ModelError
from ..imputers.rows import replace as swap
from ..losses.losses import Loss, as_loss
from ..missing import read_missing
from ..predictions import is_usable, predict_rows
from ..ranking import SIGNIFICANCE, holm, p_value
from ..typing import Array, Features, Groups, Importance, ModelFunction, Output, Prediction
from ..validation import LARGEST
from .events import Suspect
from .moved import moved
from .rows import Row

LEAST_ROWS = 20
"""With fewer observations on one side no importance is known there."""
_FAINT = 0.01
"""Weight of what is not significant: it orders the features that are below."""
_NAMED = 0.05
"""Share of the largest score that a feature must have to be named."""
_NOTHING = 1e-12
_MOST = 200.0
"""So many times the median loss, of before or after, is the most that one observation counts.

That is for losses without a largest value. Of normal errors, under the squared loss, it is an error of ten standard
deviations.
"""


def naming_loss(output: Output) -> Loss:
    """Return the loss by which features are named best: that of the kind of prediction a model makes.

    For numbers it is the squared one, whatever the route watches. Under the absolute loss the importance of every
    feature falls where errors grow for any reason; under the squared one that of the others stays.
    """
    if output == "probabilities":
        return as_loss("cross_entropy", epsilon=1e-3)
    return as_loss("zero_one" if output == "label" else "squared")


def suspects(
    function: ModelFunction,
    loss: Loss,
    before: Sequence[Row],
    after: Sequence[Row],
    *,
    groups: Groups | None = None,
    missing: str | Mapping[Any, Any] = "value",
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
        that level; and the score is at least .05 of the largest one. Without 20 observations on both sides that the
        model can be asked about, importances are NaN, and features are ordered by `moved`.
    """
    players = _players([x for x, _ in (*before, *after)], groups or {})
    if n_permutations is None:
        n_permutations = 3 if hasattr(function, "many") else 1
    rng = np.random.default_rng(seed)
    loss = _bounded(loss, *(losses(function, loss, rows, missing) for rows in (before, after)))
    phi, error = _importance(function, loss, before, players, missing, n_permutations, rng)
    phi_after, error_after = _importance(function, loss, after, players, missing, n_permutations, rng)
    level = SIGNIFICANCE / max(1, sum(map(len, players.values())))
    distances = {
        name: max((_moved(before, after, feature, level) for feature in features), default=0.0)
        for name, features in players.items()
    }
    delta = {name: phi_after[name] - phi[name] for name in players}
    errors = {name: math.hypot(error[name], error_after[name]) for name in players}
    p_values = holm({name: p_value(delta[name], errors[name]) for name in players})
    worth = holm({name: _one_sided(phi[name], error[name]) for name in players})
    gains = _repaired(function, loss, before, after, {n: f for n, f in players.items() if distances[n]}, missing, rng)
    better = holm({name: _one_sided(*gain) for name, gain in gains.items()})
    scores = {}
    for name in players:
        if delta[name] != delta[name]:
            scores[name] = 0.0
            continue
        size, exposed = abs(delta[name]), distances[name] * max(0.0, phi[name])
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


def losses(
    function: ModelFunction, loss: Loss, rows: Sequence[Row], missing: str | Mapping[Any, Any] = "value"
) -> Array:
    """Return the loss of the model on each observation, NaN where it has no prediction of finite loss."""
    table = _Table(function, loss, rows, {}, missing)
    return table.losses(table.predictions(table.xs))


class _Table(DataTable):
    """Observations of which the model may have no prediction for some, with the values that go together."""

    def __init__(
        self,
        function: ModelFunction,
        loss: Loss,
        rows: Sequence[Row],
        players: Mapping[Any, Sequence[Any]],
        missing: str | Mapping[Any, Any],
    ) -> None:
        self.function, self.loss, self.players, self.missing = function, loss, dict(players), missing
        self.xs, self.ys = [x for x, _ in rows], [y for _, y in rows]

    def predictions(self, rows: Sequence[Features]) -> list[Prediction]:
        """Return the predictions, None where there is none and where an observation is left out."""
        if self.missing == "value":
            return _predicted(self.function, rows)
        read = [read_missing(row, self.missing) for row in rows]
        kept = iter(_predicted(self.function, [row for row in read if row is not None]))
        return [None if row is None else next(kept) for row in read]

    def loss_of(self, i: int, prediction: Prediction) -> float:
        """Return the loss of a prediction for observation `i`, NaN where it is not finite."""
        y = self.ys[i]
        if y is None or not is_usable(prediction):
            return math.nan
        try:
            found = self.loss(y, prediction)
        except ModelError:  # a target that is no number
            return math.nan
        return found if abs(found) < LARGEST else math.nan


def _bounded(loss: Loss, *sides: Array) -> Loss:
    """Return the loss with a bound where it has none, by its values before and after."""
    known = [of[np.isfinite(of)] for of in sides]
    most = _MOST * max((float(np.median(of)) for of in known if len(of)), default=0.0)
    if loss.largest is not None or not most > 0.0:
        return loss
    return replace(loss, function=lambda y, prediction: min(loss.function(y, prediction), most))


def _predicted(function: ModelFunction, rows: Sequence[Features]) -> list[Prediction]:
    try:
        return predict_rows(function, rows)
    except Exception:  # noqa: BLE001 - a damaged row is what this is about: it must not cost all the others
        if len(rows) == 1:
            return [None]
        half = len(rows) // 2
        return _predicted(function, rows[:half]) + _predicted(function, rows[half:])


def _importance(
    function: ModelFunction,
    loss: Loss,
    rows: Sequence[Row],
    players: Mapping[Any, Sequence[Any]],
    missing: str | Mapping[Any, Any],
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[Importance, Importance]:
    """Return permutation importances and their standard errors, NaN where there are too few observations."""
    base = losses(function, loss, rows, missing)
    usable = [row for row, value in zip(rows, base.tolist(), strict=True) if value == value]
    if len(usable) < LEAST_ROWS:
        nothing = dict.fromkeys(players, math.nan)
        return nothing, nothing
    (found,) = pfi_contributions([_Table(function, loss, usable, players, missing)], n_permutations, rng)
    cleaned = _without_nothing(found)
    return cleaned.importance, cleaned.std_error


def _repaired(
    function: ModelFunction,
    loss: Loss,
    before: Sequence[Row],
    after: Sequence[Row],
    players: Mapping[Any, Sequence[Any]],
    missing: str | Mapping[Any, Any],
    rng: np.random.Generator,
) -> dict[Any, tuple[float, float]]:
    """Return by how much the loss after falls where a player's values come from before, with the standard error."""
    if not before or len(after) < 2:
        return {}
    table, found = _Table(function, loss, after, players, missing), {}
    base = table.losses(table.predictions(table.xs))
    least = _NOTHING * np.abs(np.nan_to_num(base, nan=0.0)).mean()
    for name, features in players.items():
        drawn = rng.integers(len(before), size=len(after)).tolist()
        rows = [swap(x, features, before[i][0]) for x, i in zip(table.xs, drawn, strict=True)]
        gain = np.nan_to_num(base - table.losses(table.predictions(rows)), nan=0.0)
        gain[np.abs(gain) <= least] = 0.0
        found[name] = float(gain.mean()), float(gain.std(ddof=1)) / math.sqrt(len(gain))
    return found


def _one_sided(value: float, std_error: float) -> float:
    return p_value(value, std_error) / 2.0 if value > 0.0 else 1.0


def _without_nothing(found: Contributions) -> Contributions:
    """Return contributions without what rounding leaves of none, and 0 where a permuted row has no prediction."""
    assert found.parts is not None
    parts = np.nan_to_num(found.parts, nan=0.0)
    least = _NOTHING * np.abs(found.losses).mean()  # two sums of the same in another order differ by that
    parts[np.abs(parts) <= least] = 0.0
    return replace(found, parts=parts, own=parts.mean(axis=2))


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
