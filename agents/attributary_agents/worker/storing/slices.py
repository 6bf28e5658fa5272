"""Sharing of the event loop between records and work in slices.

Such work is to restore models and to store a checkpoint.

Records come first: after a slice, of whichever partition, those that wait have at least as long as it took. Where none
waits, the next slice follows at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

RESTORE_S = 0.02
"""How long the models of one slice are restored; a model of which this takes longer is a slice of its own."""

ENCODE_S = 0.01
"""The same of encoding states for a checkpoint. An event may wait for several slices, one in each step of its way."""

LOOK_S = 0.001
"""How long a record has to show that it waits."""

_HOPS = 10
"""Turns of the event loop that a fetched record takes at most until it shows: a slice has held all of them up."""


class Slices:
    """Tells when the next slice may begin, for all partitions of a worker.

    Parameters
    ----------
    clock
        Seconds; for tests.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._n_records = 0
        self._records_until = clock()
        self._turn = asyncio.Lock()

    def note_record(self) -> None:
        """Note that a record waits to be handled."""
        self._n_records += 1

    def note_slice(self, seconds: float) -> None:
        """Note that a slice has taken so long."""
        self._records_until = max(self._records_until, self._clock()) + seconds

    async def rest(self) -> None:
        """Wait until records have had as much time as the slices before.

        Only a single slice at a time goes on.
        """
        async with self._turn:
            while self._clock() < self._records_until:
                before = self._n_records
                await asyncio.sleep(LOOK_S)
                for _ in range(_HOPS):
                    await asyncio.sleep(0)
                if self._n_records == before:
                    break
            await asyncio.sleep(0)
