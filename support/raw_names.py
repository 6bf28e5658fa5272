"""Records whose headers have names that are no UTF-8, as other clients can write them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

Record = tuple[bytes | None, bytes | None, Sequence[tuple[bytes, bytes | None]]]
"""Key, value, headers with names in bytes."""


class _Name(str):
    raw: bytes

    def encode(self, *_: str) -> bytes:  # what aiokafka writes
        return self.raw


def _name(raw: bytes) -> _Name:
    name = _Name()
    name.raw = raw
    return name


def builder(
    records: Sequence[Record], codec: int = 0, first_ms: int = 1_700_000_000_000
) -> _DefaultRecordBatchBuilderPy:
    """A batch of `records`; aiokafka's extension in C takes no such names, its Python does."""
    batch = _DefaultRecordBatchBuilderPy(2, codec, 0, -1, -1, -1, 1_000_000)
    for i, (key, value, headers) in enumerate(records):
        batch.append(i, first_ms + i, key, value, [(_name(raw), of) for raw, of in headers])
    return batch


def produce_raw(bootstrap: str, topic: str, records: Sequence[Record]) -> None:
    """Write `records` as one batch to partition 0."""
    asyncio.run(_produce_raw(bootstrap, topic, records))


async def _produce_raw(bootstrap: str, topic: str, records: Sequence[Record]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        batch = producer.create_batch()
        now = int(time.time() * 1000)  # of records older than a week a broker may soon delete the segment
        batch._builder, batch._relative_offset = builder(records, first_ms=now), len(records)
        await (await producer.send_batch(batch, topic, partition=0))
    finally:
        await producer.stop()
