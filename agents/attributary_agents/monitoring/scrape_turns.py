"""A scrape and the observations take turns at the lock: a reading of many models lets observations pass in between."""

from __future__ import annotations

import threading
import time
from typing import Self

_PATIENCE_S = 1.0


class BusyError(Exception):
    """A step has held the lock for longer than a scrape waits."""


class Turns:
    """The view's lock, held inside the block except while others have their turn.

    Raises BusyError, also from the block's beginning, when the lock is not to be had within a second.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._held = False

    def give(self) -> None:
        """Let whoever waits have the lock first."""
        self._lock.release()
        self._held = False
        time.sleep(0)  # the interpreter's own lock too: otherwise this thread has ours again before the other wakes
        self._take()

    def __enter__(self) -> Self:
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        if self._held:
            self._lock.release()

    def _take(self) -> None:
        self._held = self._lock.acquire(timeout=_PATIENCE_S)
        if not self._held:
            raise BusyError
