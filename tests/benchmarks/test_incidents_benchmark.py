"""What a person is told is counted by changes, not by revisions."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from benchmarks.incidents.__main__ import cells
from benchmarks.incidents.counting import summed, told_of
from benchmarks.incidents.streams import AT, CASES, QUIET, RARE, RARER, SECOND, WEIGHTS
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

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


PARTLY = ("frozen, best column missing in 4 of 5 rows", "frozen, half of best column in another unit")


@pytest.mark.parametrize("name", PARTLY)
def test_a_fault_in_some_rows_is_named_before_any_loss_says_so(name: str) -> None:
    case = replace(BY_NAME[name], n=AT + 200)
    found = summed(case, told_of(case, 1))
    assert (found.confirmed, found.false, found.what, found.features) == (1, 0, ["inputs"], ["a"])
    assert 0 < found.named[0] <= 100


def test_a_second_feature_is_named_soon_after_it_broke() -> None:
    case = replace(BY_NAME["frozen, a column stuck, then one in another unit"], n=AT + SECOND + 120)
    found = summed(case, told_of(case, 1))
    assert (found.confirmed, found.most) == (1, 3)
    assert [0 < late <= 100 for late in found.named] == [True, True]


@pytest.mark.parametrize(
    ("name", "advice"), [("a better", "nothing"), ("an equal", "nothing"), ("a worse", "roll_back")]
)
def test_a_version_that_takes_over_is_judged_after_a_window(name: str, advice: str) -> None:
    case = replace(BY_NAME[f"frozen, {name} version"], n=AT + 1200)
    found = summed(case, told_of(case, 1))
    assert (found.confirmed, found.suspected, found.what, found.advice) == (1, [0], ["version"], [advice])
    assert cells(case, [found])[6] == "1/1"
    assert cells(replace(case, advice="look_at_labels"), [found])[6] == f"0/1, version, {advice} 1"


@pytest.mark.parametrize(("name", "one_in", "at"), [("1 in 1000", 1000, RARE), ("1 in 10 000", 10_000, RARER)])
def test_rare_classes_are_as_rare_as_their_name_says(name: str, one_in: int, at: int) -> None:
    case, learns = (BY_NAME[f"{kind}, {name}, best column permuted"] for kind in ("frozen", "logistic"))
    model, rows = case.make(1)
    width = float(np.sqrt((WEIGHTS**2).sum()))
    share, _ = quad(lambda z: expit(model.intercept + width * z) * norm.pdf(z), -9.0, 9.0)
    assert share * one_in == pytest.approx(1.0, rel=0.05)
    n_positive = sum(y for _, y in islice(rows, 40_000))
    assert abs(n_positive - 40_000 * share) < 4.0 * np.sqrt(40_000 * share)
    assert {(one.at, one.n, one.is_long) for one in (case, learns)} == {((at,), 2 * at, True)}


def test_quiet_rows_go_on_for_a_million_and_nothing_is_said_of_the_first_ones() -> None:
    quiet = [case for case in CASES if case.n == QUIET]
    assert len(quiet) == 8
    for case in quiet:
        assert not case.at
        assert not told_of(replace(case, n=300), 1)
    rows = list(islice(BY_NAME["frozen, nothing for 10⁶ rows"].make(1)[1], 2 * AT + 100))
    again = list(islice(BY_NAME["frozen, nothing for 10⁶ rows"].make(1)[1], 2 * AT + 100))
    assert rows == again
    assert len({tuple(x.values()) for x, _ in rows}) == len(rows), "each row is another one"
