"""Watches a model's loss for lasting shifts."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from attributary_topics.errors import without_text

from ..loss_shift.events import LossEvent
from ..loss_shift.guard import LossGuard
from ..loss_shift.monitor import LossMonitor

logger = logging.getLogger(__name__)


class LossWatch:
    """Feeds a `LossMonitor`.

    The predictions are those of the present version. The model is named in the log.
    """

    def __init__(self, model_id: str, monitor: LossMonitor, holdout: str | None = None) -> None:
        self.model_id = model_id
        self.monitor = monitor
        self.failure: str | None = None
        """Why a shift could not be explained, the last time that this happened."""
        self.parameters = monitor.parameters | ({} if holdout is None else {"holdout": holdout})
        """What the monitor was made with; later it may know more, of the first predictions."""

    def update(self, x: dict[str, Any] | None, y: Any, y_pred: Any) -> list[LossEvent]:
        """Take in an observation and its prediction; return the loss events.

        The prediction was made before the observation was learnt. If the model raises on the rows that explain a shift,
        the log says so, and the observation goes on: it has been predicted and learnt.
        """
        try:
            return self.monitor.update(x, y, y_pred)
        except Exception as error:  # noqa: BLE001 - a model is the user's code: whatever it raises is about stored rows
            failure = without_text(error)
            if failure != self.failure:
                logger.warning("model %s: a shift of its loss is not explained: %s", self.model_id, failure)
            self.failure = failure
            return []

    @property
    def is_new(self) -> bool:
        """Whether it has seen neither an observation nor a hold-out."""
        return not self.monitor.n_observations and not self.monitor.n_reference

    def began(self, n_observations: int) -> int:
        """Return how many observations of the model precede the monitor's."""
        return n_observations - self.monitor.n_observations

    def guard(self, n_observations: int) -> LossGuard:
        """Return the loss's guard, by the model's count of observations."""
        guard = self.monitor.guard
        return guard if guard.since is None else replace(guard, since=self.began(n_observations) + guard.since)

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {**vars(self), "monitor": self.monitor.snapshot()}

    def is_like(self, snapshot: dict[str, Any]) -> bool:
        """Return whether the snapshot's watch has the same parameters."""
        return bool(snapshot["parameters"] == self.parameters)

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot of a watch with equal parameters."""
        stored = dict(snapshot)
        self.monitor.restore(stored.pop("monitor"))
        vars(self).update(stored)
