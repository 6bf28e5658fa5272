"""Reads of Linux what a process has resident. Uses the standard library alone: `stages` counts its own imports."""

from __future__ import annotations

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
