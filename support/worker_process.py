"""A worker as a process, and what it leaves on the topics: shared by benchmarks and integration tests."""

from __future__ import annotations

import contextlib
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import Popen
from types import TracebackType
from typing import Any, Self

import yaml
from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.demo.local_broker import free_port
from support.processes.forked import Forked, kill_command, start_command, stop_command


class WorkerProcess:
    """`attributary run` in a process of its own.

    Parameters
    ----------
    config
        The configuration; `web.port` is set to a free one, the first of as many as there are workers.
    folder
        For the configuration file and the log; a restart appends to the log.
    options
        Further options of the command; of several `--workers`, `is_ready` is of all and `samples` add up.
    forked
        Whether it is forked from a process that has imported everything, which saves most of what a start costs; None:
        as the environment variable FORKED_WORKERS says, 1 for yes.
    env
        Is added to this process's environment.
    """

    def __init__(
        self,
        config: dict[str, Any],
        folder: Path,
        *options: str,
        forked: bool | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._options, self._env = options, env
        self._forked = forked
        n = int(options[options.index("--workers") + 1]) if "--workers" in options else 1
        self.port = free_ports(n)
        self.ports = range(self.port, self.port + n)
        self.config_path = folder / f"worker-{self.port}.yaml"
        self.log = folder / f"worker-{self.port}.log"
        settings = {**config, "web": {**config.get("web", {}), "port": self.port}}
        self.config_path.write_text(yaml.safe_dump(settings, sort_keys=False))
        self._child: Popen[bytes] | Forked | None = None

    def start(self) -> None:
        """Start the process; it joins the group in its own time."""
        argv = ["run", "--config", str(self.config_path), *self._options]
        self._child = start_command(argv, log=self.log, env=self._env, forked=self._forked)

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        assert self._child is not None
        return stop_command(self._child, 60)

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
        kill_command(self._child)

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
        return all(map(_is_ready, self.ports))

    @property
    def log_tail(self) -> str:
        """The end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:]) if self.log.exists() else ""

    def metrics(self, *names: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """Sample name to labels to value; empty while the worker does not answer; `names` as in `metrics_at`."""
        return metrics_at(self.port, *names)

    def samples(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Labels to value of the samples of one name; empty where there is none, and while it does not answer."""
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for port in self.ports:
            for labels, value in metrics_at(port, name).get(name, {}).items():
                found[labels] = found.get(labels, 0.0) + value
        return found

    def total(self, name: str) -> int:
        """Sum over the labels of `attributary_<name>`."""
        return int(sum(self.samples(f"attributary_{name}").values()))

    def wait_consumed(
        self, n: int, *, timeout_s: float, every_s: float = 0.2, progress: Callable[[int], None] | None = None
    ) -> None:
        """Wait until the worker has handled n records; fail with its log if it ends or takes too long."""
        deadline = time.monotonic() + timeout_s
        while (consumed := self.total("records_consumed_total")) < n:
            if self._child is not None and self._child.poll() is not None:
                raise RuntimeError(f"the worker ended with {self._child.returncode}:\n{self.log_tail}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{consumed} of {n} records after {timeout_s:.0f} s:\n{self.log_tail}")
            if progress is not None:
                progress(consumed)
            time.sleep(every_s)
        if progress is not None:
            progress(n)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._child is not None and self._child.poll() is None:
            self.kill()


def free_ports(n: int) -> int:
    """Return the first of n ports in a row that are free."""
    while True:
        first = free_port()
        with contextlib.ExitStack() as taken, contextlib.suppress(OSError, OverflowError):
            for port in range(first, first + n):
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
            return first


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:  # it does not answer, or answers that it is not
        return False


def metrics_at(port: int, *names: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Sample name to labels to value, of what answers at a port; empty while nothing does.

    Parameters
    ----------
    names
        How the names begin of what is wanted; all are without one. To read a few costs much less than to read all.
    """
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except (OSError, urllib.error.URLError):
        return {}
    if names:
        text = "".join(f"{line}\n" for line in text.split("\n") if line.startswith(names))
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return samples
