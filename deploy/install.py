"""Install packages with pip into a virtual environment, and show what and how much while it goes on.

Run by the Makefile with the environment's own Python; it needs nothing but the standard library:
`.venv/bin/python deploy/install.py --editable '.[demo]'`. All arguments are those of `pip install`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path

_FILE = re.compile(r"\s*(?:Downloading|Using cached) (?P<file>\S+) \((?P<size>[\d.]+) ?(?P<unit>bytes|[kMG]B)\)")
_FACTOR = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}
_SHOWN_MB = 1.0
_TAIL = 25


class Progress:
    """Reads the lines of pip and says how far it is: on a terminal in one line, elsewhere in a few.

    Parameters
    ----------
    is_terminal
        Whether the line can be drawn again and again.
    """

    def __init__(self, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self._began = time.monotonic()
        self._now = "reading what is needed"
        self._width = 0
        self.n_packages = 0
        self.megabytes = 0.0

    def read(self, line: str) -> None:
        """Take one line of pip's output."""
        if line.startswith("Collecting "):
            self._now = f"looking for {re.split('[^a-zA-Z0-9_.-]', line.split()[1])[0]}"
        elif (found := _FILE.match(line)) and not found["file"].endswith(".metadata"):
            name, size = found["file"].split("-")[0], float(found["size"]) * _FACTOR[found["unit"]]
            self.n_packages += 1
            self.megabytes += size
            self._now = f"{name}, {size:.1f} MB"
            if size >= _SHOWN_MB and not self._is_terminal:
                self._say()
        elif line.startswith("Installing collected packages"):
            self._now = f"unpacking {line.count(',') + 1} packages"
            if not self._is_terminal:
                self._say()

    def tick(self) -> None:
        """Draw the line of a terminal again."""
        if self._is_terminal:
            self._say(end="")

    def clear(self) -> None:
        """Remove the line of a terminal."""
        if self._is_terminal:
            print("\r" + " " * self._width + "\r", end="", flush=True)

    def _say(self, end: str = "\n") -> None:
        text = (
            f"  {time.monotonic() - self._began:3.0f} s  {self.n_packages} files, {self.megabytes:.0f} MB: {self._now}"
        )
        print(("\r" + text.ljust(self._width)) if self._is_terminal else text, end=end, flush=True)
        self._width = len(text)


def install(arguments: Iterable[str]) -> int:
    """Run `pip install` with these arguments, show how far it is, and return its exit code."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    progress = Progress(sys.stdout.isatty())
    tail: deque[str] = deque(maxlen=_TAIL)
    with subprocess.Popen(
        [*command, "--progress-bar", "off", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as pip:
        ended = threading.Event()

        def draw() -> None:
            while not ended.wait(0.2):
                progress.tick()

        drawing = threading.Thread(target=draw, daemon=True)
        drawing.start()
        assert pip.stdout is not None
        for line in pip.stdout:
            tail.append(line)
            progress.read(line)
        ended.set()
        drawing.join()
    progress.clear()
    if pip.returncode:
        print("".join(tail), end="", file=sys.stderr)
        print("pip could not install the packages; what it said last is above", file=sys.stderr)
        return pip.returncode
    folder = Path(sys.prefix)
    n, megabytes = _size(folder)
    print(f"{n} packages are installed, {megabytes:.0f} MB in {folder.name}, after {time.monotonic() - began:.0f} s")
    return 0


def _size(folder: Path) -> tuple[int, float]:
    n = len(list(folder.glob("lib/*/site-packages/*.dist-info")))
    return n, sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


if __name__ == "__main__":
    sys.exit(install(sys.argv[1:]))
