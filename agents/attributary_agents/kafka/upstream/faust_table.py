"""Correction of `faust.Table`.

- It keeps the changelog's records in a dictionary of its own. A record without a key, or a tombstone, raises in the
  middle of a batch; recovery logs that and goes on without the rest of the batch.
- A rebalance ends the recovery, and not what the recovery waits for: that would go on into the next one.
- An error behind a recovery is logged, and the streams go on with states that are not whole.

True for faust-streaming 0.15.3; `test_faust.py` says when it is mended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import faust
from faust.types import TP


class RawTable(faust.Table):  # type: ignore[misc]  # Faust is untyped
    """Hands the changelog's records to `sink` as they are."""

    sink: Any = None
    read_again: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Reads what the sink has passed over and needs after all, before the streams go on."""
    _reading: asyncio.Future[None] | None = None

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        """Take recovered records."""
        for event in batch:
            message = event.message
            self.sink.apply(message.partition, message.key, message.value)

    async def on_rebalance(self, *args: Any, **named: Any) -> None:
        """End the further reading: after the next recovery there is another."""
        if self._reading is not None:
            self._reading.cancel()
        await super().on_rebalance(*args, **named)

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Forget lost partitions, and read again the records the sink needs."""
        await super().on_recovery_completed(active_tps, standby_tps)
        self.sink.keep_only({tp.partition for tp in active_tps})
        try:
            if self.read_again is not None:
                self._reading = asyncio.ensure_future(self.read_again())
                await self._reading
        except Exception as error:
            await self.app.crash(error)
            raise
