"""Features that move slowly are found, by closed forms and plain moments, and are named once."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from attributary_explainers import IncrementalPFI, IncrementalSAGE, LocalReservoirWarning, SlowFeatureWarning
from attributary_explainers.incremental.slowness import EVERY, Locality, Persistence, SlowFeatures
from attributary_explainers.removal.reservoirs import GeometricReservoir


def autoregressive(rho: float, n: int, seed: int = 1) -> list[float]:
    rng = np.random.default_rng(seed)
    values = [float(rng.normal())]
    for e in rng.normal(size=n - 1).tolist():
        values.append(rho * values[-1] + math.sqrt(1.0 - rho * rho) * e)
    return values


@pytest.mark.parametrize(("alpha", "lag"), [(0.001, 50), (0.005, 10), (0.05, 1), (1.0, 1)])
def test_the_first_pairs_have_the_plain_correlation(alpha, lag):
    persistence = Persistence(alpha)
    values = autoregressive(0.9, 90 * lag)
    looked = [persistence.update({"a": value}) for value in values]
    seen = np.array(values)[lag - 1 :: lag]
    assert [i for i, yes in enumerate(looked, start=1) if yes] == list(range(lag, 90 * lag + 1, lag))
    r = np.corrcoef(seen[:-1], seen[1:])[0, 1]
    expected = -lag / math.log(r) if r > 0.0 else 0.0
    assert persistence.lag == lag
    assert persistence.value()["a"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_the_time_of_an_autoregressive_feature_is_found_at_any_scale(scale):
    # Mean over runs: one has the correlation of 100 pairs.
    found = []
    for seed in range(30):
        persistence = Persistence(0.005)
        for value in autoregressive(0.97, 4000, seed):
            persistence.update({"a": scale * value + 3.0 * scale})
        found.append(persistence.value()["a"])
    assert np.median(found) == pytest.approx(-1.0 / math.log(0.97), rel=0.25)


def test_what_has_no_time_says_so():
    persistence, rng = Persistence(0.05), np.random.default_rng(2)
    for i in range(400):
        persistence.update(
            {
                "constant": 4.0,
                "trend": float(i),
                "noise": float(rng.normal()),
                "text": "a",
                "none": None,
                "nan": math.nan,
            }
            | {"bool": bool(i % 2), "huge": 10**400, "turns": float((-1) ** i), "late" if i > 390 else "early": 1.5}
        )
    found = persistence.value()
    assert found.keys() == {"constant", "trend", "noise", "turns", "early", "late"}
    assert math.isnan(found["constant"])
    assert math.isnan(found["late"])
    assert found["trend"] > 100.0
    assert found["noise"] < 2.0
    assert found["turns"] == 0.0


def test_names_that_never_come_again_are_forgotten():
    persistence = Persistence(1.0)
    for i in range(3000):
        persistence.update({f"f{i // 2}": float(i), "a": float(i % 7)})
    assert len(persistence.value()) < 300
    assert "a" in persistence.value()


@pytest.mark.parametrize("share", [0.0, 0.3, -0.2, 1.0])
def test_locality_is_the_slope_of_what_is_stored_on_what_comes(share):
    locality, rng = Locality(0.001), np.random.default_rng(3)
    for i in range(8000):
        value, mean = float(rng.normal(5.0, 2.0)), float(rng.normal())
        looked = locality.update({"a": value, "b": "xyz"[i % 3]}, [{"a": share * value + mean, "b": "x"}])
        assert looked == (i % EVERY == EVERY - 1)
        if i < 4998:
            assert all(math.isnan(c) for c in locality.value().values())
    assert locality.value()["a"] == pytest.approx(share, abs=0.2)
    assert locality.value()["b"] == pytest.approx(0.0, abs=0.05)


def test_locality_of_a_category_is_that_of_its_indicators():
    locality, rng = Locality(0.001), np.random.default_rng(4)
    for _ in range(20_000):
        own = "abc"[int(rng.integers(3))]
        # Half of the stored ones are the own category.
        rows = [{"a": own if rng.random() < 0.5 else "abc"[int(rng.integers(3))]} for _ in range(20)]
        locality.update({"a": own}, rows)
    assert locality.value()["a"] == pytest.approx(0.5, abs=0.05)


def told(explainer: Any, values: list[float]) -> list[tuple[type[Warning], str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i, value in enumerate(values):
            explainer.explain_one({"slow": value, "fast": float(i * 0.754877666 % 1.0)}, value)
    assert all(str(one.filename) == __file__ for one in caught)
    return [(one.category, str(one.message)) for one in caught]


@pytest.mark.parametrize("method", [IncrementalPFI, IncrementalSAGE])
def test_a_slow_feature_is_named_once_with_what_to_do(method):
    explainer = method(lambda x: x["slow"] + x["fast"], loss="squared", alpha=0.005, seed=1)
    [(category, message)] = told(explainer, autoregressive(0.99, 2000))
    assert category is SlowFeatureWarning
    assert "'slow' for about " in message
    assert "'fast'" not in message
    assert "averaged over 400" in message
    assert explainer.autocorrelation_time["slow"] > 40.0 > explainer.autocorrelation_time["fast"]


def test_a_feature_that_moves_at_once_is_not_named():
    explainer = IncrementalPFI(lambda x: x["slow"], loss="squared", alpha=0.005, seed=1)
    assert told(explainer, autoregressive(0.5, 6000)) == []
    assert explainer.locality["slow"] < 0.05


@pytest.mark.parametrize("alpha", [0.02, 0.05, 0.3, 1.0])
def test_chance_is_not_named_at_any_alpha(alpha):
    for seed in range(5):
        explainer = IncrementalPFI(lambda x: x["slow"], loss="squared", alpha=alpha, seed=seed)
        assert told(explainer, autoregressive(0.0, 600, seed)) == []


def test_a_reservoir_that_is_too_near_is_named_with_what_to_do():
    pfi = IncrementalPFI(lambda x: x["slow"], loss="squared", alpha=0.001, reservoir=GeometricReservoir(100), seed=1)
    said = dict(told(pfi, autoregressive(0.99, 6000)))
    assert said.keys() == {LocalReservoirWarning}
    assert "'slow' by about " in said[LocalReservoirWarning]
    assert "LaggedReservoir(gap=" in said[LocalReservoirWarning]


def count_down(slow: SlowFeatures, x: dict[str, float]) -> None:
    """Take in an observation as an explainer does."""
    slow.until -= 1
    if not slow.until:
        slow.look(x, [{"a": 1.0}])


def test_a_restored_state_goes_on_and_names_nobody_again():
    slow = SlowFeatures(0.02)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(300):
            count_down(slow, {"a": float(i)})
    assert ["'a' throughout, moving in one direction" in str(one.message) for one in caught] == [True]
    restored = SlowFeatures(0.02)
    restored.restore(slow.snapshot())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(300, 600):
            count_down(slow, {"a": float(i)})
            count_down(restored, {"a": float(i)})
    assert restored.snapshot() == slow.snapshot()
