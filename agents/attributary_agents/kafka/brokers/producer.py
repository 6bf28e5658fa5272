"""A producer that outlasts its brokers' absence."""

from __future__ import annotations

import math
from typing import Any

from aiokafka import AIOKafkaProducer
from faust.transport.drivers.aiokafka import Producer


class WaitingProducer(Producer):  # type: ignore[misc]  # Faust is untyped
    """Keeps what it has not sent for as long as the brokers are away.

    Upstream gives a batch up after the time-out of a request, and the worker would end.
    """

    def _new_producer(self) -> Any:
        producer = super()._new_producer()
        producer._message_accumulator._batch_ttl = math.inf
        return producer


def has_unsent(producer: AIOKafkaProducer) -> bool:
    """Return whether something was given to the producer that no broker has acknowledged. Any thread may ask."""
    accumulator = producer._message_accumulator
    return bool(accumulator._batches or accumulator._pending_batches)
