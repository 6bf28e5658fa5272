"""What a producer compresses is read up to a bound; what is beyond it, or damaged, is one marked record."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import cramjam
import numpy as np
import pytest
from aiokafka import TopicPartition
from aiokafka.codec import snappy_encode
from aiokafka.consumer import fetcher
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from support.raw_names import builder

from attributary_agents.config.settings import Config
from attributary_agents.kafka import batches
from attributary_agents.kafka.batches import (
    MAX_BYTES,
    BoundedRecords,
    BoundedResult,
    PassedOver,
    UnreadBatch,
    bound_batches,
    unread_batch,
)
from attributary_agents.kafka.clients import client_options
from attributary_agents.kafka.unpacking import CODECS, TooLargeError, UnreadableError, unpack
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import record_of

from .test_aiokafka_fixes import CONTROL, TRANSACTIONAL, fetched, placed

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
    members = memoryview(gzip.compress(b"a" * 600) + gzip.compress(b"b" * 400) + b"\0\0")
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
        f"({CODECS[PACKERS[packer][0]]}), offsets 2 to 4"
    )
    # A reader that begins in the middle of the batch is given all of it by the broker.
    whole = placed(bomb(packer, 5 * BOUND, 3), 2) + placed(good, 5)
    assert [one.offset for one in fetched(whole, first=3)[0]] == [4, 5, 6]


@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize("version", [0, 1])
def test_sets_in_an_old_format_are_bounded_too(version: int, codec: int) -> None:
    def old(size: int, n: int = 3) -> bytes:
        made = LegacyRecordBatchBuilder(version, codec, 10**9)
        for i in range(n):
            made.append(i, 1000 + i, b"k", b"\0" * size)
        return bytes(made.build())

    if (version, codec) == (0, 3):
        return  # there is no lz4 in it
    data = bytearray(old(BOUND))
    struct.pack_into(">q", data, 0, 2)
    found, _ = fetched(bytes(data) + placed(bytes(builder([(b"k", b"v", [])]).build()), 3))
    assert [one.offset for one in found] == [2, 3]
    mark = unread_batch(found[0].headers)
    assert mark is not None
    assert mark.reason == "batch_too_large"
    assert found[0].timestamp == (0 if version == 0 else struct.unpack_from(">q", data, 18)[0])


def test_a_set_in_an_old_format_that_leads_back_to_itself_ends() -> None:
    inner = bytearray(LegacyRecordBatchBuilder(1, 0, 1000).build() or b"")
    made = LegacyRecordBatchBuilder(1, 0, 1000)
    made.append(0, 1, b"k", b"v")
    inner = bytearray(made.build())
    struct.pack_into(">i", inner, 8, -12)
    outer = LegacyRecordBatchBuilder(1, 0, 10_000)
    outer.append(0, 1, None, gzip.compress(bytes(inner)))
    data = bytearray(outer.build())
    data[17] = 1
    (found,) = BoundedRecords(bytes(data)).next_batch()
    mark = unread_batch(found.headers)
    assert mark is not None
    assert mark.reason == "unreadable_batch"


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
from attributary_agents.kafka.unpacking import TooLargeError, UnreadableError, unpack
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


class Place:
    """The only partition of an assignment, and where it is read."""

    active, paused, position = True, False, 0

    def state_value(self, _tp: TopicPartition) -> Place:
        return self

    def consumed_to(self, offset: int) -> None:
        self.position = offset


@pytest.mark.parametrize(("most", "expected"), [(None, [3, 3, 3, 1]), (2, [2] * 5), (5, [3, 3, 3, 1])])
def test_a_poll_ends_after_so_many_bytes_and_the_next_goes_on_there(
    most: int | None, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "POLL_BYTES", 250)
    data = BoundedRecords(bytes(builder([(b"k", b"%0100d" % n, []) for n in range(10)], 1).build()))
    tp, place = TopicPartition("t", 0), Place()
    records = fetcher.PartitionRecords(tp, data, None, 0, None, None, True, fetcher.READ_COMMITTED)
    result = BoundedResult(tp, assignment=place, partition_records=records, backoff=0)
    polls, positions = [], []
    while result.has_more():
        polls.append([int(one.value) for one in result.getall(most)])
        positions.append(place.position)
    assert [len(poll) for poll in polls if poll] == expected
    assert [n for poll in polls for n in poll] == list(range(10))
    assert [position for poll, position in zip(polls, positions, strict=True) if poll] == [
        poll[-1] + 1 for poll in polls if poll
    ]
    assert fetcher.FetchResult is BoundedResult


@pytest.fixture
def passed_over(monkeypatch: pytest.MonkeyPatch) -> PassedOver:
    """What is noted of the topic of these tests."""
    notes = PassedOver()
    notes.follow("t")
    monkeypatch.setattr(batches, "PASSED_OVER", notes)
    return notes


def transactions() -> tuple[bytes, list[tuple[int, int]]]:
    """Offsets 0 to 2 committed, marker 3; 4 to 6 and 8 aborted, marker 9; 7 plain, hole 10 to 11, 12 plain; marker 13.

    With what the broker says of it: producer and first offset of what was aborted.
    """
    three, one = (bytes(builder([(b"k", b"v", [])] * n).build()) for n in (3, 1))
    commit, abort = (bytes(builder([(bytes((0, 0, 0, kind)), b"\0" * 6, [])]).build()) for kind in (1, 0))
    data = (
        placed(three, 0, TRANSACTIONAL, 1)
        + placed(commit, 3, TRANSACTIONAL | CONTROL, 1)
        + placed(three, 4, TRANSACTIONAL, 2)
        + placed(one, 7)
        + placed(one, 8, TRANSACTIONAL, 2)
        + placed(abort, 9, TRANSACTIONAL | CONTROL, 2)
        + placed(one, 12)
        + placed(commit, 13, TRANSACTIONAL | CONTROL, 3)
    )
    return data, [(2, 4)]


def test_markers_and_aborted_records_are_noted_and_nothing_else(passed_over: PassedOver) -> None:
    data, aborted = transactions()
    found, following = fetched(data, aborted)
    assert [one.offset for one in found] == [0, 1, 2, 7, 12]
    assert following == 14
    held = [passed_over.count("t", 0, offset, offset + 1) for offset in range(14)]
    assert [offset for offset, n in enumerate(held) if n] == [3, 4, 5, 6, 8, 9, 13]
    assert passed_over.count("t", 0, 0, 14) == 1, "what was asked about is forgotten up to there"


def test_what_is_aborted_is_noted_where_an_answer_ends_in_it(passed_over: PassedOver) -> None:
    data = placed(bytes(builder([(b"k", b"v", [])] * 3).build()), 4, TRANSACTIONAL, 2)
    assert fetched(data, [(2, 4)], first=4) == ([], 7)
    assert passed_over.count("t", 0, 0, 9) == 3


def test_notes_are_counted_over_any_range_and_tell_where_the_next_record_may_be(passed_over: PassedOver) -> None:
    data, aborted = transactions()
    without = {3, 4, 5, 6, 8, 9, 13}
    for begin in range(15):
        fetched(data, aborted)
        for end in range(14, begin, -1):
            assert passed_over.count("t", 0, begin, end) == len(without & set(range(begin, end)))
        assert passed_over.next_offset("t", 0, begin) == next(i for i in range(begin, 99) if i not in without)


def test_notes_begin_again_where_a_reader_goes_back(passed_over: PassedOver) -> None:
    data, aborted = transactions()
    fetched(data, aborted)
    plain = bytes(builder([(b"k", b"v", [])] * 20).build())
    assert len(fetched(placed(plain, 0), first=5)[0]) == 15  # the topic was made again, and is read from 5 on
    assert passed_over.count("t", 0, 0, 20) == 2, "of 3 and 4 nothing else is known"
    fetched(placed(plain, 0))
    assert passed_over.count("t", 0, 0, 20) == 0


def test_only_followed_topics_are_noted_and_the_notes_are_bounded(
    passed_over: PassedOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = bytes(builder([(b"\0\0\0\1", b"\0" * 6, [])]).build())
    data = b"".join(placed(marker, offset, TRANSACTIONAL | CONTROL, 1) for offset in range(0, 100, 2))
    monkeypatch.setattr(batches, "MAX_NOTES", 10)
    fetched(data)
    assert passed_over.count("t", 0, 0, 100) == 10
    assert passed_over.count("t", 0, 80, 100) == 10, "the oldest are forgotten"
    others = PassedOver()
    monkeypatch.setattr(batches, "PASSED_OVER", others)
    fetched(data)
    assert others.count("t", 0, 0, 100) == 0
