"""From when on a model is guarded, what that waits for, and how small a harm is seen, as people read it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attributary_explainers import LossMonitor, LossShift
from tests.explainers.loss_shift.test_monitor import numbers, run, stream


def rare(n: int, rate: float, seed: int = 1) -> list[tuple[None, bool, dict[bool, float]]]:
    rng = np.random.default_rng(seed)
    found = []
    for z in rng.normal(size=n).tolist():
        p = rate * math.exp(z - 0.5)
        found.append((None, bool(rng.random() < p), {True: p, False: 1.0 - p}))
    return found


def test_a_frozen_model_is_guarded_from_some_hundred_rows_on() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    assert monitor.guard.sentence() == "not judged yet: 0 labelled observations of 256"
    rows = list(stream(600))
    assert not run(monitor, rows[:255])
    assert monitor.guard.waits_for == ("labelled observations", 255, 256)
    assert monitor.guard.due_at(255) is None, "all of them count: there is no rate to go by"
    assert monitor.guard.due_at(510) == 510
    assert not monitor.ready
    assert not run(monitor, rows[255:])
    assert monitor.ready
    assert monitor.guard.since == 256
    assert monitor.guard.due_at(600) is None
    assert monitor.guard.sentence().startswith("guarded since observation 256: would see a rise of the error from 2")


def test_a_class_that_has_hardly_come_is_not_judged_and_said_not_to_be() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    rows = rare(60_000, 1e-4)
    assert not run(monitor, rows)
    n = sum(y for _, y, _ in rows)
    assert 3 <= n < 12
    name, come, needed = monitor.guard.waits_for or ("", 0, 0)
    assert (name, come, needed) == ("labels True", n, 30)
    assert monitor.guard.due_at(len(rows)) == float(f"{30 * len(rows) / n:.2g}")
    assert monitor.guard.reach is None
    assert not monitor.ready


def test_it_is_guarded_with_the_thirtieth_label_of_the_rarer_class() -> None:
    monitor, n = LossMonitor(output="probabilities", learns=False), 0
    for x, y, y_pred in rare(20_000, 0.01):
        monitor.update(x, y, y_pred)
        n += y
        if monitor.n_observations >= 256:
            assert monitor.ready == (n >= 30)


@pytest.mark.parametrize("output", ["label", "number"])
def test_other_models_say_how_many_observations_they_wait_for(output: str) -> None:
    monitor = LossMonitor(output=output, learns=False)  # type: ignore[arg-type]
    rows = numbers(9000) if output == "number" else ((x, y, int(p[1] > 0.5)) for x, y, p in stream(9000))
    since = None
    for i, row in enumerate(rows, start=1):
        monitor.update(*row)
        if monitor.ready:
            since = since or i
        else:
            _, n, needed = monitor.guard.waits_for or ("", 0, 0)
            assert n == i < needed
    assert since == monitor.guard.since == needed
    reach = monitor.guard.reach
    assert reach is not None
    assert reach.after > reach.before > 0.0
    assert (reach.unit == "target") == (output == "number")


def test_a_rise_as_large_as_is_said_is_told_about_as_soon_as_is_said() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    run(monitor, stream(4000))
    reach = monitor.guard.reach
    assert reach is not None
    rng = np.random.default_rng(3)
    # Flips of labels raise the error e to e + (1 - 2 e) times their share.
    share = (reach.after - reach.before) / (1.0 - 2.0 * reach.before)
    hurt = [(x, 1 - y if rng.random() < share else y, p) for x, y, p in stream(4 * reach.n, seed=9)]
    first = run(monitor, hurt)[0]
    assert isinstance(first, LossShift)
    assert first.observation <= 4000 + 2 * reach.n


def test_a_rare_class_that_comes_as_much_more_often_as_is_said_is_told_about_as_soon_as_is_said() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    run(monitor, rare(30_000, 0.01))
    reach = monitor.guard.reach
    assert reach is not None
    assert reach.label is True
    assert reach.before == pytest.approx(0.01, abs=0.002)
    assert "would see the share of True rise from " in monitor.guard.sentence()
    rng = np.random.default_rng(3)
    more = (reach.after - reach.before) / (1.0 - reach.before)
    hurt = [(x, bool(y or rng.random() < more), p) for x, y, p in rare(2 * reach.n, 0.01, seed=9)]
    assert run(monitor, hurt)


def test_another_version_is_guarded_anew() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    run(monitor, stream(600))
    monitor.restart()
    assert monitor.guard.since is None
    run(monitor, stream(600))
    assert monitor.guard.since == 856
