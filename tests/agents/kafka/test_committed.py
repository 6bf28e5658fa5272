"""Where committed records are is found whatever a partition ends in, and however the brokers answer."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    KafkaTimeoutError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)
from support.raw_names import builder

from attributary_agents.kafka import committed
from attributary_agents.kafka.committed import CommittedRecords

from .upstream.raw_batches import CONTROL, TRANSACTIONAL, placed

PLACE = TopicPartition("t", 0)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "_AGAIN_S", 0.001)


class Log:
    """A partition as a broker has it: batches, the transactions in it, and which records a reader is given."""

    def __init__(self, begin: int = 0) -> None:
        self.begin = self.end = begin
        self.stable: int | None = None
        self.batches: list[tuple[int, int, bytes]] = []
        """First offset, the one behind the last, and the bytes."""
        self.aborted: list[tuple[int, int, int]] = []
        """Producer, first offset, and that of the marker."""
        self.given: list[int] = []
        """Offsets of the records that a reader of committed ones is given."""

    def write(self, n: int = 1, *, producer: int | None = None, is_given: bool = True, size: int = 1) -> None:
        records = [(b"k", b"v" * size, [])] * n
        attributes = 0 if producer is None else TRANSACTIONAL
        self._add(n, placed(bytes(builder(records).build()), self.end, attributes, producer or -1))
        self.given += range(self.end - n, self.end) if is_given else ()

    def mark(self, producer: int, *, aborts_from: int | None = None) -> None:
        key = bytes((0, 0, 0, int(aborts_from is None)))
        data = builder([(key, b"\0\0\0\0\0\0", [])]).build()
        if aborts_from is not None:
            self.aborted.append((producer, aborts_from, self.end))
        self._add(1, placed(bytes(data), self.end, TRANSACTIONAL | CONTROL, producer))

    def skip(self, n: int) -> None:
        """Let n records be compacted away."""
        self.end += n

    def _add(self, n: int, data: bytes) -> None:
        self.batches.append((self.end, self.end + n, data))
        self.end += n

    @property
    def readable(self) -> int:
        return self.end if self.stable is None else self.stable


class Brokers:
    """Answers like brokers of which each leads some partitions: limits of answers, batches that are not cut."""

    def __init__(self, logs: dict[TopicPartition, Log], n: int = 1) -> None:
        self.logs = logs
        self.leaders = {place: i % n for i, place in enumerate(logs)}
        self.asked: Counter[int] = Counter()
        self.sent_bytes = 0
        self.in_the_way: list[Any] = []
        """What comes in place of the next answers: an error that is raised, or one that is told, or an empty answer."""
        self._client = self
        self.cluster = SimpleNamespace(leader_for_partition=self.leaders.get)
        self.topics: set[str] = set()

    def add_topic(self, topic: str) -> None:
        self.topics.add(topic)

    def force_metadata_update(self) -> None:
        self.asked[-1] += 1

    async def end_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {place: self.logs[place].readable for place in places}

    async def beginning_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {place: self.logs[place].begin for place in places}

    async def send(self, node: int, request: Any) -> Any:
        self.asked[node] += 1
        way = self.in_the_way.pop(0) if self.in_the_way else None
        if isinstance(way, Exception):
            raise way
        left, topics = request._max_bytes, []
        for topic, partitions in request.topics if way != "throttled" else ():
            answers = []
            for number, offset, limit in partitions:
                code = way.errno if isinstance(way, type) else 0
                data, answer = self._answer(TopicPartition(topic, number), offset, min(limit, left), code, left)
                left = min(left, request._max_bytes - 1) - len(data) if data else left
                self.sent_bytes += len(data)
                answers.append((number, *answer))
            topics.append((topic, answers))
        return SimpleNamespace(API_VERSION=11, topics=topics, throttle_time_ms=1)

    def _answer(self, place: TopicPartition, offset: int, limit: int, code: int, left: int) -> tuple[bytes, Any]:
        log = self.logs[place]
        if not code and not log.begin <= offset <= log.end:
            code = OffsetOutOfRangeError.errno
        data, reach = b"", offset
        for first, following, batch in log.batches:
            if code or following <= offset or first >= log.readable:
                continue
            is_first_of_all = not data and left == committed.ANSWER_BYTES
            if len(data) + len(batch) > limit and not is_first_of_all:
                break
            data, reach = data + batch, following
        aborted = [(one, begin) for one, begin, end in log.aborted if begin < reach and end >= offset]
        return data, (code, log.end, log.readable, log.begin, aborted, -1, data)


def last(brokers: Brokers, within_s: float = 60.0) -> dict[TopicPartition, int]:
    return asyncio.run(CommittedRecords(brokers, within_s).last(brokers.logs))  # type: ignore[arg-type]


def first(brokers: Brokers, begin: int, end: int, within_s: float = 60.0) -> int | None:
    return asyncio.run(CommittedRecords(brokers, within_s).first(PLACE, begin, end))  # type: ignore[arg-type]


def random_log(rng: random.Random) -> Log:
    """Plain records, transactions of three producers that overlap, holes; the last transactions may be open."""
    log = Log(rng.choice([0, 0, 17]))
    open_: dict[int, tuple[int, bool]] = {}
    for _ in range(rng.randrange(60)):
        producer, n = rng.randrange(1, 4), rng.choice([1, 1, 2, 30])
        match rng.choice(["plain", "write", "write", "end", "hole"]):
            case "plain":
                log.write(n)
            case "hole":
                log.skip(n)
            case "write":
                begin, commits = open_.setdefault(producer, (log.end, rng.random() < 0.3))
                log.write(n, producer=producer, is_given=commits)
            case "end" if producer in open_:
                begin, commits = open_.pop(producer)
                log.mark(producer, aborts_from=None if commits else begin)
    log.stable = min((begin for begin, _ in open_.values()), default=None)
    log.given = [offset for offset in log.given if offset < log.readable]
    return log


def test_the_last_committed_record_of_any_log_is_found() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        logs = {TopicPartition(rng.choice("tu"), i): random_log(rng) for i in range(rng.randrange(1, 8))}
        brokers = Brokers(logs, rng.randrange(1, 4))
        brokers.in_the_way = rng.sample(
            [NotLeaderForPartitionError(), NotLeaderForPartitionError, "throttled", None, None, None], 6
        )
        assert last(brokers) == {
            place: max(log.given, default=-1 if log.end == 0 else log.begin - 1) for place, log in logs.items()
        }


def test_the_first_committed_record_of_any_range_is_found() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        log = random_log(rng)
        begin = rng.randrange(log.begin, log.readable + 1)
        end = rng.randrange(begin, log.readable + 1)
        found = first(Brokers({PLACE: log}), begin, end)
        assert found == next((offset for offset in log.given if begin <= offset < end), None)


def test_a_log_without_transactions_costs_one_question_for_all_its_partitions() -> None:
    logs = {TopicPartition("t", i): Log() for i in range(300)}
    for log in logs.values():
        log.write(100)
        log.write(3, size=1000)
    brokers = Brokers(logs, 3)
    assert set(last(brokers).values()) == {102}
    assert brokers.asked == {0: 1, 1: 1, 2: 1}


def test_large_batches_are_asked_for_as_answers_have_room() -> None:
    logs = {TopicPartition("t", i): Log() for i in range(20)}
    for i, log in enumerate(logs.values()):
        log.write(size=400_000 * (1 + i % 4))  # some above the limit of a partition
    assert set(last(Brokers(logs, 2)).values()) == {0}


def test_what_is_read_is_bounded_where_much_is_behind_the_last_committed_record() -> None:
    log = Log()
    for _ in range(5000):
        log.write(1, size=100)
    begin = log.end
    for _ in range(3000):
        log.write(1, producer=1, is_given=False, size=100)
    log.mark(1, aborts_from=begin)
    brokers = Brokers({PLACE: log})
    assert last(brokers) == {PLACE: 4999}
    assert brokers.sent_bytes < 2 * sum(len(data) for *_, data in log.batches)
    assert brokers.asked[0] < 10


def test_a_log_that_is_emptied_meanwhile_has_no_record() -> None:
    log = Log(50)
    log.write(10)
    brokers = Brokers({PLACE: log})
    ends = brokers.end_offsets

    async def emptied(places: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = await ends(places)
        log.begin, log.batches = log.end, []
        return found

    brokers.end_offsets = emptied  # type: ignore[method-assign]
    assert last(brokers) == {PLACE: 59}


def test_records_that_cannot_be_read_yet_are_waited_for() -> None:
    log = Log()
    log.write(5)
    log.stable, brokers = 3, Brokers({PLACE: log})
    send, n = brokers.send, 0

    async def catching_up(node: int, request: Any) -> Any:
        nonlocal n
        n += 1
        if n == 3:
            log.stable = None
        return await send(node, request)

    log.batches = [(4, 5, placed(bytes(builder([(b"k", b"v", [])]).build()), 4))]
    brokers.send = catching_up  # type: ignore[method-assign]
    assert first(brokers, 3, 5) == 4
    assert n == 3


def test_brokers_that_refuse_or_never_answer_are_told() -> None:
    log = Log()
    log.write(5)
    brokers = Brokers({PLACE: log})
    brokers.in_the_way = [TopicAuthorizationFailedError]
    with pytest.raises(TopicAuthorizationFailedError):
        last(brokers)
    with pytest.raises(OffsetOutOfRangeError):  # the topic has been made again
        first(brokers, 7, 9)
    brokers.leaders.clear()
    for ask in (lambda: last(brokers, 0.2), lambda: first(brokers, 0, 5, 0.2)):
        with pytest.raises(KafkaTimeoutError):
            ask()
    assert brokers.topics == {"t"}
