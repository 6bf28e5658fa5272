"""An open transaction that holds a partition up is told: where, for how long, and when it is over."""

from __future__ import annotations

import pytest

from attributary_agents.kafka.lag import OpenTransaction, TopicEnd


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def end(position: int, stable: int, offset: int) -> TopicEnd:
    return TopicEnd(offset, 0.0, stable, position)


HELD = end(position=100, stable=100, offset=140)


def test_it_is_told_after_a_while_once_a_minute_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    seen = OpenTransaction("t[3]", clock)
    for second in range(200):
        clock.now = float(second)
        assert seen.see(HELD) == second
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 4  # at 15, 75, 135 and 195
    for word in ("t[3]", "offset 100 since 15 s", "40 offsets", "up to 139", "find-hanging", "abort"):
        assert word in caplog.messages[0]
    assert seen.see(end(140, 140, 140)) == 0.0
    assert caplog.messages[4] == "t[3]: the transaction that held it up at offset 100 has ended after 199 s"
    assert seen.see(HELD) == 0.0
    assert len(caplog.messages) == 5


def test_a_stream_of_short_transactions_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    seen = OpenTransaction("t[3]", clock)
    for second in range(200):
        clock.now = float(second)
        assert seen.see(end(second // 5, second // 5, 1000)) == second % 5
    assert not caplog.messages


@pytest.mark.parametrize("found", [None, end(99, 100, 140), end(140, 140, 140), end(141, 140, 140), TopicEnd(140, 0.0)])
def test_what_waits_for_the_worker_itself_is_not_held_up(found: TopicEnd | None) -> None:
    clock = Clock()
    seen = OpenTransaction("t[3]", clock)
    seen.see(HELD)
    clock.now = 50.0
    assert seen.see(found) == 0.0
