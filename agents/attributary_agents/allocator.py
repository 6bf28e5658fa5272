"""Keeps what the process holds of freed memory small, over the days that a worker runs.

A recovery takes and frees blocks as large as the states, in several threads. By default glibc gives threads heaps of
their own, and what is small and stays lies between large gaps in each of them. From which size on blocks are taken
outside of the heaps is left to glibc, which adapts it: a fixed size makes arrays above it many times slower.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable

_M_ARENA_MAX = -8
"""Of <malloc.h>."""

HEAPS = 2
"""Heaps of all threads together: the event loop's, and one for the rest."""


COLLECT_EVERY_S = 3600.0
"""Seconds after which what refers to itself is freed although no partition has moved: versions that were replaced."""


def bound_heaps() -> bool:
    """Bound the heaps of this process, before threads begin; return whether that is possible: with glibc alone."""
    libc = _glibc()
    if libc is None:
        return False
    return bool(libc.mallopt(_M_ARENA_MAX, HEAPS) == 1)


def set_aside() -> None:
    """Have the garbage collector pass over all that is alive now, until memory is given back.

    Models live as long as their partition. With thousands of them the collector would look through millions of objects
    each time that they have grown by a quarter, and nothing else happens in that second.
    """
    gc.freeze()


class FreedMemory:
    """Gives freed memory back to the system: when partitions have moved, and once an hour.

    Parameters
    ----------
    clock
        Seconds; for tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._collected_at = clock()
        self._n_restored = 0

    def collect(self) -> bool:
        """Free what refers to itself, and give memory back; return whether there was any, as far as that is known.

        The models of partitions that have gone refer to themselves: until they are collected, nothing of them is
        freed, and Python does that by itself once in many rebalances, and never with what is set aside.
        """
        self._collected_at = self._clock()
        gc.unfreeze()
        gc.collect()
        set_aside()
        return _trim()

    def tick(self, n_restored: int) -> None:
        """Give back what restoring has needed once it is done, and within an hour what refers to itself.

        Parameters
        ----------
        n_restored
            How often all models have been restored so far.
        """
        before, self._n_restored = self._n_restored, n_restored
        if self._clock() - self._collected_at >= COLLECT_EVERY_S:
            self.collect()
        elif n_restored > before:
            _trim()


def _trim() -> bool:
    libc = _glibc()
    return libc is not None and libc.malloc_trim(0) == 1


def _glibc() -> ctypes.CDLL | None:
    """Return the C library where it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") and hasattr(libc, "malloc_trim") else None
