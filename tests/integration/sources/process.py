"""`attributary map` as a process, which can be killed, frozen and woken."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import yaml
from support.processes.forked import kill_command, start_command, stop_command
from support.waiting import wait_for
from support.worker_process import metrics_at

from attributary_agents.demo.local_broker import free_port


class MapperProcess:
    """One mapper; each has a log of its own, in one folder."""

    n_started = 0

    def __init__(self, raw: dict[str, Any], folder: Path, *, once: bool = False) -> None:
        MapperProcess.n_started += 1
        self.log = folder / f"mapper-{self.n_started}.log"
        path = folder / f"mapper-{self.n_started}.yaml"
        self._port = free_port()
        path.write_text(yaml.safe_dump({**raw, "web": {"port": self._port}}, sort_keys=False))
        self.child = start_command(["map", "-c", path, *(["--once"] if once else [])], log=self.log)

    @property
    def said(self) -> str:
        """Its log."""
        return self.log.read_text(errors="replace")

    def metrics(self, *names: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """Sample name to labels to value; empty while it does not answer; `names` as in `metrics_at`."""
        return metrics_at(self._port, *names)

    def wait_until_it_maps(self) -> None:
        """Wait until it has begun to map, and fail with its log where it does not."""
        wait_for("the mapper begins", lambda: "mapping begins" in self.said or self.child.poll() is not None, 90)
        assert self.child.poll() in (None, 0), self.said

    def freeze(self) -> None:
        """Stop it in the middle of whatever it does."""
        self.child.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on as if nothing had been."""
        self.child.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL."""
        kill_command(self.child)

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        return stop_command(self.child, 30)
