"""What the log says of a mapper that cannot go on: once, in a line that says what to do."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.errors import GroupAuthorizationFailedError, KafkaTimeoutError

from attributary_agents.sources.mappers import service
from attributary_agents.sources.mappers.board import SourcesBoard
from attributary_agents.sources.mappers.service import MapperService
from tests.agents.stand_ins import config_of

LET = (
    "mapping has stopped, and begins again by itself: the brokers at localhost:9092 do not let this client do this "
    "(GroupAuthorizationFailedError shop-mappers): grant it; docs/security.md lists what each user needs"
)
TIME_OUT = "mapping has stopped, and begins again by itself: KafkaTimeoutError: KafkaTimeoutError"


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ([GroupAuthorizationFailedError("shop-mappers")] * 3, [LET]),
        ([KafkaTimeoutError()] * 3, [TIME_OUT]),
        (
            [KafkaTimeoutError(), GroupAuthorizationFailedError("shop-mappers"), KafkaTimeoutError()],
            [TIME_OUT, LET, TIME_OUT],
        ),
    ],
)
def test_the_log_says_once_why_and_what_to_do(
    errors: list[Exception], said: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service, "FIRST_PAUSE_S", 0.001)
    config = config_of("m")
    one, left, stop = MapperService(config, SourcesBoard()), list(errors), asyncio.Event()

    async def fail() -> None:
        error = left.pop(0)
        if not left:
            stop.set()
        raise error

    asyncio.run(one._again("mapping", stop, fail))
    assert [" ".join(message.split()).removesuffix(": ") for message in caplog.messages] == said


def test_a_request_that_is_cancelled_by_the_client_ends_no_mapping(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As was seen where a broker went away: nobody has told the mapper to end."""
    monkeypatch.setattr(service, "FIRST_PAUSE_S", 0.001)
    one, stop, n = MapperService(config_of("m"), SourcesBoard()), asyncio.Event(), 0

    async def run() -> None:
        nonlocal n
        n += 1
        if n == 1:
            raise asyncio.CancelledError
        stop.set()

    asyncio.run(one._again("mapping", stop, run))
    assert n == 2
    assert "a request was cancelled" in caplog.text

    async def told_to_end() -> None:
        waits = asyncio.Event().wait
        task = asyncio.create_task(one._again("mapping", asyncio.Event(), waits))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(told_to_end())
