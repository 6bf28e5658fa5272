"""Correction of `faust.tables.recovery.Recovery` and its `TableManager`.

- It is done when the *record* before the changelog's end has come. Behind a transaction that is its marker, and what
  was aborted never comes either: it waits for ever (faust-streaming issues 47 and 155).
- It resumes the source partitions first and then seeks to the committed offsets, with the fetcher running: records
  fetched in between are delivered, and all before them is dropped as already read.
- It calls it an internal error when all records have come and we still read what the state needs.

True for faust-streaming 0.15.3; `test_faust.py` says when it is mended.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.types import TP
from mode import Service

from ..committed import CommittedRecords

_FENCED_SHARE = 0.4  # of the time that a recovery has until it reads, for what comes before it


class ExactRecovery(Recovery):  # type: ignore[misc]  # Faust is untyped
    """Recovery up to the last committed record, which seeks before it resumes."""

    async def _build_highwaters(self, consumer: Any, tps: set[TP], destination: Any, title: str) -> None:
        """Note the offset of the last record of each partition that will come."""
        began = monotonic()
        if title == "active":
            again = await self.app.before_recovery(tps, _FENCED_SHARE * self.app.conf.broker_request_timeout)
            for tp in again:
                self.active_offsets[tp] = -1
        thread = consumer._thread
        # Within less than what upstream waits for this: it takes its own time-out for a stop, and says nothing.
        within_s = 0.8 * self.app.conf.broker_request_timeout - (monotonic() - began)
        last = await thread.call_thread(CommittedRecords(thread._ensure_consumer(), within_s).last, tps)
        # What was recovered before may be gone from the end: a tombstone is, some time after what it has deleted.
        had = self.active_offsets if title == "active" else self.standby_offsets
        beyond = {tp: had[tp] for tp in tps if had.get(tp) is not None and had[tp] > last[tp]}
        if beyond:
            ends = await consumer.highwaters(*beyond)
            # A topic that ends before was deleted and made again: upstream says so.
            last |= {tp: offset for tp, offset in beyond.items() if offset < ends[tp]}
        self.log.info(
            "Last records of %s changelog partitions:\n%s", title, self._highwater_logtable(last, title=title)
        )
        destination.clear()
        destination.update(last)

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Hold every resume back until upstream has sought."""
        consumer = self.app.consumer
        resume = consumer.resume_partitions
        held: list[Any] = []
        consumer.resume_partitions = held.append  # on the instance, and removed below
        try:
            await super().on_recovery_completed(generation_id)
        finally:
            del consumer.resume_partitions
        for partitions in held:
            resume(partitions)

    @Service.task  # type: ignore[untyped-decorator]
    async def _publish_stats(self) -> None:
        """Warn of a recovery to which no records come."""
        async for _ in self.itertimer(self.stats_interval, name="Recovery.stats"):
            if self.in_recovery and (stats := self.active_stats()):
                await self._verify_remaining(monotonic(), stats)


class ExactTableManager(TableManager):  # type: ignore[misc]
    """Table manager whose recovery is an `ExactRecovery`."""

    @property
    def recovery(self) -> Recovery:
        """The recovery service, which is made on first use as upstream does."""
        recovery: Recovery = self._recovery  # type: ignore[has-type]  # set to None by the base class
        if recovery is None:
            recovery = self._recovery = ExactRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return recovery
