"""Order of a partition's steps: in sequence, none after a failure."""

from __future__ import annotations

import asyncio


class Steps:
    """Lock that runs a partition's steps in sequence and notes a failure.

    What a failed step has handled may be stored in part, or not be sent: nothing further may be stored or committed.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._n_waiting = 0
        self.has_failed = False

    @property
    def is_running(self) -> bool:
        """Whether a step has begun and not ended."""
        return self._lock.locked()

    @property
    def is_free(self) -> bool:
        """Whether a step would begin at once: none is running, and none waits."""
        return not (self._lock.locked() or self._n_waiting)

    async def __aenter__(self) -> None:
        self._n_waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._n_waiting -= 1

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._lock.release()
        self.has_failed |= kind is not None and issubclass(kind, Exception)  # being cancelled is no failure
