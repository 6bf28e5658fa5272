"""Correction of aiokafka's `Fetcher`, `FetchResult`, `PartitionRecords`.

- One fetch per broker is under way. While a partition's records wait to be consumed, the others are fetched alone, and
  the broker keeps that fetch back until they have something, for `fetch_max_wait_ms` (1.5 s with Faust, which has no
  setting for it). What the partition has next waits for that: half of the time where models are fast.
- A poll brings records by their number, whatever their size: a few MB that are fetched can unpack to a thousand times
  as much.
- Which offsets hold no record for a reader, markers of transactions and what was aborted, it knows and does not tell.

True for aiokafka 0.14.0; `test_aiokafka_fetcher.py` says when it is mended.
"""

from __future__ import annotations

from typing import Any

from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import Fetcher, FetchResult, PartitionRecords

from ..batches import PASSED_OVER
from .aiokafka_records import MAX_BYTES, BoundedRecords

BESIDE_MS = 50
"""Longest that a broker keeps a fetch back while what another partition has brought is not consumed yet."""

POLL_BYTES = 16 * 2**20
"""Values of a partition after which a poll ends."""


class PromptFetcher(Fetcher):  # type: ignore[misc]  # aiokafka is untyped
    """Fetcher that fetches the next records of a backlog at once."""

    def _get_actions_per_node(self, assignment: Any) -> Any:
        longest = self._fetch_max_wait_ms  # type: ignore[has-type]
        if self._records:
            self._fetch_max_wait_ms = min(longest, BESIDE_MS)
        try:
            return super()._get_actions_per_node(assignment)
        finally:
            self._fetch_max_wait_ms = longest


class NotingRecords(PartitionRecords):  # type: ignore[misc]
    """Records of a fetched partition that note the offsets passed over."""

    def __init__(self, tp: TopicPartition, records: BoundedRecords, aborted: Any, offset: int, *options: Any) -> None:
        super().__init__(tp, records, aborted, offset, *options)
        records.note = PASSED_OVER.begin(tp, offset)


def committed_records(place: TopicPartition, data: bytes, aborted: Any, offset: int) -> PartitionRecords:
    """Return the committed records of fetched data from an offset on.

    None of the offsets that it passes over is noted.

    Parameters
    ----------
    aborted
        Producer and first offset of each aborted transaction that the broker has told with it.
    """
    records = BoundedRecords(data)
    return PartitionRecords(place, records, aborted, offset, None, None, False, fetcher.READ_COMMITTED)


class BoundedResult(FetchResult):  # type: ignore[misc]
    """Fetched records, handed out in portions of bounded bytes."""

    _partition_records: Any

    def getall(self, max_records: int | None = None) -> list[Any]:
        """Return the next records, at least a single record if any is there."""
        if not self.check_assignment(self._topic_partition) or not self.has_more():
            return []
        records, size = [], 0
        for record in self._partition_records:
            records.append(record)
            size += len(record.value or b"")
            if len(records) == max_records or size >= POLL_BYTES:
                self._update_position()
                return records
        self._update_position()
        self._partition_records = None
        return records


def bound_batches(max_bytes: int = MAX_BYTES) -> None:
    """Bound the unpacked batches of all consumers of this process.

    aiokafka has no place to say so for one alone.
    """
    BoundedRecords.max_bytes = max_bytes
    fetcher.MemoryRecords = BoundedRecords
    fetcher.FetchResult = BoundedResult
    fetcher.PartitionRecords = NotingRecords
