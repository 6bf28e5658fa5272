"""Handles the observations of one partition that wait, in slices, one partition's after another's.

Within a slice the event loop stands still: it ends after `HANDLE_S`, looked at after each observation. Between two
slices the loop has a turn, in which other partitions, checkpoints, rebalances and signals have theirs. A checkpoint
begins between slices only, so always between two observations.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from faust.types import TP

from ..kafka.fetches import Inbox
from .activity import Step
from .endings import Endings
from .endings.trial import try_observation
from .partition import Partition
from .records import Outgoing, Record, record_from_client
from .shared import Shared
from .storing.checkpointing import Checkpointing
from .storing.delivery import Delivery
from .storing.outbox import MAX_SENT_BYTES, size_of
from .storing.restoring import Restoring
from .storing.steps import Steps

logger = logging.getLogger(__name__)

HANDLE_S = 0.02
"""How long observations are handled without a look at the event loop; one that takes longer is a slice of its own."""


class Observations:
    """Handles what a partition's inbox holds while the partition is ours.

    Parameters
    ----------
    goes_on
        Whether records may be handled: the partition is ours, stays so, and none of its steps has failed.
    """

    def __init__(
        self,
        shared: Shared,
        tp: TP,
        partition: Partition,
        endings: Endings,
        restoring: Restoring,
        storing: Checkpointing,
        delivery: Delivery,
        steps: Steps,
        goes_on: Callable[[], bool],
    ) -> None:
        self._shared = shared
        self._tp = tp
        self._partition = partition
        self._endings = endings
        self._restoring = restoring
        self._storing = storing
        self._delivery = delivery
        self._steps = steps
        self._goes_on = goes_on
        self._inbox: Inbox = shared.intake.open(tp)
        self._has_begun = False

    def take(self, records: Sequence[Any]) -> asyncio.Task[None]:
        """Take records of the client, in their order; return what ends when they are handled, or are not ours."""
        self._inbox.put(records)
        self._shared.slices.note_record()
        return self._shared.under_way.start((self, "handle"), self._handle_all)

    def leave(self) -> None:
        """Forget what waits: the partition's next owner is given it again."""
        self._inbox.clear()

    async def _handle_all(self) -> None:
        while self._inbox:
            await self._storing.wait_where_far()
            if not self._goes_on():
                self.leave()
                return
            async with self._steps:
                await self._handle_next()
                await self._delivery.make_room()
            self._inbox.note_room()
            self._storing.begin_where_due()

    async def _handle_next(self) -> None:
        """Handle a slice, or a single observation where more than a comparison has to come before it."""
        if not (self._inbox and self._goes_on()):
            return  # revoked while we waited
        first = self._inbox.first
        await self._restoring.begin()
        await self._restoring.restore_asked(first.key)
        if not self._goes_on():
            return
        await self._check_offset(first.offset)
        at_most, handle = self._storing.room, self._partition.handle
        if self._endings.concerns(first.offset, self._partition.checkpointed):
            at_most = 1
            if not await self._is_allowed(record_from_client(first)):
                handle = self._partition.refuse
        async with self._shared.turn:
            if self._goes_on():
                self._delivery.send(self._handle_slice(at_most, handle))
            await asyncio.sleep(0)  # the loop has a turn before any other slice

    async def _check_offset(self, offset: int) -> None:
        is_first, self._has_begun = not self._has_begun, True
        partition, gaps = self._partition, self._shared.gaps
        if is_first:
            checkpointed = partition.checkpointed
            logger.info(
                "partition %d: first record at offset %d, checkpoint at %d", partition.number, offset, checkpointed
            )
            partition.begin_at(offset)
            gaps.check_not_recreated(self._tp, partition.checkpointed)
        await gaps.check(partition, offset, is_first=is_first)

    async def _is_allowed(self, record: Record) -> bool:
        """Return whether an observation may be handled; note it first, or try it apart, where workers have ended."""
        if record.offset <= self._partition.offset:
            return True  # delivered again, and not handled

        async def trial() -> None:
            step = Step("trial", self._tp, record.offset, self._shared.known_key(record.key))
            with self._shared.view.activity.doing(step):
                await try_observation(self._partition, record)

        return await self._endings.allows(record.offset, self._partition.checkpointed, trial)

    def _handle_slice(self, at_most: int, handle: Callable[[Record], list[Outgoing]]) -> list[Outgoing]:
        """Handle what waits until the slice's time is over; return what is to be sent. Never waits."""
        inbox, view, clock = self._inbox, self._shared.view, time.monotonic
        known_key, observe = self._shared.known_key, view.observation_times.observe
        outgoing: list[Outgoing] = []
        n_handled, n_bytes = 0, self._delivery.n_bytes
        step = Step("observation", self._tp, inbox.first.offset)
        with view.activity.doing(step), view.lock:
            began = now = clock()
            while True:
                record = inbox.pop()
                step.move_on(record.offset, known_key(record.key), now)
                sent = handle(record_from_client(record))
                n_handled += 1
                before, now = now, clock()
                observe(now - before)
                if sent:
                    outgoing += sent
                    n_bytes += sum(map(size_of, sent))
                if now - began >= HANDLE_S or n_handled >= at_most or n_bytes > MAX_SENT_BYTES:
                    break
                if not (inbox and self._follows(inbox.first)):
                    break
            self._storing.note_handled(now - began)
        return outgoing

    def _follows(self, record: Any) -> bool:
        """Return whether a record can be handled at once: nothing has to be asked, restored or noted before."""
        partition = self._partition
        return (
            record.offset <= partition.offset + 1
            and self._restoring.is_ready(record.key)
            and not self._endings.concerns(record.offset, partition.checkpointed)
        )
