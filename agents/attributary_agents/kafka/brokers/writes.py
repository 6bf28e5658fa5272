"""Watch over unacknowledged writes, with log lines when they wait long.

A broker may answer and acknowledge nothing: the partition has no leader, or fewer replicas in sync than
min.insync.replicas.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping

logger = logging.getLogger(__name__)

SAY_AFTER_S = 10.0
"""Seconds without an acknowledgement after which the log says so: the election of a leader takes less."""

NOT_READY_AFTER_S = 30.0
"""Seconds without an acknowledgement after which a worker is not ready, and the alert begins to wait."""

_SAY_EVERY_S = 60.0
_NAMED = 3  # of what waits, in a line

HOW_TO_LOOK = "`attributary topics list` shows the replicas in sync, and the brokers that do not answer"
"""What an operator does about it first."""


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
        """Log that brokers do not acknowledge writes, or that they do again.

        The first is logged once a minute. It is called while brokers answer.
        """
        now, withheld_s = self._clock(), self.withheld_s
        if self._since is None or (self._said_at is not None and self._since > self._said_at):
            if self._said_at is not None:
                logger.warning("brokers acknowledge writes again, after %.0f s", now - self._said_since)
                self._said_at = None
            return
        if withheld_s < SAY_AFTER_S or (self._said_at is not None and now - self._said_at < _SAY_EVERY_S):
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
