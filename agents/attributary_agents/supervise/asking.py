"""Asks the workers of one machine over their own sockets, all at once, and waits for none of them for long."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NamedTuple


class Answer(NamedTuple):
    """What a worker has answered: its status, its type and its text."""

    status: int
    content_type: str
    text: str


class Workers:
    """The workers by their numbers, from 0, as they answer or not.

    Parameters
    ----------
    sockets
        Path of each worker's socket.
    clock
        Seconds of a clock that never goes back.
    """

    def __init__(self, sockets: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._sockets = sockets
        self._clock = clock
        # Each kind of request is made once at a time, and may have a thread at a worker that hangs.
        self._threads = ThreadPoolExecutor(4 * len(sockets), thread_name_prefix="ask")
        self._silent_since: dict[int, float] = {}
        """When each worker that is there and does not answer was first asked in vain."""

    @property
    def numbers(self) -> range:
        """The numbers of the workers."""
        return range(len(self._sockets))

    def silent_s(self, number: int) -> float | None:
        """Return the seconds for which a worker that is there has not answered; None where it does, or is not there."""
        since = self._silent_since.get(number)
        return None if since is None else self._clock() - since

    def ask(self, path: str, within_s: float, accept: str = "*/*") -> dict[int, Answer]:
        """Return the answers of those that give one within the time, by the workers' numbers."""
        asked = {
            self._threads.submit(_ask, at, path, within_s, accept): number for number, at in enumerate(self._sockets)
        }
        began = self._clock()
        done, late = wait_for(asked, timeout=within_s)
        answers = {}
        for future in done:
            number, told = asked[future], future.result()
            if isinstance(told, Answer):
                answers[number] = told
            if told is not None:
                self._silent_since.pop(number, None)
            else:
                self._silent_since.setdefault(number, began)
        for future in late:
            self._silent_since.setdefault(asked[future], began)
        return dict(sorted(answers.items()))


class _Away:
    """There is no such worker: it has ended, or has not begun."""


def _ask(at: Path, path: str, within_s: float, accept: str) -> Answer | _Away | None:
    """Return the answer; None where the worker does not give one, though it is there."""
    connection = _Connection(at, within_s)
    try:
        connection.request("GET", path, headers={"Accept": accept})
        response = connection.getresponse()
        return Answer(response.status, response.headers["Content-Type"], response.read().decode())
    except (FileNotFoundError, ConnectionError):
        return _Away()
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


class _Connection(HTTPConnection):
    def __init__(self, at: Path, within_s: float) -> None:
        super().__init__("worker", timeout=within_s)
        self._at = at

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._at))
