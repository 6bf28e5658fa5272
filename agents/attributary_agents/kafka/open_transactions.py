"""Tells that an open transaction holds a partition up: readers of committed records wait until it has ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from aiokafka import TopicPartition

logger = logging.getLogger(__name__)

SAID_AFTER_S = 15.0
"""A transaction that is open for so long is told; those of a stream that writes in transactions end within seconds."""

EVERY_S = 60.0
"""Seconds between two lines about one partition."""


class Reach(NamedTuple):
    """How far a partition can be read.

    Attributes
    ----------
    position
        Offset that the consumer asks for next.
    stable
        The last stable offset: where the first open transaction begins, or `end`.
    end
        Offset that the next record will have: the high watermark.
    """

    position: int
    stable: int
    end: int

    @property
    def is_held(self) -> bool:
        """Whether all that can be read has been, and there is more."""
        return self.position >= self.stable and self.stable < self.end


def reach(app: Any, topic: str, partition: int) -> Reach | None:
    """Return how far a partition of a Faust app's consumer can be read; None while that is not known."""
    thread = getattr(app.consumer, "_thread", None)
    consumer = getattr(thread, "_consumer", None)
    assigned = None if consumer is None else consumer._subscription.subscription
    assignment = None if assigned is None else assigned.assignment
    tp = TopicPartition(topic, partition)
    if assignment is None or tp not in assignment.tps:
        return None
    state = assignment.state_value(tp)
    if not state.has_valid_position or state.lso is None or state.highwater is None or state.lso < 0:
        return None
    return Reach(state.position, state.lso, state.highwater)


class OpenTransaction:
    """Follows one partition: for how long a transaction has held it up, said in the log once a minute.

    Parameters
    ----------
    place
        Topic and partition, as the lines name it.
    clock
        Seconds.
    """

    def __init__(self, place: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._place = place
        self._clock = clock
        self._stable = -1
        self._since: float | None = None
        self._said_at: float | None = None

    def see(self, found: Reach | None) -> float:
        """Return the seconds for which the partition has been held up at the same offset; 0 where it is not."""
        now = self._clock()
        if found is None or not found.is_held:
            self._say_over(now)
            self._since = None
            return 0.0
        if self._since is None or found.stable != self._stable:  # another one holds it up now
            self._say_over(now)
            self._stable, self._since = found.stable, now
        open_s = now - self._since
        if open_s >= SAID_AFTER_S and (self._said_at is None or now - self._said_at >= EVERY_S):
            self._said_at = now
            logger.warning(
                "%s: a transaction that a producer has not ended holds it up at offset %d since %.0f s, and %d offsets "
                "behind it wait (up to %d). The broker aborts it after the producer's transaction.timeout.ms, 15 "
                "minutes at most. kafka-transactions.sh --bootstrap-server … find-hanging --topic … finds it, and "
                "abort ends it",
                self._place,
                found.stable,
                open_s,
                found.end - found.stable,
                found.end - 1,
            )
        return open_s

    def _say_over(self, now: float) -> None:
        if self._said_at is not None and self._since is not None:
            logger.warning(
                "%s: the transaction that held it up at offset %d has ended after %.0f s",
                self._place,
                self._stable,
                now - self._since,
            )
        self._said_at = None
