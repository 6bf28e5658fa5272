"""Starts the processes of a machine's workers, starts again what ends, passes signals on, and stops them together.

It has one thread and does nothing else, so that it can fork at any time and has little that could fail.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any

from ..errors import AttributaryError
from ..worker.stopping.signals import STOP, was_stop_lost
from .forking import FAULT, Child, Ending, Lifeline, Role, fork
from .restarts import Restarts

logger = logging.getLogger(__name__)

GRACE_S = 1.0
"""Seconds beyond the time to stop, after which a process that has not ended by itself is killed."""


class _Place:
    """A role, the process that has it, if any, and when there is to be another."""

    def __init__(self, role: Role, restarts: Restarts) -> None:
        self.role = role
        self.restarts = restarts
        self.child: Child | None = None
        self.due_at: float | None = None
        self.n_restarts = 0


class Supervisor:
    """Keeps one process for each role until SIGTERM or SIGINT, or until one ends in a way that no restart mends.

    Parameters
    ----------
    roles
        The first ones first.
    stop_within_s
        Seconds that processes have to stop by themselves; `GRACE_S` later they are killed.
    note
        Called with the number of a role and how often it has been started again so far, each time that it is.
    restarts
        Makes the plan of restarts of each role.
    """

    def __init__(
        self,
        roles: Sequence[Role],
        stop_within_s: float,
        note: Callable[[int, int], None] = lambda _number, _n: None,
        restarts: Callable[[], Restarts] = Restarts,
    ) -> None:
        self._places = [_Place(role, restarts()) for role in roles]
        self._stop_within_s = stop_within_s
        self._note = note
        self._lifeline = Lifeline()
        self._stop_by: float | None = None
        self._code = 0
        self._fault = ""

    @property
    def n_restarts(self) -> int:
        """How many processes have been started again."""
        return sum(place.n_restarts for place in self._places)

    def run(self) -> int:
        """Run until all have stopped; return the exit code: 0 where each has ended so after a signal, 1 otherwise.

        Raises
        ------
        AttributaryError
            A process has ended by a user's fault: the message is its own.
        """
        with _signals() as received:
            try:
                for place in self._places:
                    self._start(place)
                while self._stop_by is None or self._alive():
                    self._wait(received)
            finally:
                self._kill()
                self._lifeline.close()
        if self._fault:
            raise AttributaryError(self._fault)
        return self._code

    def _start(self, place: _Place) -> None:
        place.due_at = None
        place.restarts.begin()
        place.child = fork(place.role, self._lifeline)
        logger.info("%s is process %d", place.role.name, place.child.pid)

    def _alive(self) -> list[_Place]:
        return [place for place in self._places if place.child is not None]

    def _wait(self, received: socket.socket) -> None:
        """Wait for the next thing to happen, and do what follows from it."""
        now = time.monotonic()
        times = [self._stop_by] if self._stop_by is not None else [place.due_at for place in self._places]
        due = min((at for at in times if at is not None), default=None)
        sentinels = {place.child.process.sentinel: place for place in self._places if place.child is not None}
        ready = wait([received, *sentinels], None if due is None else max(due - now, 0.0))
        if received in ready:
            self._hear(received.recv(64))
        for sentinel, place in sentinels.items():
            if sentinel in ready:
                self._ended(place)
        now = time.monotonic()
        if self._stop_by is not None:
            if now >= self._stop_by:
                self._kill()
            return
        for number, place in enumerate(self._places):
            if place.due_at is not None and now >= place.due_at:
                place.n_restarts += 1
                self._start(place)
                self._note(number, place.n_restarts)

    def _hear(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGUSR1:
                for place in self._alive():
                    _child(place).signal(signal.SIGUSR1)
            elif number in STOP:
                self._stop(signal.Signals(number).name)

    def _stop(self, reason: str) -> None:
        """Let every process stop; only the first call counts: the time that they have to do so runs from there."""
        if self._stop_by is not None:
            return
        self._stop_by = time.monotonic() + self._stop_within_s + GRACE_S
        logger.info("%s: all stop", reason)
        for place in self._alive():
            if not place.role.outlives_others:
                _child(place).signal(signal.SIGTERM)
        self._stop_last()

    def _stop_last(self) -> None:
        """Let the last ones stop, where all others have."""
        alive = self._alive()
        if all(place.role.outlives_others for place in alive):
            for place in alive:
                _child(place).signal(signal.SIGTERM)

    def _ended(self, place: _Place) -> None:
        ending, name = _child(place).ending(), place.role.name
        place.child = None
        if ending.fault is not None and ending.code == FAULT:
            self._fault = self._fault or ending.fault.message
            self._stop(f"{name} has met what no restart mends")
        elif self._stop_by is not None:
            if ending.code:
                self._code = 1
                logger.error("%s %s", name, ending)
            self._stop_last()
        else:
            self._plan(place, ending)

    def _plan(self, place: _Place, ending: Ending) -> None:
        wait_s, name = place.restarts.end(), place.role.name
        if wait_s is None:
            self._code = 1
            n = place.restarts.n_in_a_row
            logger.error("%s %s, the %d. time in a row: it is not started again, and all stop", name, ending, n)
            self._stop(f"{name} does not stay")
            return
        place.due_at = time.monotonic() + wait_s
        again = f", {place.restarts.n_in_a_row} times in a row" if place.restarts.n_in_a_row > 1 else ""
        logger.error("%s %s%s; it starts again in %.1f s", name, ending, again, wait_s)

    def _kill(self) -> None:
        """Kill what has not ended by itself."""
        for place in self._alive():
            logger.error("%s (process %d) has not stopped and is killed", place.role.name, _child(place).pid)
            _child(place).signal(signal.SIGKILL)
            _child(place).ending()
            place.child = None
            self._code = 1


def _child(place: _Place) -> Child:
    assert place.child is not None
    return place.child


@contextlib.contextmanager
def _signals() -> Iterator[socket.socket]:
    """Yield a socket from which the numbers of signals can be read: nothing is interrupted by them."""
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    numbers = (*STOP, signal.SIGUSR1)
    before: dict[signal.Signals, Any] = {
        number: signal.signal(number, lambda _number, _frame: None) for number in numbers
    }
    wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    if was_stop_lost():
        writer.send(bytes([signal.SIGTERM]))
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        reader.close()
        writer.close()
