"""Incidents that no drift begins: a useless model, another version, one that went back; and what no label judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import orjson
import pytest

from attributary_explainers import Incident, Incidents, Onset
from attributary_explainers.incidents.findings import Finding
from tests.explainers.incidents.made import alarm, broken, ended, explained, explanation, loss_shift, mended
from tests.explainers.incidents.test_reducer import Loss, Script, flat, lives, step, told

ERROR = "mean absolute error"


def took_over() -> Finding:
    return Finding("version", "took over", "version", opens=True)


def went_back() -> Finding:
    return Finding("model", "10 observations in a row failed to learn", "model", is_verdict=True)


def judged(
    incidents: Incidents, own: Loss, n: int, *, constant: float = 1.0, script: Script | None = None
) -> list[Incident]:
    """Feed absolute errors beside that of a constant."""
    rng, found = np.random.default_rng(4), list[Incident]()
    for number in range(incidents.n_observations + 1, n + 1):
        error = own(number) * (1.0 + 0.01 * float(rng.standard_normal()))
        found += incidents.update((script or {}).get(number, []), loss=error**2, measured=error, constant=constant)
    return found


def test_numbers_that_were_never_better_than_a_constant_are_useless_after_two_windows() -> None:
    found = judged(Incidents(learns=True, measure=ERROR), lambda _: 3.0, 13_000)
    assert [(one.number, one.what, one.reason, one.observation) for one in found] == [
        (1, "worse", "confirmed", 2000), (1, "worse", "lasts", 3000), (1, "worse", "lasts", 5000),
        (1, "worse", "lasts", 9000),
    ]  # fmt: skip
    assert {(one.severity, one.advice) for one in found} == {("critical", "retrain")}
    assert found[0].headline("m") == "m is useless: worse than always predicting the same"
    assert (found[0].since.observation, found[0].since.high) == (1, 1000)
    assert [one.name for one in found[0].effects] == ["loss", ERROR, "constant"]
    assert found[0].effects[-1].now is not None
    assert found[0].effects[-1].now.value == pytest.approx(1.0)


def test_it_is_over_when_they_are_better_than_a_constant_again() -> None:
    found = judged(Incidents(learns=True, measure=ERROR), lambda number: 3.0 if number <= 5000 else 0.5, 9000)
    assert lives(found)[-1] == (1, "worse", "over", "returned")
    assert {one.number for one in found} == {1}
    closed = next(one for one in found[-1].evidence if one.said == "returned")
    assert 5000 < closed.observation <= 6000
    assert found[-1].observation == closed.observation + 1000
    assert found[-1].headline("m") == "m has recovered"
    assert [one.name for one in found[-1].effects] == ["loss", ERROR]


def test_that_they_are_useless_raises_what_is_open() -> None:
    shift = loss_shift(5100, "level", 5001)
    script: Script = {5100: [shift], 6110: [explained(shift, 6110)]}
    own = step(5001, 2.0)
    found = judged(Incidents(learns=False, measure=ERROR), own, 8000, script=script)
    assert [(one.what, one.reason) for one in found[:3]] == [
        ("level", "suspected"), ("level", "confirmed"), ("worse", "raised"),
    ]  # fmt: skip
    assert {one.what for one in found[3:]} == {"worse"}
    assert found[2].severity == "critical"
    assert found[2].observation >= 6700, "two windows in a row"


@pytest.mark.parametrize("scale", [0.01, 1.0, 1e6])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 1.2])
def test_numbers_that_are_hardly_worse_than_a_constant_are_not_useless(scale: float, ratio: float) -> None:
    assert not judged(Incidents(learns=True, measure=ERROR), lambda _: ratio * scale, 6000, constant=scale)


def test_one_bad_window_makes_nothing_useless() -> None:
    own: Loss = lambda number: 3.0 if 4000 < number <= 4800 else 0.5  # noqa: E731
    assert not judged(Incidents(learns=True, measure=ERROR), own, 9000)


@pytest.mark.parametrize("measure", ["error rate", None])
def test_probabilities_may_be_above_a_constant(measure: str | None) -> None:
    assert not judged(Incidents(learns=False, measure=measure), lambda _: 3.0, 9000)


def test_a_model_that_went_back_is_critical_until_its_loss_is_where_it_was() -> None:
    shift = loss_shift(5100, "worse", 5001)
    script: Script = {5100: [shift], 6110: [explained(shift, 6110, "a")], 7000: [went_back()]}
    found = told(Incidents(learns=True), script, step(5001, 0.4, 8000), 12_000)
    at = next(i for i, one in enumerate(found) if one.reason == "replaced")
    assert (found[at].number, found[at].life, found[at].observation) == (1, "over", 7000)
    new = found[at + 1 :]
    assert {(one.number, one.what, one.severity) for one in new} == {(2, "recovered", "critical")}
    assert (new[0].revision, new[0].life, new[0].advice) == (1, "confirmed", "look_at_inputs")
    assert [one.said for one in new[0].evidence] == ["10 observations in a row failed to learn"]
    assert (new[-1].life, new[-1].reason) == ("over", "returned")
    assert new[-1].observation >= 9000


def test_a_version_that_nobody_compares_is_sure_after_a_window_and_a_quarter_and_ends() -> None:
    found = told(Incidents(learns=False), {3000: [took_over()]}, flat, 9000)
    assert lives(found) == [
        (1, "version", "suspected", "suspected"),
        (1, "version", "confirmed", "confirmed"),
        (1, "version", "over", "returned"),
    ]
    assert [one.observation for one in found] == pytest.approx([3000, 4250, 5300], abs=100)
    assert [one.severity for one in found] == ["info"] * 3
    worse = told(Incidents(learns=False), {3000: [took_over()]}, step(3001, 0.4), 6000)
    sure = next(one for one in worse if one.life == "confirmed")
    assert (sure.severity, sure.advice) == ("critical", "roll_back")


def test_an_alarm_without_labels_says_only_that_the_model_relies_differently() -> None:
    script: Script = {3000: [alarm(3000)], 4000: [explanation(4000, "followed", 3000, Onset(2950, 2940, 2960))]}
    incidents, found = Incidents(learns=False), list[Incident]()
    for number in range(1, 8000):
        found += incidents.update(script.get(number, []))
    assert lives(found) == [
        (1, "relies_differently", "suspected", "suspected"),
        (1, "relies_differently", "confirmed", "confirmed"),
        (1, "relies_differently", "over", "returned"),
    ]
    assert {one.severity for one in found} == {"info"}
    assert {(mean.before, mean.after, mean.now) for one in found for mean in one.effects} == {(None, None, None)}


def test_another_measure_begins_all_means_anew() -> None:
    shift = loss_shift(5100, "worse", 5001)
    incidents = Incidents(learns=False, measure=ERROR)
    judged(incidents, step(5001, 0.6), 5200, script={5100: [shift]})
    incidents.begin_measure("error rate")
    found = judged(incidents, flat, 7000, script={6200: [explained(shift, 6200, "a")]})
    loss, errors = found[0].effects
    assert errors.name == "error rate"
    assert (loss.before, errors.before) == (None, None), "what came before has another unit"
    assert errors.now is not None
    assert errors.now.value == pytest.approx(0.2, abs=0.01)


STORIES: dict[str, tuple[dict[str, Any], Callable[[], Script], Loss]] = {
    "useless": ({"learns": True, "measure": ERROR}, dict, lambda number: 3.0 if number <= 5000 else 0.5),
    "version": ({"learns": False}, lambda: {3000: [took_over()]}, flat),
    "went back": ({"learns": True, "measure": "error rate"}, lambda: {3000: [went_back()]}, step(2800, 0.5, 4500)),
    "faded": (
        {"learns": True, "measure": "error rate"},
        lambda: {3030: [loss_shift(3030, "worse", 3001)], 3200: [ended(loss_shift(3030, "worse", 3001), 3200)]},
        step(3001, 0.5, 4000),
    ),
    "broken": (
        {"learns": False, "measure": ERROR},
        lambda: {
            3050: [broken(3050, 3001)],
            3052: [broken(3052, 3001, "income")],
            4000: [mended(broken(3050, 3001), 4000, "settled"), mended(broken(3052, 3001, "income"), 4000)],
        },
        step(3001, 2.0),
    ),
    "other measure": ({"learns": False, "measure": ERROR}, lambda: {3030: [loss_shift(3030, "worse", 3001)]}, flat),
}


@pytest.mark.parametrize("at", [1999, 2000, 3001, 3040, 3055, 4251, 5050, 6700])
@pytest.mark.parametrize("name", STORIES)
def test_each_of_them_goes_on_to_the_bit_from_a_snapshot_in_its_middle(name: str, at: int) -> None:
    parameters, script_of, own = STORIES[name]
    script, rng = script_of(), np.random.default_rng(5)
    errors = [own(i) * (1.0 + 0.01 * float(rng.standard_normal())) for i in range(9001)]

    def feed(of: Incidents, first: int, last: int) -> Iterator[Incident]:
        for i in range(first, last + 1):
            yield from of.update(script.get(i, []), loss=errors[i] ** 2, measured=errors[i], constant=1.0)
            if name == "other measure" and i == 3040:
                of.begin_measure("error rate")

    incidents = Incidents(**parameters)
    list(feed(incidents, 1, at))
    again = Incidents.from_snapshot(orjson.loads(orjson.dumps(incidents.snapshot())))
    expected = list(feed(incidents, at + 1, 9000))
    assert expected or at > 5000
    assert list(feed(again, at + 1, 9000)) == expected
    assert again.snapshot() == incidents.snapshot()
