"""Circuit breaker for an endpoint that does not answer.

It leaves the endpoint alone, and lets a single request try whether it answers again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from ...config.served import BreakerConfig


class Breaker:
    """Gate for requests: closed, open for a while, or half-open.

    Half-open, a single request tries.

    Parameters
    ----------
    clock
        Seconds; for tests.
    jitter
        Returns the factor by which a wait is longer, at least 1: workers are not to try all at the same time.
    """

    def __init__(
        self,
        config: BreakerConfig,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = lambda: random.uniform(1.0, 1.2),
    ) -> None:
        self._config = config
        self._clock = clock
        self._jitter = jitter
        self._n_failed = 0
        self._wait_s = config.wait
        self._opens_at: float | None = None
        self._is_trying = False
        self._changed = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether requests are held back, except for a single trial."""
        return self._opens_at is not None

    async def admit(self) -> bool:
        """Wait until a request may be sent; return whether it is the trial.

        What comes of it is to be told: `note_success`, `note_failure`, or `leave` where that is not known.
        """
        while self._opens_at is not None:
            left = self._opens_at - self._clock()
            if left <= 0.0 and not self._is_trying:
                self._is_trying = True
                return True
            self._changed.clear()
            try:
                async with asyncio.timeout(left if left > 0.0 else None):
                    await self._changed.wait()
            except TimeoutError:
                pass
        return False

    def note_success(self) -> None:
        """Note that the endpoint has answered: requests are sent again."""
        self._n_failed, self._wait_s, self._opens_at, self._is_trying = 0, self._config.wait, None, False
        self._changed.set()

    def note_failure(self, *, is_trial: bool) -> bool:
        """Note a failed request; return whether it opened the breaker.

        It has failed with all its retries.

        Parameters
        ----------
        is_trial
            What `admit` has returned for it.
        """
        if self._opens_at is not None and not is_trial:
            return False  # it was sent before another one had opened it
        self._n_failed += 1
        if not is_trial and self._n_failed < self._config.failures:
            return False
        self._opens_at = self._clock() + self._wait_s * self._jitter()
        self._wait_s = min(2.0 * self._wait_s, self._config.longest)
        self._is_trying = False
        self._changed.set()
        return not is_trial

    def leave(self, *, is_trial: bool) -> None:
        """Note that a request was given up, so that another may try."""
        if is_trial:
            self._is_trying = False
            self._changed.set()
