"""Reader of samples: records of topics and files, decoded.

Nothing is committed.
"""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

from attributary_topics import InvalidRecordError

from ..config.settings import Config, KafkaConfig
from ..errors import SourceError
from ..kafka.readers import topic_reader
from .formats.base import Decoded
from .formats.factory import new_format
from .records import OriginRecord

MOST = 20_000
"""Offsets at the end of each partition beyond which nothing is read backwards."""

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


async def read_observations(config: Config, model_ids: Collection[str], n: int) -> dict[str, list[bytes]]:
    """Return the values of each model's last `n` observations, by model id.

    Fewer where the last `MOST` offsets of each partition have fewer.

    Raises
    ------
    PreflightError
        The brokers cannot be reached.
    """

    def names(record: Any) -> set[str]:
        model_id = config.finder.id_of_key(record.key) or ""
        return {model_id, config.finder.template_of(model_id) or model_id} & {*model_ids}

    topic = config.kafka.topics.observations
    found = await _read_backwards(config.kafka, [topic], n * len(config.models), n, n * len(model_ids), names)
    return {model_id: [record.value or b"" for record in records] for model_id, records in found.items()}


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
    n_partitions = sum(topics.values())
    found = await _read_backwards(kafka, topics, -(-n // n_partitions), n, n, lambda one: [(one.topic, one.partition)])
    share = _share([len(records) for records in found.values()], n)
    newest = [record for records in found.values() for record in records[-share:]]
    return sorted(newest, key=lambda record: record.timestamp_ms)[-n:]


async def _read_backwards(
    kafka: KafkaConfig,
    topics: Collection[str],
    step: int,
    n: int,
    n_enough: int,
    groups: Callable[[Any], Collection[Any]],
) -> dict[Any, list[OriginRecord]]:
    """Return the last `n` records of each group, until all have `n_enough`."""
    found: dict[Any, list[OriginRecord]] = {}
    async with topic_reader(kafka, *topics) as reader, aclosing(reader.backwards(max(1, step), MOST)) as blocks:
        async for block in blocks:
            older: dict[Any, list[OriginRecord]] = {}
            for record in block:
                for group in groups(record):
                    older.setdefault(group, []).append(_record(record))
            found |= {group: [*records, *found.get(group, ())][-n:] for group, records in older.items()}
            if sum(map(len, found.values())) >= n_enough:
                break
    return found


async def read_spread(kafka: KafkaConfig, topics: Mapping[str, int], n: int) -> list[OriginRecord]:
    """Return about `n` records: half the newest, half spread over the rest.

    Parameters and errors are those of `read_newest`.
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
    """Return the offsets of a partition's slice; the last is the newest.

    In all slices about `share` records are read.
    """
    if end - begin <= share:
        return begin, end
    newest = end - max(1, share // 2)
    if nth == _SLICES - 1:
        return newest, end
    at = begin + (newest - begin) * nth // (_SLICES - 1)
    return at, min(newest, at + max(1, share // 2 // (_SLICES - 1)))


def _share(lengths: Sequence[int], n: int) -> int:
    """Return the most records per partition for `n` in all, or a few more."""
    wanted = min(n, sum(lengths))
    return next(share for share in count(1) if sum(min(length, share) for length in lengths) >= wanted)


def _record(record: Any) -> OriginRecord:
    return OriginRecord(
        record.topic, record.partition, record.offset, record.timestamp, record.key, record.value, record.headers
    )


def read_lines(path: Path, n: int) -> list[OriginRecord]:
    """Return the first lines of a file, `.gz` unpacked, as values of records.

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
    now_ms = int(time.time() * 1000)
    return [OriginRecord(str(path), 0, offset, now_ms, None, line) for offset, line in enumerate(lines) if line]


async def decode(where: str, records: Sequence[OriginRecord], format_name: str, kafka: KafkaConfig) -> Sample:
    """Return records together with their decoded objects.

    Raises
    ------
    AttributaryError
        A schema registry cannot be reached.
    """
    sample, format_ = Sample(where, list(records)), new_format(format_name, kafka)
    try:
        await format_.start()
        for n, record in enumerate(records):
            objects: list[Decoded] | None = []
            try:
                if (objects := format_.decode_now(record)) is None:
                    objects = await format_.decode(record)
            except InvalidRecordError as error:
                sample.faults[n] = error
            sample.decoded.append(objects or [])
    finally:
        await format_.close()
    return sample
