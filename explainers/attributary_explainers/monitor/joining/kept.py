"""A prediction that was kept until the label came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..watched import Watched
from .logged import as_output


@dataclass(frozen=True, slots=True)
class KeptPrediction:
    """What was predicted when an observation came whose label came later.

    Attributes
    ----------
    version
        The model's version then.
    n_learnt
        The model's count of observations then; None for a prediction that was logged.
    """

    y_pred: Any
    version: str
    n_learnt: int | None

    def scored(self, state: Watched, y: Any, y_pred: Any) -> Any:
        """Return the prediction whose loss counts, the kept one; None where there is none, or it is of an old version.

        Parameters
        ----------
        y_pred
            The present prediction, which it is where the model has learnt nothing in between.

        Raises
        ------
        InvalidRecordError
            `wrong_prediction`: the logged one cannot be compared with the label.
        """
        if self.n_learnt is None:
            return as_output(self.y_pred, y, state.loss.output)
        if self.version != state.version:
            if state.late is not None and state.late.labels is not None:
                state.late.labels.counts.old_version += 1
            return None
        return y_pred if self.n_learnt == state.n_observations + state.n_failed else self.y_pred
