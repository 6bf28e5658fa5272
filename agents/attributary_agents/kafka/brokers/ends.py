"""Ends of topics, and since when they are known.

A lag is worth no more than the end it is computed from.
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

from .watch import BrokerWatch

logger = logging.getLogger(__name__)

ASK_AFTER_S = 10.0
"""Age of an end from which on it is asked for. While records are fetched, each answer tells it."""


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
        """Whether an open transaction holds up the records that are left.

        All that can be read has been read, and there is more.
        """
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
        consumer = getattr(getattr(self._app.consumer, "_thread", None), "_consumer", None)
        subscription = None if consumer is None else consumer._subscription.subscription
        assignment = None if subscription is None else subscription.assignment
        # The client, in its own thread, may have lost the partition, and we do not know it yet.
        if assignment is None or tp not in assignment.tps:
            return None
        state = assignment.state_value(tp)
        if state.highwater is None or state.timestamp is None:
            return None
        stable = None if state.lso is None or state.lso < 0 else state.lso  # -1 without transactions
        position = state.position if state.has_valid_position else None
        return TopicEnd(state.highwater, self._seen_at(tp, state.timestamp), stable, position)

    def _seen_at(self, tp: TP, polled: int) -> float:
        # The client notes milliseconds since the epoch, by a clock that may be set: they are read when they are new.
        if self._polls.get(tp, (None,))[0] != polled:
            self._polls[tp] = (polled, self._clock() - max(time.time() - polled / 1000, 0.0))
        return self._polls[tp][1]

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
