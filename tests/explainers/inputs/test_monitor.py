"""What is reported of features whose values break, and that nothing is where none does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import orjson
import pytest
from scipy.signal import lfilter

from attributary_explainers import (
    InputBreak,
    InputBreakEnd,
    InputEvent,
    InputMonitor,
    InvalidParameterError,
    SnapshotError,
)

Columns = dict[str, list[Any]]


def columns(seed: int, n: int) -> Columns:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal
    return {
        "age": rng.integers(17, 91, n).tolist(),
        "salary": rng.uniform(20e3, 150e3, n).tolist(),
        "temperature": (15.0 + 10.0 * z(n)).tolist(),
        "amount": np.exp(3.0 + z(n)).tolist(),
        "visits": rng.poisson(3.0, n).tolist(),
        "member": (rng.random(n) < 0.2).tolist(),
        "city": rng.choice(["Bern", "Oslo", "Rome"], n).tolist(),
    }


def feed(monitor: InputMonitor, of: Columns) -> list[InputEvent]:
    events: list[InputEvent] = []
    for row in zip(*of.values(), strict=True):
        events += monitor.update(dict(zip(of, row, strict=True)))
    return events


def damaged(
    name: str, damage: Callable[[list[Any]], list[Any]], *, clean: int = 1000, seed: int = 1, n: int = 100
) -> Columns:
    of = columns(seed, clean + n)
    of[name][clean:] = damage(of[name][clean:])
    return of


NUMBERS = ("age", "salary", "temperature", "amount", "visits")
FAULTS: dict[str, tuple[Callable[[list[Any]], list[Any]], tuple[str, ...]]] = {
    "missing": (lambda v: [None] * len(v), (*NUMBERS, "member", "city")),
    "stuck": (lambda v: [v[0]] * len(v), (*NUMBERS, "city")),
    "type": (lambda v: [f"{x}" for x in v], NUMBERS),
    "range": (lambda v: [100 * x for x in v], NUMBERS),
    "new": (lambda v: [f"{x} " for x in v], ("city",)),
}


@pytest.mark.parametrize("clean", [300, 1000, 5000])
@pytest.mark.parametrize(("fault", "name"), [(fault, name) for fault, (_, names) in FAULTS.items() for name in names])
def test_a_break_is_reported_within_a_hundred_observations_with_its_feature(fault: str, name: str, clean: int) -> None:
    for seed in range(3):
        found = feed(InputMonitor(), damaged(name, FAULTS[fault][0], clean=clean, seed=seed))
        assert [(event.feature, event.fault) for event in found] == [(name, fault)]
        assert isinstance(found[0], InputBreak)
        assert clean + 20 <= found[0].observation <= clean + 100
        # The value at which it is stuck may have come just before, too.
        assert -15 <= found[0].since - clean - 1 <= 5


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("age", lambda x: None, r"age is missing in \d\d % of observations, and never was before, since 3.0\d\d"),
        ("city", lambda x: None, r"city is missing in \d\d % of observations, and never was before, since 3.0\d\d"),
        (
            "age",
            lambda x: 1000 * x,
            r"age is \d+.000 to \d+.000 in \d\d % of observations, and was 1\d to 8\d before.*",
        ),
        ("age", str, r"age is text in \d\d % of observations \('\d\d'\), and was a number .*"),
    ],
)
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_a_break_of_some_rows_is_reported_once_with_their_share_and_is_over_when_none_is(
    name: str, damage: Callable[[Any], Any], said: str, share: float
) -> None:
    for seed in range(3):
        of, rng = columns(seed, 4000), np.random.default_rng(seed)
        of[name][3000:3500] = [damage(x) if rng.random() < share else x for x in of[name][3000:3500]]
        broke, end = feed(InputMonitor(), of)
        assert isinstance(broke, InputBreak)
        assert isinstance(end, InputBreakEnd)
        assert 3010 <= broke.observation <= 3100
        assert 3000 <= broke.since <= 3020
        assert abs(broke.share - share) < 0.25
        assert re.fullmatch(rf"m: {said}", broke.sentence("m")), broke.sentence("m")
        assert (end.reason, end.observation > 3500) == ("returned", True)
        assert InputBreak.from_snapshot(broke.snapshot()) == broke


def test_a_flag_is_stuck_when_chance_would_not_hold_it_as_long() -> None:
    """It is False in 80 of 100: 93 in a row come once in 10⁹; the share is known of few rows, so it takes some more."""
    for seed in range(3):
        found = feed(InputMonitor(), damaged("member", lambda v: [False] * len(v), seed=seed, n=200))
        assert [(event.feature, event.fault) for event in found] == [("member", "stuck")]
        assert 1000 + 70 <= found[0].observation <= 1000 + 160


def test_rare_flags_and_sensors_that_hold_their_value_are_not_stuck() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        of: Columns = {f"p{p}": (rng.random(15_000) < p).tolist() for p in (0.001, 0.002, 0.005)}
        held = np.repeat(rng.standard_normal(15_000 // 60), 60)
        of["held"] = held.tolist()
        assert not feed(InputMonitor(), of), seed


def test_values_that_come_in_blocks_are_not_broken() -> None:
    n = 20_000
    of: Columns = {
        "week": [1 + i // 168 for i in range(n)],
        "weekday": [i // 1440 % 7 for i in range(n)],
        "day": [1 + i // 1440 for i in range(n)],
        "shop": [(i // 300) * 7 % 11 for i in range(n)],
        "of five": [i // 100 % 5 for i in range(n)],
    }
    assert not feed(InputMonitor(), of)


def test_what_comes_and_goes_is_known_after_two_reports() -> None:
    rng = np.random.default_rng(9)
    scale = np.where(np.arange(30_000) // 1500 % 2, 1000.0, 1.0)
    found = feed(InputMonitor(settles=5000), {"amount": (scale * rng.uniform(1.0, 2.0, 30_000)).tolist()})
    assert sum(isinstance(event, InputBreak) for event in found) == 2
    assert found[-1].observation < 9000


def test_a_value_that_is_broken_in_another_way_is_not_back() -> None:
    rng = np.random.default_rng(10)
    values: list[Any] = rng.uniform(1.0, 2.0, 3000).tolist()
    values[1000:1300] = [1000.0 * x for x in values[1000:1300]]
    values[1300:1600] = [None] * 300
    first, end = feed(InputMonitor(), {"amount": values})
    assert isinstance(first, InputBreak)
    assert isinstance(end, InputBreakEnd)
    assert end.observation > 1600


def test_a_feature_that_is_often_missing_is_back_when_it_is_as_often_missing_as_before() -> None:
    rng = np.random.default_rng(11)
    values: list[Any] = [None if u < 0.4 else float(u) for u in rng.random(4000)]
    values[2000:2400] = [None] * 400
    found = feed(InputMonitor(), {"amount": values})
    assert [getattr(event, "reason", "broke") for event in found] == ["broke", "returned"]


QUIET: dict[str, Callable[[np.random.Generator, int], Iterable[Any]]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: np.exp(2.0 * rng.standard_normal(n)),
    "random walk": lambda rng, n: rng.standard_normal(n).cumsum(),
    "AR(.9999)": lambda rng, n: lfilter([0.014], [1.0, -0.9999], rng.standard_normal(n)),
    "season": lambda rng, n: 10.0 * np.sin(2.0 * np.pi * np.arange(n) / 20_000) + rng.standard_normal(n),
    "day and night": lambda rng, n: (
        np.maximum(0.0, np.sin(2.0 * np.pi * np.arange(n) / 288)) * rng.uniform(0.8, 1.2, n)
    ),
    "row number": lambda _, n: np.arange(n, dtype=float),
    "sawtooth": lambda _, n: np.arange(n) % 1000.0,
    "constant": lambda _, n: np.ones(n),
    "rare spikes": lambda rng, n: np.where(rng.random(n) < 0.001, 100.0, 1.0),
    "one in three": lambda rng, n: (rng.random(n) < 0.3).astype(float),
    "one in a hundred": lambda rng, n: (rng.random(n) < 0.01).astype(float),
    "one in ten thousand": lambda rng, n: (rng.random(n) < 1e-4).astype(float),
    "few words": lambda rng, n: (f"w{k}" for k in np.minimum(rng.zipf(1.5, n), 20).tolist()),
    "many words": lambda rng, n: (f"w{k}" for k in rng.zipf(1.2, n).tolist()),
    "dates": lambda _, n: (f"d{i // 500}" for i in range(n)),
    "missing in one of three": lambda rng, n: np.where(rng.random(n) < 1 / 3, np.nan, rng.standard_normal(n)),
    "heavy tails on either side": lambda rng, n: rng.standard_t(2, n),
}


@pytest.mark.parametrize(
    "n", [pytest.param(100_000, marks=pytest.mark.share(1, "n")), pytest.param(1_000_000, marks=pytest.mark.long)]
)
def test_nothing_is_reported_of_streams_that_are_as_they_always_are(n: int) -> None:
    rng = np.random.default_rng(5)
    of = {name: [x.item() if isinstance(x, np.generic) else x for x in make(rng, n)] for name, make in QUIET.items()}
    found = [event for event in feed(InputMonitor(), of) if isinstance(event, InputBreak)]
    assert not found, [event.sentence() for event in found]


def pauses(rng: np.random.Generator, n: int, mean: float) -> list[float | None]:
    values: list[float | None] = rng.standard_normal(n).tolist()
    i = 0
    while i < n:
        i += int(rng.exponential(9.0 * mean)) + 1
        length = int(rng.exponential(mean)) + 1
        values[i : i + length] = [None] * len(values[i : i + length])
        i += length
    return values


def test_a_sensor_that_pauses_now_and_then_is_learnt() -> None:
    """Of some 30 pauses of 300 observations on average, those are reported that are twice as long as any before."""
    for seed in range(3):
        found = feed(InputMonitor(), {"sensor": pauses(np.random.default_rng(seed), 100_000, 300.0)})
        assert sum(isinstance(event, InputBreak) for event in found) <= 4


def test_a_break_is_over_when_values_are_as_before_and_can_come_again() -> None:
    of = columns(2, 4000)
    of["age"][1000:1300] = [12 * x for x in of["age"][1000:1300]]
    of["age"][2000:2300] = [12 * x for x in of["age"][2000:2300]]
    found = feed(InputMonitor(), of)
    assert [type(event).__name__ for event in found] == ["InputBreak", "InputBreakEnd"] * 2
    end = found[1]
    assert isinstance(end, InputBreakEnd)
    assert (end.reason, end.broken) == ("returned", found[0])
    assert 1300 + 45 <= end.observation <= 1300 + 80
    assert found[2].observation < 2060
    assert end.sentence("credit") == ("credit: the values of age, broken since 1 001, are as before again")


def test_what_stays_is_the_reference_after_a_thousand_observations() -> None:
    of = columns(3, 5000)
    of["age"][1000:] = [12 * x for x in of["age"][1000:]]
    of["age"][4000:] = [x // 144 for x in of["age"][4000:]]
    found = feed(InputMonitor(), of)
    assert [event.reason if isinstance(event, InputBreakEnd) else event.fault for event in found] == [
        "range", "settled", "range",
    ]  # fmt: skip
    assert found[1].observation == 2001
    assert found[1].sentence().endswith("stay as they are, which is the reference from now on")


def test_restart_ends_what_is_broken_and_forgets_all() -> None:
    monitor = InputMonitor()
    feed(monitor, damaged("age", FAULTS["range"][0]))
    assert list(monitor.broken) == ["age"]
    (end,) = monitor.restart()
    assert end.reason == "replaced"
    assert not monitor.broken
    assert not feed(monitor, columns(4, 200))


def test_sentences_have_figures_that_a_person_knows() -> None:
    def said(name: str, damage: Callable[[list[Any]], list[Any]]) -> str:
        return feed(InputMonitor(), damaged(name, damage))[0].sentence("credit")

    age = said("age", lambda v: [12 * x for x in v])
    assert age.startswith("credit: age is 2")
    assert age.endswith("times what it was), since 1 001")
    assert ", and was 1" in age
    assert said("age", lambda v: [None] * len(v)) == "credit: age is always missing, and never was before, since 1 001"
    assert said("age", lambda v: [42] * len(v)) == "credit: age is stuck at 42, since 1 001"
    assert said("city", lambda v: ["Paris"] * len(v)) == "credit: city is stuck at 'Paris', since 1 001"
    assert said("age", lambda v: [f"{x} years" for x in v]).startswith("credit: age is text ('")
    new = said("city", lambda v: [x.upper() for x in v])
    assert new.startswith("credit: city has values that never came before: '")
    assert sorted(new.split(": ")[2].removesuffix(", since 1 001").split(", ")) == ["'BERN'", "'OSLO'", "'ROME'"]


def test_swapped_columns_are_said_to_be() -> None:
    of = columns(6, 1100)
    of["age"][1000:], of["salary"][1000:] = of["salary"][1000:], of["age"][1000:]
    found = {event.feature: event for event in feed(InputMonitor(), of) if isinstance(event, InputBreak)}
    assert set(found) == {"age", "salary"}
    assert found["age"].swapped_with == "salary"
    assert found["salary"].swapped_with == "age"
    assert "(it has changed places with salary)" in found["age"].sentence()


def test_a_feature_that_no_longer_comes_is_missing_and_late_ones_are_watched_from_then_on() -> None:
    of = columns(7, 1100)
    monitor, events = InputMonitor(), []
    for i, row in enumerate(zip(*of.values(), strict=True)):
        x = dict(zip(of, row, strict=True))
        if i >= 1000:
            del x["age"]
            x["late"] = 1.0
        events += monitor.update(x)
    assert [(event.feature, event.fault) for event in events] == [("age", "missing")]


def test_ever_new_names_are_bounded() -> None:
    monitor = InputMonitor(most=5)
    for i in range(100):
        monitor.update({f"f{i}": 1.0})
    assert len(monitor.snapshot()["state"]["_features"]) == 5


@pytest.mark.parametrize("n", [0, 10, 260, 1030, 1060, 1500])
def test_a_restored_monitor_goes_on_to_the_bit(n: int) -> None:
    of = damaged("age", lambda v: [12 * x for x in v], n=800)
    rows = [dict(zip(of, row, strict=True)) for row in zip(*of.values(), strict=True)]
    monitor = InputMonitor(settles=500)
    for row in rows[:n]:
        monitor.update(row)
    stored = monitor.snapshot()
    orjson.dumps(stored, default=lambda value: value.hex(), option=orjson.OPT_SERIALIZE_NUMPY)
    again = InputMonitor.from_snapshot(stored)
    assert [again.update(row) for row in rows[n:]] == [monitor.update(row) for row in rows[n:]]
    assert again.snapshot() == monitor.snapshot()


def test_parameters_and_snapshots_are_checked() -> None:
    with pytest.raises(InvalidParameterError, match="settles must be"):
        InputMonitor(settles=10)
    with pytest.raises(InvalidParameterError, match="most must be"):
        InputMonitor(most=0)
    for wrong in ({}, {"format": 99}, None):
        with pytest.raises(SnapshotError, match="make a new one"):
            InputMonitor.from_snapshot(wrong)  # type: ignore[arg-type]


def test_infinite_and_huge_numbers_break_nothing() -> None:
    rng = np.random.default_rng(8)
    values = [math.inf if u < 0.3 else -1e308 if u < 0.6 else 1e308 for u in rng.random(2000).tolist()]
    assert not feed(InputMonitor(), {"odd": values})
