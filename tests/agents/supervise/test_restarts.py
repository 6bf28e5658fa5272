"""When a process is started again."""

from __future__ import annotations

from attributary_agents.supervise import Restarts


def waits(ran_s: list[float], draw: float = 1.0, most: int = 6) -> list[float | None]:
    """The waits after a process that ran for so long each time."""
    now = [0.0]
    plan = Restarts(1.0, 10.0, 300.0, most, clock=lambda: now[0], draw=lambda: draw)
    found = []
    for seconds in ran_s:
        plan.begin()
        now[0] += seconds
        found.append(plan.end())
        now[0] += 1000.0  # however long the wait is: only what it ran for counts
    return found


def test_each_wait_is_twice_the_last_one_up_to_the_longest_and_then_there_is_none() -> None:
    assert waits([0.0] * 7) == [1.0, 2.0, 4.0, 8.0, 10.0, None, None]


def test_jitter_takes_up_to_a_half() -> None:
    assert waits([0.0] * 5, draw=0.0) == [0.5, 1.0, 2.0, 4.0, 5.0]


def test_one_that_ran_for_long_begins_anew() -> None:
    assert waits([0.0, 0.0, 299.0, 300.0, 0.0]) == [1.0, 2.0, 4.0, 1.0, 2.0]


def test_many_failures_in_a_row_stay_within_numbers() -> None:
    assert waits([0.0] * 2000, most=3000)[-1] == 10.0
