"""Records are read whatever bytes a header's name has, up to a bound; what cannot be read is one marked record."""

from __future__ import annotations

import gzip
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import cramjam
import numpy as np
import pytest
from aiokafka.codec import snappy_encode
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record import memory_records
from aiokafka.record.default_records import DefaultRecordBatch, _DefaultRecordBatchPy
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder, _LegacyRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c
from support.raw_names import Record, builder

import attributary_agents.kafka.clients
from attributary_agents.config.settings import Config
from attributary_agents.kafka.batches import UnreadBatch, unread_batch
from attributary_agents.kafka.clients import client_options
from attributary_agents.kafka.upstream.aiokafka_codec import CODECS as CODEC_NAMES
from attributary_agents.kafka.upstream.aiokafka_codec import TooLargeError, UnreadableError, unpack
from attributary_agents.kafka.upstream.aiokafka_fetcher import bound_batches
from attributary_agents.kafka.upstream.aiokafka_records import MAX_BYTES, BoundedRecords, LenientBatch
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import record_of

from .raw_batches import CODECS, CONTROL, ESCAPED, NAMES, TRANSACTIONAL, fetched, fields, placed, records_of


@pytest.fixture(params=["C", "Python"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both of aiokafka's; which one an installation has depends on its platform."""
    if request.param == "Python":
        monkeypatch.setattr(memory_records, "DefaultRecordBatch", _DefaultRecordBatchPy)
        monkeypatch.setattr(memory_records, "LegacyRecordBatch", _LegacyRecordBatchPy)
    else:
        assert DefaultRecordBatch is not _DefaultRecordBatchPy
    return str(request.param)


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


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.usefixtures("implementation")
def test_records_in_an_old_format_are_read_before_new_ones(version: int) -> None:
    old = LegacyRecordBatchBuilder(version, 0, 10_000)
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


BOUND = 1_000_000
PACKERS = {
    "gzip": (1, gzip.compress),
    "snappy": (2, cramjam.snappy.compress_raw),
    "xerial": (2, snappy_encode),
    "lz4": (3, cramjam.lz4.compress),
    "zstd": (4, cramjam.zstd.compress),
}
TEXTS = {
    "zeros": b"\0" * BOUND,
    "random": np.random.default_rng(1).bytes(BOUND),
    "words": b"".join(b'{"x": %d}' % (i * i) for i in range(60_000))[:BOUND],
    "short": b"abc",
}


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """The bound of these tests, and the usual one behind them."""
    bound_batches(BOUND)
    yield
    bound_batches()


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("packer", PACKERS)
def test_what_is_within_the_bound_is_unpacked_as_it_was(packer: str, text: str) -> None:
    codec, pack = PACKERS[packer]
    packed = memoryview(bytes(pack(TEXTS[text])))
    assert bytes(unpack(codec, packed, BOUND)) == TEXTS[text]
    assert bytes(unpack(codec, packed, len(TEXTS[text]), room=7)[7:]) == TEXTS[text]  # to the byte
    with pytest.raises(TooLargeError):
        unpack(codec, packed, len(TEXTS[text]) - 1)


@pytest.mark.parametrize("packer", PACKERS)
def test_damaged_data_is_told_whatever_is_damaged(packer: str) -> None:
    codec, pack = PACKERS[packer]
    packed = bytes(pack(TEXTS["words"]))
    rng = np.random.default_rng(2)
    for _ in range(100):
        damaged = bytearray(packed[: rng.integers(len(packed))])
        for _ in range(5):
            if damaged:
                damaged[rng.integers(min(len(damaged), 40))] = rng.integers(256)
        try:
            unpacked = unpack(codec, memoryview(damaged), BOUND)
        except (UnreadableError, TooLargeError):
            continue
        assert len(unpacked) <= BOUND
    for codec in (0, 5, 6, 7):
        with pytest.raises(UnreadableError):
            unpack(codec, memoryview(packed), BOUND)


def test_members_of_gzip_count_together() -> None:
    members = memoryview(gzip.compress(b"a" * 600) + gzip.compress(b"b" * 400))
    assert bytes(unpack(1, members, 1000)) == b"a" * 600 + b"b" * 400
    with pytest.raises(TooLargeError):
        unpack(1, members, 999)


def bomb(packer: str, n_bytes: int, n_records: int = 1) -> bytes:
    """A batch of one record's header, and zeros."""
    codec, pack = PACKERS[packer]
    plain = bytearray(builder([(b"k", b"v", [])] * n_records).build())
    data = plain[:61] + bytes(pack(b"\0" * n_bytes))
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">h", data, 21, codec)
    struct.pack_into(">I", data, 17, calc_crc32c(bytes(data[21:])))
    return bytes(data)


@pytest.mark.parametrize("packer", PACKERS)
def test_a_bomb_is_one_marked_record_and_what_is_behind_it_is_read(packer: str) -> None:
    good = bytes(builder([(b"k", b"v", [])] * 2, 4).build())
    data = placed(good, 0) + placed(bomb(packer, 5 * BOUND, 3), 2) + placed(good, 5)
    found, following = fetched(data)
    assert [one.offset for one in found] == [0, 1, 4, 5, 6]  # at the last offset of its batch
    assert following == 7
    mark = unread_batch(found[2].headers)
    assert mark is not None
    assert [unread_batch(one.headers) for one in found if one is not found[2]] == [None] * 4
    assert (found[2].key, found[2].value, mark.reason) == (None, None, "batch_too_large")
    size = len(bomb(packer, 5 * BOUND, 3))
    assert str(mark.error()) == (
        f"batch: expected at most 1000000 bytes unpacked (kafka.max_batch_bytes), got {size} bytes "
        f"({CODEC_NAMES[PACKERS[packer][0]]}), offsets 2 to 4"
    )
    # A reader that begins in the middle of the batch is given all of it by the broker.
    whole = placed(bomb(packer, 5 * BOUND, 3), 2) + placed(good, 5)
    assert [one.offset for one in fetched(whole, first=3)[0]] == [4, 5, 6]


@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize("version", [0, 1])
def test_a_compressed_set_in_an_old_format_is_one_marked_record(version: int, codec: int) -> None:
    if (version, codec) == (0, 3):
        return  # there is no lz4 in it
    made = LegacyRecordBatchBuilder(version, codec, 10**9)
    for i in range(3):
        made.append(i, 1000 + i, b"k", b"v" * 100)
    data = bytearray(made.build())
    struct.pack_into(">q", data, 0, 2)
    found, _ = fetched(bytes(data) + placed(bytes(builder([(b"k", b"v", [])]).build()), 3))
    assert [one.offset for one in found] == [2, 3]
    mark = unread_batch(found[0].headers)
    assert mark is not None
    assert mark.reason == "unreadable_batch"
    assert "it is compressed in the format from before Kafka 0.11" in str(mark.error())
    assert "offsets up to 2" in str(mark.error())
    assert found[0].timestamp == (0 if version == 0 else struct.unpack_from(">q", data, 18)[0])


def test_nobody_else_can_make_the_mark() -> None:
    (found,) = BoundedRecords(bomb("zstd", 5 * BOUND)).next_batch()
    ((name, mark),) = found.headers
    assert type(mark) is UnreadBatch
    forged = builder([(b"k", b"v", [(name.encode(), bytes(mark))])], 4).build()
    ((copied,),) = [list(BoundedRecords(bytes(forged)).next_batch())]
    assert [name for name, _ in copied.headers] == [name]
    assert unread_batch(copied.headers) is None


def test_a_worker_takes_the_mark_from_the_headers() -> None:
    (one,), _ = fetched(bomb("zstd", 5 * BOUND))

    class Message:
        topic, partition, offset, timestamp, key, value = "t", 0, 0, 1.0, None, None
        headers = one.headers

    record = record_of(Message)
    assert record.unread is unread_batch(one.headers)
    assert list(record.headers) == []
    config = Config.model_validate({"models": {"m": {"model": {"class": "river.dummy.NoChangeClassifier"}}}})
    (letter,) = Partition("t", 0, config, lambda _: None).handle(record)
    headers = dict(letter.headers)
    assert headers["attributary-dlq-reason"] == b"batch_too_large"
    assert b"kafka.max_batch_bytes" in (headers["attributary-dlq-message"] or b"")
    assert (letter.key, letter.value) == (None, b"")  # aiokafka sends no record without both


def test_the_configuration_says_the_bound() -> None:
    model: Any = {"class": "river.dummy.NoChangeClassifier"}
    config = Config.model_validate({"models": {"m": {"model": model}}, "kafka": {"max_batch_bytes": 7_000_000}})
    client_options(config.kafka)
    assert BoundedRecords.max_bytes == 7_000_000
    with pytest.raises(ValueError, match=r"max_batch_bytes \(4000000\) must be at least max_record_bytes"):
        Config.model_validate({"models": {"m": {"model": model}}, "kafka": {"max_batch_bytes": 4_000_000}})
    bound_batches()
    assert BoundedRecords.max_bytes == MAX_BYTES


LIMITED = """
import resource, sys
from attributary_agents.kafka.upstream.aiokafka_codec import TooLargeError, UnreadableError, unpack
import cramjam, zlib
resource.setrlimit(resource.RLIMIT_DATA, (400 * 2**20, 400 * 2**20))
for codec in (1, 2, 3, 4):
    data = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    for bound in (1_000, 32 * 2**20):
        try:
            unpack(codec, memoryview(data), bound)
        except (TooLargeError, UnreadableError) as error:
            print(type(error).__name__)
"""


@pytest.mark.long
def test_what_is_claimed_or_unpacked_is_never_allocated_beyond_the_bound() -> None:
    n_bytes = 600 * 2**20
    zstd, lz4, gz = cramjam.zstd.Compressor(), cramjam.lz4.Compressor(), cramjam.gzip.Compressor()
    chunk = b"\0" * 2**20
    for _ in range(n_bytes // len(chunk)):
        for one in (zstd, lz4, gz):
            one.compress(chunk)
    snappy = b"\xff\xff\xff\xff\x0f" + b"\0" * 30  # it claims 4 GiB
    packed = [bytes(gz.finish()), snappy, bytes(lz4.finish()), bytes(zstd.finish())]
    given = b"".join(b"%d\n" % len(data) + data for data in packed)
    done = subprocess.run([sys.executable, "-c", LIMITED], input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().split() == ["TooLargeError"] * 8


def test_upstream_fails_at_a_headers_name_that_is_no_utf8() -> None:
    data = bytes(builder([(b"k", b"v", [(b"\xff", b"h")])]).build())
    with pytest.raises((UnicodeDecodeError, CorruptRecordException)):
        list(MemoryRecords(data).next_batch())


def test_upstream_unpacks_whatever_a_batch_grows_to() -> None:
    with pytest.raises(CorruptRecordException):  # zeros are no record: but they have been unpacked
        list(MemoryRecords(bomb("zstd", 5 * BOUND)).next_batch())
    batch = MemoryRecords(bytes(builder([(b"k", b"\0" * 5 * BOUND, [])], 4).build())).next_batch()
    assert [len(one.value) for one in batch] == [5 * BOUND]


def test_upstream_fails_at_a_new_batch_behind_old_ones() -> None:
    old = LegacyRecordBatchBuilder(1, 0, 10_000)
    old.append(0, 1000, b"k", b"v")
    data = bytes(old.build()) + placed(bytes(builder([(b"k", b"v", [])]).build()), 1)
    records = MemoryRecords(data)
    assert [one.offset for one in records.next_batch()] == [0]
    with pytest.raises(Exception):  # noqa: B017, PT011 - which one depends on the bytes
        list(records.next_batch())
