"""What a scrape sees of the worker. Shared between the event loop and the web thread, under one lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..state.records import StateRecords
from .deployments import PartitionControl
from .partition import Partition

STEP_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
CHECKPOINT_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)


class Durations:
    """Counts per bucket and sum of durations in seconds: a Prometheus histogram without a registry."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.sum += seconds
        self.counts[next((i for i, bound in enumerate(self.bounds) if seconds <= bound), len(self.bounds))] += 1


class Step:
    """What the worker is at: one observation, one deployment, one checkpoint."""

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


class WorkerView:
    """Live state for the Collector and the health checks; dropped with the partition it belongs to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.records = StateRecords()
        self.partitions: dict[int, Partition] = {}
        self.controls: dict[int, PartitionControl] = {}
        self.lag: dict[tuple[str, int], int] = {}
        self.state_bytes: dict[str, int] = {}
        self.explain_shares: dict[str, float] = {}
        """Model id to the share of the time that explaining took, up to the last checkpoint at which it was known."""
        self.steps = Durations(STEP_BUCKETS_S)
        self.checkpoints = Durations(CHECKPOINT_BUCKETS_S)
        self.last_checkpoint_s: float | None = None
        self._pending_since: dict[int, float] = {}
        self.ready = False
        self.stalls = 0
        """Stalls that the watchdog has seen."""
        self.stop_by: float | None = None
        """When the process must have ended, by `time.monotonic`; None while it is not asked to."""
        self._under_way: dict[int, Step] = {}
        self._beat = time.monotonic()

    def step(self, seconds: float) -> None:
        """An observation took so long."""
        self.steps.observe(seconds)

    def pending(self, partition: int) -> None:
        """The partition has a record that is handled and in no checkpoint."""
        self._pending_since.setdefault(partition, time.monotonic())

    def stored(self, partition: int) -> None:
        """All that is handled of the partition is in a checkpoint."""
        self._pending_since.pop(partition, None)

    def pending_s(self, partition: int) -> float:
        """Seconds since the partition has a record that is handled and in no checkpoint; 0 where it has none."""
        since = self._pending_since.get(partition)
        return 0.0 if since is None else time.monotonic() - since

    def checkpoint(self, seconds: float) -> None:
        """A checkpoint took so long, just now."""
        self.checkpoints.observe(seconds)
        self.last_checkpoint_s = time.time()

    @contextmanager
    def doing(self, step: Step) -> Iterator[None]:
        """The worker is at this step, inside the block."""
        self._under_way[id(step)] = step
        try:
            yield
        finally:
            del self._under_way[id(step)]

    @property
    def under_way(self) -> list[Step]:
        """The steps under way, that which has lasted longest first. Needs no lock."""
        return sorted(self._under_way.copy().values(), key=lambda step: step.began)

    def beat(self) -> None:
        """The event loop is alive."""
        self._beat = time.monotonic()

    @property
    def silent_s(self) -> float:
        """Seconds since the event loop last said that it is alive."""
        return time.monotonic() - self._beat

    def forget(self, partition: int) -> None:
        """The partition is no longer ours: its series go at once."""
        lost = self.partitions.pop(partition, None)
        self.controls.pop(partition, None)
        self.stored(partition)
        self.lag = {place: n for place, n in self.lag.items() if place[1] != partition}
        for model_id in lost.models if lost else ():
            self.state_bytes.pop(model_id, None)
            self.explain_shares.pop(model_id, None)
