"""What is sent of an origin record, what it says of the ones before, and which positions may be committed."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaTimeoutError
from aiokafka.partitioner import murmur2

from attributary_agents.sources.mappers.positions import Position, decode_position
from attributary_agents.sources.mappers.sender import Encoded, Sender, encoded
from attributary_agents.sources.records import Mapped, OriginRecord
from attributary_topics import InvalidRecordError
from tests.agents.stand_ins import DEAD_LETTERS, TOPIC, config_of

PLACE = TopicPartition("rentals", 3)


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Have pytest run a coroutine."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


class Producer:
    """Keeps what is sent, and acknowledges it at `flush`; what is named in `fails` it does not."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, dict[str, Any]]] = []
        self.fails: set[int] = set()
        self._waiting: list[asyncio.Future[Any]] = []

    async def send(self, topic: str, value: bytes, **more: Any) -> asyncio.Future[Any]:
        self.sent.append((topic, value, more))
        self._waiting.append(asyncio.get_running_loop().create_future())
        return self._waiting[-1]

    async def flush(self) -> None:
        for number, future in enumerate(self._waiting):
            if not future.done():
                if number in self.fails:
                    future.set_exception(KafkaTimeoutError())
                else:
                    future.set_result(None)

    @property
    def origins(self) -> list[str]:
        return [dict(more["headers"])["attributary-origin"].decode() for _, _, more in self.sent]


def record(offset: int, value: bytes = b"{}", timestamp_ms: int = 1_700_000_000_000) -> OriginRecord:
    return OriginRecord("rentals", 3, offset, timestamp_ms, b"k", value, [("trace", b"1")])


def made(*models: str) -> list[Encoded]:
    return [Encoded(model, "observation", 0, b"{}") for model in models]


def sender(producer: Producer, run: int = 0, *models: str, **model: Any) -> Sender:
    config = config_of(*(models or ("a", "c")), **model)
    return Sender(config, producer, 4, {PLACE: Position(10, "id", run)})  # type: ignore[arg-type]


def partition_of(model: str) -> int:
    return (murmur2(model.encode()) & 0x7FFFFFFF) % 4


@in_a_loop
async def test_each_record_says_what_its_run_has_sent_before_it_to_the_same_partition_of_ours() -> None:
    producer = Producer()
    one = sender(producer)
    assert partition_of("a") != partition_of("c")
    await one.send(PLACE, record(12), made("a"))
    await one.send(PLACE, record(13), made("a", "c"))
    await one.send(PLACE, record(15), made("c", "c", "a"))
    await one.send(PLACE, record(16), made("c"))
    assert producer.origins == [
        "rentals:3:12:0:s:10",
        "rentals:3:13:0:r:12",
        "rentals:3:13:1:s:10",
        "rentals:3:15:0:r:13.1",
        "rentals:3:15:1:r:15",
        "rentals:3:15:2:r:13",
        "rentals:3:16:0:r:15.1",
    ]
    assert [more["partition"] for _, _, more in producer.sent[:3]] == list(map(partition_of, "aac"))
    assert {topic for topic, _, _ in producer.sent} == {TOPIC}
    assert dict(producer.sent[0][2]["headers"])["attributary-record"] == b"observation"
    assert producer.sent[0][2]["timestamp_ms"] == 1_700_000_000_000


@in_a_loop
async def test_a_source_that_was_set_back_has_another_name_in_its_origins() -> None:
    producer = Producer()
    await sender(producer, 2).send(PLACE, record(0), made("a"))
    assert producer.origins == ["rentals@2:3:0:0:s:10"]


@in_a_loop
async def test_positions_are_those_below_which_all_is_acknowledged() -> None:
    producer = Producer()
    one = sender(producer, 2)
    await one.send(PLACE, record(12), made("a"))
    one.pass_over(PLACE, record(14))
    assert await one.settle() == {PLACE: Position(15, "id", 2)}
    assert await one.settle() == {}
    producer.fails = {2}
    await one.send(PLACE, record(15), made("a"))
    await one.send(PLACE, record(16), made("a"))
    with pytest.raises(KafkaTimeoutError):
        await one.settle()


@in_a_loop
async def test_a_dead_letter_is_the_record_as_it_was_with_its_place_and_its_source() -> None:
    producer = Producer()
    one = sender(producer)
    error = InvalidRecordError("wrong_type", "sources.rentals.y", "a number", [])
    await one.send_dead_letter(PLACE, record(12, b"\xff"), "sources.rentals", error)
    ((topic, value, more),) = producer.sent
    headers = dict(more["headers"])
    assert (topic, value, more["key"], headers["trace"]) == (DEAD_LETTERS, b"\xff", b"k", b"1")
    ours = {name.removeprefix("attributary-dlq-"): text.decode() for name, text in headers.items() if "dlq" in name}
    assert (ours["id"], ours["stage"], ours["reason"], ours["source"]) == (
        "rentals:3:12",
        "map",
        "wrong_type",
        "rentals",
    )
    assert await one.settle() == {PLACE: Position(13, "id", 0)}


@in_a_loop
async def test_a_time_ahead_of_the_clock_is_not_what_brokers_refuse() -> None:
    producer = Producer()
    await sender(producer).send(PLACE, record(12, timestamp_ms=2**50), made("a"))
    assert producer.sent[0][2]["timestamp_ms"] < 2**50


@in_a_loop
async def test_of_records_that_our_topic_may_delete_at_once_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    producer = Producer()
    starts = {PLACE: Position(10, "id", 0)}
    one = Sender(config_of("a"), producer, 4, starts, 3_600_000)  # type: ignore[arg-type]
    await one.send(PLACE, record(12, timestamp_ms=round(time.time() * 1000)), made("a"))
    assert caplog.text == ""
    for offset in (13, 14):
        await one.send(PLACE, record(offset), made("a"))
    assert caplog.text.count("records of rentals are older than retention.ms of attributary.observations.v1") == 1


def test_what_is_longer_than_an_observation_may_be_is_a_dead_letter() -> None:
    mapped = Mapped("m", "observation", 0, {"x": {"a": "ä" * 50, "b": 2**70}})
    assert json.loads(encoded(mapped, 400).value) == mapped.fields
    with pytest.raises(InvalidRecordError, match="at most 100 bytes when it is mapped"):
        encoded(mapped, 100)


@pytest.mark.parametrize("text", [None, "", "x", "[]", '{"run": "x"}', '{"run": [1]}'])
def test_what_other_tools_have_committed_is_a_position_all_the_same(text: str | None) -> None:
    assert decode_position(7, text) == Position(7, "", 0)


def test_a_position_is_what_was_committed() -> None:
    at = Position(7, "ab12", 3)
    assert decode_position(7, at.text) == at


@pytest.mark.long
@in_a_loop
async def test_of_many_failures_the_first_ends_the_run_and_the_log_is_not_filled_with_the_others() -> None:
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    producer = Producer()
    one = sender(producer)
    for offset in range(10, 15):
        await one.send(PLACE, record(offset), made("a"))
    producer.fails = set(range(5))
    with pytest.raises(KafkaTimeoutError):
        await one.settle()
    producer._waiting.clear()
    del one
    for _ in range(3):
        await asyncio.sleep(0)
        gc.collect()
    assert said == []
