"""The order of a partition's steps: one after another, and none after one that has failed."""

from __future__ import annotations

import asyncio


class Steps:
    """Lets one step of a partition begin after another, and remembers where one fails.

    What a failed step has handled may be stored in part, or not be sent: nothing further may be stored or committed.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self.has_failed = False

    @property
    def is_running(self) -> bool:
        """Whether a step has begun and not ended."""
        return self._lock.locked()

    async def __aenter__(self) -> None:
        await self._lock.acquire()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._lock.release()
        self.has_failed |= kind is not None and issubclass(kind, Exception)  # being cancelled is no failure
