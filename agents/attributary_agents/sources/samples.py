"""Samples of foreign topics, or of files with values, and their decoding.

Nothing is committed.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from attributary_topics import InvalidRecordError

from ..config.settings import KafkaConfig
from ..errors import SourceError
from ..kafka.readers import topic_reader
from .formats.base import Decoded, Format
from .records import OriginRecord

MOST = 20_000
"""Offsets at the end of each partition beyond which nothing is read."""

_FURTHER = 4

_SLICES = 6
"""So many runs of records are read of each partition, where not all of it is."""


@dataclass
class Sample:
    """Some records of a section's topics, and their decoded objects.

    Attributes
    ----------
    records
        In the order in which each partition has them.
    decoded
        Of each record the objects in it; none of one that cannot be decoded.
    faults
        By the index of a record, why it cannot be decoded.
    """

    where: str
    records: list[OriginRecord] = field(default_factory=list)
    decoded: list[list[Decoded]] = field(default_factory=list)
    faults: dict[int, InvalidRecordError] = field(default_factory=dict)


async def read_spread(kafka: KafkaConfig, topics: Mapping[str, int], n: int) -> list[OriginRecord]:
    """Return about `n` records: half the newest, half spread over the rest.

    Parameters
    ----------
    topics
        Existing topics, with their partitions.

    Raises
    ------
    PreflightError
        The brokers cannot be reached.
    """
    found: dict[tuple[str, int, int], OriginRecord] = {}
    async with topic_reader(kafka, *topics) as reader:
        bounds = {place: ends for place, ends in (await reader.bounds()).items() if ends[0] < ends[1]}
        share = _share([end - begin for begin, end in bounds.values()], n)
        for nth in range(_SLICES):
            slices = {place: _slice(begin, end, share, nth) for place, (begin, end) in bounds.items()}
            async for batch in reader.between(slices):
                found |= {(one.topic, one.partition, one.offset): _record(one) for one in batch}
    return sorted(found.values(), key=lambda record: record.timestamp_ms)


def _slice(begin: int, end: int, share: int, nth: int) -> tuple[int, int]:
    """Return the offsets of a slice of a partition; the last is the newest.

    In all slices about `share` records are read.
    """
    if end - begin <= share:
        return begin, end
    newest = end - max(1, share // 2)
    if nth == _SLICES - 1:
        return newest, end
    at = begin + (newest - begin) * nth // (_SLICES - 1)
    return at, min(newest, at + max(1, share // 2 // (_SLICES - 1)))


async def read_newest(kafka: KafkaConfig, topics: Mapping[str, int], n: int) -> list[OriginRecord]:
    """Return the newest `n` records of topics, in order of timestamp.

    As many of each partition as it has.

    Parameters
    ----------
    topics
        Existing topics, with their partitions.

    Raises
    ------
    PreflightError
        The brokers cannot be reached.
    """
    last, n_before = max(1, -(-n // sum(topics.values()))), -1
    async with topic_reader(kafka, *topics) as reader:
        while True:
            found = [_record(one) async for batch in reader.present(last) for one in batch]
            if len(found) >= n or last >= MOST or len(found) == n_before:
                break
            last, n_before = min(_FURTHER * last, MOST), len(found)
    kept: dict[tuple[str, int], list[OriginRecord]] = {}
    for record in found:
        kept.setdefault((record.topic, record.partition), []).append(record)
    most = _share([len(records) for records in kept.values()], n)
    newest = [record for records in kept.values() for record in records[-most:]]
    return sorted(newest, key=lambda record: record.timestamp_ms)[-n:]


def _share(lengths: Sequence[int], n: int) -> int:
    """Return the most records per partition for about `n` in all.

    All together are `n` or a few more.
    """
    share = 1
    while sum(min(length, share) for length in lengths) < min(n, sum(lengths)):
        share += 1
    return share


def _record(one: object) -> OriginRecord:
    names = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
    return OriginRecord(*(getattr(one, name) for name in names))


def read_lines(path: Path, n: int, now_ms: int) -> list[OriginRecord]:
    """Return the first lines of a file, `.gz` unpacked, as records.

    Each line is the value of a record, mostly JSON.

    Raises
    ------
    SourceError
        The file cannot be read.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            lines = [line.strip() for line in islice(file, n)]
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"cannot read {path}: {error}") from None
    return [OriginRecord(str(path), 0, offset, now_ms, None, line, ()) for offset, line in enumerate(lines) if line]


async def decoded_sample(where: str, records: Sequence[OriginRecord], format_: Format) -> Sample:
    """Return records together with their decoded objects."""
    sample = Sample(where, list(records))
    for n, record in enumerate(records):
        found: list[Decoded] | None = []
        try:
            found = format_.decode_now(record)
            if found is None:
                found = await format_.decode(record)
        except InvalidRecordError as error:
            sample.faults[n] = error
        sample.decoded.append(found or [])
    return sample
