"""Availability of the brokers, as clients see it and as the log says it.

A broker may also answer and acknowledge nothing: the partition has no leader, or fewer replicas in sync than
min.insync.replicas.
"""

from __future__ import annotations

import logging
import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..errors import BrokersAwayError

logger = logging.getLogger(__name__)

FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 2.0
"""Seconds between two attempts to connect to the same broker: at first, and at most."""

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

SAY_AFTER_S = 10.0
"""Seconds without an acknowledgement after which the log says so: the election of a leader takes less."""

NOT_READY_AFTER_S = 30.0
"""Seconds without an acknowledgement after which a worker is not ready, and the alert begins to wait."""

_NAMED = 3  # of what waits, in a line

HOW_TO_LOOK = "`attributary topics list` shows the replicas in sync, and the brokers that do not answer"
"""What an operator does about it first."""


class Backoff:
    """Back-off between attempts to connect: it doubles, with jitter.

    Parameters
    ----------
    draw
        Returns a number between 0 and 1, by which the brokers' clients do not come all at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, draw: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._draw = draw
        self._n_failures = 0
        self._not_before = -math.inf

    @property
    def wait_s(self) -> float:
        """Seconds to the next attempt; 0 where it is time for it."""
        return max(self._not_before - self._clock(), 0.0)

    def note(self, *, connected: bool) -> None:
        """Note how an attempt has ended."""
        self._n_failures = 0 if connected else self._n_failures + 1
        if connected:
            self._not_before = -math.inf
            return
        longest = min(FIRST_WAIT_S * 2 ** min(self._n_failures - 1, 30), LONGEST_WAIT_S)
        self._not_before = self._clock() + longest * (1 + self._draw()) / 2


class WriteWatch:
    """The oldest write that waits, and the names of all that wait.

    Parameters
    ----------
    clock
        Seconds of a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: tuple[str, ...] = ()
        self._since: float | None = None
        self._looked_at = -math.inf
        self._back_at = -math.inf
        self._said_at: float | None = None
        self._said_since = 0.0

    @property
    def age_s(self) -> float:
        """Seconds for which the oldest write has waited; 0 where none waits."""
        since = self._since
        return 0.0 if since is None else max(self._clock() - since, 0.0)

    @property
    def withheld_s(self) -> float:
        """Seconds for which answering brokers left the oldest write waiting.

        Time without an answer of any broker is another fault, and does not count.
        """
        return min(self.age_s, self._clock() - self._back_at)

    @property
    def is_late(self) -> bool:
        """Whether the log says that brokers do not acknowledge, or soon will."""
        return self.age_s >= SAY_AFTER_S or self._said_at is not None

    @property
    def names(self) -> str:
        """Names of waiting writes, with commas; of many only a few."""
        waiting = self._waiting
        more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
        return ", ".join(waiting[:_NAMED]) + more

    def look(self, waiting: Mapping[str, float], *, is_heard: bool = True) -> None:
        """Note the writes that wait now; to be called about once a second.

        Parameters
        ----------
        waiting
            What waits to since when, by the watch's clock.
        is_heard
            Whether the worker reads answers: while a step blocks its event loop, no write gets older.
        """
        now = self._clock()
        passed, self._looked_at = now - self._looked_at, now
        self._waiting = tuple(sorted(waiting, key=lambda name: (waiting[name], name)))
        if not waiting:
            self._since = None
            return
        since = min(waiting.values())
        if self._since is not None:
            since = max(since, self._since)
        if not is_heard and math.isfinite(passed):
            since = min(since + passed, now)
        self._since = since

    def note_return(self) -> None:
        """Note that brokers answer again, after none did."""
        self._back_at = self._clock()

    def say_due(self) -> None:
        """Log that answering brokers leave writes unacknowledged, and the end."""
        now, withheld_s = self._clock(), self.withheld_s
        if self._since is None or (self._said_at is not None and self._since > self._said_at):
            if self._said_at is not None:
                logger.warning("brokers acknowledge writes again, after %.0f s", now - self._said_since)
                self._said_at = None
            return
        if withheld_s < SAY_AFTER_S or (self._said_at is not None and now - self._said_at < SAY_EVERY_S):
            return
        if self._said_at is None:
            self._said_since = now - withheld_s
            logger.warning(
                "brokers answer, and have not acknowledged writes for %.0f s (%s): the worker waits and goes on by "
                "itself; probably a partition has no leader, or fewer replicas in sync than min.insync.replicas: %s",
                withheld_s,
                self.names,
                HOW_TO_LOOK,
            )
        else:
            logger.warning(
                "brokers have not acknowledged writes for %.0f s (%s), though they answer: %s",
                now - self._said_since,
                self.names,
                HOW_TO_LOOK,
            )
        self._said_at = now


@dataclass
class _Failing:
    """A broker that has failed and not answered since."""

    since: float
    cause: str
    failed_at: float
    said_at: float | None = None


def cause_of(error: BaseException) -> str:
    """Return why a broker cannot be reached, in the system's words."""
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
        """Note a failure to reach the broker `node`, host:port, or its silence."""
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
        """Whether no broker has failed since an answer, or just come back."""
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
        """Return the seconds since a broker's answer; infinite after a failure."""
        return self._clock() - self._answers.get(node, -math.inf)

    @property
    def to_probe(self) -> list[str]:
        """Brokers that failed and that no client tries any more."""
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
        """Seconds for which all brokers have been away; None if any is well."""
        since = self._lost_since
        lasted = 0.0 if since is None else self._clock() - since
        return lasted if lasted >= AWAY_AFTER_S else None

    @property
    def nodes(self) -> str:
        """Failing brokers as text, and the configured brokers if they differ."""
        with self._lock:
            failing = sorted(self._failing)
        return f"{', '.join(failing)}{self._others(failing)}"

    def _others(self, failing: Iterable[str]) -> str:
        """Return a note of the configured addresses if they are others."""
        if set(self.configured) <= set(failing):
            return ""
        return f"; kafka.brokers is {', '.join(self.configured)}"

    def say_due(self) -> None:
        """Log outages and unacknowledged writes: begin, each minute and end."""
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
            forgotten = {n: f for n, f in self._failing.items() if now - f.failed_at >= FORGOTTEN_AFTER_S}
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
    """Thread that logs the due lines of a watch, also in a long step.

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


def once_brokers_answer(work: Callable[[], None], on_wait: Callable[[], None], *, wait: bool = True) -> None:
    """Repeat `work`, a question to brokers, until a broker answers.

    Parameters
    ----------
    on_wait
        Called once, where the waiting begins.
    wait
        Whether to wait at all.

    Raises
    ------
    BrokersAwayError
        No broker answers, and it is not to be waited for.
    AttributaryError
        Whatever else `work` raises: no waiting mends it.
    """
    backoff, began, said_at = Backoff(), time.monotonic(), None
    while True:
        try:
            work()
            break
        except BrokersAwayError as error:
            if not wait:
                raise
            now = time.monotonic()
            if said_at is None:
                on_wait()
                logger.warning("the start waits for brokers: %s", error.causes)
                said_at = now
            elif now - said_at >= SAY_EVERY_S:
                logger.warning("the start has waited for brokers for %.0f s: %s", now - began, error.causes)
                said_at = now
        backoff.note(connected=False)
        time.sleep(backoff.wait_s)
    if said_at is not None:
        logger.warning("the brokers answer, after %.0f s: the start goes on", time.monotonic() - began)
