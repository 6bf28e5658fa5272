"""Deployments on the models topic, sent and read by the command line."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from ..config.settings import Config
from ..errors import BrokersAwayError, PreflightError
from .clients import producer
from .readers import topic_reader

SENT_WITHIN_S = 30.0
"""Longest wait for the acknowledgement of a deployment."""


async def send_deployment(
    config: Config, model_id: str, value: bytes, partition: int | None = None
) -> list[tuple[int, int]]:
    """Send a deployment; return the partitions and offsets of its records.

    It is one record, and for a sharded model one on each partition. Once this returns, the brokers have them. Sent
    again, a shard that has the version already ignores it.

    Raises
    ------
    PreflightError
        The broker cannot be reached or refuses.
    """
    topic = config.kafka.topics.models
    async with producer(config.kafka, topic) as client:
        try:
            async with asyncio.timeout(SENT_WITHIN_S):
                if partition is None and model_id in config.sharded:
                    partitions: list[int | None] = sorted(await client.partitions_for(topic))
                else:
                    partitions = [partition]
                sent = [await client.send_and_wait(topic, value, model_id.encode(), number) for number in partitions]
        except TimeoutError:
            told = f"the brokers have not acknowledged the version within {SENT_WITHIN_S:.0f} s"
            raise BrokersAwayError(
                f"{topic}: {told}, and may have written it or not: `attributary models list` tells, when they are up",
                told,
            ) from None
        except AssertionError as error:  # it asserts that the partition exists
            raise PreflightError(f"{topic}: {error}. `attributary check` says what is missing") from None
        return [(one.partition, one.offset) for one in sent]


async def read_deployments(config: Config) -> dict[str, list[Any]]:
    """Return each model's last deployment record on each partition.

    Of a model the latest record is first. Only a sharded model has them on several partitions, unless by somebody's
    mistake. Ids that are no UTF-8 are left out.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    found: dict[str, dict[int, Any]] = {}
    async with topic_reader(config.kafka, config.kafka.topics.models) as reader:
        async for batch in reader.present():
            for record in batch:
                with suppress(UnicodeDecodeError):
                    found.setdefault((record.key or b"").decode(), {})[record.partition] = record
    return {
        model_id: sorted(last.values(), key=lambda one: (one.timestamp, one.offset), reverse=True)
        for model_id, last in found.items()
    }


async def repeat_deployment(config: Config, model_id: str) -> None:
    """Send a model's last deployment once more, if it has any.

    Workers that have forgotten it take it then. Of several partitions each has its own, and the latest one stays the
    latest.

    Raises
    ------
    PreflightError
        As for `read_deployments` and `send_deployment`.
    """
    for record in reversed((await read_deployments(config)).get(model_id, [])):
        if record.value:
            await send_deployment(config, model_id, record.value, record.partition)
