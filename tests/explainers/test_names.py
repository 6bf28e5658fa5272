"""Features of any name and type, thousands of them, and features that never come back."""

import math

import numpy as np
import pytest

from attributary_explainers import REMOVAL_NAMES, ConstantImputer, IncrementalPFI, IncrementalSAGE
from tests.explainers.stand_ins import Linear

EXPLAINERS = [IncrementalPFI, IncrementalSAGE]
WEIGHTS = {"a": 1.0, "b": -2.0, "c": 0.5, "d": 3.0}
REMOVALS = [*REMOVAL_NAMES, ConstantImputer({})]
VALUES = [0, 1.5, True, "red", None, math.nan, math.inf, (1, "a"), np.float64(2.0), np.str_("blue"), b"", -3, [1], {}]


def all_finite(importance):
    return all(map(math.isfinite, importance.values()))


def named(removal):
    return removal if isinstance(removal, str) else ConstantImputer(removal.values)


@pytest.mark.parametrize("removal", REMOVALS, ids=str)
@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.share(2, "explainer", "removal")
def test_values_of_any_type_that_change_their_type(explainer, removal):
    rng = np.random.default_rng(13)
    how = {"loss": "absolute", "alpha": 0.05, "n_samples": 3, "groups": {"g": ["a", "b"]}, "seed": 13}
    explaining = explainer(lambda x: float(len(str(sorted(map(str, x.values()))))), removal=named(removal), **how)
    for number in range(900):  # what is observational is not explained until a hundred are stored
        there = [name for name in "abcd" if rng.random() < 0.8 or not number]  # at first all: a group has to be there
        x = {name: VALUES[rng.integers(len(VALUES))] for name in there}
        assert all_finite(explaining.explain_one(x, 0.0))
    assert explaining.n_observations > 100
    assert set(explaining.importance) == {"g", "c", "d"}


@pytest.mark.parametrize("removal", REMOVALS, ids=str)
@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.share(2, "explainer", "removal")
def test_names_of_any_type(explainer, removal):
    weights = {1: 1.0, "a": -2.0, (2, "b"): 0.5, None: 3.0, 2.5: 1.0, frozenset("c"): -1.0}
    rng = np.random.default_rng(14)
    how = {"loss": "squared", "alpha": 0.05, "n_samples": 3, "groups": {"g": [1, "a"]}}
    explaining = explainer(Linear(weights), removal=named(removal), seed=14, **how)
    for _ in range(900):
        x = {name: float(rng.normal()) for name in weights if rng.random() < 0.8}
        assert all_finite(explaining.explain_one(x, 0.0))
    assert set(explaining.importance) == {"g", *list(weights)[2:]}
    again = explainer.from_snapshot(explaining.snapshot(), explaining.model)
    assert again.explain_one({None: 1.0, "a": 2.0}, 0.0) == explaining.explain_one({None: 1.0, "a": 2.0}, 0.0)


@pytest.mark.parametrize("removal", ["interventional", "product"])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_few_of_thousands_of_features_at_a_time(explainer, removal):
    rng, n, d = np.random.default_rng(15), 40, 2000
    names = [f"feature {i}" for i in range(d)]
    explaining = explainer(Linear({names[0]: 5.0}), loss="squared", alpha=0.1, n_samples=2, removal=removal, seed=15)
    seen = {names[0]}
    for i in range(n):
        there = [names[0], *(names[k] for k in rng.integers(1, d, size=20).tolist())]
        if i:
            seen |= set(there)
        importance = explaining.explain_one({name: float(rng.normal()) for name in there}, 0.0)
    assert set(importance) == seen
    assert len(seen) > 600
    ignored = {name: value for name, value in importance.items() if name != names[0]}
    if explainer is IncrementalPFI:
        assert set(ignored.values()) == {0.0}
        assert importance[names[0]] != 0.0
    else:
        assert sum(importance.values()) == pytest.approx(explaining.marginal_loss - explaining.model_loss, abs=1e-9)


def test_thousands_of_features_all_at_once():
    d = 2000
    pfi = IncrementalPFI(lambda x: x["f7"], loss="squared", alpha=0.5, n_samples=1, seed=16)
    for i in range(4):
        importance = pfi.explain_one({f"f{k}": float((i + k) % 3) for k in range(d)}, 0.0)
    assert len(importance) == len(pfi.std_error) == d
    assert [name for name, value in importance.items() if value] == ["f7"]


@pytest.mark.parametrize("removal", [*REMOVAL_NAMES[:2], "constant"])
@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.share(2, "explainer", "removal")
def test_what_is_forgotten_leaves_all_else_as_it_is(explainer, removal):
    # Memory at alpha 0.5: 1000 observations. "once" comes with the first hundred only.
    rng = np.random.default_rng(17)
    made = ConstantImputer({"a": 0.0}) if removal == "constant" else removal
    explaining = explainer(Linear(WEIGHTS), loss="squared", alpha=0.5, n_samples=2, removal=made, seed=17)
    known, forgot = set(), 0
    for i in range(2100):
        x = {name: float(rng.normal()) for name in "ab"} | ({"d": 1.0, f"once {i}": 1.0} if i < 100 else {})
        before = explaining.importance
        after = explaining.explain_one(x, 1.0)
        forgot += len(known - set(after))
        known = set(after)
        if i in (999, 1000, 1001, 1999, 2000, 2001):
            own = explaining.raw_importance
            for name in after:
                # One step of the recursion from what was there before it, forgotten names or not.
                increment = (after[name] - 0.5 * before[name]) / 0.5
                assert math.isfinite(increment)
                assert name in "ab" or increment == pytest.approx(0.0, abs=1e-9)
            assert set(own) == set(after)
        if explainer is IncrementalSAGE and explaining.n_observations:
            # Losses reach some hundreds.
            gap = sum(after.values()) - (explaining.marginal_loss - explaining.model_loss)
            assert abs(gap) < 1e-9 * 100
    assert set(explaining.importance) == set(explaining.std_error) == {"a", "b"}
    assert forgot > 90
