"""An open transaction that holds a partition up is told: where, for how long, and when it is over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from attributary_agents.kafka.open_transactions import OpenTransaction, Reach, reach


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


HELD = Reach(position=100, stable=100, end=140)


def test_it_is_told_after_a_while_once_a_minute_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    seen = OpenTransaction("t[3]", clock)
    for second in range(200):
        clock.now = float(second)
        assert seen.see(HELD) == second
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 4  # at 15, 75, 135 and 195
    for word in ("t[3]", "offset 100 since 15 s", "40 offsets", "up to 139", "find-hanging", "abort"):
        assert word in caplog.messages[0]
    assert seen.see(Reach(140, 140, 140)) == 0.0
    assert caplog.messages[4] == "t[3]: the transaction that held it up at offset 100 has ended after 199 s"
    assert seen.see(HELD) == 0.0
    assert len(caplog.messages) == 5


def test_a_stream_of_short_transactions_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    seen = OpenTransaction("t[3]", clock)
    for second in range(200):
        clock.now = float(second)
        assert seen.see(Reach(second // 5, second // 5, 1000)) == second % 5
    assert not caplog.messages


@pytest.mark.parametrize("found", [None, Reach(99, 100, 140), Reach(140, 140, 140), Reach(141, 140, 140)])
def test_what_waits_for_the_worker_itself_is_not_held_up(found: Reach | None) -> None:
    clock = Clock()
    seen = OpenTransaction("t[3]", clock)
    seen.see(HELD)
    clock.now = 50.0
    assert seen.see(found) == 0.0


def test_how_far_a_partition_can_be_read_is_the_consumers() -> None:
    tp = TopicPartition("t", 3)
    states: dict[Any, Any] = {
        tp: SimpleNamespace(has_valid_position=True, position=5, lso=7, highwater=9),
        TopicPartition("t", 4): SimpleNamespace(has_valid_position=False, lso=None, highwater=None),
    }
    assignment = SimpleNamespace(tps=set(states), state_value=states.get)
    consumer = SimpleNamespace(_subscription=SimpleNamespace(subscription=SimpleNamespace(assignment=assignment)))
    app = SimpleNamespace(consumer=SimpleNamespace(_thread=SimpleNamespace(_consumer=consumer)))
    assert reach(app, "t", 3) == (5, 7, 9)
    assert reach(app, "t", 4) is None
    assert reach(app, "t", 5) is None
    consumer._subscription.subscription = None
    assert reach(app, "t", 3) is None
    assert reach(SimpleNamespace(consumer=SimpleNamespace()), "t", 3) is None
