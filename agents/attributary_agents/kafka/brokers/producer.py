"""A producer that outlasts its brokers' absence."""

from __future__ import annotations

import math
from typing import Any

from aiokafka import AIOKafkaProducer
from faust.transport.drivers.aiokafka import Producer


class WaitingProducer(Producer):  # type: ignore[misc]  # Faust is untyped
    """Producer that keeps unsent records while the brokers are away.

    Upstream gives a batch up after the time-out of a request, and the worker would end.
    """

    def _new_producer(self) -> Any:
        producer = super()._new_producer()
        producer._message_accumulator._batch_ttl = math.inf
        return producer


def unacknowledged(producer: AIOKafkaProducer) -> dict[str, float]:
    """Return the partitions with an unacknowledged batch, and since when.

    Times are by `time.monotonic`. Any thread may ask.
    """
    accumulator = producer._message_accumulator
    # The copies are made without a change of threads.
    waiting = [batch for queue in tuple(accumulator._batches.values()) for batch in tuple(queue)[:1]]
    found: dict[str, float] = {}
    for batch in (*waiting, *tuple(accumulator._pending_batches)):
        name = f"{batch.tp.topic}[{batch.tp.partition}]"
        found[name] = min(batch._ctime, found.get(name, math.inf))
    return found
