"""Where removed features take their values from: whole rows, a row for each, given the others, or a constant."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from attributary_explainers import (
    REMOVAL_NAMES,
    RESERVOIR_NAMES,
    SAMPLING_NAMES,
    ConditionalImputer,
    ConditionalSampler,
    ConstantImputer,
    GeometricReservoir,
    Imputer,
    IncrementalPFI,
    IncrementalSAGE,
    InvalidParameterError,
    MarginalImputer,
    ShiftedImputer,
    SnapshotError,
    make_reservoir,
)
from attributary_explainers.removal.imputer import Draws, keep, replace
from tests.explainers.stand_ins import Linear, Recording

EXPLAINERS = [IncrementalPFI, IncrementalSAGE]
SIGNIFICANCE = 1e-4  # a right imputer fails once in 10 000 choices of the seed
PLAYERS = {"a": ("a",), "bc": ("b", "c")}
X = {"a": -1, "b": -1, "c": -1}


def filled(imputer, n=8, seed=0):
    """The imputer with `n` observations in which all features have the observation's number, and a generator."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        imputer.update({"a": i, "b": i, "c": i}, float(-i), rng)
    return imputer, rng


EVERY = [(removal, sampling) for removal in REMOVAL_NAMES for sampling in SAMPLING_NAMES]


def make_imputer(removal, sampling):
    if removal == "observational":
        return ShiftedImputer(GeometricReservoir(8))
    if removal == "observational-trees":
        return ConditionalImputer(GeometricReservoir(8), ConditionalSampler(seed=1), sampling=sampling)
    strategy = "joint" if removal == "interventional" else removal
    return MarginalImputer(GeometricReservoir(8), strategy=strategy, sampling=sampling)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 20])
@pytest.mark.parametrize(("removal", "sampling"), EVERY)
def test_kept_features_are_those_of_x_and_removed_ones_of_past_observations(removal, sampling, n):
    imputer, rng = filled(make_imputer(removal, sampling))
    replaced = imputer.replace_each(X, PLAYERS, n, rng)
    assert [len(rows) for rows in replaced.rows] == [n, n]
    for removed, rows in zip(PLAYERS.values(), replaced.rows, strict=True):
        for row in rows:
            assert list(row) == ["a", "b", "c"]
            assert all((row[f] in range(8)) == (f in removed) for f in row)
    coalitions = [[], ["a"], ["bc"], ["a", "bc"]]
    restricted = imputer.restrict(X, PLAYERS, coalitions, n, rng)
    assert [len(rows) for rows in restricted.rows] == [n] * 4
    for kept, rows in zip(coalitions, restricted.rows, strict=True):
        of_x = {f for player in kept for f in PLAYERS[player]}
        for row in rows:
            assert list(row) == ["a", "b", "c"]
            assert all((row[f] == -1) == (f in of_x) for f in row)
    # The coalitions share their draws: what a feature has in one, it has in every other that lacks it.
    if not removal.startswith("observational"):
        assert [row["a"] for row in restricted.rows[0]] == [row["a"] for row in restricted.rows[2]]
        assert [(row["b"], row["c"]) for row in restricted.rows[0]] == [(r["b"], r["c"]) for r in restricted.rows[1]]


@pytest.mark.parametrize("sampling", SAMPLING_NAMES)
def test_the_slots_are_those_that_the_rows_came_from(sampling):
    imputer, rng = filled(MarginalImputer(GeometricReservoir(5), sampling=sampling), n=12)
    draws = imputer.replace_each(X, PLAYERS, 7, rng)
    assert draws.slots.shape == (2, 7)
    for rows, slots, features in zip(draws.rows, draws.slots, PLAYERS.values(), strict=True):
        assert [row[features[0]] for row in rows] == [imputer.reservoir.rows[slot]["a"] for slot in slots]
    shared = imputer.restrict(X, PLAYERS, [[], ["a"]], 7, rng)
    assert shared.slots.shape == (7,)
    for rows in shared.rows:
        assert [row["b"] for row in rows] == [imputer.reservoir.rows[slot]["a"] for slot in shared.slots]


@pytest.mark.parametrize("sampling", SAMPLING_NAMES)
def test_a_joint_draw_is_one_row_and_a_product_is_not(sampling):
    joint, rng = filled(MarginalImputer(GeometricReservoir(8), sampling=sampling))
    product, _ = filled(MarginalImputer(GeometricReservoir(8), strategy="product", sampling=sampling))
    for imputer, together in ((joint, True), (product, False)):
        rows = imputer.restrict(X, PLAYERS, [[]], 200, rng).rows[0]
        assert all(row["a"] == row["b"] == row["c"] for row in rows) == together
        rows = imputer.replace_each(X, PLAYERS, 200, rng).rows[1]
        assert all(row["b"] == row["c"] for row in rows) == together
    assert product.restrict(X, PLAYERS, [[]], 3, rng).slots is None


@pytest.mark.parametrize("sampling", SAMPLING_NAMES)
def test_product_draws_are_independent_of_each_other(sampling):
    # Ranks of one draw must say nothing of another feature's: each pair of values equally often.
    imputer, rng = filled(MarginalImputer(GeometricReservoir(3), strategy="product", sampling=sampling), n=3)
    counts = np.zeros((3, 3))
    for _ in range(3000):
        row = imputer.restrict({"a": -1, "b": -1}, {"a": ("a",), "b": ("b",)}, [[]], 4, rng).rows[0][2]
        counts[row["a"], row["b"]] += 1
    assert stats.chisquare(counts.ravel()).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("method", ["replace_each", "restrict"])
@pytest.mark.parametrize(("removal", "sampling"), [of for of in EVERY if of[0] != "observational"])
def test_every_stored_value_is_drawn_equally_often(removal, sampling, method):
    imputer, rng = filled(make_imputer(removal, sampling))
    if removal == "observational-trees":
        filled(imputer)  # ten values make a tree: from here on its leaf is drawn from, and not the reservoir
    counts = Counter()
    for _ in range(3000):
        if method == "replace_each":
            rows = imputer.replace_each(X, {"a": ("a",)}, 3, rng).rows[0]
        else:
            rows = imputer.restrict(X, {"a": ("a",), "b": ("b",)}, [["b"]], 3, rng).rows[0]
        counts[rows[rng.integers(3)]["a"]] += 1  # one of each set: those that are counted are independent
    if removal == "observational-trees":
        values = imputer.sampler.distribution("a", X, {"b"})
        assert len(values) > 3
        expected = [3000 * probability for _, probability in values]
        assert stats.chisquare([counts[value] for value, _ in values], expected).pvalue > SIGNIFICANCE
    else:
        stored = Counter(row["a"] for row in imputer.reservoir.rows)
        expected = [3000 * n / 8 for n in stored.values()]
        assert stats.chisquare([counts[value] for value in stored], expected).pvalue > SIGNIFICANCE


def test_stratified_draws_are_spread_over_the_values_and_over_the_predictions():
    imputer, rng = filled(MarginalImputer(GeometricReservoir(8)), n=8)
    for _ in range(50):
        # As many parts as rows: every row once, in the order of the values.
        assert [row["a"] for row in imputer.replace_each(X, {"a": ("a",)}, 8, rng).rows[0]] == list(range(8))
        drawn = [row["a"] for row in imputer.restrict(X, {"a": ("a",), "b": ("b",)}, [[]], 8, rng).rows[0]]
        # Predictions fall as the values rise; two sets of four, each with one of every pair.
        assert [value // 2 for value in drawn] == [3, 2, 1, 0] * 2


@pytest.mark.parametrize("kind", RESERVOIR_NAMES)
def test_orders_follow_the_reservoir(kind):
    imputer, rng = MarginalImputer(make_reservoir(kind, 6)), np.random.default_rng(2)
    for i in range(60):
        imputer.update({"a": float(rng.normal()), "b": "xyz"[i % 3]} if i % 5 else {"b": "x"}, float(i % 7), rng)
        n = len(imputer.reservoir)
        if i % 2:
            drawn = imputer.replace_each({"a": 0.0, "b": "x"}, {"a": ("a",), "b": ("b",)}, n, rng)
            rows = imputer.reservoir.rows
            values = sorted(row["a"] for row in rows if "a" in row)
            n_absent = n - len(values)
            assert [row.get("a") for row in drawn.rows[0]] == [None] * n_absent + values
            assert [row["b"] for row in drawn.rows[1]] == sorted(row["b"] for row in rows)


def test_a_stream_of_ever_new_features_has_bounded_orders():
    imputer, rng = MarginalImputer(GeometricReservoir(5)), np.random.default_rng(3)
    imputer.update({"a": 0}, 0.0, rng)
    held = []
    for i in range(1000):
        x = {"a": i, f"new {i}": i}
        imputer.replace_each(x, {name: (name,) for name in x}, 2, rng)
        imputer.update(x, 0.0, rng)
        held.append(len(imputer._by_features))
    assert max(held) <= 4 * (1 + 2) + 2
    assert ("a",) in imputer._by_features, "it is asked for each time"


def test_an_absent_feature_of_the_source_is_absent_in_the_row():
    assert replace({"a": 1, "b": 2}, ["a"], {"c": 3}) == {"b": 2}
    assert replace({"a": 1}, ["b"], {"b": 3}) == {"a": 1, "b": 3}
    assert keep({"a": 1, "b": 2}, ["a"], {"c": 3}, {"a": ["a"], "g": ["b", "c"]}) == {"a": 1, "c": 3}
    assert keep({"a": 1}, ["g"], {"a": 4, "z": 5}, {"a": ["a"], "g": ["b"]}) == {"a": 4}


@pytest.mark.parametrize("sampling", SAMPLING_NAMES)
def test_conditional_draws_fit_what_is_kept(sampling):
    rng = np.random.default_rng(4)
    imputer = ConditionalImputer(
        GeometricReservoir(50), ConditionalSampler(leaf_size=50, grace_period=50, seed=4), sampling=sampling
    )
    for _ in range(1500):
        colour = "red" if rng.random() < 0.5 else "blue"
        imputer.update({"colour": colour, "weight": float(rng.normal(1.0 if colour == "red" else 9.0))}, 0.0, rng)
    x = {"colour": "red", "weight": 9.0}
    players = {name: (name,) for name in x}
    weights = [row["weight"] for row in imputer.replace_each(x, players, 40, rng).rows[1]]
    assert max(weights) < 5.0  # red ones
    weights, colours, anything = imputer.restrict(x, players, [["colour"], ["weight"], []], 40, rng).rows
    assert max(row["weight"] for row in weights) < 5.0
    # The leaves are estimates: a stray value of before a split may be left.
    assert sum(row["colour"] == "blue" for row in colours) >= 36
    assert 10 < sum(row["colour"] == "blue" for row in anything) < 30


def test_before_the_trees_can_draw_values_come_from_one_stored_row():
    imputer, rng = filled(ConditionalImputer(GeometricReservoir(4), ConditionalSampler(seed=5)), n=4)
    for row in imputer.restrict(X, PLAYERS, [[]], 30, rng).rows[0]:
        assert row["a"] == row["b"] == row["c"]


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_constant_takes_the_place_of_removed_features_at_the_first_observation(explainer):
    model = Recording(1.0)
    explaining = explainer(model, loss="squared", removal=ConstantImputer({"a": 10, "b": 20}), n_samples=50, seed=6)
    assert explaining.explain_one({"a": 1, "b": 2}, 0.0) != {}
    if explainer is IncrementalPFI:
        assert model.rows == [{"a": 1, "b": 2}, {"a": 10, "b": 2}, {"a": 1, "b": 20}]
    else:
        assert len(model.rows) == 2  # x, and one coalition of a single feature: once, not fifty times
        assert model.rows[1] in ({"a": 1, "b": 20}, {"a": 10, "b": 2})
    assert explaining.skipped == {}


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_what_has_no_constant_is_taken_away(explainer):
    model = Recording(1.0)
    explaining = explainer(model, loss="squared", removal=ConstantImputer({}), seed=7)
    explaining.explain_one({"a": 1, "b": 2}, 0.0)
    assert all(set(row) < {"a", "b"} for row in model.rows[1:])


def test_the_exact_values_of_a_constant():
    # h = a + 2 b at (1, 1), target 0, baseline 0: PFI is loss(without) - loss, SAGE the mean over both orders.
    model = Linear({"a": 1.0, "b": 2.0})
    pfi = IncrementalPFI(model, loss="squared", removal=ConstantImputer({"a": 0.0, "b": 0.0}))
    assert pfi.explain_one({"a": 1.0, "b": 1.0}, 0.0) == {"a": 4.0 - 9.0, "b": 1.0 - 9.0}
    sage = IncrementalSAGE(model, loss="squared", removal=ConstantImputer({"a": 0.0, "b": 0.0}), n_permutations=2)
    # The empty coalition predicts the mean prediction, 3 at the first observation: losses 9, then 1 or 4, then 9.
    assert sage.explain_one({"a": 1.0, "b": 1.0}, 0.0) == pytest.approx(
        {"a": ((9 - 1) + (4 - 9)) / 2, "b": ((1 - 9) + (9 - 4)) / 2}, rel=1e-12
    )


def test_names_give_the_imputers_of_those_names():
    made = {name: IncrementalPFI(Recording(), loss="squared", removal=name).imputer for name in REMOVAL_NAMES}
    assert {name: imputer.name for name, imputer in made.items()} == {name: name for name in REMOVAL_NAMES}
    kinds = [MarginalImputer, MarginalImputer, ShiftedImputer, ConditionalImputer]
    assert [type(imputer) for imputer in made.values()] == kinds
    assert all(made[name].sampling == "stratified" for name in REMOVAL_NAMES if name != "observational")


@pytest.mark.parametrize("removal", ["", "marginal", None, 3, ["product"], "constant"])
def test_an_unknown_removal_is_refused_with_the_known_ones(removal):
    with pytest.raises(
        InvalidParameterError,
        match=r"^removal must be one of interventional, observational, observational-trees, product",
    ):
        IncrementalPFI(Recording(), loss="squared", removal=removal)


@pytest.mark.parametrize("parameters", [{"reservoir": GeometricReservoir(5)}, {"sampling": "independent"}])
def test_an_imputer_has_its_own_reservoir_and_sampling(parameters):
    with pytest.raises(InvalidParameterError, match=r"^removal must be a name where reservoir or sampling is given"):
        IncrementalPFI(Recording(), loss="squared", removal=MarginalImputer(), **parameters)


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: MarginalImputer(sampling="random"), "sampling"),
        (lambda: MarginalImputer(strategy="interventional"), "strategy"),
        (lambda: ConditionalImputer(sampling="random"), "sampling"),
        (lambda: IncrementalPFI(Recording(), loss="squared", sampling="random"), "sampling"),
        (lambda: ConstantImputer([1, 2]), "values"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(make, parameter):
    with pytest.raises(InvalidParameterError, match=f"^{parameter} must be "):
        make()


class Opposite(Imputer):
    """An imputer of the user's own: removed features take the opposite value."""

    name = "opposite"
    n_independent = False

    def __init__(self):
        self.reservoir = GeometricReservoir(1)

    def replace_each(self, x, players, n, rng):
        return Draws([[{**x, **{f: -x[f] for f in features}}] * n for features in players.values()], None)

    def restrict(self, x, players, coalitions, n, rng):
        return Draws([[{f: x[f] if f in kept else -x[f] for f in x}] * n for kept in coalitions], None)


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_an_imputer_of_the_users_own(explainer):
    model = Linear({"a": 1.0, "b": 2.0})
    explaining = explainer(model, loss="absolute", removal=Opposite(), alpha=0.1, seed=8)
    for i in range(10):
        importance = explaining.explain_one({"a": 1.0, "b": 1.0 + i}, 0.0)
    assert explaining.n_observations == 9
    if explainer is IncrementalPFI:
        assert importance["a"] == pytest.approx(-2.0, rel=1e-9)  # |2 b - a| - |2 b + a| with b >= 1, a = 1
    snapshot = explaining.snapshot()
    with pytest.raises(SnapshotError, match=r"'opposite'.*explainer\.restore\(snapshot\)"):
        explainer.from_snapshot(snapshot, model)
    again = explainer(model, loss="absolute", removal=Opposite(), alpha=0.1, seed=9)
    again.restore(snapshot)
    x = {"a": 1.0, "b": 3.0}
    assert again.explain_one(x, 0.0) == explaining.explain_one(x, 0.0)
    assert math.isfinite(again.std_error["a"])
