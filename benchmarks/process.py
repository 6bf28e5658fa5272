"""What Linux says of a process, from outside: memory, open files, threads, processor time. Standard library alone."""

from __future__ import annotations

import os
import time
from dataclasses import astuple, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Resident:
    """Megabytes (10⁶ bytes) that are resident.

    Attributes
    ----------
    own
        Written by the process, which nobody else has: what no system can take back.
    files
        Pages of files as they are on disk: mostly code of libraries.
    shared
        Of all, the part that other processes have too, as far as it is charged to them.
    """

    own: float
    files: float
    shared: float

    @property
    def total(self) -> float:
        """Resident set size, RSS."""
        return self.own + self.files

    @property
    def proportional(self) -> float:
        """Proportional set size, PSS: what is shared by n processes counts for 1/n."""
        return self.total - self.shared

    def less(self, other: Resident) -> Resident:
        """Return what this is more than another."""
        mine, others = astuple(self), astuple(other)
        return Resident(*(one - two for one, two in zip(mine, others, strict=True)))


def resident(pid: int | str = "self") -> Resident:
    """Return what a process has resident now."""
    own = total = proportional = 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == "Rss":
            total += int(value.split()[0])
        elif key == "Pss":
            proportional += int(value.split()[0])
        elif key == "Anonymous":
            own += int(value.split()[0])
    return Resident(*(kilobytes * 1024 / 1e6 for kilobytes in (own, total - own, total - proportional)))


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
    rss = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return Footprint(rss, len(list((process / "fd").iterdir())), len(list((process / "task").iterdir())))


def processor_s(pid: int) -> float:
    """Return the seconds of processor time that a process has taken, all of its threads: those that ended too."""
    return time.clock_gettime((~pid << 3) | 2)  # the clock of a process, as clock_getcpuclockid(3) makes it


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
