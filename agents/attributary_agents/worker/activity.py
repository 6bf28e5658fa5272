"""What the worker is doing: read without a lock by the watchdog, the health checks, a scrape and the shutdown."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Step:
    """One step of the worker: an observation, a deployment, a checkpoint, or the restoring of a model."""

    __slots__ = ("_key", "_kind", "_offset", "_partition", "began")

    def __init__(self, kind: str, partition: tuple[str, int], offset: int, key: bytes | None = None) -> None:
        self._kind = kind
        self._partition = partition
        self._offset = offset
        self._key = key
        self.began = time.monotonic()

    def __str__(self) -> str:
        topic, number = self._partition
        # A key that is no model id of ours may be anything.
        model = "" if self._key is None else f" of model {self._key[:200].decode(errors='backslashreplace')!r}"
        return f"{self._kind}{model} at {topic}[{number}]@{self._offset}"


class Activity:
    """The steps that are under way, the event loop's last sign of life, and whether the worker is ready or stopping."""

    def __init__(self) -> None:
        self.ready = False
        """Whether the worker has its partitions and their state."""
        self.n_stalls = 0
        """Stalls that the watchdog has seen."""
        self.stop_by: float | None = None
        """When the process must have ended, by `time.monotonic`; None while it is not asked to."""
        self._steps: dict[int, Step] = {}
        self._beat_at: float | None = None
        self._rested_at = -math.inf

    @contextmanager
    def doing(self, step: Step) -> Iterator[None]:
        """Count the step among those under way, inside the block."""
        self._steps[id(step)] = step
        try:
            yield
        finally:
            del self._steps[id(step)]

    @property
    def steps(self) -> list[Step]:
        """The steps under way, the one that has lasted longest first."""
        return sorted(self._steps.copy().values(), key=lambda step: step.began)

    def since(self, step: Step) -> float:
        """Return from when on a step under way counts, by `time.monotonic`: waiting for brokers does not."""
        return max(step.began, self._rested_at)

    def rest(self) -> None:
        """Let the steps under way count from now on only: they wait for brokers."""
        self._rested_at = time.monotonic()

    @property
    def step_s(self) -> float:
        """Seconds for which a step has lasted, of several the longest, without waiting for brokers; 0 between steps."""
        steps = self.steps
        return time.monotonic() - self.since(steps[0]) if steps else 0.0

    def beat(self) -> None:
        """Note that the event loop is alive; it is watched from the first time on."""
        self._beat_at = time.monotonic()

    @property
    def silent_s(self) -> float:
        """Seconds since the event loop was last known to be alive; 0 before it runs."""
        return 0.0 if self._beat_at is None else time.monotonic() - self._beat_at
