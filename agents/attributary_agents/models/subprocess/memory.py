"""Memory and processors of the container or the machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container finds its own limit: cgroups version 2 and 1."""


def memory_there_is(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory of the container or the machine.

    Of several limits the smallest counts; None where the system does not say.
    """
    found = []
    for name in _LIMITS:
        try:
            text = (root / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    with contextlib.suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)


def processors(root: Path = Path("/")) -> int:
    """Return how many processors the container, or the machine, has for us."""
    n = len(getattr(os, "sched_getaffinity", lambda _pid: range(os.cpu_count() or 1))(0))
    with contextlib.suppress(OSError, ValueError):  # no container of version 2, or one without a limit
        quota, period = (root / "sys/fs/cgroup/cpu.max").read_text().split()
        n = min(n, int(quota) // int(period))
    return max(n, 1)


def memory_in_use() -> int:
    """Return the bytes of memory that this process uses, or 0 if unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
