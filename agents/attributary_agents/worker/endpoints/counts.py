"""Counts of requests to endpoints by model, for a scrape."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

OUTCOMES = ("ok", "retried", "failed", "refused")
"""What can become of a request: answered; sent again; failed for the last time; refused, or of no use."""

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class EndpointCounts:
    """Counts of the requests for a model since the worker began."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.times = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0

    def note(self, outcome: str, seconds: float) -> None:
        """Count a request, and how long it took."""
        self.outcomes[outcome] += 1
        self.times[bisect_left(BUCKETS_S, seconds)] += 1
        self.sum_s += seconds


class EndpointsView:
    """Endpoints as a scrape sees them.

    Parameters
    ----------
    clock
        Seconds; for tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.counts: dict[str, EndpointCounts] = {}
        """By model id."""
        self.open: dict[str, Callable[[], bool]] = {}
        """Model id to whether the breaker of its endpoint is open, as far as this worker has asked it."""
        self._waiting: dict[tuple[int, str], float] = {}

    def of(self, model_id: str) -> EndpointCounts:
        """Return the counts of a model."""
        return self.counts.setdefault(model_id, EndpointCounts())

    def begin_waiting(self, partition: int, model_id: str) -> None:
        """Note that observations of a partition wait for answers for a model."""
        self._waiting.setdefault((partition, model_id), self._clock())

    def end_waiting(self, partition: int) -> None:
        """Note that a partition waits for no answer."""
        for place in [place for place in self._waiting if place[0] == partition]:
            del self._waiting[place]

    def waiting_s(self, model_id: str) -> float:
        """Return the seconds observations have waited for a model's answers.

        0 where none wait.
        """
        since = self._since(model_id)
        return 0.0 if since is None else max(self._clock() - since, 0.0)

    def is_open(self, model_id: str) -> bool:
        """Return whether observations wait for an endpoint whose breaker is open.

        Where none do any more, as when the partition has gone, nobody would find out that the endpoint answers again.
        """
        return self._since(model_id) is not None and self.open[model_id]()

    def _since(self, model_id: str) -> float | None:
        return min((at for (_, name), at in self._waiting.copy().items() if name == model_id), default=None)
