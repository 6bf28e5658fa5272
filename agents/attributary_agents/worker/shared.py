"""Resources that the partitions of a worker have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import faust

from ..config.settings import Config
from ..kafka.brokers.ends import TopicEnds
from ..kafka.fetches import Intake
from ..kafka.statuses import StatusTopic
from ..kafka.transactions import PartitionProducers
from ..state.objects import object_store
from ..state.records import StateRecords
from ..state.seal import seal_of
from ..state.store import PartitionStore
from .dead_letter_log import DeadLetterLog
from .endpoints import Endpoints
from .gaps import Gaps
from .heartbeat.heartbeat import Heartbeat
from .records import Outgoing
from .schedule import UnderWay
from .storing.delivery import AtLeastOnce, Delivery, ExactlyOnce
from .storing.outbox import Outbox
from .storing.restored import Restored
from .storing.slices import Slices
from .view import WorkerView


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
