"""Asks a model what features are worth on observations of which it may not be able to take some."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...batch.contributions import Contributions, pfi_contributions
from ...batch.tables import DataTable
from ...errors import ModelError
from ...imputers.rows import replace as swap
from ...losses.losses import Loss, as_loss
from ...missing import read_missing
from ...predictions import is_usable, predict_rows
from ...typing import Array, Features, Importance, ModelFunction, Output, Prediction
from ...validation import LARGEST
from ..signal.calibration import CLIP
from .rows import Row

LEAST_ROWS = 20
"""With fewer observations no importance is known."""
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
        return as_loss("cross_entropy", epsilon=CLIP)
    return as_loss("zero_one" if output == "label" else "squared")


def losses(
    function: ModelFunction, loss: Loss, rows: Sequence[Row], missing: str | Mapping[Any, Any] = "absent"
) -> Array:
    """Return the loss of the model on each observation, NaN where it has no prediction of finite loss."""
    return _Table(function, loss, rows, {}, missing).own_losses


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


def bounded(loss: Loss, *sides: Array) -> Loss:
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


def importance(
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


def repaired(
    function: ModelFunction,
    loss: Loss,
    before: Sequence[Row],
    after: Sequence[Row],
    players: Mapping[Any, Sequence[Any]],
    missing: str | Mapping[Any, Any],
    rng: np.random.Generator,
) -> dict[Any, tuple[float, float]]:
    """Return by how much the loss after falls where a player's values come from before, with the standard error.

    Nothing where there are too few observations.
    """
    if min(len(before), len(after)) < LEAST_ROWS:
        return {}
    table, found = _Table(function, loss, after, players, missing), {}
    base = table.own_losses
    least = _NOTHING * np.abs(np.nan_to_num(base, nan=0.0)).mean()
    for name, features in players.items():
        drawn = rng.integers(len(before), size=len(after)).tolist()
        rows = [swap(x, features, before[i][0]) for x, i in zip(table.xs, drawn, strict=True)]
        gain = np.nan_to_num(base - table.losses(table.predictions(rows)), nan=0.0)
        gain[np.abs(gain) <= least] = 0.0
        found[name] = float(gain.mean()), float(gain.std(ddof=1)) / math.sqrt(len(gain))
    return found


def _without_nothing(found: Contributions) -> Contributions:
    """Return contributions without what rounding leaves of none, and 0 where a permuted row has no prediction."""
    assert found.parts is not None
    parts = np.nan_to_num(found.parts, nan=0.0)
    least = _NOTHING * np.abs(found.losses).mean()  # two sums of the same in another order differ by that
    parts[np.abs(parts) <= least] = 0.0
    return replace(found, parts=parts, own=parts.mean(axis=2))
