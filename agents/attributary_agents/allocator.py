"""Keeps what the process holds of freed memory small, over the days that a worker runs.

A recovery takes and frees blocks as large as the states, in several threads. By default glibc gives threads heaps of
their own, and what is small and stays lies between large gaps in each of them. From which size on blocks are taken
outside of the heaps is left to glibc, which adapts it: a fixed size makes arrays above it many times slower.
"""

from __future__ import annotations

import ctypes
import gc
import sys

_M_ARENA_MAX = -8
"""Of <malloc.h>."""

HEAPS = 2
"""Heaps of all threads together: the event loop's, and one for the rest."""


def bound_heaps() -> bool:
    """Bound the heaps of this process, before threads begin; return whether that is possible: with glibc alone."""
    libc = _glibc()
    if libc is None:
        return False
    return bool(libc.mallopt(_M_ARENA_MAX, HEAPS) == 1)


def give_back() -> bool:
    """Give freed memory back to the system; return whether there was any, as far as that is known.

    The models of partitions that have gone refer to themselves: until they are collected, nothing of them is freed, and
    Python does that by itself once in many rebalances.
    """
    gc.collect()
    libc = _glibc()
    return libc is not None and libc.malloc_trim(0) == 1


def _glibc() -> ctypes.CDLL | None:
    """Return the C library where it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") and hasattr(libc, "malloc_trim") else None
