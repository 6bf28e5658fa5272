"""What the kernel says of a process: memory, open files, threads and processor time. Linux."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Footprint:
    """How large a process is at one moment."""

    rss: int
    """Bytes in memory."""
    files: int
    """Open files, connections included."""
    threads: int


def footprint(pid: int) -> Footprint:
    """Return memory, open files and threads of the process.

    Raises
    ------
    OSError
        There is no such process.
    """
    process = Path(f"/proc/{pid}")
    rss = int((process / "statm").read_text().split()[1]) * _PAGE
    return Footprint(rss, len(list((process / "fd").iterdir())), len(list((process / "task").iterdir())))


def cpu_s(pid: int) -> float:
    """Return the seconds of processor time that the process has taken so far, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_bytes(pid: int) -> int:
    """Return the most memory that the process has had so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
