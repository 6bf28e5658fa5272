"""Processes that a nursery forks, as whoever asked for them sees them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attributary_agents.demo.processes import kill_child, start_child, stop_child

_ROOT = Path(__file__).resolve().parents[2]
_COMMAND = (sys.executable, "-m", "attributary_agents.cli")


class Forked:
    """A forked process: what `subprocess.Popen` knows of one."""

    def __init__(self, nursery: _Nursery, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery
        self._fd = os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._fd)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        return self._look(0.0)

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for its end, and return the exit code.

        Raises
        ------
        subprocess.TimeoutExpired
            It has not ended by then.
        """
        if (status := self._look(timeout_s)) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout_s or 0.0)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal; nothing where it has ended."""
        if self.returncode is None:  # not reaped, so that the number is nobody else's
            os.kill(self.pid, number)

    def stop(self, timeout_s: float) -> int:
        """SIGTERM, SIGKILL if it has not ended by then; return the exit code."""
        self.send_signal(signal.SIGTERM)
        try:
            return self.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """SIGKILL; return the exit code."""
        self.send_signal(signal.SIGKILL)
        return self.wait()

    def _look(self, timeout_s: float | None) -> int | None:
        if self.returncode is not None or not select.select([self._fd], [], [], timeout_s)[0]:
            return self.returncode
        with self._nursery.lock:
            if self.returncode is None:  # no other thread has asked meanwhile
                self.returncode = int(self._nursery.ask({"end": self.pid})["status"])
        return self.returncode


class _Nursery:
    """The process of `nursery.py`, which ends when its stdin is closed, by whatever end of this process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.processes.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])},
            start_new_session=True,
        )
        self.lock = threading.RLock()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self.lock:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the nursery ended with {self._process.wait()}: what it said is on stderr")
        answer: dict[str, Any] = json.loads(line)
        return answer


@cache
def _nursery() -> _Nursery:
    return _Nursery()


def fork_command(argv: Sequence[str | Path], *, log: Path, env: Mapping[str, str] | None = None) -> Forked:
    """Start `attributary` with these arguments, both outputs appended to `log`; it ends when this process does.

    Parameters
    ----------
    env
        Is added to this process's environment.
    """
    return _fork(argv, log, log, env)


def _fork(argv: Sequence[str | Path], out: Path, err: Path, env: Mapping[str, str] | None) -> Forked:
    start = {
        "argv": [str(part) for part in argv],
        "out": str(out.absolute()),
        "err": str(err.absolute()),
        "env": {**os.environ, **(env or {})},
        "cwd": str(Path.cwd()),
    }
    for log in (out, err):
        log.touch()  # the child opens them in its own time, and they are read from now on
    nursery = _nursery()
    return Forked(nursery, int(nursery.ask({"start": start})["pid"]))


def start_command(
    argv: Sequence[str | Path], *, log: Path, env: Mapping[str, str] | None = None, forked: bool | None = None
) -> subprocess.Popen[bytes] | Forked:
    """Start `attributary` as `fork_command` does, or in an interpreter of its own.

    Parameters
    ----------
    forked
        None: as the environment variable FORKED_WORKERS says, 1 for yes.
    """
    if _are_forked() if forked is None else forked:
        return fork_command(argv, log=log, env=env)
    return start_child([*_COMMAND, *argv], log=log, env=env)


def run_command(argv: Sequence[str | Path], *, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Run `attributary` with these arguments, without a terminal, to its end; return the exit code and what it said.

    Raises
    ------
    subprocess.TimeoutExpired
        It has not ended by then.
    """
    if not _are_forked():
        fresh = [*_COMMAND, *map(str, argv)]
        return subprocess.run(fresh, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL)
    with TemporaryDirectory(prefix="attributary-command-") as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        child = _fork(argv, out, err, None)
        try:
            code = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        return subprocess.CompletedProcess([*argv], code, out.read_text(), err.read_text())


def _are_forked() -> bool:
    return os.environ.get("FORKED_WORKERS") == "1"


def stop_command(child: subprocess.Popen[bytes] | Forked, timeout_s: float) -> int:
    """SIGTERM, SIGKILL if it has not ended by then; return the exit code."""
    return child.stop(timeout_s) if isinstance(child, Forked) else stop_child(child, timeout_s)


def kill_command(child: subprocess.Popen[bytes] | Forked) -> int:
    """SIGKILL; return the exit code."""
    return child.kill() if isinstance(child, Forked) else kill_child(child)
