"""Sends observations to the observations topic, in order, at a chosen rate."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable

import orjson
from aiokafka.partitioner import DefaultPartitioner

from attributary_topics import find_not_finite

from ..config.settings import Config
from .clients import producer

WINDOW = 1000
"""Sends under way before they are awaited: this bounds memory, and finds a refused write early."""


async def produce(
    config: Config,
    model_id: str,
    values: Iterable[bytes],
    *,
    rate: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Send the values with the model id as their key; return how many the brokers have acknowledged.

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
    sent = 0
    under_way: list[asyncio.Future[object]] = []
    began = time.monotonic()
    async with producer(config.kafka, topic, linger_ms=5, max_request_size=4_194_304) as client:
        for value in values:
            under_way.append(await client.send(topic, value, key=key))
            sent += 1
            if len(under_way) >= WINDOW:
                await asyncio.gather(*under_way)
                under_way.clear()
            if progress is not None:
                progress(sent)
            if rate is not None and (ahead := sent / rate - (time.monotonic() - began)) > 0:
                await asyncio.sleep(ahead)
        await asyncio.gather(*under_way)
    return sent


def encode_value(value: dict[str, object] | bytes) -> bytes:
    """Encode an observation's value as a producer sends it; the worker refuses what is wrong in it."""
    if isinstance(value, bytes):  # what a file had in place of an object
        return value
    # The standard library writes what orjson would turn into null (NaN) or not write at all (an integer beyond 64
    # bits, half a surrogate pair).
    if find_not_finite(value) is not None:
        return json.dumps(value).encode()
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:
        return json.dumps(value).encode()


def default_partition(model_id: str, n_partitions: int) -> int:
    """Return the partition that Kafka's own clients choose for the observations of a model."""
    return int(DefaultPartitioner()(model_id.encode(), list(range(n_partitions)), []))
