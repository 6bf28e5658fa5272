"""Consumer of the incidents topic that tells the configured addresses.

It is in a consumer group of its own.

An event counts as taken before it is first attempted: its offset is committed then, with what the next process has to
know (`Remembered`). So no event is sent by two processes, whatever ends them, and what may have been lost is counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import Counter, defaultdict
from typing import Any

import httpx

from ...config.settings import Config
from ...errors import BrokersAwayError, PreflightError
from ...kafka.readers import GroupFollower, group_follower
from ..answers.health import WebhookCount
from .events import Noteworthy, ToldEvent, rank, read_event
from .remembered import Remembered
from .target import Target

logger = logging.getLogger(__name__)

AGAIN_AFTER_S = 3.0
"""Pause before the brokers are asked again, where they do not answer or refuse."""

ROOM_WITHIN_S = 10.0
"""How long events of a backlog wait for room behind those of an address that takes what it is sent."""

ENDS_WITHIN_S = 2.0
"""How long what is under way may take when the server ends."""


class Webhooks:
    """Service that tells the addresses of `serve.webhooks` of incidents.

    Parameters
    ----------
    transport, first_s
        See `Target`; for tests.

    Raises
    ------
    ConfigError
        An address cannot be used, or the environment lacks a secret.
    """

    def __init__(
        self, config: Config, *, transport: httpx.AsyncBaseTransport | None = None, first_s: float = 1.0
    ) -> None:
        self._kafka = config.kafka
        self._targets = {
            name: Target(name, webhook, self._settled, transport=transport, first_s=first_s)
            for name, webhook in config.serve.webhooks.items()
        }
        self._senders: list[asyncio.Task[None]] = []
        self._waits_for = ""
        self._id = secrets.token_hex(6)
        self._known: dict[int, Remembered] = {}
        self._at: dict[int, int] = {}
        """Partition to the offset that is committed."""
        self._open: defaultdict[int, Counter[str]] = defaultdict(Counter)
        """Partition to how many of its events each webhook has not told of yet."""
        self._noteworthy = Noteworthy()
        self._untold: set[int] = set()
        """Partitions whose committed note says otherwise."""

    def counts(self) -> list[WebhookCount]:
        """Return the event counts of each webhook since this process began."""
        return [
            WebhookCount(
                name=name,
                sent=target.counts.sent,
                failed=target.counts.failed,
                last_failure=target.counts.last_failure,
            )
            for name, target in self._targets.items()
        ]

    async def run(self) -> None:
        """Deliver events until cancelled; wait while no broker answers.

        What is under way then may take `ENDS_WITHIN_S` seconds; what is not sent by then is lost, and said to be.
        """
        if not self._targets:
            await asyncio.Event().wait()
        senders = self._senders = [asyncio.create_task(target.run()) for target in self._targets.values()]
        try:
            while True:
                try:
                    await self._follow()
                except PreflightError as error:
                    why = str(error.causes if isinstance(error, BrokersAwayError) else error)
                    if why != self._waits_for:
                        logger.warning("webhooks wait: %s", error)
                    self._waits_for = why
                await asyncio.sleep(AGAIN_AFTER_S)
        finally:
            for sender in senders:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)
            for target in self._targets.values():
                await target.close()

    async def _follow(self) -> None:
        group, topic = f"{self._kafka.group}-webhooks", self._kafka.topics.incidents
        async with group_follower(self._kafka, group, topic, self._given) as follower:
            has_begun = False
            try:
                while True:
                    batches = await follower.poll()
                    if not has_begun:  # before, it is not known whether this user may
                        has_begun, self._waits_for = True, ""
                        logger.info("webhooks: %s are told of %s", ", ".join(self._targets), topic)
                    await self._take(follower, *(batch for batch in batches if batch))
                    await self._tell(follower)
                    for sender in self._senders:
                        if sender.done():
                            sender.result()  # raises: it does not end by itself
            except asyncio.CancelledError:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(ENDS_WITHIN_S):
                        while not all(target.is_idle for target in self._targets.values()):
                            await asyncio.sleep(0.02)
                        await self._tell(follower)
                raise

    def _given(self, partition: int, offset: int, note: str) -> None:
        told = Remembered(note)
        self._at[partition] = offset
        self._known.setdefault(partition, told).learn(told)
        if told.owner not in ("", self._id):
            for name, n in told.open.items():
                if name in self._targets:
                    self._targets[name].lose(n)
            if told.open:
                self._untold.add(partition)  # or it would be counted again at the next hand-over

    async def _take(self, follower: GroupFollower, *batches: list[Any]) -> None:
        n = sum(map(len, batches))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ROOM_WITHIN_S):
                while not all(target.has_room(n) for target in self._targets.values()):
                    await asyncio.sleep(0.02)
        taken: list[tuple[Target, ToldEvent, int]] = []
        try:
            for batch in batches:
                taken += await self._commit(follower, batch)
        finally:  # all at once: what happened to several models may be one message
            for target, event, partition in taken:
                target.offer(event, partition)

    async def _commit(self, follower: GroupFollower, batch: list[Any]) -> list[tuple[Target, ToldEvent, int]]:
        """Take a batch of a partition; return the deliveries to make.

        Each is a target, an event and the partition. There are none where the batch is another process's, or comes
        again.
        """
        partition, offset = batch[0].partition, batch[-1].offset + 1
        known = self._known[partition]
        events = [event for record in batch if (event := read_event(record)) is not None and known.take(event.id)]
        at = [self._noteworthy.take(event) for event in events]
        wanted = [
            (target, event)
            for event, severity in zip(events, at, strict=True)
            for target in self._targets.values()
            if severity is not None and severity >= rank(target.config.severity)
        ]
        under_way = self._open[partition]
        under_way.update(target.name for target, _ in wanted)
        if await follower.take(partition, offset, known.note(self._id, under_way)):
            self._at[partition] = offset
            self._untold.discard(partition)
            return [(target, event, partition) for target, event in wanted]
        under_way.subtract(target.name for target, _ in wanted)  # they are another process's, or come again
        known.forget([event.id for event in events])
        self._noteworthy.forget(events)
        return []

    def _settled(self, partition: int, name: str) -> None:
        self._open[partition][name] -= 1
        self._untold.add(partition)

    async def _tell(self, follower: GroupFollower) -> None:
        """Commit the outcomes of events that were under way."""
        for partition in sorted(self._untold):
            self._untold.discard(partition)
            if follower.has(partition):
                note = self._known[partition].note(self._id, self._open[partition])
                await follower.take(partition, self._at[partition], note)
