"""Counts the product's own calls and lines while something runs."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from types import FrameType
from typing import Any

Line = tuple[str, int]
"""A file and a number."""

TraceFunction = Callable[[FrameType, str, Any], Any]


@dataclass(frozen=True)
class Walk:
    """The files of the product's functions that one run entered, in order, and the lines that it passed."""

    files: tuple[str, ...]
    lines: frozenset[Line] = frozenset()

    @property
    def n_files(self) -> int:
        """How many files were entered."""
        return len(set(self.files))

    @property
    def n_changes(self) -> int:
        """How often a call was in another file than the call before it; the first counts."""
        return sum(now != before for before, now in zip((None, *self.files), self.files, strict=False))

    def of_package(self, package: str) -> tuple[int, int, int]:
        """Return how many files of one package were entered, how many of their lines, and by how many calls."""
        own = [file for file in self.files if file.startswith(package + os.sep)]
        return len(set(own)), sum(file.startswith(package + os.sep) for file, _ in self.lines), len(own)


class Recorder:
    """Writes down the product's calls of a function that it runs, and the lines.

    Compiled modules are not seen: no Python frame is made for them.

    Parameters
    ----------
    folders
        The packages' folders; a frame counts where its file lies in one of them.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self._names: dict[str, str | None] = {}
        self._folders = [os.path.join(folder, "") for folder in folders]  # noqa: PTH118 (code objects have strings)

    def walk(self, run: Callable[[], object]) -> Walk:
        """Run it and return what it entered."""
        entered: list[str] = []
        lines: set[Line] = set()

        def enter(frame: FrameType, _event: str, _argument: object) -> TraceFunction | None:
            name = self._name(frame.f_code.co_filename)
            if name is None:
                return None
            entered.append(name)

            def note(frame: FrameType, event: str, _argument: object) -> TraceFunction:
                if event == "line":
                    lines.add((name, frame.f_lineno))
                return note

            return note

        before = sys.gettrace()
        sys.settrace(enter)
        try:
            run()
        finally:
            sys.settrace(before)
        return Walk(tuple(entered), frozenset(lines))

    def _name(self, file: str) -> str | None:
        if file not in self._names:
            folder = next((folder for folder in self._folders if file.startswith(folder)), None)
            self._names[file] = folder and file[len(os.path.dirname(folder.rstrip(os.sep))) + 1 :]  # noqa: PTH120
        return self._names[file]


def summary(name: str, walks: Sequence[Walk], packages: Sequence[str]) -> list[str]:
    """Return the figures of several walks in words: the middle one, and the range."""
    figures = {
        "files": [walk.n_files for walk in walks],
        "lines": [len(walk.lines) for walk in walks],
        "calls": [len(walk.files) for walk in walks],
        "changes of file": [walk.n_changes for walk in walks],
    }
    shown = ", ".join(f"{median(n):g} {what} ({min(n)} to {max(n)})" for what, n in figures.items())
    lines = [f"{name}: {shown}; median (range) of {len(walks)}"]
    for package in packages:
        files, passed, calls = zip(*(walk.of_package(package) for walk in walks), strict=True)
        if any(calls):
            lines.append(f"  {package}: {median(files):g} files, {median(passed):g} lines, {median(calls):g} calls")
    most = Counter(file for walk in walks for file in walk.files).most_common(6)
    lines.append("  most called: " + ", ".join(f"{file} {n / len(walks):.1f}" for file, n in most))
    return lines
