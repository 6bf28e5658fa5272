"""Holds observations waiting for labels and requests for responses."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Self

from .joiner import Joiner

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Join:
    """How the observations of a model wait for their labels.

    One waits for the other for `ttl_ms`, in time of the stream (None: labels come in the observation); an observation
    that has no label in time still counts where none is needed, if `explains_unlabelled`. A request waits for its
    response for `pair_ms` (None: observations come whole). A record's time may be ahead of Kafka's timestamp by
    `max_ahead_ms`: further, and all that waits would expire.
    """

    ttl_ms: int | None = None
    max_waiting: int = 10_000
    explains_unlabelled: bool = False
    pair_ms: int | None = None
    max_ahead_ms: int = 3_600_000


@dataclass
class Late:
    """A model's waiting observations and requests.

    Observations wait for labels. Requests wait for the responses of a model that is served elsewhere. `labels` is None
    where labels come in the observation or never, `pairs` where observations come whole.
    """

    labels: Joiner | None
    pairs: Joiner | None

    @classmethod
    def of(cls, join: Join | None) -> Self | None:
        """Return a model's initial state; None where nothing of it ever waits."""
        if join is None:
            return None
        return cls(
            None if join.ttl_ms is None else Joiner(join.ttl_ms, join.max_waiting),
            None if join.pair_ms is None else Joiner(join.pair_ms, join.max_waiting),
        )

    def forget_predictions(self) -> None:
        """Forget the predictions of a model that starts again."""
        if self.labels is not None:
            self.labels.forget_predictions()

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {name: None if joiner is None else joiner.snapshot() for name, joiner in vars(self).items()}


def restored(begun: Late | None, model_id: str, snapshot: dict[str, Any] | None) -> Late | None:
    """Return `begun` with the snapshot's waiting items; log any losses."""
    for name, known in (snapshot or {}).items():
        joiner = getattr(begun, name, None)
        if known is not None and joiner is not None:
            joiner.restore(known)
        elif known is not None and known["keys"]:
            logger.warning(
                "model %s: %d observations waited, and the configuration has no more %s for them: they are forgotten",
                *(model_id, len(known["keys"]), name),
            )
    return begun
