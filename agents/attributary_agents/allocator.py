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

MANY = 100
"""Models from which on the collector would stand the loop still for more than a slice of observations does."""

TRIM_EVERY_S = 5.0
"""Seconds between two times that freed memory is given back, at least."""

COLLECT_EVERY_S = 3600.0
"""Seconds after which what refers to itself is freed although no partition has moved: versions that were replaced."""


def bound_heaps() -> bool:
    """Bound the heaps of this process, before threads begin; return whether that is possible: with glibc alone."""
    libc = _glibc()
    if libc is None:
        return False
    return bool(libc.mallopt(_M_ARENA_MAX, HEAPS) == 1)


def set_base_aside() -> None:
    """Have the collector pass over what is alive before the first model: modules, classes, the application, for good.

    It would look through all of it, a tenth of a second long, in each full collection. Where there are many models, a
    collection that frees those that have gone still does.
    """
    gc.collect()
    gc.freeze()


class FreedMemory:
    """Frees what refers to itself, and gives freed memory back to the system, without pauses that models would notice.

    Models live as long as their partition. With many of them Python's collector would look through millions of objects
    each time that they have grown by a quarter, and nothing else happens in that second: so they are set aside.

    Parameters
    ----------
    n_models
        Models of the configuration: from `MANY` on what is alive is set aside.
    clock
        Seconds; for tests.
    """

    def __init__(self, n_models: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._is_many = n_models >= MANY
        self._clock = clock
        self._collected_at = self._trimmed_at = clock()
        self._n_done = self._n_trimmed = 0
        self._have_gone = False
        self._n_rested, self._is_worth_it = 0, False

    def set_aside(self) -> None:
        """Have the collector pass over all that is alive now, until `collect`, where there are many models."""
        if self._is_many:
            gc.freeze()

    def note_gone(self) -> None:
        """Note that models have gone with their partitions, which are freed by the next `settle`."""
        self._have_gone = True

    def note_rested(self, n: int, n_loaded: int) -> None:
        """Note that so many models have left the memory, and how many are still there.

        Where half as many have gone as are left, the next tick collects them: it looks through all that is left.
        """
        self._n_rested += n
        self._is_worth_it |= self._n_rested >= max(n_loaded // 2, MANY)

    def settle(self) -> None:
        """Free the models that have gone, if any, and give back what a recovery has needed.

        The models of partitions that have gone refer to themselves: until they are collected, nothing of them is
        freed, and Python does that by itself once in many rebalances, and never with what is set aside.
        """
        if self._have_gone:
            self.collect()
        else:
            self.set_aside()
            self._trim()

    def collect(self) -> bool:
        """Free what refers to itself, and give memory back; return whether there was any, as far as that is known."""
        self._collected_at, self._have_gone = self._clock(), False
        self._n_rested, self._is_worth_it = 0, False
        if self._is_many:  # otherwise only what was there before this worker is set aside
            gc.unfreeze()
        gc.collect()
        self.set_aside()
        return self._trim()

    def tick(self, n_done: int) -> None:
        """Do what is due, once a second: set aside, give back what was needed for a moment, and collect within an hour.

        Parameters
        ----------
        n_done
            How often all models have been restored, and checkpoints been made, so far: both need a multiple of the
            states for a moment.
        """
        self._n_done = n_done
        if self._is_many:
            gc.collect(1)  # the young ones, which would never be collected
            self.set_aside()
        now = self._clock()
        if now - self._collected_at >= COLLECT_EVERY_S or self._is_worth_it:
            self.collect()
        elif n_done > self._n_trimmed and now - self._trimmed_at >= TRIM_EVERY_S:
            self._trim()

    def _trim(self) -> bool:
        self._trimmed_at, self._n_trimmed = self._clock(), self._n_done
        return _trim()


def _trim() -> bool:
    libc = _glibc()
    return libc is not None and libc.malloc_trim(0) == 1


def _glibc() -> ctypes.CDLL | None:
    """Return the C library where it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") and hasattr(libc, "malloc_trim") else None
