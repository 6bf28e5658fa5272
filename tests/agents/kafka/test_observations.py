"""Rows count as sent when they are acknowledged, and silence and refusals say how many are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError

from attributary_agents.errors import PreflightError, UnsentError
from attributary_agents.kafka import observations
from attributary_agents.kafka.observations import Sending, produce
from tests.agents.stand_ins import config_of

ROWS = [b"%d" % n for n in range(10)]


class FakeProducer:
    """Takes rows, and acknowledges them when it is told to.

    Parameters
    ----------
    acknowledging
        How many rows are acknowledged at once; those behind them wait.
    """

    def __init__(self, acknowledging: int) -> None:
        self.rows: list[bytes] = []
        self.places: list[int | None] = []
        self.futures: list[asyncio.Future[object]] = []
        self.full = 0
        self.too_large: bytes | None = None
        self._acknowledging = acknowledging

    async def partitions_for(self, _topic: str) -> set[int]:
        return {2, 0, 1}

    async def send(self, _topic: str, value: bytes, key: bytes, **where: int) -> asyncio.Future[object]:
        assert key == b"credit"
        if self.full:
            self.full -= 1
            raise KafkaTimeoutError
        if value == self.too_large:
            raise MessageSizeTooLargeError("too large")
        self.rows.append(value)
        self.places.append(where.get("partition"))
        self.futures.append(asyncio.get_running_loop().create_future())
        if len(self.futures) <= self._acknowledging:
            self.futures[-1].set_result(None)
        await asyncio.sleep(0)
        return self.futures[-1]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let rows go to a producer that acknowledges so many of them."""

    def of(acknowledging: int) -> FakeProducer:
        fake = FakeProducer(acknowledging)

        @asynccontextmanager
        async def producer(*_: object, **_options: object) -> AsyncIterator[FakeProducer]:
            try:
                yield fake
            except (ValueError, KafkaError) as error:  # the first in place of an error of Kafka
                raise PreflightError(str(error)) from None

        monkeypatch.setattr(observations, "producer", producer)
        return fake

    return of


def test_progress_counts_what_is_acknowledged(client: Any) -> None:
    fake, counted = client(4), []

    async def run() -> int:
        sending = asyncio.create_task(produce(config_of(), "credit", ROWS, progress=counted.append))
        await asyncio.sleep(0.05)
        assert len(fake.rows) == 10
        assert counted == [1, 2, 3, 4]
        for future in fake.futures[5:]:  # out of their order: the fifth is missing
            future.set_result(None)
        await asyncio.sleep(0.01)
        assert counted == [1, 2, 3, 4]
        fake.futures[4].set_result(None)
        return await sending

    assert asyncio.run(run()) == 10
    assert counted == list(range(1, 11))


@pytest.mark.parametrize("first", [0, 4])
def test_rows_of_a_sharded_model_go_to_all_partitions_in_turn_wherever_it_begins(client: Any, first: int) -> None:
    config = config_of("credit")
    fake = client(10)
    assert asyncio.run(produce(config, "credit", ROWS)) == 10
    assert fake.places == [None] * 10, "the key decides"
    fake = client(10)
    model = config.models["credit"].model_copy(update={"sharded": True})
    sharded = config.model_copy(update={"models": {"credit": model}})
    fake.full = 1  # the first attempt at a row is no row
    assert asyncio.run(Sending(sharded, "credit", first=first).send(ROWS)) == 10
    assert fake.places == [(first + n) % 3 for n in range(10)]


def test_no_more_rows_are_under_way_than_the_window_has(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observations, "WINDOW", 3)
    fake = client(0)

    async def run() -> None:
        sending = asyncio.create_task(produce(config_of(), "credit", ROWS))
        for n in range(10):
            await asyncio.sleep(0.01)
            assert len(fake.rows) == min(n + 3, 10)
            fake.futures[n].set_result(None)
        assert await sending == 10

    asyncio.run(run())


def test_silence_is_told_once_and_again_later(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observations, "SILENT_S", 0.1)
    monkeypatch.setattr(observations, "AGAIN_S", 0.3)
    monkeypatch.setattr(observations, "_LOOK_S", 0.01)
    fake, told = client(4), []

    async def run() -> None:
        silent = lambda seconds, n: told.append((round(seconds, 1), n))  # noqa: E731
        sending = asyncio.create_task(produce(config_of(), "credit", ROWS, silent=silent))
        await asyncio.sleep(0.3)
        assert told == [(0.1, 6)]
        await asyncio.sleep(0.25)
        assert told == [(0.1, 6), (0.4, 6)]
        for future in fake.futures[4:]:
            future.set_result(None)
        await sending

    asyncio.run(run())
    assert len(told) == 2


def test_nothing_is_told_while_rows_are_acknowledged_and_where_none_is_under_way(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observations, "SILENT_S", 0.1)
    monkeypatch.setattr(observations, "_LOOK_S", 0.01)
    client(10)
    told: list[Any] = []
    asyncio.run(produce(config_of(), "credit", ROWS[:4], rate=8, silent=lambda *said: told.append(said)))
    assert told == []


def test_a_full_buffer_is_waited_for(client: Any) -> None:
    fake = client(10)
    fake.full = 3
    assert asyncio.run(produce(config_of(), "credit", ROWS)) == 10
    assert fake.rows == ROWS


def test_a_refusal_says_how_many_are_in_the_topic(client: Any) -> None:
    fake = client(4)

    async def run() -> None:
        sending = asyncio.create_task(produce(config_of(), "credit", ROWS))
        await asyncio.sleep(0.05)
        fake.futures[4].set_exception(ValueError("too large"))
        for future in fake.futures[5:]:
            future.set_result(None)
        await sending

    with pytest.raises(UnsentError, match="too large") as raised:
        asyncio.run(run())
    assert (raised.value.acknowledged, raised.value.unacknowledged) == (4, 6)


@pytest.mark.parametrize("refused_by", ["client", "broker"])
def test_a_row_that_is_refused_for_what_it_is_is_named_once_those_before_it_are_there(
    client: Any, refused_by: str
) -> None:
    fake, sending = client(4), Sending(config_of(), "credit")
    if refused_by == "client":
        fake.too_large = ROWS[6]

    async def run() -> None:
        task = asyncio.create_task(sending.send(ROWS))
        await asyncio.sleep(0.05)
        if refused_by == "broker":
            fake.futures[6].set_exception(MessageSizeTooLargeError("too large"))
        await asyncio.sleep(0.05)
        assert not task.done()
        for future in fake.futures[4:6]:
            future.set_result(None)
        await task

    with pytest.raises(UnsentError, match="too large") as raised:
        asyncio.run(run())
    behind = 3 if refused_by == "broker" else 0
    assert (raised.value.acknowledged, raised.value.unacknowledged) == (6, behind)
    assert sending.is_next_refused


def test_the_first_row_that_is_refused_is_a_fault_before_anything_was_sent(client: Any) -> None:
    client(0).too_large = ROWS[0]
    sending = Sending(config_of(), "credit")
    with pytest.raises(PreflightError):
        asyncio.run(sending.send(ROWS))
    assert sending.is_next_refused


def test_a_stop_keeps_the_count(client: Any) -> None:
    client(4)
    sending = Sending(config_of(), "credit")

    async def run() -> None:
        task = asyncio.create_task(sending.send(ROWS))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert (sending.acknowledged, sending.unacknowledged) == (4, 6)
