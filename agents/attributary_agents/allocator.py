"""Keeps what the C library holds of freed memory small, over the days that a worker runs.

A recovery takes and frees blocks as large as the states, in several threads. By default glibc gives threads heaps of
their own, and takes blocks of up to 32 MB from the heap once one of that size has been freed: what is small and stays
then lies between large gaps, and a worker grows with each rebalance although Python holds no more than before.
"""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Of <malloc.h>."""

SEPARATE_BYTES = 128 * 1024
"""Blocks from this size on are given back when they are freed: what is read of a connection, and records of states."""

HEAPS = 2
"""Heaps of all threads together: the event loop's, and one for the rest."""


def bound_heaps() -> bool:
    """Bound the heaps of this process, before threads begin; return whether that is possible: with glibc alone."""
    libc = _glibc()
    if libc is None:
        return False
    settings = ((_M_ARENA_MAX, HEAPS), (_M_MMAP_THRESHOLD, SEPARATE_BYTES), (_M_TRIM_THRESHOLD, 2 * SEPARATE_BYTES))
    return all(libc.mallopt(name, value) == 1 for name, value in settings)


def give_back() -> bool:
    """Give freed memory back to the system; return whether there was any, as far as that is known."""
    libc = _glibc()
    return libc is not None and libc.malloc_trim(0) == 1


def _glibc() -> ctypes.CDLL | None:
    """Return the C library where it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") and hasattr(libc, "malloc_trim") else None
