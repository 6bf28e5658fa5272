"""Knows where topics end, and since when that is known: a lag is worth no more than the end it is computed from."""

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
    """Where a partition of a topic ends.

    Attributes
    ----------
    offset
        Offset that the next record will have.
    seen_at
        When a broker said so, by `time.monotonic`.
    """

    offset: int
    seen_at: float


class TopicEnds:
    """Knows the ends of the partitions that a Faust app reads; of those that are not fetched for a time it asks.

    A partition is not fetched while what has been fetched of it waits to be handled: the slower the model, the longer.

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
        """Return the newest that is known of a partition that is read; None where nothing is."""
        fetched, asked = self._fetched(tp), self._asked.get(tp)
        known = max((end for end in (fetched, asked) if end), key=lambda end: end.seen_at, default=None)
        if known is None or self._clock() - known.seen_at > ASK_AFTER_S:
            self._wanted.add(tp)
            if self._brokers.away_s is None and (self._asking is None or self._asking.done()):
                self._asking = asyncio.ensure_future(self._ask())
        return known

    def _fetched(self, tp: TP) -> TopicEnd | None:
        consumer = self._app.consumer
        try:
            offset = consumer.highwater(tp)
            if offset is None:
                return None
            polled = consumer._thread._ensure_consumer().last_poll_timestamp(tp)
        except AssertionError:  # the client, in its own thread, has lost the partition, and we do not know it yet
            return None
        # The client notes milliseconds since the epoch, by a clock that may be set: they are read when they are new.
        if self._polls.get(tp, (None,))[0] != polled:
            self._polls[tp] = (polled, self._clock() - max(time.time() - polled / 1000, 0.0))
        return TopicEnd(offset, self._polls[tp][1])

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
