"""Watch over whether brokers answer, with log lines when they do not.

It goes by all that the clients of this process see. Clients tell it of each answer and of each failure
(`connection.py`). Where nothing is heard, `keep_asking` asks.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .writes import WriteWatch

logger = logging.getLogger(__name__)

AWAY_AFTER_S = 2.0
"""Seconds for which no broker is well, from which on they count as away."""

WELL_S = 30.0
"""Seconds for which a broker counts as well after an answer, while it does not fail: one is heard of every few."""

SETTLED_AFTER_S = 5.0
"""Seconds after the return of brokers in which clients still fail by what was before."""

SAY_EVERY_S = 60.0
"""Seconds between two lines about the same outage."""

FORGOTTEN_AFTER_S = 60.0
"""Seconds after which a broker that nobody tries to reach is no longer told of."""

PROBE_AFTER_S = 10.0
"""Seconds without an attempt after which a broker that has been told of is tried: clients leave out what is gone."""

PROBED_FOR_S = 3600.0
"""Seconds for which such a broker is tried; one that stays away longer has left the cluster."""


@dataclass
class _Failing:
    """A broker that has failed and not answered since."""

    since: float
    cause: str
    failed_at: float
    said_at: float | None = None


def cause_of(error: BaseException) -> str:
    """Return in a few words why a broker cannot be reached.

    They are the system's words, without an address.
    """
    if isinstance(error, OSError) and error.errno:
        # Of addresses that cannot be looked up the numbers are others.
        return os.strerror(error.errno) if error.errno > 0 else str(error.strerror)
    return str(error) or type(error).__name__


class BrokerWatch:
    """Availability of the brokers, as the clients of a process see it.

    Parameters
    ----------
    clock
        Seconds of a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failing: dict[str, _Failing] = {}
        self._failed_since: float | None = None
        """The first failure since the last answer of any broker."""
        self._lost_since: float | None = None
        """Since when no broker is well."""
        self._answers: dict[str, float] = {}
        """When those that have answered, and not failed since, last did."""
        self._answered_at: float | None = None
        self._back_at = -math.inf
        self._away_said_at: float | None = None
        self._away_since = 0.0
        self._attempts_before = 0
        self.last_answer_s: float | None = None
        """Time of the last answer in seconds since the epoch; None before the first."""
        self.n_attempts = 0
        """Attempts to connect, successful ones too."""
        self.configured: tuple[str, ...] = ()
        """Where clients look for brokers at first, `kafka.brokers`."""
        self.writes = WriteWatch(clock)
        """For how long brokers have left a write without an acknowledgement."""

    def attempt(self) -> None:
        """Count an attempt to connect."""
        self.n_attempts += 1

    def answer(self, node: str) -> None:
        """Note an answer of the broker `node`, host:port."""
        if self.away_s is not None:
            self._back_at = self._clock()
            self.writes.note_return()
        self._answered_at, self.last_answer_s, self._failed_since = self._clock(), time.time(), None
        self._answers[node], self._lost_since = self._answered_at, None
        if node in self._failing:
            with self._lock:
                failing = self._failing.pop(node, None)
            if failing is not None and failing.said_at is not None and self._away_said_at is None:
                lasted = self._clock() - failing.since
                logger.warning("the broker at %s answers again, after %.0f s", node, lasted)

    def fail(self, node: str, cause: str) -> None:
        """Note that the broker `node` cannot be reached or does not answer.

        `node` is host:port.
        """
        now = self._clock()
        if self._failed_since is None:
            self._failed_since = now
        with self._lock:
            failing = self._failing.setdefault(node, _Failing(now, cause, now))
            failing.cause, failing.failed_at = cause, now
        self._answers.pop(node, None)
        # One of several that is gone fails every two seconds, and the others may be heard of less often.
        if self._lost_since is None and all(now - at > WELL_S for at in tuple(self._answers.values())):
            self._lost_since, self._attempts_before = now, self.n_attempts

    @property
    def is_known(self) -> bool:
        """Whether any broker has answered or failed."""
        return self._answered_at is not None or self._failed_since is not None

    @property
    def is_failing(self) -> bool:
        """Whether a broker has failed and not answered since."""
        return bool(self._failing)

    @property
    def is_settled(self) -> bool:
        """Whether no broker has failed lately, and none has just come back.

        Lately is since the last answer of any broker.
        """
        return self._failed_since is None and self._clock() - self._back_at > SETTLED_AFTER_S

    @property
    def is_told(self) -> bool:
        """Whether the log says already that requests and writes fail or hang."""
        return self.is_failing or not self.is_settled or self.writes.is_late

    @property
    def silent_s(self) -> float:
        """Seconds since the last answer of any broker; infinite before the first."""
        return float("inf") if self._answered_at is None else self._clock() - self._answered_at

    def silent_s_of(self, node: str) -> float:
        """Return the seconds since the last answer of the broker `node`.

        They are infinite where it has failed since.
        """
        return self._clock() - self._answers.get(node, -math.inf)

    @property
    def to_probe(self) -> list[str]:
        """Brokers that the log has told of and no client tries any more.

        Somebody has to find out when they are back.
        """
        now = self._clock()
        with self._lock:
            return [
                node
                for node, failing in self._failing.items()
                if failing.said_at is not None
                and now - failing.failed_at >= PROBE_AFTER_S
                and now - failing.since < PROBED_FOR_S
            ]

    @property
    def is_lost(self) -> bool:
        """Whether every broker that has answered lately has failed since."""
        return self._lost_since is not None

    @property
    def away_s(self) -> float | None:
        """Seconds for which brokers have been away; None where they are not.

        They are away where some have failed and none is well.
        """
        since = self._lost_since
        lasted = 0.0 if since is None else self._clock() - since
        return lasted if lasted >= AWAY_AFTER_S else None

    @property
    def nodes(self) -> str:
        """Failing brokers as text, and the configured brokers if they differ.

        A broker is host:port, and there are commas between them.
        """
        with self._lock:
            failing = sorted(self._failing)
        return f"{', '.join(failing)}{self._others(failing)}"

    def _others(self, failing: Iterable[str]) -> str:
        """Return a note of the configured addresses if they differ.

        They differ where the cluster has told of the brokers that fail.
        """
        if set(self.configured) <= set(failing):
            return ""
        return f"; kafka.brokers is {', '.join(self.configured)}"

    def say_due(self) -> None:
        """Log that brokers are away, or that they are back.

        That they are away is logged at once and then once a minute. While some answer, also that none acknowledges.
        """
        now, away_s = self._clock(), self.away_s
        if away_s is not None:
            self._say_away(now, away_s)
            return
        if self._lost_since is None:
            self.writes.say_due()
        if self._away_said_at is not None and self._lost_since is None:
            logger.warning(
                "a broker answers again, after %.0f s and %d attempts to connect",
                now - self._away_since,
                self.n_attempts - self._attempts_before,
            )
            self._away_said_at = None
        with self._lock:
            forgotten = {n: one for n, one in self._failing.items() if now - one.failed_at >= FORGOTTEN_AFTER_S}
            for node in forgotten:
                del self._failing[node]
            due = [(node, failing) for node, failing in self._failing.items() if _is_due(failing, now)]
        for node, failing in forgotten.items():
            if failing.said_at is not None:
                lasted = now - failing.since
                logger.warning("the broker at %s has not answered for %.0f s, and is asked no longer", node, lasted)
        for node, failing in due:
            failing.said_at = now
            logger.warning(
                "the broker at %s has not answered for %.0f s, others do: %s", node, now - failing.since, failing.cause
            )

    def _say_away(self, now: float, away_s: float) -> None:
        if self._away_said_at is None:
            self._away_since = now - away_s
        elif now - self._away_said_at < SAY_EVERY_S:
            return
        is_first, self._away_said_at = self._away_said_at is None, now
        with self._lock:
            causes = "; ".join(f"{node}: {failing.cause}" for node, failing in sorted(self._failing.items()))
            causes += self._others(self._failing)
        if is_first:
            logger.warning(
                "no broker answers (%s): the worker waits and goes on by itself; what is handled and not stored stays",
                causes,
            )
        else:
            tried = self.n_attempts - self._attempts_before
            logger.warning("no broker has answered for %.0f s (%s), %d attempts to connect", away_s, causes, tried)


def _is_due(failing: _Failing, now: float) -> bool:
    last = failing.said_at
    return now - failing.since >= AWAY_AFTER_S if last is None else now - last >= SAY_EVERY_S


class BrokerLog:
    """Thread that logs the lines that a broker watch has due.

    A blocked event loop does not delay it.

    Parameters
    ----------
    look
        Called about once a second, before what is due is logged: tells the watch what nobody else does.
    """

    def __init__(self, watch: BrokerWatch, look: Callable[[], None] = lambda: None) -> None:
        self._watch = watch
        self._look = look
        self._closed = threading.Event()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="brokers", daemon=True).start()

    def close(self) -> None:
        """Log no longer."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(1.0):
            try:
                self._look()
                self._watch.say_due()
            except Exception:  # without this thread nobody would be told of brokers again
                logger.exception("what brokers do could not be looked at, and is looked at again")


BROKERS = BrokerWatch()
"""What this process has seen of its brokers."""
