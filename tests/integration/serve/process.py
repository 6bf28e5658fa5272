"""`attributary serve` as a process, which can be killed."""

from __future__ import annotations

import itertools
from pathlib import Path

import httpx
from support.processes.forked import kill_command, start_command, stop_command
from support.waiting import wait_for

_numbers = itertools.count(1)


class ServeProcess:
    """A server of the page; each has a log of its own, and those with one configuration the same store."""

    def __init__(self, config: Path, folder: Path, port: int) -> None:
        self.log = folder / f"serve-{next(_numbers)}.log"
        self.address = f"http://127.0.0.1:{port}"
        argv = ["serve", "--config", config, "--port", str(port), "--store", folder / f"{config.stem}.sqlite"]
        self.child = start_command(argv, log=self.log)

    def answers(self) -> bool:
        """Return whether it has read what the topics had when it began."""
        assert self.child.poll() is None, self.log.read_text()
        try:
            return httpx.get(f"{self.address}/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def wait_until_it_answers(self) -> None:
        """Wait for that."""
        wait_for("the page answers", self.answers, 120)

    def kill(self) -> None:
        """SIGKILL."""
        kill_command(self.child)

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        return stop_command(self.child, 30)
