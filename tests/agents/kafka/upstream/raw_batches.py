"""Batches of records as a broker has them, and what aiokafka's fetcher makes of them."""

from __future__ import annotations

import random
import struct
from typing import Any

from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.util import calc_crc32c
from support.raw_names import Record

from attributary_agents.kafka.upstream.aiokafka_records import BoundedRecords

NAMES = [b"trace", b"", "ü".encode(), b"\xff\xfename", b"\xed\xa0\x80", b"a" * 200 + b"\xc3", b"\x00\xf8"]
ESCAPED = ["trace", "", "ü", r"\xff\xfename", r"\xed\xa0\x80", "a" * 200 + r"\xc3", "\x00" + r"\xf8"]
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
TRANSACTIONAL, CONTROL = 0x10, 0x20


def records_of(rng: random.Random, n: int, names: list[bytes]) -> list[Record]:
    blobs = [None, b"", b"v", b"v" * 300]
    return [
        (
            rng.choice(blobs),
            rng.choice(blobs),
            [(rng.choice(names), rng.choice(blobs)) for _ in range(rng.randrange(4))],
        )
        for _ in range(n)
    ]


def placed(
    data: bytes, offset: int, attributes: int = 0, producer: int = -1, max_timestamp: int | None = None
) -> bytes:
    """A batch as the broker has it: at an offset, perhaps of a transaction or with its own time."""
    new = bytearray(data)
    struct.pack_into(">q", new, 0, offset)
    struct.pack_into(">h", new, 21, struct.unpack_from(">h", new, 21)[0] | attributes)
    if max_timestamp is not None:
        struct.pack_into(">q", new, 35, max_timestamp)
    struct.pack_into(">q", new, 43, producer)
    struct.pack_into(">I", new, 17, calc_crc32c(bytes(new[21:])))
    return bytes(new)


def fields(record: Any) -> tuple[Any, ...]:
    return record.offset, record.timestamp, record.timestamp_type, record.key, record.value, list(record.headers)


def fetched(data: bytes, aborted: list[tuple[int, int]] | None = None, first: int = 0) -> tuple[list[Any], int]:
    """What aiokafka's fetcher makes of the bytes, and the offset that it goes on from."""
    tp, records = TopicPartition("t", 0), BoundedRecords(data)
    found = fetcher.PartitionRecords(tp, records, aborted, first, None, None, True, fetcher.READ_COMMITTED)
    return list(found), found.next_fetch_offset
