"""The stored states as the command line sees them, while no worker of the group runs: read, replace, delete."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from collections.abc import AsyncIterator
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from .config import Config
from .errors import PreflightError
from .object_store import object_store
from .state_records import StateRecords
from .state_seal import Seal
from .state_store import PartitionStore
from .stored_names import wanted_names


async def read_records(config: Config) -> StateRecords:
    """Everything in the state's changelog that is of the configured models.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    topic = config.kafka.changelog
    records = StateRecords(wanted_names(config.models))
    consumer = AIOKafkaConsumer(
        bootstrap_servers=config.kafka.brokers, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    try:
        await consumer.start()
        places = [TopicPartition(topic, n) for n in range(config.kafka.partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        # Positions and not counts: a compacted topic has offsets without a record.
        while any([await consumer.position(place) < end for place, end in ends.items()]):
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                for record in batch:
                    records.apply(record.partition, record.key, record.value)
    except KafkaError as error:
        raise _refused(config, error) from None
    finally:
        await consumer.stop()
    return records
