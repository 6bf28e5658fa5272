"""Defines what the topic of statuses has of each model: how it is doing.

It follows the clock, and not the observations alone: the same observations do not give the same records.
"""

from __future__ import annotations

from dataclasses import dataclass

from .absent import absent

STATES = {
    "learning": "no importance of the model has been published yet",
    "explained": "its importances are published, and nothing is open",
    "changed": "an alarm, or a shift of importance or loss, has been told and is still open",
    "refused": "its stored state is damaged: its observations become dead letters",
}
"""How a model can be doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """Says how a model is doing, as of a moment after its last checkpoint.

    Attributes
    ----------
    state
        `learning`: no importance has been published yet; `explained`; `changed`: an alarm or a shift has been told and
        is open; `refused`: its stored state is damaged, and its observations become dead letters.
    model_version
        The version that takes observations; null of a model that is refused.
    n_observations
        Observations that the model has been given; null of a model that is refused.
    n_refused
        Observations on which it failed, or that were kept from it for what is known of earlier ones; null of a model
        that is refused.
    observations_per_second
        Since the status before; null in the first one of a worker.
    event_time
        Kafka's timestamp of its last observation, RFC 3339 in UTC; null where there is none.
    partition
        Partition of its observations. Of a sharded model each shard tells of itself, under the same key.
    n_waiting
        Observations that wait for their label; absent where labels come with their observations.
    n_expired
        Observations whose label has not come in time; absent where labels come with their observations.
    """

    model_id: str
    state: str
    model_version: str | None
    n_observations: int | None
    n_refused: int | None
    observations_per_second: float | None
    event_time: str | None
    partition: int
    n_waiting: int | None = absent()
    n_expired: int | None = absent()
