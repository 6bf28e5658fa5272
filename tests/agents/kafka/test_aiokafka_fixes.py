"""Records are read whatever bytes a header's name has, else as aiokafka reads them; senders outlive connections."""

from __future__ import annotations

import asyncio
import random
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.errors import KafkaConnectionError, KafkaError, UnknownError
from aiokafka.producer.sender import Sender
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.record import memory_records
from aiokafka.record.default_records import DefaultRecordBatch, _DefaultRecordBatchPy
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder, _LegacyRecordBatchPy
from aiokafka.record.util import calc_crc32c
from support.raw_names import Record, builder

import attributary_agents.kafka.clients
from attributary_agents.kafka.aiokafka_fixes import BESIDE_MS, LenientBatch, PatientSender, PromptFetcher
from attributary_agents.kafka.batches import BoundedRecords, unread_batch

NAMES = [b"trace", b"", "ü".encode(), b"\xff\xfename", b"\xed\xa0\x80", b"a" * 200 + b"\xc3", b"\x00\xf8"]
ESCAPED = ["trace", "", "ü", r"\xff\xfename", r"\xed\xa0\x80", "a" * 200 + r"\xc3", "\x00" + r"\xf8"]
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
TRANSACTIONAL, CONTROL = 0x10, 0x20


@pytest.fixture(params=["C", "Python"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both of aiokafka's; which one an installation has depends on its platform."""
    if request.param == "Python":
        monkeypatch.setattr(memory_records, "DefaultRecordBatch", _DefaultRecordBatchPy)
        monkeypatch.setattr(memory_records, "LegacyRecordBatch", _LegacyRecordBatchPy)
    else:
        assert DefaultRecordBatch is not _DefaultRecordBatchPy
    return str(request.param)


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


def test_every_consumer_reads_so() -> None:
    assert attributary_agents.kafka.clients.client_options  # whoever connects has imported this
    assert fetcher.MemoryRecords is BoundedRecords


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.usefixtures("implementation")
def test_names_that_are_no_utf8_are_escaped_and_all_else_is_as_sent(codec: str) -> None:
    for seed in range(10):
        sent = records_of(random.Random(seed), 60, NAMES)
        data = placed(bytes(builder(sent, CODECS[codec]).build()), 100)
        assert [one.offset for one in BoundedRecords(data).next_batch()] == list(range(100, 160))  # none twice
        found, following = fetched(data, first=103)  # a consumer may begin in the middle
        assert following == 160
        assert [(one.offset, one.timestamp) for one in found] == [
            (100 + i, 1_700_000_000_000 + i) for i in range(3, 60)
        ]
        for one, (key, value, headers) in zip(found, sent[3:], strict=True):
            assert (one.key, one.value) == (key, value)
            assert list(one.headers) == [(ESCAPED[NAMES.index(name)], of) for name, of in headers]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("max_timestamp", [None, 1_800_000_000_000])
def test_the_lenient_batch_reads_what_aiokafka_can_read_as_aiokafka_does(codec: str, max_timestamp: int | None) -> None:
    sent = records_of(random.Random(3), 60, NAMES[:3])
    log_append_time = 0 if max_timestamp is None else 0x08
    data = placed(bytes(builder(sent, CODECS[codec]).build()), 7, log_append_time, max_timestamp=max_timestamp)
    assert DefaultRecordBatch(data).compression_type == CODECS[codec]
    expected = [fields(one) for one in DefaultRecordBatch(data)]
    assert len(expected) == 60
    assert [fields(one) for one in LenientBatch(data)] == expected


@pytest.mark.usefixtures("implementation")
def test_a_fetch_of_many_batches_is_followed_through_all_of_them() -> None:
    raw: Record = (b"k", b"v", [(b"\xff", b"h")])
    commit, abort = (bytes(builder([(b"\0\0\0" + kind, b"\0" * 6, [])]).build()) for kind in (b"\1", b"\0"))
    batch = bytes(builder([raw, raw]).build())
    emptied = bytearray(batch[:61])  # what compaction leaves of a producer's last batch
    struct.pack_into(">i", emptied, 8, 49)
    struct.pack_into(">i", emptied, 23, 9)
    struct.pack_into(">i", emptied, 57, 0)
    whole = [
        placed(batch, 0),
        placed(batch, 2, TRANSACTIONAL, producer=7),
        placed(commit, 4, TRANSACTIONAL | CONTROL, producer=7),
        placed(batch, 5, TRANSACTIONAL, producer=8),
        placed(abort, 7, TRANSACTIONAL | CONTROL, producer=8),
        placed(batch, 8, TRANSACTIONAL, producer=8),
        placed(bytes(emptied), 10),
        placed(batch, 22),  # and 20 and 21 are gone
        placed(bytes(emptied), 24),
    ]
    cut = placed(batch, 34)[:-1]  # a fetch ends anywhere
    found, following = fetched(b"".join(whole) + cut, aborted=[(8, 5)])
    assert [one.offset for one in found] == [0, 1, 2, 3, 8, 9, 22, 23]
    assert {one.headers for one in found} == {((r"\xff", b"h"),)}
    assert following == 34
    assert BoundedRecords(cut).next_batch() is None
    assert BoundedRecords(cut).size_in_bytes() == len(cut)


@pytest.mark.parametrize("codec", [0, 1, 2])
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.usefixtures("implementation")
def test_records_in_an_old_format_are_read_before_new_ones(version: int, codec: int) -> None:
    old = LegacyRecordBatchBuilder(version, codec, 10_000)
    for i in range(3):
        old.append(i, 1000 + i, b"k", b"v" * 100)
    new = placed(bytes(builder([(b"k", b"v", [(b"\xff", None)])]).build()), 3)
    found, following = fetched(bytes(old.build()) + new)
    assert [one.offset for one in found] == [0, 1, 2, 3]
    assert [one.timestamp for one in found[:3]] == ([None] * 3 if version == 0 else [1000, 1001, 1002])
    assert following == 4


@pytest.mark.parametrize("length", [1, 30, 33, 300, -1])
@pytest.mark.usefixtures("implementation")
def test_a_damaged_record_is_told_and_what_is_around_it_is_read(length: int) -> None:
    data = bytearray(builder([(b"k", b"v", [(b"\xff" * 10, b"h")])]).build())
    data[61] = 2 * length & 0x7F  # the record's length, zigzag
    good = bytes(builder([(b"k", b"v", [])]).build())
    before, damaged, behind = fetched(placed(good, 0) + placed(bytes(data), 1) + placed(good, 2))[0]
    assert [one.offset for one in (before, damaged, behind)] == [0, 1, 2]
    assert unread_batch(before.headers) is unread_batch(behind.headers) is None
    mark = unread_batch(damaged.headers)
    assert mark is not None
    assert mark.reason == "unreadable_batch"
    assert (damaged.key, damaged.value) == (None, None)


def asked(buffered: set[TopicPartition]) -> dict[TopicPartition, int]:
    """What a fetcher asks the only broker for, by partition: the milliseconds that the broker may wait."""
    partitions = [TopicPartition("observations", number) for number in range(2)]
    prompt = object.__new__(PromptFetcher)
    vars(prompt).update(
        _fetch_max_wait_ms=1500,
        _fetch_min_bytes=1,
        _fetch_max_bytes=10_000,
        _max_partition_fetch_bytes=1000,
        _isolation_level=1,
        _client_rack=None,
        _fetcher_timeout=1.0,
        _preferred_read_replica={},
        _in_flight=set(),
        _client=SimpleNamespace(cluster=SimpleNamespace(leader_for_partition=lambda _: 0)),
        _records={tp: SimpleNamespace(calculate_backoff=lambda: 0) for tp in buffered},
    )
    state = SimpleNamespace(has_valid_position=True, paused=False, position=7)
    assignment = SimpleNamespace(tps=partitions, state_value=lambda _: state)
    requests, *_ = prompt._get_actions_per_node(assignment)
    ((_, request),) = requests
    assert prompt._fetch_max_wait_ms == 1500
    return {
        TopicPartition(topic, partition): request._max_wait_ms
        for topic, found in request._topics
        for partition, *_ in found
    }


def test_a_fetch_beside_a_backlog_is_not_kept_back_for_long() -> None:
    backlog, idle = TopicPartition("observations", 0), TopicPartition("observations", 1)
    assert asked({backlog}) == {idle: BESIDE_MS}
    assert asked(set()) == {backlog: 1500, idle: 1500}


class _Brokers:
    """Stands in for a client: what is asked of it fails in this order, and is answered by broker 7 then."""

    def __init__(self, *failures: KafkaError) -> None:
        self.failures = [*failures]
        self.n_updates = 0

    async def coordinator_lookup(self, kind: int, key: str) -> int:
        assert (kind, key) == (1, "group/topic/0")
        if self.failures:
            raise self.failures.pop(0)
        return 7

    async def force_metadata_update(self) -> None:
        self.n_updates += 1

    async def ready(self, node_id: int, group: Any) -> bool:
        return node_id == 7


def coordinator(kind: type[Sender], brokers: _Brokers) -> int:
    async def find() -> int:
        transactions = TransactionManager("group/topic/0", 60_000)
        sender = kind(
            brokers,
            acks=-1,
            txn_manager=transactions,
            retry_backoff_ms=1,
            message_accumulator=None,
            request_timeout_ms=1,
        )
        return int(await sender._find_coordinator(1, "group/topic/0"))

    return asyncio.run(find())


def test_a_coordinator_is_looked_for_again_where_the_connection_is_closed() -> None:
    brokers = _Brokers(KafkaConnectionError("closed"), KafkaConnectionError("closed"))
    assert (coordinator(PatientSender, brokers), brokers.n_updates) == (7, 2)


def test_upstream_does_not_look_again() -> None:
    with pytest.raises(KafkaError, match="closed"):
        coordinator(Sender, _Brokers(KafkaConnectionError("closed")))


def test_what_brokers_refuse_is_not_asked_again() -> None:
    brokers = _Brokers(UnknownError("refused"))
    with pytest.raises(KafkaError, match="refused"):
        coordinator(PatientSender, brokers)
    assert brokers.n_updates == 0
