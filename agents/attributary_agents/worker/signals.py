"""Signals to stop, received in a thread.

So a step that blocks the event loop does not delay SIGTERM and SIGINT.

asyncio's own handlers run in the loop, so a worker in a step that hangs would not even know that it is to stop.
"""

from __future__ import annotations

import faulthandler
import signal
import socket
import threading
from collections.abc import Callable

STOP = (signal.SIGTERM, signal.SIGINT)


_heard = threading.Event()


def stop_before_the_start() -> None:
    """End the process at SIGTERM and SIGINT until somebody listens.

    With exit code 0: nothing has begun.
    """

    def stop(_number: int, _frame: object) -> None:
        _heard.set()
        raise SystemExit(0)

    for number in STOP:
        signal.signal(number, stop)


def was_stop_lost() -> bool:
    """Return whether a signal has come that did not end the process.

    Python ignores an exception that is raised in a destructor, so who begins to listen has to ask.
    """
    return _heard.is_set()


class StopSignals:
    """Receiver of SIGTERM and SIGINT that calls `on_stop` from a thread.

    SIGUSR1 prints the stacks of all threads.
    """

    def __init__(self, on_stop: Callable[[signal.Signals], None]) -> None:
        self._on_stop = on_stop
        self._reader, self._writer = socket.socketpair()

    def install(self) -> None:
        """Begin to listen; the main thread has to call this."""
        self._writer.setblocking(False)
        for number in STOP:
            signal.signal(number, lambda _number, _frame: None)
        # Written by the interpreter's handler in C, whatever the main thread is at.
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        if was_stop_lost():
            self._writer.send(bytes([signal.SIGTERM]))
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        threading.Thread(target=self._listen, name="signals", daemon=True).start()

    def _listen(self) -> None:
        while numbers := self._reader.recv(64):
            for number in numbers:
                if number in STOP:
                    self._on_stop(signal.Signals(number))
