"""A file of observations into the observations topic, in order, at a chosen rate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from ..config.settings import Config
from .clients import client_fault, client_options

WINDOW = 1000
"""Sends under way before the oldest is awaited: bounds memory, and finds a refused write early."""


async def produce(
    config: Config,
    model_id: str,
    values: Iterable[bytes],
    *,
    rate: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Send the values with the model id as their key; return how many were acknowledged.

    Parameters
    ----------
    rate
        Observations per second at most; None sends as fast as the broker takes them.
    progress
        Called with the number sent so far.

    Raises
    ------
    PreflightError
        The broker cannot be reached or refuses.
    """
    topic, key = config.kafka.topics.observations, model_id.encode()
    producer = AIOKafkaProducer(
        **client_options(config.kafka), enable_idempotence=True, linger_ms=5, max_request_size=4_194_304
    )
    sent = 0
    under_way: list[asyncio.Future[object]] = []
    began = time.monotonic()
    try:
        await producer.start()
        for value in values:
            under_way.append(await producer.send(topic, value, key=key))
            sent += 1
            if len(under_way) >= WINDOW:
                await asyncio.gather(*under_way)
                under_way.clear()
            if progress is not None:
                progress(sent)
            if rate is not None and (ahead := sent / rate - (time.monotonic() - began)) > 0:
                await asyncio.sleep(ahead)
        await asyncio.gather(*under_way)
    except KafkaError as error:
        raise await client_fault(config.kafka, error, topic) from None
    finally:
        await producer.stop()
    return sent
