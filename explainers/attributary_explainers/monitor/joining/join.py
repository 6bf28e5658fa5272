"""Says how the observations of a model wait for what belongs to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Join:
    """How the observations of a model wait for their labels.

    Attributes
    ----------
    ttl_ms
        How long one waits for the other, in time of the stream; None where labels come in the observation.
    explains_unlabelled
        Whether an observation that has no label in time still counts where none is needed.
    pair_ms
        How long a request waits for its response; None where observations come whole.
    max_ahead_ms
        How far a record's time may be ahead of Kafka's timestamp: further, and all that waits would expire.
    """

    ttl_ms: int | None = None
    max_waiting: int = 10_000
    explains_unlabelled: bool = False
    pair_ms: int | None = None
    max_ahead_ms: int = 3_600_000
