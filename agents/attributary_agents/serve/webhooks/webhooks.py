"""Consumer of the incidents topic that sends to the configured addresses.

It is in a consumer group of its own. An event counts as taken before it is first attempted: its offset is committed
then, with a note for the next process. So no event is sent by two processes, whatever ends them, and what may have been
lost is counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
from base64 import b64decode, b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

import httpx

from attributary_topics import InvalidRecordError, decode_json

from ...config.settings import Config
from ...errors import BrokersAwayError, PreflightError
from ...kafka.readers import GroupFollower, group_follower
from ..answers import WebhookCount
from .target import Revision, Target, rank

logger = logging.getLogger(__name__)

AGAIN_AFTER_S = 3.0
"""Pause before the brokers are asked again, where they do not answer or refuse."""

ROOM_WITHIN_S = 10.0
"""How long events of a backlog wait for room behind those of an address that takes what it is sent."""

ENDS_WITHIN_S = 2.0
"""How long what is being sent may take when the server ends."""

KNOWN = 10_000
"""Events of a partition that a process remembers, and open incidents whose last revision it remembers."""

NOTED = 300
"""Last events of a partition that are known after a restart: 2400 of the note's bytes."""

_HASH_BYTES = 6  # of these base64 makes eight characters; one of a hundred billion new events is taken for a known one
_MOST_UNSETTLED = 1200  # characters of the note


class RevisionFilter:
    """Filter of the incident revisions that people want to know of.

    Wanted are those that confirm an incident or end it, the suspicion of one that is critical with what became of it,
    and that one has become critical. That an incident lasts wakes nobody. Of an incident whose last revision is not
    known, as after a restart, somebody is taken to know.
    """

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, int]] = {}

    def take(self, event: Revision) -> int | None:
        """Take in a revision; return its rank if it is wanted, else None."""
        life, reason, now = event.data.get("life"), event.data.get("reason"), rank(event.data.get("severity"))
        before, worst = self._open.pop(event.incident, (None, -1))
        critical = rank("critical")
        if life in ("suspected", "confirmed"):
            self._open[event.incident] = life, max(now, worst)
            while len(self._open) > KNOWN:
                del self._open[next(iter(self._open))]
        if life == "confirmed":
            return now if reason == "confirmed" or (reason == "raised" and now == critical > worst) else None
        if life == "over":
            return max(now, worst) if before != "suspected" or worst == critical else None
        return now if now == critical else None

    def forget(self, events: Iterable[Revision]) -> None:
        """Forget the last revisions of these events' incidents; they come again."""
        for event in events:
            self._open.pop(event.incident, None)


class Memory:
    """Memory of a partition's last events, kept beside its offset.

    After a crash of a worker the topic has some events twice, with the same ids.

    Parameters
    ----------
    note
        What `note` has returned to this process or another one; anything else counts as empty.

    Attributes
    ----------
    owner, unsettled
        Process that has written the note, and webhook to the number of events that it had taken and not settled.
    """

    def __init__(self, note: str = "") -> None:
        self._hashes: dict[bytes, None] = {}
        self.owner = ""
        self.unsettled: Counter[str] = Counter()
        try:
            read = json.loads(note) if note else {}
            self.owner = str(read.get("by", ""))
            self.unsettled.update({str(name): int(n) for name, n in read.get("open", {}).items() if int(n) > 0})
            hashes = b64decode(read.get("ids", ""), validate=True)
        except (ValueError, TypeError, AttributeError, OverflowError):
            return
        whole = range(0, len(hashes) - len(hashes) % _HASH_BYTES, _HASH_BYTES)
        self._hashes = dict.fromkeys(hashes[at : at + _HASH_BYTES] for at in whole)

    def take(self, event_id: str) -> bool:
        """Remember an event; return whether it is new."""
        is_new = (hash_ := _hash(event_id)) not in self._hashes
        if is_new:
            self._add(hash_)
        return is_new

    def forget(self, event_ids: Iterable[str]) -> None:
        """Forget events: they have not been taken after all."""
        for event_id in event_ids:
            self._hashes.pop(_hash(event_id), None)

    def learn(self, other: Memory) -> None:
        """Add another memory's events, as the latest."""
        for hash_ in list(other._hashes):
            self._hashes.pop(hash_, None)
            self._add(hash_)

    def _add(self, hash_: bytes) -> None:
        self._hashes[hash_] = None
        while len(self._hashes) > KNOWN:
            del self._hashes[next(iter(self._hashes))]

    def note(self, owner: str, unsettled: Mapping[str, int]) -> str:
        """Return the note for the next process: ASCII, under 4000 characters."""
        ids = b64encode(b"".join(list(self._hashes)[-NOTED:])).decode()
        left = {name: n for name, n in sorted(unsettled.items()) if n}
        while len(json.dumps(left)) > _MOST_UNSETTLED:
            left.popitem()
        return json.dumps({"by": owner, "open": left, "ids": ids}, separators=(",", ":"))


def _hash(event_id: str) -> bytes:
    return sha256(event_id.encode("utf-8", "surrogatepass")).digest()[:_HASH_BYTES]


def read_revision(record: Any) -> Revision | None:
    """Return the revision of a record; None if it is no incident of ours."""
    headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    try:
        data = decode_json(record.value or b"")
    except InvalidRecordError:
        return None
    if not isinstance(data, dict) or data.get("event") != "incident":
        return None
    return Revision(
        headers.get("ce_id") or f"{record.topic}:{record.partition}:{record.offset}",
        headers.get("ce_source") or f"/attributary/{record.topic}",
        headers.get("ce_type") or "attributary.incident.v1",
        headers.get("ce_subject") or str(data.get("model_id") or (record.key or b"").decode(errors="replace")),
        headers.get("ce_time"),
        data,
    )


class Webhooks:
    """Service that sends incidents to the addresses of `serve.webhooks`.

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
        self._filter = RevisionFilter()
        self._memories: dict[int, Memory] = {}
        self._offsets: dict[int, int] = {}
        """Partition to the offset that is committed."""
        self._unsettled: defaultdict[int, Counter[str]] = defaultdict(Counter)
        """Partition to webhook to how many of its events are neither sent nor lost yet."""
        self._stale: set[int] = set()
        """Partitions whose committed note says otherwise."""

    def counts(self) -> list[WebhookCount]:
        """Return the event counts of each webhook since this process began."""
        return [target.count for target in self._targets.values()]

    async def run(self) -> None:
        """Deliver events until cancelled; wait while no broker answers.

        Then what is being sent may take `ENDS_WITHIN_S` seconds; the rest is lost, and logged as such.
        """
        if not self._targets:
            await asyncio.Event().wait()
        self._senders = [asyncio.create_task(target.run()) for target in self._targets.values()]
        try:
            while True:
                try:
                    await self._follow()
                except PreflightError as error:
                    reason = str(error.causes if isinstance(error, BrokersAwayError) else error)
                    if reason != self._waits_for:
                        logger.warning("webhooks wait: %s", error)
                    self._waits_for = reason
                await asyncio.sleep(AGAIN_AFTER_S)
        finally:
            for sender in self._senders:
                sender.cancel()
            await asyncio.gather(*self._senders, return_exceptions=True)
            for target in self._targets.values():
                await target.close()

    async def _follow(self) -> None:
        group, topic = f"{self._kafka.group}-webhooks", self._kafka.topics.incidents
        async with group_follower(self._kafka, group, topic, self._assigned) as follower:
            has_begun = False
            try:
                while True:
                    batches = await follower.poll()
                    if not has_begun:  # before, it is not known whether this user may
                        has_begun, self._waits_for = True, ""
                        logger.info("webhooks: %s are told of %s", ", ".join(self._targets), topic)
                    await self._take(follower, *(batch for batch in batches if batch))
                    await self._note_outcomes(follower)
                    for sender in self._senders:
                        if sender.done():
                            sender.result()  # raises: it does not end by itself
            except asyncio.CancelledError:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(ENDS_WITHIN_S):
                        await self._until(lambda target: target.is_idle)
                        await self._note_outcomes(follower)
                raise

    def _assigned(self, partition: int, offset: int, note: str) -> None:
        before = Memory(note)
        self._offsets[partition] = offset
        self._memories.setdefault(partition, before).learn(before)
        if before.owner in ("", self._id) or not before.unsettled:
            return
        self._stale.add(partition)  # or it would be counted again at the next hand-over
        for name, n in before.unsettled.items():
            if name in self._targets:
                self._targets[name].lose(
                    f"{n} event{'' if n == 1 else 's'}: taken by a server that has ended, or handed over, without "
                    "having told whether they arrived",
                    n,
                )

    async def _take(self, follower: GroupFollower, *batches: list[Any]) -> None:
        n = sum(map(len, batches))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ROOM_WITHIN_S):
                await self._until(lambda target: target.has_room(n))
        deliveries: list[tuple[Target, Revision, int]] = []
        try:
            for batch in batches:
                deliveries += await self._commit(follower, batch)
        finally:  # all at once: what happened to several models may be one message
            for target, event, partition in deliveries:
                target.offer(event, partition)

    async def _commit(self, follower: GroupFollower, batch: list[Any]) -> list[tuple[Target, Revision, int]]:
        """Commit a batch of a partition; return the deliveries to make.

        There are none where the batch is another process's, or comes again.
        """
        partition, offset = batch[0].partition, batch[-1].offset + 1
        memory, unsettled = self._memories[partition], self._unsettled[partition]
        events = [event for record in batch if (event := read_revision(record)) and memory.take(event.id)]
        ranks = [self._filter.take(event) for event in events]
        deliveries = [
            (target, event, partition)
            for event, severity in zip(events, ranks, strict=True)
            for target in self._targets.values()
            if severity is not None and severity >= rank(target.config.severity)
        ]
        unsettled.update(target.name for target, *_ in deliveries)
        if await follower.take(partition, offset, memory.note(self._id, unsettled)):
            self._offsets[partition] = offset
            self._stale.discard(partition)
            return deliveries
        unsettled.subtract(target.name for target, *_ in deliveries)
        memory.forget(event.id for event in events)
        self._filter.forget(events)
        return []

    async def _until(self, is_so: Callable[[Target], bool]) -> None:
        while not all(map(is_so, self._targets.values())):
            await asyncio.sleep(0.02)

    def _settled(self, partition: int, name: str) -> None:
        self._unsettled[partition][name] -= 1
        self._stale.add(partition)

    async def _note_outcomes(self, follower: GroupFollower) -> None:
        """Commit notes without the events that are sent or lost by now."""
        for partition in sorted(self._stale):
            self._stale.discard(partition)
            if follower.has(partition):
                note = self._memories[partition].note(self._id, self._unsettled[partition])
                await follower.take(partition, self._offsets[partition], note)
