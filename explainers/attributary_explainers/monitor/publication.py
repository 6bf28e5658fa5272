"""Decides when importances are published; compares with a reference.

Observation counts and importances alone decide, never a clock: a replay publishes the same events.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from ..ranking import ndcg, shares_of, shift, shift_of
from ..snapshots import attributes, set_attributes
from .settings import PublishRule, Settings

_STATE = ("_published", "_reference", "_reference_at", "_take_reference_at", "_updates", "published_stale")


class Explained(Protocol):
    """Object of a publication: an explainer with its importance."""

    @property
    def n_observations(self) -> int:
        """Observations that the importance is made of."""

    @property
    def importance(self) -> dict[Any, float]:
        """Importance per feature."""


class Publication:
    """Decides when the importance of an explainer of a model is published.

    The reference that `shift` and `ndcg` compare with is taken after `reference_after` observations, and again
    so many after each model change: until then it would compare with importances of an older model.

    Parameters
    ----------
    at_intervals_only
        Whether no event is due on material change: for a shard, whose importance is not the model's.
    has_shares
        Whether shares of importance say something. What features add to an anomaly score is about 0 as long as nothing
        is strange: there is no reference then, and no material change either.
    """

    def __init__(self, config: PublishRule, *, at_intervals_only: bool = False, has_shares: bool = True) -> None:
        self._config = config
        self._at_intervals_only = at_intervals_only or not has_shares
        self._has_shares = has_shares
        self._published: dict[str, float] | None = None
        self._published_shares: tuple[dict[str, float] | None, list[str], list[float]] = None, [], []
        self._reference: dict[str, float] | None = None
        self._reference_at: int | None = None
        self._take_reference_at: float = config.reference_after
        self._updates: int | None = None
        self.published_stale = False
        """Whether no figure of the last event had been updated since the one before."""

    def trigger(self, explainer: Explained, observation: int) -> str | None:
        """Decide whether an event is due; note its published importance.

        Returns
        -------
        Why it is due, `interval` or `material_change`; None where it is not.
        """
        due = self._trigger(explainer, observation)
        if self._has_shares and self._take_reference_at <= observation and explainer.n_observations:
            self._reference, self._reference_at = explainer.importance, observation
            self._take_reference_at = math.inf
        if due is not None:
            self._published = explainer.importance
            self.published_stale = explainer.n_observations == self._updates
            self._updates = explainer.n_observations
        return due

    def needs_importance(self, observation: int) -> bool:
        """Return whether `trigger` reads the importance, if due by interval only."""
        return observation % self._config.every == 0 or self._take_reference_at <= observation

    def _trigger(self, explainer: Explained, observation: int) -> str | None:
        if explainer.n_observations == 0:
            return None
        if observation % self._config.every == 0:
            return "interval"
        if self._at_intervals_only or explainer.n_observations < self._config.min_observations:
            return None
        if self._published is None or self._moved(self._published, explainer.importance) > self._config.material_shift:
            return "material_change"
        return None

    def _moved(self, published: dict[str, float], importance: dict[str, float]) -> float:
        """Return the shift since the last event, whose shares are made once."""
        of, names, shares = self._published_shares
        if of is not published:
            names, shares = list(published), shares_of(published.values())
            self._published_shares = published, names, shares
        if list(importance) != names:
            return shift(published, importance)
        return shift_of(shares, shares_of(importance.values()))

    @property
    def has_published(self) -> bool:
        """Whether there has been an event."""
        return self._published is not None

    def is_stale(self, explainer: Explained) -> bool:
        """Return whether the last event was stale, with no update since."""
        return self.published_stale and explainer.n_observations == self._updates

    def begin_version(self, observation: int) -> None:
        """Go on with the importances of another version, which begin afresh."""
        self._updates, self.published_stale = None, False
        self.restart_reference(observation)

    def restart_reference(self, observation: int) -> None:
        """Take a new reference once the changed model has settled."""
        self._take_reference_at = observation + self._config.reference_after

    @property
    def reference_id(self) -> str | None:
        """The observation that the reference was taken at, as text."""
        return None if self._reference_at is None else str(self._reference_at)

    def movement(self, importance: dict[str, float]) -> tuple[float | None, float | None]:
        """Return shift and NDCG against the reference, or None."""
        if self._reference is None:
            return None, None
        return shift(self._reference, importance), ndcg(self._reference, importance)

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return attributes(self, _STATE)

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        set_attributes(self, snapshot)


def new_publications(settings: Settings) -> dict[str, Publication]:
    """Make the `Publication` of each explainer of a model, by name."""
    has_shares = settings.explained_loss != "neg_score"
    return {
        name: Publication(settings.publish, at_intervals_only=settings.sharded, has_shares=has_shares)
        for name in settings.explainers
    }
