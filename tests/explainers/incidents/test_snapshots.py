"""What is restored in the middle of an incident tells the rest of it to the byte."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from river import tree

from attributary_explainers import Incident, Monitor, Onset
from attributary_explainers.monitor.incident_watch import IncidentWatch
from attributary_topics import decode_json
from tests.explainers.incidents.made import alarm, ended, explained, explanation, loss_shift
from tests.explainers.incidents.told import Bank, Row, customers

AT, N = 2500, 4600
Records = list[tuple[Any, ...]]


def months() -> Iterator[Row]:
    return (({**x, "age": 12 * x["age"]} if i >= AT else x, y) for i, (x, y) in enumerate(customers(N)))


def another_rule() -> Iterator[Row]:
    """The label follows one feature, then another one."""
    for i, (a, b) in enumerate(np.random.default_rng(1).standard_normal((N, 2)).tolist()):
        yield {"a": a, "b": b}, (a if i < AT else b) > 0.0


STREAMS: dict[str, Any] = {
    "frozen": (Bank, months, {"learn": False, "loss": "brier"}),
    "learning": (lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1), another_rule, {"learn": True}),
}


def monitor_of(name: str, into: Records) -> Monitor:
    model, _, settings = STREAMS[name]
    monitor = Monitor(in_background=False).add("m", model(), **settings)
    monitor.publish_to(lambda *record: into.append(record))
    return monitor


def run(name: str, cuts: set[int]) -> Records:
    """Return all records; after each of the cuts another process goes on."""
    found: Records = []
    monitor = monitor_of(name, found)
    for n, (x, y) in enumerate(STREAMS[name][1](), start=1):
        monitor.observe("m", x, y, time_ms=1000 * n)
        if n in cuts:
            stored = pickle.dumps(monitor.snapshot())
            monitor = monitor_of(name, found).restore(pickle.loads(stored))
    return found


@cache
def whole(name: str) -> Records:
    return run(name, set())


@pytest.mark.filterwarnings("ignore::attributary_explainers.SlowFeatureWarning")
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", STREAMS)
def test_a_monitor_that_is_restored_again_and_again_publishes_the_same_bytes(name: str, seed: int) -> None:
    expected = whole(name)
    told = [decode_json(record[2]) for record in expected if "incidents" in record[0]]
    assert len(told) >= 2
    assert {one["id"] for one in told} == {told[0]["id"]}
    first, last = told[0]["observation"], told[-1]["observation"]
    rng = np.random.default_rng(seed)
    cuts = {int(cut) for cut in (*rng.integers(1, N, 4), *rng.integers(first, last, 4))}
    assert run(name, cuts) == expected


SHIFT = loss_shift(1060, "worse", 1001)
SCRIPT: dict[int, list[Any]] = {
    1040: [alarm(1040)],
    1060: [SHIFT],
    2050: [explanation(2050, "followed", 1040, Onset(1001, 990, 1010))],
    2070: [explained(SHIFT, 2070, "a")],
    2300: [ended(SHIFT, 2300)],
    4300: [alarm(4300)],
}


def feed(watch: IncidentWatch, first: int, last: int) -> list[Incident]:
    """Feed a learner of whom another version takes over after 3900 and which goes back after 4500 observations."""
    found: list[Incident] = []
    for n in range(first, last + 1):
        rng = np.random.default_rng(n)
        p = 0.6 if 1000 < n <= 1700 else 0.1
        y = bool(rng.random() < p)
        for event in SCRIPT.get(n, ()):
            watch.note(event)
        x = {"a": float(rng.standard_normal()) * (30.0 if 3000 < n <= 3500 else 1.0)}
        found += watch.update(x, y, {False: 0.9, True: 0.1}, p + 0.1 * float(rng.random()), 0.5, n, 1000 * n)
        if n == 3900:
            found += watch.replaced(n)
        if n == 4500:
            found += watch.went_back("10 observations failed")
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_watch_that_is_restored_tells_the_rest(seed: int) -> None:
    watch = IncidentWatch(
        learns=True, loss="log_loss", measure="error rate", watches_inputs=True, window=1000, alpha=0.001
    )
    cut = int(np.random.default_rng(seed).integers(1, 5000))
    feed(watch, 1, cut)
    again = IncidentWatch.from_snapshot(pickle.loads(pickle.dumps(watch.snapshot())))
    expected = feed(watch, cut + 1, 6500)
    assert expected
    assert feed(again, cut + 1, 6500) == expected
    assert again.snapshot() == watch.snapshot()
    assert [again.time_of(n) for n in (10, 1001, 6400)] == [watch.time_of(n) for n in (10, 1001, 6400)]
    assert again.values_of("a") == watch.values_of("a")
