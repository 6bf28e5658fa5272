"""A liveness probe as Kubernetes has one, and a look at /readyz beside it, each second."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from benchmarks.chaos.lab.fleet import Member
from benchmarks.chaos.lab.lab import Lab

PERIOD_S = 1.0
FAILURES = 3
_TIMEOUT_S = 3.0
"""Kubernetes waits for one second; here other things may have the processor."""


@dataclass(frozen=True)
class Seen:
    """What a worker answered, or None for no answer."""

    second: float
    """Since the scenario began."""
    worker: int
    pid: int
    live: int | None
    ready: int | None
    said: str
    """The text of /readyz."""


class Probe(threading.Thread):
    """Asks every worker that runs; three failures of /livez in a row are a SIGKILL, after which the fleet restarts it.

    A worker counts only once it has answered since its start, as with a startup probe.
    """

    def __init__(self, lab: Lab, members: Sequence[Member]) -> None:
        super().__init__(name="probe", daemon=True)
        self._lab = lab
        self._members = members
        self._done = threading.Event()
        self._failures: dict[int, int] = {}
        """Process id to failures of /livez in a row, since it has answered for the first time."""
        self.seen: list[Seen] = []
        self.kills: list[str] = []
        """Which worker was killed, when, and what /livez said."""

    def run(self) -> None:
        """Called by `start`, in the thread."""
        due = time.monotonic()
        while not self._done.wait(max(due - time.monotonic(), 0.0)):
            due = max(due + PERIOD_S, time.monotonic())
            for i, member in enumerate(list(self._members)):
                if member.wanted and member.is_running:
                    with contextlib.suppress(ProcessLookupError):
                        self._ask(i, member)

    def stop(self) -> None:
        """Ask no more."""
        self._done.set()
        self.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def check(self) -> None:
        """Check that it has killed nobody."""
        seen = "; ".join(self.kills[:3]) or f"0 kills in {len(self.seen)} looks"
        self._lab.check("the probe of /livez kills nobody", not self.kills, seen)

    def _ask(self, i: int, member: Member) -> None:
        pid, port = member.worker.pid, member.worker.port
        live, why = get(port, "/livez")
        ready, said = get(port, "/readyz")
        self.seen.append(Seen(self._lab.elapsed_s, i, pid, live, ready, said))
        if live == 200:
            self._failures[pid] = 0
        elif pid in self._failures:
            self._failures[pid] += 1
            if self._failures[pid] == FAILURES:
                self.kills.append(f"worker {i} at {self._lab.elapsed_s:.1f} s: {live or 'no answer'} {why}".strip())
                os.kill(pid, signal.SIGKILL)


def get(port: int, path: str) -> tuple[int | None, str]:
    """Return status and text of what a worker of this machine answers; None and why for no answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=_TIMEOUT_S) as answer:
            return answer.status, answer.read().decode(errors="replace").strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace").strip()
    except OSError as error:
        return None, str(error)
