"""Features whose distribution moved: beside a naive distance of the kept values, and none where nothing moved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

from attributary_explainers import InputMonitor
from attributary_explainers.incidents.moved import moved_features
from attributary_explainers.loss_shift.distance import kuiper_quantile
from attributary_explainers.wording import show_number
from tests.explainers.incidents.told import Bank, customers, told_of
from tests.explainers.loss_shift.test_distance import over_all_intervals


def slow(rng: np.random.Generator, n: int, kept: float) -> Any:
    """Return an autoregressive series of variance 1."""
    return lfilter([math.sqrt(1.0 - kept**2)], [1.0, -kept], rng.standard_normal(n))


def columns(rng: np.random.Generator, n: int) -> dict[str, Any]:
    t = np.arange(n)
    return {
        "normal": rng.standard_normal(n), "ages": rng.integers(17, 91, n), "rare": rng.random(n) < 0.2,
        "heavy": np.exp(3.0 * rng.standard_normal(n)), "slow": slow(rng, n, 0.9), "slower": slow(rng, n, 0.99),
        "slowest": slow(rng, n, 0.999), "walk": rng.standard_normal(n).cumsum(), "hour": t // 60 % 24, "row": t,
        "day": np.sin(t * math.tau / 1440) + 0.5 * rng.standard_normal(n),
        "week": np.sin(t * math.tau / 5000) + 0.5 * rng.standard_normal(n),
        "shops": np.repeat(rng.standard_normal(n // 100 + 1), 100)[:n],
    }  # fmt: skip


def test_what_hangs_together_or_stays_as_it_is_never_moved() -> None:
    n_compared = 0
    for seed in range(12):
        of = {
            name: column.astype(float).tolist() for name, column in columns(np.random.default_rng(seed), 8000).items()
        }
        monitor, before, at = InputMonitor(), {}, 0
        for i, row in enumerate(zip(*of.values(), strict=True)):
            monitor.update(dict(zip(of, row, strict=True)))
            if i in (2500, 5000):
                before, at = monitor.references(), i
            if before and i - at in (60, 1000, 2400):
                assert not moved_features(monitor, before, i - at, 0.01)
                n_compared += 1
    assert n_compared == 72


@pytest.mark.parametrize("factor", [1.0, 1.8, 1 / 60])
@pytest.mark.parametrize("seed", range(2))
def test_it_is_the_naive_distance_of_the_kept_values(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.exp(5.0 + rng.standard_normal(4060))
    values[4000:] *= factor
    monitor, raw = InputMonitor(), values.tolist()
    for i, value in enumerate(raw, start=1):
        monitor.update({"duration": value, "other": float(rng.standard_normal())})
        if i == 4000:
            before = monitor.references()
    _, kept, n_blocks, worth = before["duration"]
    assert (set(kept) <= set(raw[:3950]), n_blocks) == (True, (4000 - 250) // 50)
    apart = over_all_intervals(kept, raw[-50:])
    for level in (0.5, 0.01, 1e-4, 1e-6):
        least = kuiper_quantile(level / 2.0) * math.sqrt(1.0 / worth + 1.0 / min(64.0, worth * n_blocks))
        found = moved_features(monitor, before, 60, level)
        assert ("duration" in {one.name for one in found}) == (apart > least)
    if factor < 0.1:
        (one,) = moved_features(monitor, before, 60, 1e-4)
        medians = np.quantile(kept, 0.5, method="nearest"), np.median(raw[-50:])
        assert one.said == f"moved: its median was {show_number(medians[0])}, is {show_number(medians[1])}"
        assert (one.moved, one.is_broken) == (True, False)


def test_an_incident_says_which_feature_moved_and_keeps_its_values_of_before() -> None:
    """Ages above 60 alone, each of which came before: nothing is broken."""
    rows = ((({**x, "age": 60 + x["age"] % 31} if i >= 4000 else x), y) for i, (x, y) in enumerate(customers(6500)))
    told = told_of(Bank(), rows, learn=False, loss="brier")
    confirmed = next(one for one in told if one["life"] == "confirmed")
    age = confirmed["features"]["age"]
    assert (confirmed["what"], confirmed["advice"], age["suspect"]) == ("worse", "look_at_inputs", True)
    middle = age["values_before"]["quantiles"][4]
    assert f"age moved: its median was {show_number(middle)}, is " in confirmed["sentence"]
    assert [one["features"]["age"]["values_before"] for one in told[1:]] == [age["values_before"]] * (len(told) - 1)
    assert age["values_before"]["n"] <= told[0]["observation"] - 50
    assert middle == pytest.approx(53, abs=10)
