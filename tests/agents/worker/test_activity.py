"""What the worker is doing, as the watchdog and the health checks read it."""

from __future__ import annotations

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


def test_waiting_for_brokers_does_not_count() -> None:
    activity = Activity()
    waiting = Step("checkpoint", ("t", 0), 1)
    waiting.began -= 100
    with activity.doing(waiting):
        before = activity.step_s
        activity.rest()
        assert activity.step_s < 100 <= before
        assert activity.since(waiting) > waiting.began
    assert activity.step_s == 0
