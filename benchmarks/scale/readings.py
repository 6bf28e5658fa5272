"""Reads what a process takes, from outside: its processor time and its memory. Linux alone has all of it."""

from __future__ import annotations

import time
from pathlib import Path


def processor_s(pid: int) -> float:
    """Return the seconds of processor time that a process has taken, all of its threads: those that ended too."""
    return time.clock_gettime((~pid << 3) | 2)  # the clock of a process, as clock_getcpuclockid(3) makes it


def memory(pid: int) -> tuple[float, float]:
    """Return the bytes that a process has resident, and its share of them where pages are shared (RSS and PSS)."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        found[name] = 1024.0 * int(rest.split()[0])
    return found["Rss"], found["Pss"]
