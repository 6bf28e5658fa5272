"""Warnings of open transactions that hold partitions up.

Readers of committed records wait until the transaction has ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from .brokers.ends import TopicEnd

logger = logging.getLogger(__name__)

SAID_AFTER_S = 15.0
"""A transaction that is open for so long is told; those of a stream that writes in transactions end within seconds."""

EVERY_S = 60.0
"""Seconds between two lines about one partition."""


class OpenTransaction:
    """Watch over a partition that an open transaction may hold up.

    For how long it has done so is logged once a minute.

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

    def see(self, found: TopicEnd | None) -> float:
        """Return the seconds for which the partition has been held up.

        They are counted at the same offset; 0 where nothing holds it up.
        """
        now = self._clock()
        if found is None or found.stable is None or not found.is_held:
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
                found.offset - found.stable,
                found.offset - 1,
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
