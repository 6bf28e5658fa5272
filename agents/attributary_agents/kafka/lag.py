"""Ends of partitions for their lag, and open transactions before them.

A lag is worth no more than the end it is computed from. Readers of committed records wait until a transaction ends.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

import faust
from aiokafka.errors import KafkaError
from faust.types import TP

from .brokers import SAY_EVERY_S, BrokerWatch
from .upstream.faust_consumer import fetch_state

logger = logging.getLogger(__name__)

ASK_AFTER_S = 10.0
"""Age of an end from which on it is asked for. While records are fetched, each answer tells it."""

SAID_AFTER_S = 15.0
"""A transaction that is open for so long is told; those of a stream that writes in transactions end within seconds."""


class TopicEnd(NamedTuple):
    """End of a partition, how far it can be read, and how far it is read.

    Attributes
    ----------
    offset
        Offset that the next record will have: the high watermark.
    seen_at
        When a broker said so, by `time.monotonic`.
    stable
        The last stable offset, where the first open transaction begins, or `offset`; None where only the end is known.
    position
        Offset that the consumer asks for next; None where only the end is known.
    """

    offset: int
    seen_at: float
    stable: int | None = None
    position: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether an open transaction holds up all that is left to read."""
        if self.stable is None or self.position is None:
            return False
        return self.position >= self.stable and self.stable < self.offset


class TopicEnds:
    """Ends of the partitions that a Faust app reads.

    Brokers are asked for the ends of partitions that are not fetched for a time. A partition is not fetched while what
    has been fetched of it waits to be handled: the slower the model, the longer.

    Parameters
    ----------
    brokers
        Nothing is asked while they are away.
    clock
        Seconds of a clock that never goes back.
    """

    def __init__(self, app: faust.App, brokers: BrokerWatch, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._brokers = brokers
        self._clock = clock
        self._polls: dict[TP, tuple[int, float]] = {}
        """When a partition was last fetched: as the client says it, and by our clock."""
        self._asked: dict[TP, TopicEnd] = {}
        self._wanted: set[TP] = set()
        self._asking: asyncio.Future[None] | None = None

    def end(self, tp: TP) -> TopicEnd | None:
        """Return the newest known end of a partition that is read, or None."""
        fetched, asked = self.fetched(tp), self._asked.get(tp)
        known = max((end for end in (fetched, asked) if end), key=lambda end: end.seen_at, default=None)
        if known is None or self._clock() - known.seen_at > ASK_AFTER_S:
            self._wanted.add(tp)
            if self._brokers.away_s is None and (self._asking is None or self._asking.done()):
                self._asking = asyncio.ensure_future(self._ask())
        return known

    def fetched(self, tp: TP) -> TopicEnd | None:
        """Return a partition's end by the last answer to a fetch, or None."""
        state = fetch_state(self._app.consumer, tp)
        if state is None:
            return None
        # The client notes the time by a clock that may be set: it is read when it is new.
        if self._polls.get(tp, (None,))[0] != state.time_ms:
            self._polls[tp] = state.time_ms, self._clock() - max(time.time() - state.time_ms / 1000, 0.0)
        return TopicEnd(state.end, self._polls[tp][1], state.stable, state.position)

    async def _ask(self) -> None:
        ours = self._app.consumer.assignment()
        wanted, self._wanted = self._wanted & ours, set()
        try:
            ends = await self._app.consumer.highwaters(*wanted) if wanted else {}
        except KafkaError as error:  # asked again at the next look
            logger.debug("cannot tell where %s end: %r", wanted, error)
            return
        except Exception:
            logger.warning("cannot tell where %s end", wanted, exc_info=True)  # no worker ends for a lag
            return
        now = self._clock()
        self._asked = {tp: end for tp, end in self._asked.items() if tp in ours}
        self._asked.update((tp, TopicEnd(offset, now)) for tp, offset in ends.items() if offset is not None)


class OpenTransaction:
    """Watch that logs how long an open transaction holds a partition up.

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

    def see(self, end: TopicEnd | None) -> float:
        """Return the seconds for which the partition has been held up, or 0."""
        now = self._clock()
        if end is None or end.stable is None or not end.is_held:
            self._say_over(now)
            self._since = None
            return 0.0
        if self._since is None or end.stable != self._stable:  # another one holds it up now
            self._say_over(now)
            self._stable, self._since = end.stable, now
        open_s = now - self._since
        if open_s >= SAID_AFTER_S and (self._said_at is None or now - self._said_at >= SAY_EVERY_S):
            self._said_at = now
            logger.warning(
                "%s: a transaction that a producer has not ended holds it up at offset %d since %.0f s, and %d offsets "
                "behind it wait (up to %d). The broker aborts it after the producer's transaction.timeout.ms, 15 "
                "minutes at most. kafka-transactions.sh --bootstrap-server … find-hanging --topic … finds it, and "
                "abort ends it",
                self._place,
                end.stable,
                open_s,
                end.offset - end.stable,
                end.offset - 1,
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
