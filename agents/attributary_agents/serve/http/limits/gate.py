"""Lets a few requests work at a time, so that nobody who asks much holds up the others, or the live stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from ..errors import ProblemError

AT_ONCE = 4
"""Requests that work at the same time, each in a thread."""

WAITING = 64
"""Requests that may wait for that."""

WAIT_S = 5.0
"""Seconds that each of them waits at most."""


class Gate:
    """Counts those who work and those who wait."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING, wait_s: float = WAIT_S) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._most, self._wait_s = waiting, wait_s
        self.n_waiting = 0

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        """Wait for a place, and hold it for as long as the block takes.

        Raises
        ------
        ProblemError
            Too many wait already, or it has waited for too long.
        """
        if self.n_waiting >= self._most:
            raise _busy()
        self.n_waiting += 1
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self.n_waiting -= 1
        try:
            yield
        finally:
            self._free.release()


def _busy() -> ProblemError:
    return ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the server answers others",
        "ask again in a second",
        {"Retry-After": "1"},
    )
