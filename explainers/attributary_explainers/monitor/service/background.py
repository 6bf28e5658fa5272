"""A thread that works when it is woken, off the path of requests."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background:
    """Calls a function again and again, as long as it has more to do, whenever it is woken.

    The thread begins with the first `wake`, in the process that calls it: a server that forks its workers has one in
    each of them.

    Parameters
    ----------
    work
        Does a part of what there is to do; returns whether there is more. It raises nothing.
    """

    def __init__(self, work: Callable[[], bool]) -> None:
        self._work = work
        self._begin = threading.Lock()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def wake(self) -> None:
        """Have the thread look for something to do."""
        self._woken.set()
        thread = self._thread
        if thread is None or not thread.is_alive():
            with self._begin:
                if not self._is_closed and (self._thread is None or not self._thread.is_alive()):
                    self._thread = threading.Thread(target=self._run, name="attributary-monitor", daemon=True)
                    self._thread.start()

    def close(self) -> None:
        """End the thread after the part that it is at."""
        with self._begin:
            self._is_closed = True
        self._woken.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_closed:
            self._woken.wait()
            self._woken.clear()
            while not self._is_closed and self._work():
                pass
