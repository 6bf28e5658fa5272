"""Status of a model on the topic of statuses: how it is doing.

It follows the clock, and not the observations alone: the same observations do not give the same records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from .codec import Values, absent

STATES = {
    "learning": "no importance of the model has been published yet",
    "explained": "its importances are published, and nothing is open",
    "changed": "an incident is open",
    "refused": "its stored state is damaged: its observations become dead letters",
}
"""How a model can be doing."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """Wait of a model's guard: the counted thing, its count and its goal."""

    name: str
    n: int
    needed: int


@dataclass(frozen=True, slots=True)
class Reach:
    """Smallest harm that is seen.

    A rise of the mean loss, before to after, shows within `n` observations.

    The unit is `share`, of predictions that are wrong or, of a rare class, of its labels; or `target`, of the mean
    absolute error.
    """

    before: float | None
    after: float | None
    n: int
    unit: str


@dataclass(frozen=True, slots=True)
class ModelGuard:
    """Guard of a model: when shifts of its loss can be told, and how small.

    Attributes
    ----------
    since
        Observation of the model since which they can; null until then.
    waits_for
        What that waits for; null where they can be told.
    reach
        The least rise of the loss that would be seen now; null where that is not known.
    sentence
        All of it in English.
    """

    since: int | None
    waits_for: Awaited | None
    reach: Reach | None
    sentence: str


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
    guard
        From when on shifts of its loss can be told; absent where its loss is not watched.
    """

    model_id: str
    state: Annotated[str, Values(STATES)]
    model_version: str | None
    n_observations: int | None
    n_refused: int | None
    observations_per_second: float | None
    event_time: str | None
    partition: int
    n_waiting: int | None = absent()
    n_expired: int | None = absent()
    guard: ModelGuard | None = absent()
