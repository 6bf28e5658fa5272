"""Finds how much memory this process may have: that of its container, or of the machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container finds its own limit: cgroups version 2 and 1."""


def memory_there_is(root: Path = Path("/")) -> int | None:
    """Return the bytes that the container may take, or that the machine has; None where the system does not say."""
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


def memory_in_use() -> int:
    """Return the bytes that this process has in memory; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
