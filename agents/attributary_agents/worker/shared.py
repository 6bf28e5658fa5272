"""Resources that the partitions of a worker have in common."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import Any

import faust

from ..config.settings import Config
from ..kafka.inbox import Intake
from ..kafka.lag import TopicEnds
from ..kafka.statuses import StatusTopic
from ..kafka.transactions import PartitionProducers
from ..state.objects import object_store
from ..state.records import StateRecords
from ..state.seal import seal_of
from ..state.store import PartitionStore
from .dead_letter_log import DeadLetterLog
from .delivery import AtLeastOnce, Delivery, ExactlyOnce, Outbox
from .endpoints import Endpoints
from .gaps import Gaps
from .heartbeat import Heartbeat
from .records import Outgoing
from .schedule import Slices, UnderWay
from .view import WorkerView

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


class Shared:
    """Resources of all partitions: app, outputs, state storage and view.

    Parameters
    ----------
    table
        The state table; its `sink` is the `StateRecords` that a recovery fills.
    outputs
        Topic name to the Faust topic.
    """

    def __init__(self, app: faust.App, config: Config, table: Any, outputs: dict[str, Any], view: WorkerView) -> None:
        self.app = app
        self.config = config
        self.table = table
        self.outputs = outputs
        self.view = view
        self.records: StateRecords = table.sink
        self.ends = TopicEnds(app, view.brokers)
        self.gaps = Gaps(app, config)
        self.dead_letter_log = DeadLetterLog(config)
        self.under_way = UnderWay()
        """What runs beside the records; what fails of it stops the worker."""
        self.slices = Slices()
        self.turn = asyncio.Lock()
        """Has the partition whose slice of observations is handled: the loop has a turn before another one's."""
        self.intake: Intake = app.intake
        self.restored = Restored()
        self.heartbeat = Heartbeat(config.kafka.topics.status, StatusTopic(config.kafka))
        self.endpoints = Endpoints(config, view.endpoints) if config.asks_endpoints else None
        """Those of served models; None where no model can be one."""
        self.model_id_of = config.finder.id_of_key
        self.producers = PartitionProducers(config) if config.is_exact else None
        """Those of the partitions that we have, where each event is published exactly once."""
        view.transactions = None if self.producers is None else self.producers.n_ended
        self._seal = seal_of(config)
        self._objects = object_store(config.state.url, config.kafka.group)

    @property
    def flows(self) -> bool:
        """Whether records flow.

        Faust stops the flow before the group takes partitions away.
        """
        active: bool = self.app.flow_control.is_active()
        return active

    def known_key(self, key: bytes | None) -> bytes | None:
        """Return a record's key if it is the id of a configured model.

        None otherwise: any other key may be anything.
        """
        return None if self.model_id_of(key) is None else key

    def open_store(self, number: int, generation: int) -> PartitionStore:
        """Open the store of a partition in a generation of the group."""

        def write(partition: int, key: bytes, value: bytes | None) -> Awaitable[Any]:
            # The changelog's future is awaited by us: Faust itself only logs a write that the broker refuses.
            return self.view.activity.wait_for_kafka(self.table.send_changelog(partition, key, value))

        return PartitionStore(self.records, number, generation, write, self._seal, self._objects)

    def open_delivery(self, number: int, store: PartitionStore) -> Delivery:
        """Open the delivery of a partition, to be used while it is ours.

        The delivery publishes and stores the results of the partition.

        Raises
        ------
        DeliveryError
            It has no producer: its state has not been recovered.
        """
        activity = self.view.activity
        if self.producers is None:
            return AtLeastOnce(Outbox(self.send, activity), store)
        return ExactlyOnce(self.producers.of(number), self.config.kafka.changelog, store, activity)

    def send(self, record: Outgoing) -> Awaitable[Any]:
        """Queue a record; return an awaitable of its acknowledgement."""
        sent: Awaitable[Any] = self.outputs[record.topic].send_soon(
            key=record.key, value=record.value, headers=record.headers
        )
        return sent
