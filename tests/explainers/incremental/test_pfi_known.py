"""iPFI where the importance is known on paper: STAGGER, Agrawal, ignored and symmetric features."""

import numpy as np
import pytest
from river.datasets import synth

from attributary_explainers import RESERVOIR_NAMES, IncrementalPFI, make_reservoir
from tests.explainers.oracles import (
    FEATURES,
    agrawal_function_1,
    agrawal_pfi,
    exact_pfi,
    mean_and_error,
    medium_or_large,
    small_and_red,
    stagger_stream,
)
from tests.explainers.stand_ins import Linear, fed

N_RUNS = 16
N_ERRORS = 4
"""Standard errors of the mean of 16 runs: a right mean is farther off once in 850 (Student, 15 degrees)."""


@pytest.fixture(scope="module")
def agrawal_runs():
    """Ten realisations of 5000 observations with river's function 1 as the model (iPFI appendix D)."""
    runs = []
    for seed in range(10):
        pfi = IncrementalPFI(agrawal_function_1, loss="zero_one", alpha=0.001, n_samples=1, seed=seed)
        runs.append(fed(pfi, synth.Agrawal(classification_function=1, seed=100 + seed).take(5000)))
    return runs


@pytest.mark.parametrize(
    ("reservoir", "sampling"), [*((name, "stratified") for name in RESERVOIR_NAMES), ("geometric", "independent")]
)
@pytest.mark.parametrize("concept", [small_and_red, medium_or_large])
@pytest.mark.share(2, "concept", "reservoir", "sampling")
def test_stagger_gives_the_exact_values(concept, reservoir, sampling):
    runs = []
    for seed in range(N_RUNS):
        how = {"alpha": 0.004, "n_samples": 2, "reservoir": make_reservoir(reservoir, 100), "sampling": sampling}
        pfi = IncrementalPFI(concept, loss="zero_one", seed=seed, **how)
        runs.append(fed(pfi, stagger_stream(concept, 600, seed)).importance)
    for feature, exact in exact_pfi(concept).items():
        mean, error = mean_and_error([run[feature] for run in runs])
        if exact == 0:
            assert all(run[feature] == 0.0 for run in runs)
        else:
            assert abs(mean - float(exact)) < N_ERRORS * error
            assert error < 0.012  # so that 4/27 and 4/9, or either and half of it, are told apart


@pytest.mark.long
def test_agrawal_gives_the_exact_values(agrawal_runs):
    for feature, exact in agrawal_pfi().items():
        mean, error = mean_and_error([run.importance[feature] for run in agrawal_runs])
        assert abs(mean - float(exact)) < 3 * error  # docs/known-values.md
        assert error < 0.01


@pytest.mark.long
@pytest.mark.parametrize(("feature", "low", "high"), [("age", 0.325, 0.361), ("salary", 0.460, 0.484)])
def test_agrawal_lies_in_the_independent_implementations_band(agrawal_runs, feature, low, high):
    mean = np.mean([run.raw_importance[feature] for run in agrawal_runs])
    assert low < mean < high  # row ipfi-true-function of benchmarks/papers: mean of ten realisations, raw recursion
    ratio = agrawal_runs[0].raw_importance[feature] / agrawal_runs[0].importance[feature]
    assert ratio == pytest.approx(1 - 0.999**4999, rel=1e-12)  # the first observation has nothing to draw from


@pytest.mark.long
def test_what_the_agrawal_function_ignores_is_exactly_zero(agrawal_runs):
    for run in agrawal_runs:
        ignored = {f: v for f, v in run.importance.items() if f not in ("salary", "age")}
        assert len(ignored) == 7
        assert set(ignored.values()) == {0.0}
        assert {run.std_error[f] for f in ignored} == {0.0}
        assert run.importance["salary"] > run.importance["age"] > 0.25


def test_a_feature_that_the_model_ignores_is_exactly_zero_at_every_step():
    rng = np.random.default_rng(1)
    model = Linear({"a": 1.3, "b": -0.7})
    pfi = IncrementalPFI(model, loss="squared", alpha=0.05, n_samples=3, seed=1)
    for _ in range(100):
        x = dict(zip("abc", rng.normal(size=3).tolist(), strict=True))
        importance = pfi.explain_one(x, float(rng.normal()))
        assert importance.get("c", 0.0) == 0.0
    assert importance["a"] != 0.0


def test_symmetric_features_are_equally_important():
    differences, levels = [], []
    for seed in range(N_RUNS):
        rng = np.random.default_rng([seed, 5])
        pfi = IncrementalPFI(Linear({"a": 1.0, "b": 1.0}), loss="squared", alpha=0.005, n_samples=2, seed=seed)
        for a, b, noise in rng.normal(size=(800, 3)).tolist():
            pfi.explain_one({"a": a, "b": b}, a + b + noise)
        differences.append(pfi.importance["a"] - pfi.importance["b"])
        levels.append(pfi.importance["a"])
    mean, error = mean_and_error(differences)
    assert abs(mean) < 3 * error
    mean, error = mean_and_error(levels)
    assert abs(mean - 2.0) < N_ERRORS * error  # E(z - a)^2 of two standard normals, whatever the noise in y
    assert error < 0.1


def test_the_mean_of_the_target_does_not_enter():
    # A feature worth 2 * 25 on a target of mean 1000: an average that began at 0 would be off by thousands.
    rng = np.random.default_rng(3)
    pfi = IncrementalPFI(Linear({"a": 5.0}, intercept=1000.0), loss="squared", alpha=0.001, n_samples=10, seed=3)
    for value in rng.choice([-1.0, 1.0], size=400).tolist():
        pfi.explain_one({"a": value}, 1000.0 + 5.0 * value)
    # Each growth is 100 or 0, equally likely: sd 50 in one draw; 400 observations of it at the least.
    assert abs(pfi.importance["a"] - 50.0) < 4 * 50 / np.sqrt(400)


@pytest.mark.long
@pytest.mark.parametrize(("n_samples", "sampling"), [(1, "independent"), (10, "independent"), (10, "stratified")])
def test_the_standard_error_is_of_the_size_of_the_spread_between_runs(n_samples, sampling):
    values, errors = [], []
    for seed in range(60):
        how = {"alpha": 0.01, "n_samples": n_samples, "sampling": sampling}
        pfi = IncrementalPFI(medium_or_large, loss="zero_one", seed=seed, **how)
        fed(pfi, stagger_stream(medium_or_large, 400, 500 + seed))
        values.append(pfi.importance["size"])
        errors.append(pfi.std_error["size"])
    # The spread of 60 runs is known to 9 %: three of those. As if increments were uncorrelated, 0.6 would come out of
    # ten draws.
    assert 0.73 < np.mean(errors) / np.std(values, ddof=1) < 1.27


def test_all_features_are_reported_in_the_order_of_the_observation():
    pfi = IncrementalPFI(small_and_red, loss="zero_one", seed=1)
    for x, y in stagger_stream(small_and_red, 5, 1):
        importance = pfi.explain_one(x, y)
    assert tuple(importance) == tuple(pfi.std_error) == tuple(pfi.raw_importance) == FEATURES
    assert all(type(name) is str for name in importance)
