"""Where topics end, as fetches and questions tell it."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest
from aiokafka.errors import KafkaConnectionError
from faust.types import TP

from attributary_agents.kafka.brokers import BrokerWatch
from attributary_agents.kafka.lag import ASK_AFTER_S, TopicEnd, TopicEnds

from .fetched_partitions import client_thread, noted

HERE = TP("t", 3)


class App:
    """Stands in for a Faust app whose consumer has fetched at some time, and answers questions."""

    def __init__(self, fetched: int | None, age_s: float, fails: type[Exception] | None = None) -> None:
        self.asked: list[tuple[TP, ...]] = []
        self.assigned = {HERE}
        self._fails = fails
        self.states = {HERE: noted(fetched, age_s=age_s)}
        self.consumer = SimpleNamespace(
            highwaters=self._highwaters, assignment=lambda: self.assigned, _thread=client_thread(self.states)
        )

    async def _highwaters(self, *tps: TP) -> dict[TP, int]:
        self.asked.append(tps)
        if self._fails is not None:
            raise self._fails
        return dict.fromkeys(tps, 70)


async def _looked_twice(app: App, brokers: BrokerWatch) -> list[TopicEnd | None]:
    ends = TopicEnds(app, brokers)
    first = ends.end(HERE)
    for _ in range(5):
        await asyncio.sleep(0)
    return [first, ends.end(HERE)]


def test_a_fetch_tells_it() -> None:
    app = App(50, 1.0)
    first, second = asyncio.run(_looked_twice(app, BrokerWatch()))
    assert first is not None
    assert second is not None
    assert (first.offset, second.offset, app.asked) == (50, 50, [])
    assert abs(time.monotonic() - 1.0 - first.seen_at) < 60
    assert first == second, "when it was fetched is read once: the system's clock may be set meanwhile"


def test_a_partition_that_the_client_has_just_lost_has_no_end() -> None:
    app = App(50, 1.0)
    app.states.clear()
    first, second = asyncio.run(_looked_twice(app, BrokerWatch()))
    assert first is None
    assert second is not None
    assert second.offset == 70, "asked for: in this test the partition is ours"


def test_a_fetch_tells_how_far_a_partition_can_be_read_and_has_been() -> None:
    app = App(9, 0.0)
    ends = TopicEnds(app, BrokerWatch())

    def told() -> tuple[int | None, ...]:
        end = ends.fetched(HERE)
        assert end is not None
        return end.position, end.stable, end.offset

    app.states[HERE] = noted(9, stable=7, position=5)
    assert told() == (5, 7, 9)
    app.states[HERE] = noted(9, stable=-1)  # a client that reads uncommitted records, and has no position yet
    assert told() == (None, None, 9)
    app.states[HERE] = noted(None)
    assert ends.fetched(HERE) is None
    assert ends.fetched(TP("t", 4)) is None
    app.consumer._thread._consumer._subscription.subscription = None
    assert ends.fetched(HERE) is None
    app.consumer._thread = None
    assert ends.fetched(HERE) is None


@pytest.mark.parametrize(("fetched", "first"), [(50, 50), (None, None)])
def test_what_has_not_been_fetched_for_a_time_is_asked_for(fetched: int | None, first: int | None) -> None:
    app = App(fetched, ASK_AFTER_S + 1)
    old, new = asyncio.run(_looked_twice(app, BrokerWatch()))
    assert (old and old.offset) == first
    assert new is not None
    assert new.offset == 70
    assert app.asked == [(HERE,)]


def test_nothing_is_asked_while_brokers_are_away_and_a_failure_is_no_end() -> None:
    now = [0.0]
    away = BrokerWatch(lambda: now[0])
    away.fail("one", "refused")
    now[0] = 60.0
    app = App(None, 60)
    assert asyncio.run(_looked_twice(app, away)) == [None, None]
    assert app.asked == []


@pytest.mark.parametrize(("error", "told"), [(KafkaConnectionError, 0), (RuntimeError, 1)])
def test_a_question_that_fails_tells_no_end_and_ends_nothing(
    error: type[Exception], told: int, caplog: pytest.LogCaptureFixture
) -> None:
    failing = App(None, 60, fails=error)
    assert asyncio.run(_looked_twice(failing, BrokerWatch())) == [None, None]
    assert failing.asked[0] == (HERE,)
    assert sum(line.startswith("cannot tell where") for line in caplog.messages) >= told
    assert "never retrieved" not in caplog.text


def test_of_several_partitions_that_wait_each_keeps_its_end_until_it_goes() -> None:
    there, now = TP("t", 4), [1000.0]
    app = App(None, 60)
    app.assigned = {HERE, there}
    ends = TopicEnds(app, BrokerWatch(), lambda: now[0])

    async def look(*tps: TP) -> list[float | None]:
        now[0] += 3.0
        known = [ends.end(tp) for tp in tps]
        for _ in range(5):
            await asyncio.sleep(0)
        return [None if end is None else now[0] - end.seen_at for end in known]

    async def run() -> None:
        await look(HERE)
        await look(there)
        for _ in range(20):
            for age in await look(HERE, there):
                assert age is not None
                assert age <= ASK_AFTER_S + 3.0
        assert len(app.asked) < 20, "not at each look"
        app.assigned = {HERE}
        now[0] += ASK_AFTER_S
        await look(HERE)
        assert await look(there) == [None]

    asyncio.run(run())
