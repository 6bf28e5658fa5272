"""What the worker is doing, as the watchdog and the health checks read it."""

from __future__ import annotations

import asyncio
import time

import pytest

from attributary_agents.worker.activity import Activity, Step


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, "checkpoint at t[3]@17"),
        (b"credit", "checkpoint of model 'credit' at t[3]@17"),
        (b"\xff\n'", """checkpoint of model "\\\\xff\\n'" at t[3]@17"""),
        (b"k" * 1000, f"checkpoint of model '{'k' * 200}' at t[3]@17"),
    ],
)
def test_a_step_says_what_it_is_and_where_whatever_the_key(key: bytes | None, expected: str) -> None:
    assert str(Step("checkpoint", ("t", 3), 17, key)) == expected


def test_steps_are_under_way_inside_their_block_the_longest_first() -> None:
    activity = Activity()
    first, second = Step("checkpoint", ("t", 0), 1), Step("observation", ("t", 1), 2)
    second.began = first.began + 1
    with activity.doing(second), activity.doing(first):
        assert activity.steps == [first, second]
    assert activity.steps == []
    with pytest.raises(RuntimeError), activity.doing(first):
        raise RuntimeError
    assert activity.steps == []


def test_silence_is_counted_from_the_last_beat() -> None:
    activity = Activity()
    assert activity.silent_s == 0, "no loop runs yet"
    activity.beat()
    time.sleep(0.01)
    before = activity.silent_s
    activity.beat()
    assert before >= 0.01
    assert activity.silent_s < before


def _began_before(seconds: float) -> Step:
    step = Step("checkpoint", ("t", 0), 1)
    step.began = step.since = step.began - seconds
    return step


def test_a_step_that_writes_slowly_and_without_a_pause_waits_since_the_last_acknowledgement() -> None:
    activity = Activity()

    async def run() -> None:
        writes = [asyncio.get_running_loop().create_future() for _ in range(3)]
        with activity.doing(Step("checkpoint", ("t", 0), 1)):
            waiting = asyncio.gather(*map(activity.wait_for_kafka, writes))
            await asyncio.sleep(0)
            before = activity.kafka_waits["checkpoint at t[0]@1"]
            for write in writes[:2]:
                await asyncio.sleep(0.01)
                write.set_result(None)
                await asyncio.sleep(0)
                assert before < (before := activity.kafka_waits["checkpoint at t[0]@1"])
            writes[2].set_result(None)
            await waiting
            assert activity.kafka_waits == {}

    asyncio.run(run())


def test_of_the_steps_only_one_that_waits_for_kafka_rests() -> None:
    activity = Activity()

    async def run() -> None:
        acknowledged = asyncio.get_running_loop().create_future()
        waiting, hanging = _began_before(100), _began_before(50)

        async def write() -> int:
            with activity.doing(waiting):
                first, _ = await asyncio.gather(activity.wait_for_kafka(acknowledged), asyncio.sleep(0))
                assert waiting.n_kafka_waits == 0
                return first

        with activity.doing(hanging):
            writing = asyncio.ensure_future(write())
            while not waiting.n_kafka_waits:
                await asyncio.sleep(0)
            assert activity.step_s >= 100
            assert list(activity.kafka_waits) == ["checkpoint at t[0]@1"]
            assert abs(activity.kafka_waits["checkpoint at t[0]@1"] - time.monotonic()) < 50, (
                "not from its beginning on"
            )
            activity.rest(time.monotonic())
            assert 50 <= activity.step_s < 100, "the other one waits for something else"
            assert waiting.since > waiting.began
            acknowledged.set_result(7)
            assert await writing == 7
            assert activity.kafka_waits == {}
        assert await activity.wait_for_kafka(asyncio.sleep(0, 8)) == 8, "outside of all steps"

    asyncio.run(run())
    assert activity.step_s == 0
