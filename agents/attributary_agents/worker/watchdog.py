"""A thread that sees when a step does not end, says where it hangs, and ends the process before it hangs for good.

A step is an observation in a model, a deployment, a checkpoint. Models are the user's code: they block the event loop,
and nothing in it can tell. Code in C that holds the interpreter's lock silences this thread too: then `faulthandler`,
which needs no lock, ends the process.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from ..config.settings import WatchdogConfig
from .view import WorkerView

logger = logging.getLogger(__name__)

POLL_S = 0.5
REPEATS = "the next owner repeats from the last checkpoint"


def end_process(code: int) -> None:
    """End now: nothing that hangs can be waited for. What is not durable is repeated, as after any crash."""
    logging.shutdown()
    os._exit(code)


class Watchdog:
    """Looks at the steps in `view` and at the event loop.

    Parameters
    ----------
    stops
        Whether the application is stopping for another reason than a signal: it has crashed.
    end
        Ends the process, for tests to replace.
    """

    def __init__(
        self,
        config: WatchdogConfig,
        view: WorkerView,
        stops: Callable[[], bool] = lambda: False,
        end: Callable[[int], None] = end_process,
    ) -> None:
        self._config = config
        self._view = view
        self._stops = stops
        self._end = end
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_of_loop = 0
        self._closed = threading.Event()
        self._answered = True
        self._moved = time.monotonic()
        self._why = ""
        # Of the stall that was told: since when, and what it was called.
        self._told: tuple[float, str] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the loop that this thread is about to run."""
        self._loop = loop
        self._thread_of_loop = threading.get_ident()
        self._moved = time.monotonic()
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def close(self) -> None:
        """Watch no longer."""
        self._closed.set()
        faulthandler.cancel_dump_traceback_later()

    def must_stop(self, why: str) -> None:
        """The process has to end from now within `watchdog.stop_within_s`; only the first call counts."""
        if self._view.stop_by is None:
            self._why = why
            self._view.stop_by = time.monotonic() + self._config.stop_within_s

    def _run(self) -> None:
        while not self._closed.wait(POLL_S):
            if self._answered and self._loop is not None and not self._loop.is_closed():
                self._answered = False
                try:
                    self._loop.call_soon_threadsafe(self._answer)
                except RuntimeError:  # closed just now
                    self._answer()
            # Fires where a step holds the interpreter's lock for so long that this thread cannot look.
            faulthandler.dump_traceback_later(self._config.end_after_s + 2 * POLL_S, exit=True)
            self.look(time.monotonic())

    def _answer(self) -> None:
        self._moved = time.monotonic()
        self._answered = True

    def look(self, now: float) -> None:
        """Say what has lasted for too long at `now`, by `time.monotonic`, and end the process where it must."""
        if self._stops():
            self.must_stop("a failure")
        since, what, blocked = self._present(now)
        told = self._told
        if told is not None and told[0] != since:
            logger.warning("%s: moved again after %.0f s", told[1], now - told[0])
            self._told = None
        lasted = now - since
        if lasted >= self._config.warn_after_s and self._told is None:
            self._told = (since, what)
            self._view.stalls += 1
            logger.warning("%s has lasted for %.0f s%s", what, lasted, self._where(blocked))
        stop_by = self._view.stop_by
        if stop_by is not None and now >= stop_by:
            asked = now - stop_by + self._config.stop_within_s
            busy = f": {what} has lasted for {lasted:.0f} s{self._where(blocked)}" if lasted > 2 * POLL_S else ""
            logger.error("not stopped %.0f s after %s; ends now, %s%s", asked, self._why, REPEATS, busy)
            self._end(1)
        elif lasted >= self._config.end_after_s:
            logger.error(
                "%s has lasted for %.0f s, watchdog.end_after_s is %g: the worker ends, %s%s",
                what,
                lasted,
                self._config.end_after_s,
                REPEATS,
                self._where(blocked),
            )
            self._end(1)

    def _present(self, now: float) -> tuple[float, str, bool]:
        """Since when what has lasted, and whether it blocks the event loop."""
        steps = self._view.under_way
        blocked = not self._answered and now - self._moved > 2 * POLL_S
        if steps:
            # Of several only the last to begin can block the loop: no other could have begun since.
            step = steps[-1 if blocked else 0]
            return step.began, str(step), blocked
        return (self._moved if blocked else now), "the event loop", blocked

    def _where(self, blocked: bool) -> str:
        """The stack, without local variables: they may hold what nobody else may read."""
        if not blocked:
            return ", waiting; the event loop moves"
        frame = sys._current_frames().get(self._thread_of_loop)
        frames = traceback.extract_stack(frame)
        # What lies below the task is the same in every worker.
        first = max((n for n, at in enumerate(frames, 1) if Path(at.filename).parent.name == "asyncio"), default=0)
        return "".join((":\n", *traceback.format_list(frames[first:]))).rstrip()
