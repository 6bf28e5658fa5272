"""What watches find becomes one story: its life, what it is, how bad, since when, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import orjson
import pytest

from attributary_explainers import Incident, Incidents, InvalidParameterError, Onset, SnapshotError
from tests.explainers.incidents.made import (
    alarm,
    broken,
    ended,
    explained,
    explanation,
    loss_shift,
    mended,
    nothing,
    relies,
)

Script = dict[int, list[Any]]
Loss = Callable[[int], float]


def flat(_: int) -> float:
    return 0.2


def step(at: int, after: float, until: int = 10**9) -> Loss:
    return lambda number: after if at <= number < until else 0.2


def told(incidents: Incidents, script: Script, loss: Loss, n: int, *, noise: float = 0.01) -> list[Incident]:
    rng, found = np.random.default_rng(1), []
    for number in range(incidents.n_observations + 1, n + 1):
        value = loss(number) + noise * float(rng.standard_normal())
        found += incidents.update(script.get(number, []), loss=value, constant=0.5)
    return found


def lives(found: Iterable[Incident]) -> list[tuple[int, str, str, str]]:
    return [(one.number, one.what, one.life, one.reason) for one in found]


def test_a_drift_that_a_learner_follows_is_one_incident_in_three_words() -> None:
    onset = Onset(5001, 4990, 5010)
    script: Script = {
        5040: [alarm(5040)],
        5060: [loss_shift(5060, "worse", 5001)],
        6050: [explanation(6050, "followed", 5040, onset)],
        6070: [explained(loss_shift(5060, "worse", 5001), 6070, "a")],
        6300: [ended(loss_shift(5060, "worse", 5001), 6300)],
    }
    found = told(Incidents(learns=True), script, step(5001, 0.5, 5700), 12_000)
    assert lives(found) == [
        (1, "changed", "suspected", "suspected"),
        (1, "changed", "confirmed", "confirmed"),
        (1, "changed", "over", "returned"),
    ]
    assert [one.revision for one in found] == [1, 2, 3]
    first, sure, over = found
    assert sure.observation == 6070, "the verdict on the loss is waited for"
    assert (first.since.observation, first.since.low) == (5040, None)
    assert (sure.since.observation, sure.since.low, sure.since.high) == (5001, 4990, 5010)
    assert over.effects[0].before.value == pytest.approx(0.2, abs=0.01)
    assert over.effects[0].after.value == pytest.approx(0.41, abs=0.02)
    assert over.effects[0].now.value == pytest.approx(0.2, abs=0.01)
    assert over.advice == "nothing"
    assert 7200 <= over.observation <= 7500, "a window after the last of it was closed"
    assert [one.watch for one in over.evidence] == ["change", "loss", "change", "loss", "loss"]


def test_a_learner_that_settles_above_what_it_lost_is_worse_and_is_to_be_trained() -> None:
    script: Script = {5040: [alarm(5040)], 6050: [explanation(6050, "followed", 5040, Onset(5001, 4990, 5010))]}
    found = told(Incidents(learns=True), script, step(5001, 0.4), 9000)
    assert lives(found)[-1] in [(1, "worse", "over", "settled"), (1, "worse", "confirmed", "raised")]
    assert found[-1].advice == "retrain"
    assert found[-1].severity == "critical"


def test_a_learner_that_stays_worse_while_its_loss_is_watched_is_never_called_adapted_again() -> None:
    shift = loss_shift(5060, "worse", 5001)
    script: Script = {
        5040: [alarm(5040)],
        5060: [shift],
        6050: [explanation(6050, "followed", 5040, Onset(5001, 4990, 5010))],
        6070: [explained(shift, 6070, "a")],
    }
    found = told(Incidents(learns=True), script, step(5001, 0.4), 14_000)
    assert [(one.what, one.reason) for one in found] == [
        ("changed", "suspected"), ("changed", "confirmed"), ("worse", "raised"), ("worse", "lasts"), ("worse", "lasts"),
        ("worse", "lasts"),
    ]  # fmt: skip
    assert found[2].observation < 7500


def test_an_alarm_behind_which_nothing_stands_is_withdrawn() -> None:
    found = told(Incidents(learns=True), {3000: [alarm(3000)], 4000: [nothing(4000, 3000)]}, flat, 5000)
    assert lives(found) == [(1, "changed", "suspected", "suspected"), (1, "changed", "withdrawn", "noise")]
    assert found[-1].advice == "nothing"


@pytest.mark.parametrize(
    ("verdict", "after", "expected"),
    [
        ("loss", 0.2, "withdrawn"), ("harder", 0.2, "withdrawn"), ("loss", 0.25, "confirmed"),
        ("harder", 0.25, "confirmed"), ("followed", 0.2, "confirmed"), ("degraded", 0.2, "confirmed"),
    ],
)  # fmt: skip
def test_what_learns_has_changed_only_while_its_loss_is_up_or_its_reference_says_so(
    verdict: str, after: float, expected: str
) -> None:
    """Before it is .2 with a standard error of .0003, so .25 is surely above a tenth more, which is .22."""
    shift = loss_shift(5060, "worse", 5001)
    script: Script = {5060: [shift], 6070: [explained(shift, 6070, "a")], 6300: [ended(shift, 6300)]}
    if verdict != "loss":
        change = explanation(6070, verdict, 5060, Onset(5001, 4990, 5010))
        script = {5060: [alarm(5060)], 6070: [change]}
    found = told(Incidents(learns=True), script, step(5001, after), 7500)
    assert [one.life for one in found[:2]] == ["suspected", expected]
    still = told(Incidents(learns=False), script, step(5001, after), 6500)
    assert [one.life for one in still] == ["suspected", "confirmed"], "one that stands still does nothing by itself"


def test_a_suspicion_that_nobody_judges_is_withdrawn_at_last() -> None:
    found = told(Incidents(learns=True), {3000: [alarm(3000)]}, flat, 12_000)
    assert lives(found)[-1] == (1, "changed", "withdrawn", "noise")
    assert 11_000 <= found[-1].observation <= 11_100


def test_a_frozen_model_is_worse_whatever_the_change_explainer_calls_it_until_it_is_mended() -> None:
    shift = loss_shift(5100, "worse", 5001)
    script: Script = {
        5060: [alarm(5060)],
        5100: [shift],
        6060: [explanation(6060, "harder", 5060, Onset(5003, 4995, 5011))],
        6110: [explained(shift, 6110, "a")],
        15_200: [ended(shift, 15_200)],
    }
    found = told(Incidents(learns=False), script, step(5001, 0.4, 15_000), 20_000)
    assert {what for _, what, life, _ in lives(found) if life != "suspected"} == {"worse"}
    assert found[1].life == "confirmed"
    assert found[1].severity == "critical"
    assert found[1].advice == "look_at_inputs"
    assert [one.name for one in found[-1].features if one.significant] == ["a"]
    assert [one.observation - 5000 for one in found if one.reason == "lasts"] == pytest.approx(
        [2000, 4000, 8000], abs=200
    )
    assert lives(found)[-1] == (1, "worse", "over", "returned")


def test_labels_are_suspected_where_many_features_lose_at_once_and_the_inputs_where_one_does() -> None:
    def advice(*names: str) -> str:
        shift = loss_shift(5100, "worse", 5001)
        script: Script = {5100: [shift], 6110: [explained(shift, 6110, *names)]}
        return told(Incidents(learns=False), script, step(5001, 0.4), 6500)[-1].advice

    assert advice("a") == "look_at_inputs"
    assert advice("a", "b", "c") == "look_at_labels"
    assert advice() == "look_at_labels"


def test_a_frozen_model_whose_data_are_harder_is_told_so_as_information() -> None:
    script: Script = {5060: [alarm(5060)], 6060: [explanation(6060, "harder", 5060, Onset(5003, 4995, 5011))]}
    found = told(Incidents(learns=False), script, step(5001, 0.24), 9000)
    assert found[-1].what == "harder"
    assert {one.severity for one in found} == {"info"}
    assert (found[-1].life, found[-1].reason) == ("over", "settled")


def test_the_base_rate_comes_with_what_to_add() -> None:
    shift = loss_shift(5100, "level", 5001)
    found = told(Incidents(learns=False), {5100: [shift], 6110: [explained(shift, 6110)]}, step(5001, 0.22), 6500)
    assert (found[-1].what, found[-1].advice, found[-1].intercept) == ("level", "shift_intercept", 1.2)
    assert found[-1].severity == "warning"


def test_a_broken_feature_is_sure_at_once_and_critical_when_the_loss_follows() -> None:
    of = broken(5050, 5001)
    script: Script = {5050: [of], 5100: [loss_shift(5100, "worse", 5001)], 6000: [mended(of, 6000)]}
    script[6100] = [ended(loss_shift(5100, "worse", 5001), 6100)]
    found = told(Incidents(learns=False), script, step(5001, 0.4, 5950), 9000)
    assert lives(found) == [
        (1, "inputs", "confirmed", "confirmed"),
        (1, "inputs", "confirmed", "raised"),
        (1, "inputs", "over", "returned"),
    ]
    assert [one.severity for one in found] == ["warning", "critical", "critical"]
    assert found[0].features[0].name == "age"
    assert found[0].features[0].said == "is always missing, and never was before"


def test_what_comes_without_a_label_is_told_too() -> None:
    incidents, found = Incidents(learns=False), []
    of = broken(550, 501)
    for number in range(1, 6000):
        found += incidents.update([of] if number == 550 else [mended(of, number)] if number == 1200 else [])
    assert lives(found) == [(1, "inputs", "confirmed", "confirmed"), (1, "inputs", "over", "returned")]


def test_a_break_that_stays_is_not_fine_again_and_one_that_is_mended_leaves_a_spoilt_model() -> None:
    of, incidents, found = broken(550, 501), Incidents(learns=False), list[Incident]()
    for number in range(1, 6000):
        found += incidents.update([of] if number == 550 else [mended(of, number, "settled")] if number == 1501 else [])
    assert lives(found)[-1] == (1, "inputs", "over", "settled")
    assert found[-1].headline("m") == "age of m has not gone back"

    of = broken(5050, 5001)
    script: Script = {5050: [of], 6000: [mended(of, 6000)]}
    spoilt = told(Incidents(learns=True), script, step(5001, 0.4), 9000)
    assert ("worse", "raised") in [(one.what, one.reason) for one in spoilt]
    assert spoilt[-1].what == "worse"
    assert spoilt[-1].advice == "retrain"
    assert not any(one.said for one in spoilt[-1].features)


def test_rows_without_a_label_move_no_onset() -> None:
    """Of 10 000 rows every second one has a label: what the watches count as 2501 is the row 5001."""
    incidents, found = Incidents(learns=False), list[Incident]()
    for number in range(1, 10_001):
        label = number // 2 if number % 2 == 0 else None
        events = [loss_shift(label, "worse", 2501)] if label == 2600 else []
        if label == 3640:
            events = [explained(loss_shift(2600, "worse", 2501), 3640, "a")]
        found += incidents.update(events, loss=None if label is None else 0.2 + 0.2 * (label > 2500))
    sure = next(one for one in found if one.life == "confirmed")
    assert (sure.since.low, sure.since.observation, sure.since.high) == (4922, 5002, 5082)
    assert sure.effects[0].before.value == pytest.approx(0.2)


def test_a_brief_shift_and_the_alarm_after_it_are_one_incident() -> None:
    shift = loss_shift(5030, "worse", 5001)
    script: Script = {
        5030: [shift],
        5200: [ended(shift, 5200)],
        5300: [alarm(5300)],
        6300: [explanation(6300, "followed", 5300, Onset(5001, 4990, 5010))],
    }
    found = told(Incidents(learns=True), script, step(5001, 0.4, 5400), 9000)
    assert {one.number for one in found} == {1}
    assert found[-1].life == "over"
    alone = told(Incidents(learns=True), {5030: [shift], 5200: [ended(shift, 5200)]}, step(5001, 0.4, 5150), 9000)
    assert lives(alone)[-1] == (1, "changed", "withdrawn", "noise")


def test_a_loss_that_nobody_holds_open_is_back_only_when_it_is() -> None:
    shift = loss_shift(5030, "worse", 5001)
    script: Script = {5030: [shift], 5200: [ended(shift, 5200)]}
    late = told(Incidents(learns=True), script, step(5001, 0.4, 6500), 15_000)
    assert lives(late)[-1] == (1, "changed", "over", "returned")
    assert late[-1].observation > 6500
    assert "confirmed" in [one.life for one in late]
    never = told(Incidents(learns=True), script, step(5001, 0.4), 15_000)
    assert lives(never)[-1] == (1, "worse", "over", "settled")
    assert never[-1].observation >= 7_000, "two windows of what it is now"


def test_a_learner_that_is_nearly_back_is_not_said_to_adapt_still() -> None:
    shift = loss_shift(5060, "worse", 5001)
    script: Script = {
        5040: [alarm(5040)], 5060: [shift], 6050: [explanation(6050, "followed", 5040, Onset(5001, 4990, 5010))],
        6070: [explained(shift, 6070, "a")],
    }  # fmt: skip
    for after, words in ((0.23, ["suspected", "confirmed"]), (0.4, ["suspected", "confirmed", "lasts"])):
        losses = {True: 0.2, False: after}
        found = told(
            Incidents(learns=True), script, lambda i, of=losses: of[i <= 5000] + 0.1 * (5000 < i <= 6300), 7199
        )
        assert [one.reason for one in found] == words


def test_a_learner_whose_loss_is_back_for_long_is_over_whatever_is_open() -> None:
    shift = loss_shift(5060, "worse", 5001)
    script: Script = {
        5040: [alarm(5040)], 5060: [shift], 6050: [explanation(6050, "followed", 5040, Onset(5001, 4990, 5010))],
        6070: [explained(shift, 6070, "a")],
    }  # fmt: skip
    found = told(Incidents(learns=True), script, step(5001, 0.5, 5700), 15_000)
    assert lives(found)[-1] == (1, "changed", "over", "returned")
    assert found[-1].observation < 10_500


def test_the_onset_is_not_that_of_an_alarm_behind_which_nothing_stood() -> None:
    shift = loss_shift(5060, "worse", 5001)
    script: Script = {
        4100: [alarm(4100)], 5060: [shift], 5100: [nothing(5100, 4100)], 6070: [explained(shift, 6070, "a")],
    }  # fmt: skip
    found = told(Incidents(learns=True), script, step(5001, 0.4), 6500)
    assert lives(found) == [(1, "changed", "suspected", "suspected"), (1, "changed", "confirmed", "confirmed")]
    assert (found[-1].observation, found[-1].since.observation) == (6070, 5001)
    assert found[-1].effects[0].after.value == pytest.approx(0.4, abs=0.01)


def test_an_onset_that_does_not_overlap_is_no_sharper_one() -> None:
    shift = loss_shift(5100, "worse", 5001)
    script: Script = {
        5100: [shift], 6110: [explained(shift, 6110, "a")],
        6500: [explanation(6500, "harder", None, Onset(6000, 5999, 6001))],
    }  # fmt: skip
    incidents = Incidents(learns=False)
    told(incidents, script, step(5001, 0.4), 7000)
    assert incidents.open is not None
    assert incidents.open.since.observation == 5001


def test_importances_that_move_alone_are_information_and_never_lower_what_is_open() -> None:
    alone = told(Incidents(learns=False), {6000: [relies(6000, 4500)]}, flat, 9000)
    assert {(one.what, one.severity) for one in alone} == {("relies_differently", "info")}
    assert alone[-1].life == "over"
    assert not told(Incidents(learns=True), {6000: [relies(6000, 4500)]}, flat, 9000), "it learns more"
    shift = loss_shift(5100, "worse", 5001)
    script: Script = {5100: [shift], 6110: [explained(shift, 6110, "a")], 6500: [relies(6500, 5001)]}
    both = told(Incidents(learns=False), script, step(5001, 0.4), 7000)
    assert [one.what for one in both] == ["worse", "worse"]


def test_a_second_change_while_one_is_open_is_counted_and_said_and_opens_nothing() -> None:
    shift = loss_shift(5100, "worse", 5001)
    script: Script = {5100: [shift], 6110: [explained(shift, 6110, "a")], 8000: [loss_shift(8000, "worse", 7900)]}
    incidents = Incidents(learns=False)
    found = told(incidents, script, step(5001, 0.4), 9500)
    said = [(one.number, one.observation, one.reason, one.again) for one in found if one.reason != "lasts"]
    assert said == [(1, 5100, "suspected", 0), (1, 6110, "confirmed", 0), (1, 8000, "raised", 1)]
    assert found[-1].again == 1
    assert found[-1].since.observation == 5001


def test_an_alarm_while_one_is_open_is_counted_and_not_said() -> None:
    shift = loss_shift(5100, "worse", 5001)
    script: Script = {5100: [shift], 6110: [explained(shift, 6110, "a")], 7000: [alarm(7000)]}
    found = told(Incidents(learns=False), script, step(5001, 0.4), 7500)
    assert [(one.reason, one.again) for one in found] == [("suspected", 0), ("confirmed", 0), ("lasts", 1)]


def test_another_feature_that_breaks_later_is_named_at_once() -> None:
    script: Script = {5050: [broken(5050, 5001, "age")], 5700: [broken(5700, 5651, "income")]}
    found = told(Incidents(learns=False), script, flat, 6500)
    assert [(one.number, one.observation, one.reason, [of.name for of in one.features]) for one in found] == [
        (1, 5050, "confirmed", ["age"]), (1, 5700, "raised", ["age", "income"]),
    ]  # fmt: skip
    said = found[-1].sentence("m")
    assert said.startswith("age of m is broken. Can wait until morning: check the source of age and income. ")
    assert said.endswith("So is income.")


def test_features_that_break_together_are_named_together() -> None:
    names = [f"f{i}" for i in range(5)]
    at_once = told(Incidents(learns=False), {5050: [broken(5050, 5001, name) for name in names]}, flat, 6000)
    assert [(one.revision, one.reason, len(one.features)) for one in at_once] == [(1, "confirmed", 5)]
    script: Script = {5050 + i: [broken(5050 + i, 5001, name)] for i, name in enumerate(names)}
    in_a_row = told(Incidents(learns=False), script, flat, 6000)
    assert [(one.revision, one.reason, len(one.features)) for one in in_a_row] == [
        (1, "confirmed", 1), (2, "raised", 5),
    ]  # fmt: skip
    assert in_a_row[-1].observation <= 5250
    incidents = Incidents(learns=False)
    told(incidents, {}, flat, 3000)
    arrived = [one for i, name in enumerate(names) for one in incidents.note([broken(50 + i, 1, name)])]
    assert [len(one.features) for one in arrived] == [1, 2], "the labels of these have not come, so no time passes"


def test_there_are_four_words_at_most_whatever_breaks_one_after_the_other() -> None:
    script: Script = {5050 + 300 * i: [broken(5050 + 300 * i, 5001 + 300 * i, f"f{i}")] for i in range(8)}
    script[5800] = [loss_shift(5800, "worse", 5751)]
    of = {f"f{i}": broken(5050 + 300 * i, 5001 + 300 * i, f"f{i}") for i in range(8)}
    script[9000] = [mended(one, 9000) for one in of.values()]
    script[9000] += [ended(loss_shift(5800, "worse", 5751), 9000)]
    found = told(Incidents(learns=False), script, step(5751, 0.4, 8900), 12_000)
    assert [one.reason for one in found if one.reason != "lasts"] == ["confirmed", "raised", "raised", "returned"]
    assert found[-1].life == "over"


def test_another_version_ends_what_is_open_and_is_judged_by_its_loss() -> None:
    shift = loss_shift(5100, "worse", 5001)
    script: Script = {
        5100: [shift],
        6000: [alarm(6000, "version"), ended(shift, 6000, "replaced")],
    }
    found = told(Incidents(learns=False), script, step(5001, 0.4), 6500)
    assert lives(found)[:3] == [
        (1, "worse", "suspected", "suspected"),
        (1, "worse", "over", "replaced"),
        (2, "version", "suspected", "suspected"),
    ]


def test_worse_than_a_constant_is_critical() -> None:
    shift = loss_shift(5100, "worse", 5001)
    incidents = Incidents(learns=False, serious=100.0)
    found = told(incidents, {5100: [shift], 6110: [explained(shift, 6110, "a")]}, step(5001, 0.7), 6500)
    assert found[-1].severity == "critical"
    mild = told(
        Incidents(learns=False, serious=100.0),
        {5100: [shift], 6110: [explained(shift, 6110, "a")]}, step(5001, 0.45), 6500,
    )  # fmt: skip
    assert mild[-1].severity == "warning"


@pytest.mark.parametrize("at", [0, 100, 5050, 5300, 6055, 6200, 7300, 7900])
def test_a_restored_story_goes_on_to_the_bit(at: int) -> None:
    script: Script = {
        5040: [alarm(5040), broken(5040, 4991)],
        5060: [loss_shift(5060, "worse", 5001)],
        6050: [explanation(6050, "followed", 5040, Onset(5001, 4990, 5010))],
        6070: [explained(loss_shift(5060, "worse", 5001), 6070, "a"), mended(broken(5040, 4991), 6070)],
        6300: [ended(loss_shift(5060, "worse", 5001), 6300)],
    }
    losses = [step(5001, 0.5, 5700)(i) + 0.01 * x for i, x in enumerate(np.random.default_rng(2).normal(size=9001))]
    incidents = Incidents(learns=True, measure="error rate")

    def feed(of: Incidents, first: int, last: int) -> list[Incident]:
        found: list[Incident] = []
        for i in range(first, last):
            found += of.update(script.get(i, []), loss=losses[i], measured=losses[i], constant=0.5)
        return found

    feed(incidents, 1, at + 1)
    stored = orjson.loads(orjson.dumps(incidents.snapshot()))
    again = Incidents.from_snapshot(stored)
    assert feed(again, at + 1, 9001) == feed(incidents, at + 1, 9001)
    assert again.snapshot() == incidents.snapshot()


def test_the_state_is_bounded_whatever_comes() -> None:
    rng, incidents, largest = np.random.default_rng(3), Incidents(learns=True, window=100), 0
    for number in range(1, 20_000):
        events = [broken(number, max(1, number - 49), f"f{rng.integers(10**6)}")] if rng.random() < 0.05 else []
        incidents.update(events, loss=float(rng.random()), constant=0.5)
        if number % 1000 == 0:
            largest = max(largest, len(orjson.dumps(incidents.snapshot())))
    assert largest < 60_000


def test_parameters_and_snapshots_are_checked() -> None:
    with pytest.raises(InvalidParameterError, match="window must be"):
        Incidents(learns=True, window=5)
    with pytest.raises(InvalidParameterError, match="serious must be"):
        Incidents(learns=True, serious=-1.0)
    with pytest.raises(InvalidParameterError, match="learns must be"):
        Incidents(learns="x")  # type: ignore[arg-type]
    with pytest.raises(SnapshotError, match="make a new one"):
        Incidents.from_snapshot({"format": 99})
