"""What a person is told is counted by changes, not by revisions."""

from __future__ import annotations

from typing import Any

from benchmarks.incidents.counting import summed
from benchmarks.incidents.streams import AT, CASES

BY_NAME = {case.name: case for case in CASES}


def revision(number: int, at: int, life: str, what: str = "worse", reason: str = "", **since: Any) -> dict[str, Any]:
    onset = {"observation": at, "low": None, "high": at} | since
    return {
        "number": number, "observation": at, "life": life, "what": what, "reason": reason or life, "since": onset,
        "features": {"a": {}, "b": {}}, "advice": "nothing",
    }  # fmt: skip


def test_a_change_is_counted_once_and_what_came_before_is_false() -> None:
    told = [
        revision(1, 2000, "suspected"),
        revision(1, 3000, "withdrawn"),
        revision(2, 3500, "confirmed"),
        revision(2, 4000, "over"),
        revision(3, AT + 40, "suspected"),
        revision(3, AT + 1040, "confirmed", observation=AT + 9, low=AT - 5, high=AT + 12),
        revision(3, AT + 2040, "confirmed", reason="lasts", observation=AT + 30, low=AT + 20, high=AT + 40),
    ]
    found = summed(BY_NAME["frozen, best column permuted"], told)
    assert (found.false, found.withdrawn, found.confirmed, found.revisions) == (1, 1, 1, 2)
    assert (found.suspected, found.sure, found.onset) == ([40], [1040], [29])
    assert (found.what, found.features, found.contradictions) == (["worse"], ["a"], 0)


def test_an_alarm_by_chance_just_before_is_of_the_change_and_saying_less_is_a_contradiction() -> None:
    told = [
        revision(1, AT - 60, "suspected"),
        revision(1, AT + 900, "confirmed", observation=AT, low=AT - 20, high=AT + 20),
        revision(1, AT + 1200, "over", what="changed", observation=AT, low=AT - 20, high=AT + 20),
    ]
    found = summed(BY_NAME["HAT, another rule at once"], told)
    assert (found.withdrawn, found.confirmed, found.contradictions) == (0, 1, 1)
    assert (found.suspected, found.onset, found.what) == ([-60], [0], ["changed"])
