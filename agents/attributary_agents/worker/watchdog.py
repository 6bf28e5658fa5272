"""Watchdog thread for steps that do not end.

It logs where a step hangs, and ends the process before that hangs for good.

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
from typing import NamedTuple

from ..config.settings import WatchdogConfig
from .activity import Activity, Step

logger = logging.getLogger(__name__)


POLL_S = 0.5
REPEATS = "the next owner repeats from the last checkpoint"


def end_process(code: int) -> None:
    """End the process at once, without waiting for anything.

    Work that is not durable is repeated, as after any crash.
    """
    logging.shutdown()
    os._exit(code)


class _Oldest(NamedTuple):
    """Longest-lasting work: start, name, and if it blocks the event loop."""

    since: float
    name: str
    blocks_loop: bool
    step: Step | None = None


class Watchdog:
    """Ends the process where a step or a stop takes too long.

    Parameters
    ----------
    activity
        The steps that are under way.
    is_stopping
        Whether the application is stopping for another reason than a signal: it has crashed.
    waits_for_brokers
        Whether brokers are away or do not acknowledge: however long a step waits for Kafka then, it is no stall.
    end
        Ends the process, for tests to replace.
    """

    def __init__(
        self,
        config: WatchdogConfig,
        activity: Activity,
        is_stopping: Callable[[], bool] = lambda: False,
        waits_for_brokers: Callable[[], str] = lambda: "",
        end: Callable[[int], None] = end_process,
    ) -> None:
        self._config = config
        self._activity = activity
        self._is_stopping = is_stopping
        self._waits_for_brokers = waits_for_brokers
        self._end = end
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._closed = threading.Event()
        self._answered = True
        self._answered_at = time.monotonic()
        self._stop_reason = ""
        self._logged: _Oldest | None = None
        """The stall that has been logged and is not over."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the loop that this thread is about to run."""
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._answered_at = time.monotonic()
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def close(self) -> None:
        """Watch no longer."""
        self._closed.set()
        faulthandler.cancel_dump_traceback_later()

    def begin_stop(self, reason: str) -> None:
        """Give the process `watchdog.stop_within_s` to end, from now.

        Only the first call has an effect.
        """
        if self._activity.stop_by is None:
            self._stop_reason = reason
            self._activity.stop_by = time.monotonic() + self._config.stop_within_s

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
            self.check(time.monotonic())

    def _answer(self) -> None:
        self._answered_at = time.monotonic()
        self._answered = True
        self._activity.beat()

    def check(self, now: float) -> None:
        """Log work that lasts too long; end the process where it must end.

        `now` is by `time.monotonic`.
        """
        if self._is_stopping():
            self.begin_stop("a failure")
        oldest = self._find_oldest(now)
        self._log_stalls(oldest, now)
        lasted, stop_by = now - oldest.since, self._activity.stop_by
        if stop_by is not None and now >= stop_by:
            asked = now - stop_by + self._config.stop_within_s
            busy = f": {oldest.name} has lasted for {lasted:.0f} s{self._where(oldest)}" if lasted > 2 * POLL_S else ""
            why = self._waits_for_brokers()
            logger.log(
                logging.WARNING if why else logging.ERROR,
                "not stopped %.0f s after %s%s; ends now, %s%s",
                asked,
                self._stop_reason,
                f", because {why}" if why else "",
                REPEATS,
                busy,
            )
            self._end(1)
        elif lasted >= self._config.end_after_s:
            logger.error(
                "%s has lasted for %.0f s, watchdog.end_after_s is %g: the worker ends, %s%s",
                oldest.name,
                lasted,
                self._config.end_after_s,
                REPEATS,
                self._where(oldest),
            )
            self._end(1)

    def _log_stalls(self, oldest: _Oldest, now: float) -> None:
        logged, lasted = self._logged, now - oldest.since
        if logged is not None and not _is_same(logged, oldest):
            if logged.step not in self._activity.steps:
                logger.warning("%s: moved again after %.0f s", logged.name, now - logged.since)
                self._logged = None
            elif lasted >= self._config.warn_after_s:  # another one lasts, while this one waits for brokers
                self._logged = None
        if lasted >= self._config.warn_after_s and self._logged is None:
            self._logged = oldest
            self._activity.n_stalls += 1
            logger.warning("%s has lasted for %.0f s%s", oldest.name, lasted, self._where(oldest))

    def _find_oldest(self, now: float) -> _Oldest:
        steps = self._activity.steps
        blocks_loop = not self._answered and now - self._answered_at > 2 * POLL_S
        if steps:
            if not blocks_loop and self._waits_for_brokers():
                self._activity.rest(now)
            # Of several only the last to begin can block the loop: no other could have begun since.
            step = steps[-1] if blocks_loop else min(steps, key=lambda step: step.since)
            return _Oldest(step.since, str(step), blocks_loop, step)
        return _Oldest(self._answered_at if blocks_loop else now, "the event loop", blocks_loop)

    def _where(self, oldest: _Oldest) -> str:
        """Return the stack as text, without local variables.

        They may hold data that nobody else may read.
        """
        if not oldest.blocks_loop:
            return ", waiting; the event loop moves"
        frame = sys._current_frames().get(self._loop_thread)
        frames = traceback.extract_stack(frame)
        # What lies below the task is the same in every worker.
        first = max((n for n, at in enumerate(frames, 1) if Path(at.filename).parent.name == "asyncio"), default=0)
        return "".join((":\n", *traceback.format_list(frames[first:]))).rstrip()


def _is_same(one: _Oldest, other: _Oldest) -> bool:
    return one.step is other.step if one.step else one.since == other.since
