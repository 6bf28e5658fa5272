"""Forks a process that ends with its supervisor, and says how it has ended.

A fork shares all memory of its parent until one of the two writes to it: what was imported before is there once. It
has the parent's locks, too, and none of its threads, so that the parent must have no thread but one: a supervisor has
none, no event loop and no connection. The threads of OpenBLAS, which numpy and scipy start, end before each fork by a
handler of theirs.
"""

from __future__ import annotations

import contextlib
import gc
import mmap
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, MutableSequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from ..errors import AttributaryError, BrokersAwayError
from ..worker.stopping.signals import stop_before_the_start

FAULT = 2
"""Exit code of a process that a restart cannot mend: a user's fault."""

_LIFELINE = "lifeline"
_STOP_WITHIN_S = 5.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


class Role(NamedTuple):
    """What a forked process is for.

    Attributes
    ----------
    name
        Its name in the log: `worker 1`.
    work
        Does the work, in the forked process, until SIGTERM; returns the exit code.
    outlives_others
        Whether it is to stop only when all others have stopped.
    """

    name: str
    work: Callable[[], int]
    outlives_others: bool = False


class Fault(NamedTuple):
    """What a process has said before it ended: the message of an AttributaryError, and the causes of brokers away."""

    message: str
    causes: str | None = None


class Ending(NamedTuple):
    """How a process has ended.

    Attributes
    ----------
    code
        Exit code, or a signal's number below 0.
    fault
        What a user has to mend; None where there is no such thing.
    """

    code: int
    fault: Fault | None = None

    def __str__(self) -> str:
        if self.code == -signal.SIGKILL:
            return "was killed (SIGKILL): by hand, or by the system where memory is short"
        if self.code < 0:
            return f"was ended by {signal.Signals(-self.code).name}"
        alone = ", by a signal that it alone has got" if self.code == 0 else ""
        return f"ended with exit code {self.code}{alone}"


class Lifeline:
    """A pipe that the supervisor alone holds open: when it is closed, by whatever end, its processes stop."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def follow(self) -> None:
        """Stop this process, a forked one, by SIGTERM as soon as the supervisor is no more."""
        os.close(self._writer)
        threading.Thread(target=self._wait, name=_LIFELINE, daemon=True).start()

    def _wait(self) -> None:
        os.read(self._reader, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def close(self) -> None:
        """Let go, in the supervisor."""
        os.close(self._reader)
        os.close(self._writer)


@dataclass(frozen=True)
class Child:
    """A forked process, as its supervisor sees it."""

    process: BaseProcess
    reports: Connection

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid or 0

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing where the process has ended."""
        if self.process.exitcode is None:  # not reaped, so that the number is nobody else's
            os.kill(self.pid, number)

    def ending(self) -> Ending:
        """Wait for the end, and return how it was."""
        self.process.join()
        code = self.process.exitcode
        fault = None
        with contextlib.suppress(EOFError, OSError), self.reports:
            if self.reports.poll():
                fault = Fault(*self.reports.recv())
        return Ending(1 if code is None else code, fault)


_FORK = multiprocessing.get_context("fork")


def fork(role: Role, lifeline: Lifeline) -> Child:
    """Start the process of a role. This process must have one thread."""
    reports, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_begin, args=(role, lifeline, sender), name=role.name)
    with sender, _held_back():
        process.start()
    return Child(process, reports)


def run_once(role: Role) -> Ending:
    """Do a role's work in a forked process, wait for it, and return how it ended."""
    lifeline = Lifeline()
    child = fork(role, lifeline)
    try:
        return child.ending()
    except BaseException:
        child.signal(signal.SIGKILL)
        child.process.join()
        raise
    finally:
        lifeline.close()


def _begin(role: Role, lifeline: Lifeline, sender: Connection) -> int:
    # The supervisor's own: what was written there would be a signal to it.
    signal.set_wakeup_fd(-1)
    stop_before_the_start()
    # A terminal sends it to all processes at once: the supervisor alone hears it, and passes SIGTERM on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    lifeline.follow()
    try:
        code = role.work()
    except AttributaryError as error:
        sender.send((str(error), error.causes if isinstance(error, BrokersAwayError) else None))
        code = FAULT
    raise SystemExit(code)


def is_forkable() -> bool:
    """Return whether what this process has run so far left no threads: a fork would have what they hold, for ever.

    Those of OpenMP are not Python's and outlast their work; where its library has been loaded, they are to be expected.
    """
    others = {thread.name for thread in threading.enumerate()} - {"MainThread", _LIFELINE}
    try:
        mapped = Path("/proc/self/maps").read_text()
    except OSError:
        mapped = ""
    return not others and not any(name in mapped for name in ("libgomp", "libiomp", "libomp"))


def set_aside() -> None:
    """Have the collector pass over all that is there, so that it writes to none of what forks share.

    Raises
    ------
    AttributaryError
        This process has other threads: it cannot be forked.
    """
    if others := sorted(thread.name for thread in threading.enumerate() if thread is not threading.main_thread()):
        raise AttributaryError(
            f"--workers: code of a model starts threads where it is imported ({', '.join(others)}), so that no process "
            "can be forked: start that many `attributary run`, each with a web.port of its own"
        )
    gc.collect()
    gc.freeze()


def shared_numbers(n: int) -> MutableSequence[float]:
    """Return n zeros that this process and all that are forked from it see alike."""
    return memoryview(mmap.mmap(-1, 8 * n)).cast("d")  # type: ignore[return-value]


@contextlib.contextmanager
def _held_back() -> Iterator[None]:
    """Hold back signals while a process is forked: its child would tell its supervisor of its own ones."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
