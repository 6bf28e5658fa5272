"""Exact importances against docs/known-values.md, their definitions by enumeration, and the Shapley axioms."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers import InvalidParameterError, batch_pfi
from attributary_explainers.batch.exact import exact_sage, expected_pfi
from tests.explainers import oracles
from tests.explainers.oracles import FEATURES, POINTS, hybrid, medium_or_large, small_and_red, stagger_stream
from tests.explainers.stand_ins import Recording

EXACT = 1e-12


def on_all_points(concept):
    return [(x, concept(x)) for x in POINTS]


def probability(concept):
    return lambda x: 0.95 if concept(x) else 0.05


def probabilities(concept):
    return lambda x: {1: probability(concept)(x), 0: 1.0 - probability(concept)(x)}


@pytest.mark.parametrize(
    ("concept", "loss", "printed"),
    [
        (small_and_red, "squared", (0.049383, 0.049383, 0.0)),
        (medium_or_large, "squared", (0.222222, 0.0, 0.0)),
        (small_and_red, "cross_entropy", (0.151980, 0.151980, 0.0)),
        (medium_or_large, "cross_entropy", (0.585836, 0.0, 0.0)),
    ],
)
def test_sage_of_stagger_is_as_printed(concept, loss, printed):
    model = concept if loss == "squared" else probabilities(concept)
    result = exact_sage(model, on_all_points(concept), loss=loss)
    assert [round(value, 6) + 0.0 for value in result.importance.values()] == list(printed)
    if loss == "squared":
        oracle, p = oracles.exact_sage(concept, concept, oracles.squared), oracles.mean_prediction(concept)
        assert abs(sum(result.importance.values()) - p * (1 - p)) < EXACT  # efficiency: all of the variance
    else:
        oracle = oracles.exact_sage(concept, probability(concept), oracles.log_loss)
    assert result.importance == pytest.approx(oracle, abs=EXACT)
    assert result.n_observations == 27


@pytest.mark.parametrize("concept", [small_and_red, medium_or_large])
def test_expected_pfi_of_stagger_is_the_mean_over_pairs(concept):
    # The printed 4/27 and 4/9 are over all 27^2 pairs. Those of a point with itself are 0: without them, times 27/26.
    result = expected_pfi(concept, on_all_points(concept), loss="zero_one")
    for feature in FEATURES:
        kept = set(FEATURES) - {feature}
        pairs = [(x, z) for i, x in enumerate(POINTS) for j, z in enumerate(POINTS) if i != j]
        mean = Fraction(sum(concept(x) != concept(hybrid(x, z, kept)) for x, z in pairs), len(pairs))
        assert mean == oracles.exact_pfi(concept)[feature] * Fraction(27, 26)
        assert result.importance[feature] == pytest.approx(float(mean), abs=EXACT)
    assert result.importance["shape"] == result.std_error["shape"] == 0.0


small = st.integers(-3, 3)
tables = st.lists(st.tuples(st.tuples(small, small, small), small), min_size=2, max_size=5)
weights = st.tuples(*[small] * 4)


def named(table):
    return [(dict(zip("abc", values, strict=True)), y) for values, y in table]


def polynomial(w):
    return lambda x: float(w[0] * x["a"] + w[1] * x["b"] * x["c"] + w[2] * x["a"] * x["b"] + w[3])


def cubic(y, prediction):
    return abs(y - prediction) ** 3


def shapley_by_orders(model, data, loss):
    """The mean over all orders of the drop in loss, in fractions: another form of the same definition."""

    def value(kept):
        total = Fraction(0)
        for x, y in data:
            mean = Fraction(sum(Fraction(model({**z, **{f: x[f] for f in kept}})) for z, _ in data), len(data))
            total += loss(y, mean)
        return total / len(data)

    orders = list(permutations("abc"))
    drops = {f: [value(o[: o.index(f)]) - value(o[: o.index(f) + 1]) for o in orders] for f in "abc"}
    return {f: float(sum(found) / len(orders)) for f, found in drops.items()}


@settings(max_examples=40, deadline=None)
@given(table=tables, w=weights)
def test_sage_is_the_mean_over_all_orders_and_sums_to_the_improvement(table, w):
    model, data = polynomial(w), named(table)
    exact = exact_sage(model, data, loss=cubic)
    mean = math.fsum(model(x) for x, _ in data) / len(data)
    losses = [(cubic(y, mean), cubic(y, model(x))) for x, y in data]
    rounding = 1e-15 * 69**3  # no prediction is further off than 69
    assert exact.importance == pytest.approx(shapley_by_orders(model, data, cubic), abs=10 * rounding)
    improvement = math.fsum(a - b for a, b in losses) / len(data)
    assert abs(math.fsum(exact.importance.values()) - improvement) <= 10 * rounding


@settings(max_examples=40, deadline=None)
@given(table=tables, w=weights)
def test_a_feature_that_the_model_ignores_has_no_importance(table, w):
    data = named(table)
    exact, pairs = (f(polynomial((w[0], 0, w[2], w[3])), data, loss="squared") for f in (exact_sage, expected_pfi))
    assert abs(exact.importance["c"]) <= 1e-15 * 42**2  # no prediction is further off than 42
    assert pairs.importance["c"] == 0.0
    assert pairs.std_error["c"] == 0.0 or len(data) == 2


@settings(max_examples=40, deadline=None)
@given(table=tables, w=small)
def test_features_that_can_trade_places_are_equally_important(table, w):
    # As many rows with a and b exchanged, and a model that does not see the difference.
    data = named(table)
    data += [({**x, "a": x["b"], "b": x["a"]}, y) for x, y in data]
    exact = exact_sage(lambda x: float(x["a"] * x["b"] + w * x["c"]), data, loss="squared")
    assert exact.importance["a"] == pytest.approx(exact.importance["b"], abs=1e3 * EXACT)


@settings(max_examples=40, deadline=None)
@given(table=tables, w=weights, factor=small)
@pytest.mark.parametrize("method", [exact_sage, expected_pfi])
def test_importance_is_linear_in_the_loss(method, table, w, factor):
    def both(y, p):
        return factor * abs(y - p) - 2.0 * (y - p) ** 2

    model, data = polynomial(w), named(table)
    one, two, combined = (method(model, data, loss=loss).importance for loss in ("absolute", "squared", both))
    for f in "abc":
        assert combined[f] == pytest.approx(factor * one[f] - 2.0 * two[f], abs=1e4 * EXACT)


class Scripted(np.random.Generator):
    """A generator that deals out every permutation, over and over."""

    def permutation(self, n):
        if not getattr(self, "left", None):
            self.left = list(permutations(range(n)))
        return np.array(self.left.pop())


@settings(max_examples=30, deadline=None)
@given(table=tables, w=weights)
def test_expected_pfi_is_the_mean_of_batch_pfi_over_all_permutations(table, w):
    # iPFI Theorem 1: the mean over all N! permutations of Definition 2, and Definition 3, are one number.
    model, data = polynomial(w), named(table)
    n = len(data)
    exact = expected_pfi(model, data, loss="squared").importance
    batch = batch_pfi(model, data, loss="squared", n_permutations=math.factorial(n), seed=Scripted(np.random.PCG64(0)))
    assert exact == pytest.approx(batch.importance, abs=1e4 * EXACT)


def test_the_standard_error_is_the_jackknife():
    data, model = named([((1, 2, 0), 1), ((0, -1, 3), 2), ((2, 2, 1), 0), ((-3, 1, 1), 1)]), polynomial((1, 2, -1, 0))
    result = expected_pfi(model, data, loss="squared")
    without = [expected_pfi(model, data[:i] + data[i + 1 :], loss="squared").importance for i in range(4)]
    for f in "abc":
        left = np.array([importance[f] for importance in without])
        assert result.std_error[f] == pytest.approx(math.sqrt(3 / 4 * ((left - left.mean()) ** 2).sum()), rel=1e-9)
    assert all(map(math.isnan, expected_pfi(model, data[:2], loss="squared").std_error.values()))


@pytest.mark.long
def test_the_standard_error_is_the_spread_between_data_sets():
    samples = (stagger_stream(medium_or_large, 30, seed) for seed in range(100))
    results = [expected_pfi(medium_or_large, data, loss="zero_one") for data in samples]
    spread = np.std([result.importance["size"] for result in results], ddof=1)
    # The spread of 100 runs is known to 7 %: three of those, and some for the conservative side.
    assert 0.79 < np.mean([result.std_error["size"] for result in results]) / spread < 1.3


def test_the_number_of_evaluations():
    for method, n in ((exact_sage, 5 + (2**3 - 2) * 5**2), (expected_pfi, 5 + 3 * 5 * 4)):
        model = Recording()
        method(model, [(x, 0.0) for x in POINTS[:5]], loss="squared")
        assert len(model.rows) == n


def test_more_features_than_allowed_are_refused_with_the_cost():
    data = [({f"f{i}": 0.0 for i in range(13)}, 0.0)] * 2
    with pytest.raises(InvalidParameterError, match=r"max_features = 12.* 32,762 model eval.*use batch_sage.* got 13$"):
        exact_sage(model := Recording(), data, loss="squared")
    assert model.rows == []
    groups = {"first": [f"f{i}" for i in range(12)]}
    assert set(exact_sage(model, data, loss="squared", groups=groups, max_features=2).importance) == {"first", "f12"}
    with pytest.raises(InvalidParameterError, match=r"^max_features must be an integer >= 1"):
        exact_sage(model, data, loss="squared", max_features=0)
