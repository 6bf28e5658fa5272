"""View of the worker for scrapes and the pages about changes.

Shared with the web thread, under one lock.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from ..kafka.brokers import BrokerWatch
from ..state.records import StateRecords
from .activity import Activity
from .aliases import RegistryBoard
from .deployments import PartitionControl
from .endpoints import EndpointsView
from .partition import Partition
from .shards import PartitionMerges

OBSERVATION_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
CHECKPOINT_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)


class Durations:
    """Histogram of durations in seconds, without a Prometheus registry."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self.sum += seconds
        self.counts[bisect_left(self.bounds, seconds)] += 1


END_KNOWN_S = 30.0
"""Seconds after which it is no longer known where a topic ends."""


class Lag:
    """Lag of a partition, while the end of its topic is known."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._records = 0
        self._end_seen_at = -math.inf

    def note(self, records: int, end_seen_at: float) -> None:
        """Note the lag in records, and when the topic's end was seen.

        The time is when the broker said where it ends, by `time.monotonic`.
        """
        self._records, self._end_seen_at = records, end_seen_at

    @property
    def records(self) -> int | None:
        """Number of records not handled; None without a recent topic end.

        A topic's end is recent for END_KNOWN_S.
        """
        return self._records if self._clock() - self._end_seen_at <= END_KNOWN_S else None


class PartitionView:
    """Partition as a scrape sees it.

    Its models and counters, how far it is behind, and what is not stored yet.

    Parameters
    ----------
    control
        The models topic's partition of the same number; None where there is none, as in a replay.
    """

    def __init__(self, partition: Partition, control: PartitionControl | None = None) -> None:
        self.partition = partition
        self.control = control
        self.merges: PartitionMerges | None = None
        """The topic of shards' partition of the same number; None where no model is sharded."""
        self.lag = Lag()
        """Observations in the topic that are not handled."""
        self.control_lag = Lag()
        """The same of the models topic."""
        self.transaction_s = 0.0
        """Seconds for which an open transaction has held up the observations."""
        self.control_transaction_s = 0.0
        """The same of the models topic."""
        self.state_bytes: dict[str, int] = {}
        """Model id to the size of its state, as last stored."""
        self.explain_shares: dict[str, float] = {}
        """Model id to the share of the time that explaining took, up to the last checkpoint at which it was known."""
        self._pending_since: float | None = None

    def mark_pending(self) -> None:
        """Note that a record is handled and not in a checkpoint yet.

        Only the first since the last checkpoint counts.
        """
        if self._pending_since is None:
            self._pending_since = time.monotonic()

    def mark_stored(self, pending_since: float | None = None) -> None:
        """Note that work is in a checkpoint up to `pending_since`.

        The time is by `time.monotonic`; None: all work is.
        """
        self._pending_since = pending_since

    @property
    def pending_s(self) -> float:
        """Seconds since the oldest record was handled but not stored.

        0 where there is none; stored is a record in a checkpoint.
        """
        return 0.0 if self._pending_since is None else time.monotonic() - self._pending_since


class WorkerView:
    """Worker as the Collector and the pages about changes see it.

    Parameters
    ----------
    partitions
        The worker's own dictionary of its partitions by number: what leaves it is seen no more.
    records
        What the state's changelog holds.
    brokers
        What the clients have seen of the brokers; by default there are none.
    """

    def __init__(
        self,
        partitions: Mapping[int, PartitionView],
        records: StateRecords | None = None,
        brokers: BrokerWatch | None = None,
    ) -> None:
        # Held while an observation changes a state, and by a scrape while it reads one.
        self.lock = threading.Lock()
        self.partitions = partitions
        self.records = records or StateRecords()
        self.brokers = brokers or BrokerWatch()
        self.activity = Activity()
        self.registry = RegistryBoard()
        self.shown: Collection[str] = frozenset()
        """Ids of the models that had series at the last scrape, and of some that have gone since."""
        self.observation_times = Durations(OBSERVATION_BUCKETS_S)
        self.checkpoint_times = Durations(CHECKPOINT_BUCKETS_S)
        self.transactions: Counter[str] | None = None
        """How many transactions have ended in which way; None where none are made."""
        self.endpoints = EndpointsView()
        """What was asked of served models, and what waits for them."""
        self.n_loads: Counter[str] = Counter()
        """Template to how often a stored model of it has been loaded into memory."""
        self.n_evictions: Counter[str] = Counter()
        """Template to how often a model of it has been idle, and left the memory."""
        self.n_of_templates: Counter[str] = Counter()
        """Template to the observations that its models have taken."""
        self.last_checkpoint_s: float | None = None
        """When the last checkpoint of any partition was made, in seconds since the epoch."""

    def record_checkpoint(self, seconds: float) -> None:
        """Count a checkpoint that was made just now and took so long."""
        self.checkpoint_times.observe(seconds)
        self.last_checkpoint_s = time.time()
