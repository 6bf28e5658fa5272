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


def of_all_cpu_s() -> float:
    """Return the processor time of this process and of all that it has started, those that run and those that ended.

    What a child has waited for counts as that child's; only the children of a process that was killed are missed.
    """
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended since
            continue
        parents[int(folder.name)] = int(fields[1])
        spent[int(folder.name)] = sum(map(int, fields[11:15])) / _TICKS
    here = {os.getpid()}
    found = here
    while found := {pid for pid, parent in parents.items() if parent in found} - here:
        here |= found
    return sum(spent.get(pid, 0.0) for pid in here)


def peak_bytes(pid: int) -> int:
    """Return the most memory that the process has had so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
