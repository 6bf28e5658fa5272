"""Reads of Linux what a process has resident. Uses the standard library alone: `stages` counts its own imports."""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass
from pathlib import Path

COMPILER = "libllvmlite"
"""The library with numba's compiler."""

_REGION = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)$")


@dataclass(frozen=True)
class Resident:
    """Megabytes (10⁶ bytes) that are resident.

    Attributes
    ----------
    own
        Written by the process, which nobody else has: what no system can take back.
    files
        Pages of files as they are on disk, other than the compiler's: mostly code of libraries.
    compiler
        The same of the library that compiles.
    shared
        Of all, the part that other processes have too, as far as it is charged to them.
    """

    own: float
    files: float
    compiler: float
    shared: float

    @property
    def total(self) -> float:
        """Resident set size, RSS."""
        return self.own + self.files + self.compiler

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
    own = files = compiler = proportional = 0
    name = ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if region := _REGION.match(line):
            name = region[1].rpartition("/")[2]
            continue
        key, _, value = line.partition(":")
        if key == "Rss":
            pages = int(value.split()[0])
        elif key == "Pss":
            proportional += int(value.split()[0])
        elif key == "Anonymous":
            written = int(value.split()[0])
            own += written
            if name.startswith(COMPILER):
                compiler += pages - written
            else:
                files += pages - written
    total = own + files + compiler
    return Resident(*(kilobytes * 1024 / 1e6 for kilobytes in (own, files, compiler, total - proportional)))
