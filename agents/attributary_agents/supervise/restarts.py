"""Says when a process that has ended is started again, and when that no longer helps."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
"""Seconds from an ending to the next start: at first, and at most."""

SETTLED_AFTER_S = 300.0
"""Seconds after which a process that runs counts as well: its earlier endings are forgotten."""

MOST = 10
"""Endings in a row after which a process is not started again: some six minutes of waiting."""


class Restarts:
    """Waits longer after each ending of the same process, with jitter, and gives up after so many in a row.

    Parameters
    ----------
    first_s, longest_s, settled_s, most
        As `FIRST_WAIT_S`, `LONGEST_WAIT_S`, `SETTLED_AFTER_S` and `MOST`.
    clock
        Seconds of a clock that never goes back.
    draw
        Returns a number between 0 and 1, by which processes that have ended together do not come back together.
    """

    def __init__(
        self,
        first_s: float = FIRST_WAIT_S,
        longest_s: float = LONGEST_WAIT_S,
        settled_s: float = SETTLED_AFTER_S,
        most: int = MOST,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._first_s, self._longest_s, self._settled_s, self._most = first_s, longest_s, settled_s, most
        self._clock, self._draw = clock, draw
        self._began_at = clock()
        self.n_in_a_row = 0
        """Endings since the process last ran for long."""

    def begin(self) -> None:
        """Note that the process begins."""
        self._began_at = self._clock()

    def end(self) -> float | None:
        """Note that it has ended; return the seconds until it is to begin again, or None: not again."""
        if self._clock() - self._began_at >= self._settled_s:
            self.n_in_a_row = 0
        self.n_in_a_row += 1
        if self.n_in_a_row >= self._most:
            return None
        longest: float = min(self._first_s * 2 ** min(self.n_in_a_row - 1, 30), self._longest_s)
        return longest * (0.5 + self._draw() / 2)
