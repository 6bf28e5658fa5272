"""Logs to stderr, with repeated lines of other libraries thinned out."""

from __future__ import annotations

import logging
import re
import sys
import time
import warnings
from collections.abc import Callable
from textwrap import indent
from typing import Any, TextIO

from attributary_explainers.wording import printable

CHATTY = ("faust", "mode", "aiokafka", "attributary_agents.kafka.upstream")  # Faust logs under a subclass's module

REPEATED_AFTER_S = 30.0

_FORGED = re.compile(r"\n(?! )")
"""The end of a line that is not followed by an indented one."""

_USER_OF_URL = re.compile(r"(?<=://)[^/?#\s'\"]{1,1000}@")
_USER_OF_BROKER = re.compile(r"(?<![\w:/@.-])[^\s/@:,'\"\[\]]{1,200}:[^\s/@,'\"]{1,1000}@(?=[\w.\[-]+:\d)")


def without_user(text: str) -> str:
    """Replace users and passwords of URLs and brokers in a text by `***`.

    Examples
    --------
    >>> without_user("s3://key:secret@bucket/states of ops:pass@kafka:9092, mail ops@example.org")
    's3://***@bucket/states of ***@kafka:9092, mail ops@example.org'
    """
    return _USER_OF_BROKER.sub("***@", _USER_OF_URL.sub("***@", text)) if "@" in text else text


class Repetitions(logging.Filter):
    """Filter that thins out repeated lines of chatty libraries.

    It lets each kind of line through once in a while, with how many were held back.

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


class LoggedWarnings:
    """Logs Python's warnings without values of records, each once.

    Those of this project say what they say without values. The text of others, such as those of a model's own code,
    may hold anything, so that their kind and place alone are logged.
    """

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Log a warning, in place of Python's `warnings.showwarning`."""
        if category.__module__.startswith("attributary_"):
            text = getattr(message, "without_values", "") or str(message)
        else:
            text = f"at {filename}:{lineno}; its text may hold values and is not logged"
        said = f"{category.__name__}: {text}"
        if said not in self._said:
            self._said.add(said)
            logging.getLogger("py.warnings").warning("%s", said)


class PlainLines(logging.Formatter):
    """Formatter that makes each record a plain line without passwords.

    Nothing in it looks like another record or moves the terminal.

    A message is one line; only what is indented below it, such as a stack, is on lines of its own.

    Parameters
    ----------
    process
        Stands in front of each line, behind `[` and before `]`; empty: nothing does.
    """

    def __init__(self, form: str, process: str = "") -> None:
        self._mark = f"[{process}] " if process else ""
        super().__init__(form)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, and an indented traceback below it."""
        text = printable(super().format(record), keep="\n")
        return self._mark + without_user(_FORGED.sub(r"\\n", text)).replace("\n", f"\n{self._mark}")

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the base class's name
        """Return the traceback, indented.

        The exception's text may have lines of its own.
        """
        return indent(super().formatException(ei), "  ", lambda _: True)

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - the base class's name
        """Return the stack, indented."""
        return indent(super().formatStack(stack_info), "  ", lambda _: True)


def configure_logging(level: str, process: str = "") -> None:
    """Log to stderr: stdout is for data.

    Parameters
    ----------
    process
        Which of several processes this is, where they log to one stream: it stands in each of its lines.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainLines("%(asctime)s %(levelname)s %(name)s: %(message)s", process=process))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # A constant loss, a model that raises while it is explained: warnings of the explainers are log lines here.
    warnings.showwarning = LoggedWarnings()
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(max(logging.getLevelName(level), logging.WARNING))
    if logging.getLevelName(level) > logging.DEBUG:
        handler.addFilter(Repetitions())
