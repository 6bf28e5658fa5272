"""Log line about the restored models of all partitions of a worker.

It counts the models that are to have series.
"""

from __future__ import annotations

import logging
import time

logger = logging.getLogger(__name__)


class Restored:
    """Report of how many models are restored or rest, and the time taken.

    Logged once for all partitions of a worker.
    """

    def __init__(self) -> None:
        self._n = self._left = self._n_resting = 0
        self._began = 0.0

    def add(self, n: int, n_resting: int, n_restored: int) -> None:
        """Add numbers of models to restore, at rest, and already restored.

        A model at rest is restored only when it is asked for.
        """
        if not self._left:
            self._n, self._n_resting, self._began = 0, 0, time.perf_counter()
        self._n += n + n_restored
        self._n_resting += n_resting
        self._left += n
        if n_restored:
            self._say()

    def note(self) -> None:
        """Note that a model is restored."""
        self._left -= 1
        self._say()

    def leave(self, n: int) -> None:
        """Note that so many of them are another worker's now."""
        self._left -= n
        self._n -= n
        if n:
            self._say()

    def _say(self) -> None:
        if not self._left and self._n:
            models = "model" if self._n == 1 else "models"
            rest = (
                f"; {self._n_resting} more, which have no series (metrics.max_models), follow when they are asked for"
                if self._n_resting
                else ""
            )
            logger.info("restored %d %s in %.1f s%s", self._n, models, time.perf_counter() - self._began, rest)
