"""Correction of `faust.transport.drivers.aiokafka.Producer`.

It gives a batch up after the time-out of a request, and the worker would end while its brokers are away.

True for faust-streaming 0.15.3; `test_aiokafka_producer.py` says when it is mended in aiokafka, which does this.
"""

from __future__ import annotations

from typing import Any

import faust
from aiokafka import AIOKafkaProducer
from faust.transport.drivers.aiokafka import Producer

from .aiokafka_producer import make_patient


class WaitingProducer(Producer):  # type: ignore[misc]  # Faust is untyped
    """Producer that keeps unsent records while the brokers are away."""

    def _new_producer(self) -> Any:
        return make_patient(super()._new_producer())


def producer_of(app: faust.App) -> AIOKafkaProducer | None:
    """Return the client of the app's producer; None before its start."""
    return app.producer._producer
