"""Takes a prediction into the smoothed losses of a model, unless no mean would take it."""

from __future__ import annotations

import math
from typing import Any

from ..validation import LARGEST
from ..wording import show_number
from .quality import tell_silent
from .watched import Watched


class AbsurdPredictionError(Exception):
    """Says that a model's prediction is no finite number, or one whose loss is useless: the observation is not learnt.

    Parameters
    ----------
    prediction
        What the model predicted.
    loss
        Its loss; None where the prediction itself is not finite.
    """

    def __init__(self, prediction: Any, loss: float | None = None) -> None:
        self.prediction, self.loss = prediction, loss
        self.found = f"{prediction!r}"[:80] + (f", whose loss is {show_number(loss)}" if loss is not None else "")
        super().__init__(f"the model predicts {self.found}")


def is_absurd(loss: float) -> bool:
    """Return whether a loss is NaN, infinite or beyond 1e150, which no mean takes."""
    return not (math.isfinite(loss) and abs(loss) < LARGEST)


def score(state: Watched, y: Any, y_pred: Any) -> None:
    """Take a prediction into the means of the losses, and into the quality.

    Raises
    ------
    AbsurdPredictionError
        No mean would take its loss: the losses are as they were.
    """
    loss = state.loss(y, y_pred)
    if is_absurd(loss):
        raise AbsurdPredictionError(y_pred, loss)
    if state.loss.is_score:  # a mean score is no better and no worse than another one: nothing to compare it with
        state.model_loss.update(loss)
    else:
        marginal = state.marginal
        before = marginal.mark()
        baseline = math.nan
        try:
            baseline = state.loss(y, marginal.update(y_pred))
        finally:
            # An infinite one, and the prediction behind it, would stay in the means for ever.
            if not math.isfinite(baseline):
                marginal.go_back(before)
        if not math.isfinite(baseline):
            return
        state.model_loss.update(loss)
        state.baseline_loss.update(baseline)
    quality = state.quality
    if quality is not None:
        quality.update(y, y_pred)
        if quality.n_observations == quality.reference_ends:
            tell_silent(quality, state.model_id, state.settings)
