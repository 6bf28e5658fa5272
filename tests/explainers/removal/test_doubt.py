"""Observational importance is doubted where draws miss what features have in common, and nowhere else."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from attributary_explainers import (
    IncrementalPFI,
    ObservationalDoubtWarning,
)

from .dependent_rows import gaussian, kite, named


def parity(n, seed):
    rng = np.random.default_rng(seed)
    for u, v, w in rng.integers(2, size=(n, 3)):
        yield {
            "u": ["no", "yes"][u],
            "v": ["no", "yes"][v],
            "w": ["no", "yes"][(u + v + (w and rng.random() < 0.2)) % 2],
        }


def test_what_three_features_have_in_common_and_no_two_is_doubted_once():
    def model(x):
        return 3.0 * (x["w"] == "yes")

    pfi = IncrementalPFI(model, loss="squared", removal="observational", alpha=0.002, seed=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in parity(3000, seed=25):
            pfi.explain_one(x, model(x))
    told = [str(w.message) for w in caught if w.category is ObservationalDoubtWarning]
    # Interventional and missed observational importance are the same: the right value cannot be told from them.
    assert pfi.observational_doubt.keys() == {"u", "v", "w"}
    assert len(told) <= 1


def half_parity(n, seed):
    """w is the parity of u and v in two of five observations, and z in the others: draws know what z says of it."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        u, v, z = rng.integers(2, size=3)
        w = (u + v) % 2 if rng.random() < 0.4 else z
        yield {name: ["no", "yes"][value] for name, value in zip("uvwz", (u, v, w, z), strict=True)}


@pytest.mark.long
def test_a_parity_that_draws_miss_is_warned_of():
    def model(x):
        return 3.0 * (x["w"] == "yes")

    pfi = IncrementalPFI(model, loss="squared", removal="observational", seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in half_parity(12_000, seed=0):
            pfi.explain_one(x, model(x))
    told = [str(w.message) for w in caught if w.category is ObservationalDoubtWarning]
    assert len(told) == 1
    assert "of 'w'" in told[0]
    doubt = pfi.observational_doubt
    assert doubt["w"] > 0.0
    assert all(not doubt[name] > 0.0 for name in "uvz")
    # w is known where the parity is z, else it is the parity with probability .4: it is off in the direction said.
    exact, interventional = 9.0 * 0.5 * 2.0 * 0.4 * 0.6, 9.0 * 0.5
    assert exact + 0.5 * doubt["w"] < pfi.importance["w"] < interventional


@pytest.mark.long
def test_a_square_that_draws_follow_is_not_doubted():
    pfi = IncrementalPFI(lambda x: x["g0"] * x["g1"] + x["g1"], loss="squared", removal="observational", seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in named(kite(4000, np.random.default_rng(29))):
            pfi.explain_one(row, row["g0"] * row["g1"] + row["g1"])
    assert all(not doubt > 0.05 * sum(pfi.importance.values()) for doubt in pfi.observational_doubt.values())


def test_gaussians_are_not_doubted():
    X, _ = gaussian(3000, seed=26)
    pfi = IncrementalPFI(lambda x: x["g0"] - x["g2"], loss="squared", removal="observational", seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, row in zip(X, named(X), strict=True):
            pfi.explain_one(row, float(x[0] - x[2]))
    assert all(not doubt > 0.05 * sum(pfi.importance.values()) for doubt in pfi.observational_doubt.values())


def test_other_removals_are_not_in_doubt():
    assert IncrementalPFI(lambda x: 0.0, loss="squared").observational_doubt == {}
