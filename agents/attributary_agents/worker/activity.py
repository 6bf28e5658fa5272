"""Activity of the worker, readable from other threads without a lock.

Read by the watchdog, the health checks, a scrape and the shutdown.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Step:
    """Step of the worker, such as an observation or a checkpoint.

    Others are a deployment, a record of a shard, a trial, signing, and the restoring of a model.
    """

    __slots__ = ("_key", "_kind", "_offset", "_partition", "began", "n_kafka_waits", "since", "waits_since")

    def __init__(self, kind: str, partition: tuple[str, int], offset: int, key: bytes | None = None) -> None:
        self._kind = kind
        self._partition = partition
        self._offset = offset
        self._key = key
        self.began = self.since = time.monotonic()
        """When it began, and from when on it counts: waiting for brokers does not. Both by `time.monotonic`."""
        self.n_kafka_waits = 0
        """Writes and commits of this step whose acknowledgement is awaited."""
        self.waits_since: float | None = None
        """When the first of those began, by `time.monotonic`; None while there is none."""

    def move_on(self, offset: int, key: bytes | None, now: float) -> None:
        """Move on to the slice's next observation, which begins at `now`.

        `now` is by `time.monotonic`.
        """
        self._offset, self._key = offset, key
        self.began = self.since = now

    def __str__(self) -> str:
        topic, number = self._partition
        # A key that is no model id of ours may be anything.
        model = "" if self._key is None else f" of model {self._key[:200].decode(errors='backslashreplace')!r}"
        return f"{self._kind}{model} at {topic}[{number}]@{self._offset}"


_UNDER_WAY: ContextVar[Step | None] = ContextVar("step", default=None)
"""The step that this task, or the one that has started it, is in."""


class Activity:
    """Steps under way, signs of life of the event loop, and readiness.

    Also says whether the worker is stopping.
    """

    def __init__(self) -> None:
        self.ready = False
        """Whether the worker has its partitions and their state."""
        self.n_stalls = 0
        """Stalls that the watchdog has seen."""
        self.stop_by: float | None = None
        """When the process must have ended, by `time.monotonic`; None while it is not asked to."""
        self._steps: dict[int, Step] = {}
        self._beat_at: float | None = None

    @contextmanager
    def doing(self, step: Step) -> Iterator[None]:
        """Count the step as under way inside the block."""
        self._steps[id(step)] = step
        outer = _UNDER_WAY.get()
        _UNDER_WAY.set(step)
        try:
            yield
        finally:
            _UNDER_WAY.set(outer)  # without a token: a task that is thrown away ends in another context
            del self._steps[id(step)]

    async def wait_for_kafka(self, acknowledged: Awaitable[T]) -> T:
        """Await an acknowledgement of brokers and return its result.

        While brokers are away, the time of the step that awaits it does not count.

        Of several at a time, the step waits since one of them was last acknowledged.
        """
        step = _UNDER_WAY.get()
        if step is None:
            return await acknowledged
        step.n_kafka_waits += 1
        if step.waits_since is None:
            step.waits_since = time.monotonic()
        try:
            return await acknowledged
        finally:
            step.n_kafka_waits -= 1
            step.waits_since = time.monotonic() if step.n_kafka_waits else None

    @property
    def steps(self) -> list[Step]:
        """Steps under way, longest-lasting first."""
        return sorted(self._steps.copy().values(), key=lambda step: step.began)

    @property
    def kafka_waits(self) -> dict[str, float]:
        """Steps that wait for brokers, each with the start of its wait.

        Times are by `time.monotonic`.
        """
        # Read once: it is the event loop's, and this is asked by other threads.
        waiting = ((str(step), step.waits_since) for step in self.steps)
        return {said: since for said, since in waiting if since is not None}

    def rest(self, now: float) -> None:
        """Let the time of steps that wait for Kafka start again at `now`.

        `now` is by `time.monotonic`; other steps go on.
        """
        for step in self.steps:
            if step.n_kafka_waits:
                step.since = max(step.since, now)

    @property
    def step_s(self) -> float:
        """Seconds that the longest-lasting step has taken; 0 between steps.

        Without the time in which it waited for brokers.
        """
        now = time.monotonic()
        return max((now - step.since for step in self.steps), default=0.0)

    def beat(self) -> None:
        """Note that the event loop is alive; it is watched from the first time on."""
        self._beat_at = time.monotonic()

    @property
    def silent_s(self) -> float:
        """Seconds since the event loop's last sign of life; 0 before it runs."""
        return 0.0 if self._beat_at is None else time.monotonic() - self._beat_at
