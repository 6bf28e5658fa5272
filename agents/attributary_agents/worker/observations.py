"""Handling of a partition's waiting observations, in slices.

The partitions take turns.

Within a slice the event loop stands still: it ends after `HANDLE_S`, looked at after each observation. Between two
slices the loop has a turn for each millisecond that the first one took: sending, committing, taking what a poll has
brought, a checkpoint, a rebalance take several turns each, and none of them is to wait for a slice in every turn.
A checkpoint begins between slices only, so always between two observations.

Which partition has the next slice does not hold up what else is done of the others: no partition's `Steps` are held
while it waits for its slice, only within it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from faust.types import TP

from ..kafka.inbox import Inbox
from ..models.artefacts.served.answers import offline
from .activity import Step
from .checkpoint import Checkpointing
from .delivery import MAX_SENT_BYTES, Delivery, size_of
from .lookahead import MOST_RECORDS, Lookahead, PartitionCopy
from .partition import Partition
from .poison import Begun, Endings, try_observation
from .records import Outgoing, Record, record_from_client
from .restore import Restoring
from .schedule import Steps
from .shared import Shared

logger = logging.getLogger(__name__)

HANDLE_S = 0.02
"""How long observations are handled without a look at the event loop; one that takes longer is a slice of its own."""

VERSION_S = 0.2
"""Seconds between two looks at whether a model has its first version."""

TURN_S = 0.001
"""For how much of a slice the event loop has one turn afterwards: as often as with single records of light models."""


class Observations:
    """Handler of a partition's inbox while the partition is ours.

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
        self._lookahead = None if shared.endpoints is None else Lookahead(partition, shared.endpoints)
        self._has_begun = self._awaits_version = self._lacks_answers = False

    def take(self, records: Sequence[Any]) -> asyncio.Task[None]:
        """Queue client records in order; return the task that handles them.

        The task ends when they are handled, or are not ours.
        """
        self._inbox.put(records)
        self._shared.slices.note_record()
        return self._shared.under_way.start((self, "handle"), self._handle_all)

    def leave(self) -> None:
        """Forget the waiting records, which the next owner gets again."""
        self._inbox.clear()
        if self._lookahead is not None:
            self._lookahead.leave()

    def resume(self) -> None:
        """Resume with waiting records if handling stopped without a rebalance.

        It has stopped because the group was about to move, and the group did not.
        """
        if self._inbox and self._may_handle():
            self._shared.under_way.start((self, "handle"), self._handle_all)

    def _may_handle(self) -> bool:
        # Before a rebalance takes partitions away, Faust stops the flow and waits until its producer has sent all.
        return self._goes_on() and self._shared.flows

    async def _handle_all(self) -> None:
        while self._inbox:
            await self._storing.wait_where_far()
            self._storing.begin_where_due()
            await self._storing.let_begin()
            if not self._goes_on():
                self.leave()
                return
            if not self._shared.flows:
                return
            if self._steps.is_free and self._follows(self._inbox.first):
                await self._handle_in_turn()
            else:
                async with self._steps:
                    await self._make_ready()
                await asyncio.sleep(VERSION_S if self._awaits_version else 0)
            if self._lacks_answers and self._lookahead is not None:
                self._lacks_answers = False
                await self._lookahead.fetch(self._upcoming())
                continue
            if self._delivery.is_full:
                async with self._steps:
                    await self._delivery.make_room()
            self._inbox.note_room()
            self._storing.begin_where_due()
            self._shared.slices.note_record()

    async def _make_ready(self) -> None:
        """Do the work that has to come before the first observation.

        Handles that observation here where it has to be noted or tried.
        """
        self._awaits_version = False
        if not (self._inbox and self._may_handle()):
            return  # revoked while we waited
        first = self._inbox.first
        await self._restoring.begin()
        await self._restoring.restore_asked(first.key)
        if not self._goes_on():
            return
        if self._lacks_version(first.key):
            self._awaits_version = True
            return
        await self._check_offset(first.offset)
        if self._endings.concerns(first.offset, self._partition.checkpointed):
            copy = self._copy()
            if self._lookahead is not None and copy is not None and not self._lookahead.is_answered(first, copy):
                self._lacks_answers = True
                return  # its answers first
            is_allowed = await self._is_allowed(record_from_client(first))
            if self._goes_on():
                self._handle_slice(1, self._partition.handle if is_allowed else self._partition.refuse)

    async def _handle_in_turn(self) -> None:
        """Handle a slice when it is this partition's turn.

        Does nothing where something of the partition has come in between.
        """
        async with self._shared.turn:
            if not (self._inbox and self._may_handle() and self._steps.is_free and self._follows(self._inbox.first)):
                return
            async with self._steps:  # at once: nobody has them, and nobody waits
                began = time.monotonic()
                at_most = self._storing.room
                if self._lookahead is not None:
                    at_most = min(at_most, len(self._upcoming()))
                self._handle_slice(at_most, self._partition.handle, self._copy())
                took = time.monotonic() - began
            for _ in range(max(round(took / TURN_S), 1)):
                await asyncio.sleep(0)

    def _copy(self) -> PartitionCopy | None:
        """Return a copy that shows which answers waiting observations lack.

        None where they need none.
        """
        return None if self._lookahead is None else self._lookahead.copy(self._upcoming())

    def _upcoming(self) -> list[Any]:
        """Return waiting records up to a gap or a model to be restored."""
        waiting: list[Any] = []
        for record in self._inbox.upcoming(MOST_RECORDS):
            if waiting and not (record.offset == waiting[-1].offset + 1 and self._restoring.is_ready(record.key)):
                break
            waiting.append(record)
        return waiting

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
        """Return whether an observation may be handled.

        Where workers have ended, it is noted first, or tried in a process of its own.
        """
        if record.offset <= self._partition.offset:
            return True  # delivered again, and not handled

        async def trial(begun: Begun) -> None:
            step = Step("trial", self._tp, record.offset, self._shared.known_key(record.key))
            answers = None if self._lookahead is None else self._lookahead.answers
            with self._shared.view.activity.doing(step):
                await try_observation(self._partition, record, begun, answers)

        return await self._endings.allows(record.offset, self._partition.checkpointed, trial)

    def _handle_slice(
        self, at_most: int, handle: Callable[[Record], list[Outgoing]], copy: PartitionCopy | None = None
    ) -> None:
        """Handle waiting records for the time of a slice, and send the results.

        Never waits.

        Parameters
        ----------
        copy
            Shows which observation lacks answers: the slice ends before it.
        """
        inbox, view, clock = self._inbox, self._shared.view, time.monotonic
        known_key, observe = self._shared.known_key, view.observation_times.observe
        outgoing: list[Outgoing] = []
        n_handled, n_bytes, lookahead = 0, self._delivery.n_bytes, self._lookahead
        answering = offline() if lookahead is None else lookahead.answering(copy)
        step = Step("observation", self._tp, inbox.first.offset)
        with view.activity.doing(step), view.lock, answering:
            began = now = clock()
            while True:
                if copy is not None and lookahead is not None:
                    if not lookahead.is_answered(inbox.first, copy):
                        self._lacks_answers = True
                        break
                    now = clock()
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
            if n_handled:
                self._storing.note_handled(now - began)
        self._delivery.send(outgoing)

    def _follows(self, record: Any) -> bool:
        """Return whether a record can be handled at once.

        Nothing has to be asked, restored or noted before.
        """
        return self._has_begun and record.offset <= self._partition.offset + 1 and self._is_clear(record)

    def _is_clear(self, record: Any) -> bool:
        """Return whether a record needs no restoring, waiting or noting."""
        return (
            self._restoring.is_ready(record.key)
            and not self._lacks_version(record.key)
            and not self._endings.concerns(record.offset, self._partition.checkpointed)
        )

    def _lacks_version(self, key: bytes | None) -> bool:
        """Return whether a record's model waits for its first version.

        Then the partition waits, too.
        """
        models = self._partition.models
        if not models.unversioned or (model_id := self._shared.model_id_of(key)) is None:
            return False
        lacks = models.awaits_version(model_id)
        if lacks and model_id not in models.awaited:
            models.awaited.add(model_id)
            logger.warning(
                "partition %d: its observations wait: model %s has no version of %s yet, and gets the first one from "
                "the topic %s, partition %d",
                self._partition.number,
                model_id,
                self._shared.config.settings_of(model_id).registered,
                self._shared.config.kafka.topics.models,
                self._partition.number,
            )
        return lacks
