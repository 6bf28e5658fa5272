"""A worker as a process, and what it leaves on the topics: shared by benchmarks and integration tests."""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from types import TracebackType
from typing import Any, Self

import yaml
from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.demo.local_broker import free_port
from attributary_agents.demo.processes import kill_child, start_child, stop_child


class WorkerProcess:
    """`attributary run` in a process of its own.

    Parameters
    ----------
    config
        The configuration; `web.port` is set to a free one.
    folder
        For the configuration file and the log; a restart appends to the log.
    options
        Further options of the command.
    """

    def __init__(self, config: dict[str, Any], folder: Path, *options: str) -> None:
        self._options = options
        self.port = free_port()
        self.config_path = folder / f"worker-{self.port}.yaml"
        self.log = folder / f"worker-{self.port}.log"
        settings = {**config, "web": {**config.get("web", {}), "port": self.port}}
        self.config_path.write_text(yaml.safe_dump(settings, sort_keys=False))
        self._child: Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; it joins the group in its own time."""
        argv = [
            sys.executable,
            "-m",
            "attributary_agents.cli",
            "run",
            "--config",
            str(self.config_path),
            *self._options,
        ]
        self._child = start_child(argv, log=self.log)

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        assert self._child is not None
        return stop_child(self._child, 60)

    def wait(self, timeout_s: float) -> int:
        """Wait until it ends by itself; return the exit code."""
        assert self._child is not None
        return self._child.wait(timeout_s)

    def run_until(self, n: int, *, timeout_s: float = 120.0) -> None:
        """Run until n records are handled, and stop; fail unless it ends cleanly."""
        with self:
            self.wait_consumed(n, timeout_s=timeout_s)
            assert self.stop() == 0

    def kill(self) -> None:
        """SIGKILL."""
        assert self._child is not None
        kill_child(self._child)

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._child is not None
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs, or before it was started."""
        return None if self._child is None else self._child.poll()

    def is_ready(self) -> bool:
        """Whether it has its partitions and their state."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    @property
    def log_tail(self) -> str:
        """The end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:]) if self.log.exists() else ""

    def metrics(self) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """Sample name to labels to value; empty while the worker does not answer."""
        return metrics_at(self.port)

    def total(self, name: str) -> int:
        """Sum over the labels of `attributary_<name>`."""
        return int(sum(self.metrics().get(f"attributary_{name}", {}).values()))

    def wait_consumed(self, n: int, *, timeout_s: float, progress: Callable[[int], None] | None = None) -> None:
        """Wait until the worker has handled n records; fail with its log if it ends or takes too long."""
        deadline = time.monotonic() + timeout_s
        while (consumed := self.total("records_consumed_total")) < n:
            if self._child is not None and self._child.poll() is not None:
                raise RuntimeError(f"the worker ended with {self._child.returncode}:\n{self.log_tail}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{consumed} of {n} records after {timeout_s:.0f} s:\n{self.log_tail}")
            if progress is not None:
                progress(consumed)
            time.sleep(0.2)
        if progress is not None:
            progress(n)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._child is not None and self._child.poll() is None:
            self.kill()


def metrics_at(port: int) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Sample name to labels to value, of what answers at a port; empty while nothing does."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except (OSError, urllib.error.URLError):
        return {}
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return samples
