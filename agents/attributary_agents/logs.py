"""Sends logs to stderr, and thins out the repeated lines of other libraries."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

# Faust logs under the module of the subclass.
CHATTY = ("faust", "mode", "aiokafka", "attributary_agents.kafka.faust_fixes")

REPEATED_AFTER_S = 30.0


class Repetitions(logging.Filter):
    """Lets each kind of line of the chatty libraries through once in a while, with how many were held back.

    While no broker answers they log a hundred lines a second. A kind is a logger and its text before
    values are put in.

    Parameters
    ----------
    clock
        Seconds; for tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._logged: dict[tuple[str, str], tuple[float, int]] = {}
        """Kind of line to when it was last let through, and how often it was held back since."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is let through."""
        if not record.name.startswith(CHATTY) or record.exc_info or record.levelno >= logging.CRITICAL:
            return True
        kind, now = (record.name, str(record.msg)), self._clock()
        logged_at, n_held = self._logged.get(kind, (-REPEATED_AFTER_S, 0))
        if now - logged_at < REPEATED_AFTER_S:
            self._logged[kind] = logged_at, n_held + 1
            return False
        self._logged[kind] = now, 0
        if n_held:
            record.msg, record.args = f"{record.getMessage()} (and {n_held} more like this)", None
        return True


def configure_logging(level: str) -> None:
    """Log to stderr: stdout is for data."""
    logging.basicConfig(
        level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    # A constant loss, a model that raises while it is explained: warnings of the explainers are log lines here.
    logging.captureWarnings(capture=True)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(max(logging.getLevelName(level), logging.WARNING))
    if logging.getLevelName(level) > logging.DEBUG:
        for handler in logging.getLogger().handlers:
            handler.addFilter(Repetitions())
