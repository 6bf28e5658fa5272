"""Contributions of single observations: PFI by a naive loop over the same permutations, SAGE by enumeration."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers import InvalidParameterError, NoPredictionError, batch_pfi
from attributary_explainers.batch.contributions import pfi_contributions, sage_steps
from attributary_explainers.batch.slices import finish
from attributary_explainers.batch.tables import DataTable
from tests.explainers import oracles
from tests.explainers.oracles import FEATURES, POINTS, mean_and_error, medium_or_large, small_and_red
from tests.explainers.stand_ins import Linear

ONE, OTHER = Linear({"a": 1.0, "b": -2.0, "c": 0.5}), Linear({"a": 0.3, "c": 2.0}, intercept=1.0)
VALUES = st.floats(-10.0, 10.0)
ROWS = st.lists(st.tuples(st.dictionaries(st.sampled_from("abcd"), VALUES, min_size=1), VALUES), min_size=2, max_size=7)


def rows(n, seed, lacking=0.0):
    rng = np.random.default_rng(seed)
    return [
        ({f: float(rng.normal()) for f in "abc" if rng.random() >= lacking} or {"a": 0.0}, float(rng.normal()))
        for _ in range(n)
    ]


def sage_contributions(*given):
    return finish(sage_steps(*given))


def tables(data, *models, loss="squared", groups=None):
    return [DataTable(model, data, loss, groups) for model in models]


def probabilities(concept, high=1.0):
    """The concept with this probability of its label; of a class that was never seen the others say nothing."""
    return lambda x: {1: high, 0: 1.0 - high} if concept(x) else {1: 1.0 - high, 0: high}


def sage_of(model, loss, data, n_samples, seed, groups=None):
    return sage_contributions(tables(data, model, loss=loss, groups=groups), n_samples, np.random.default_rng(seed))[0]


# PFI


def naive_growth(model, data, features, order):
    grown = []
    for (x, y), drawn in zip(data, [data[j][0] for j in order], strict=True):
        row = {f: v for f, v in x.items() if f not in features} | {f: drawn[f] for f in features if f in drawn}
        grown.append((y - model(row)) ** 2 - (y - model(x)) ** 2)
    return np.array(grown)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("n", "k", "lacking"), [(2, 1, 0.0), (9, 1, 0.0), (9, 3, 0.4), (40, 2, 0.0)])
def test_pfi_is_a_naive_loop_over_the_same_permutations(n, k, lacking, grouped):
    data, groups = rows(n, 3, lacking), {"ab": ["a", "b"]} if grouped else None
    found = pfi_contributions(tables(data, ONE, OTHER, groups=groups), k, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    for j, name in enumerate(found[0].names):
        features = ["a", "b"] if name == "ab" else [name]
        orders = [rng.permutation(n).tolist() for _ in range(k)]
        for model, of in zip((ONE, OTHER), found, strict=True):
            grown = np.array([naive_growth(model, data, features, order) for order in orders])
            np.testing.assert_allclose(of.parts[j], grown.T, rtol=0, atol=1e-12)
            np.testing.assert_allclose(of.own[j], grown.mean(axis=0), rtol=0, atol=1e-12)
            assert of.rows[j].T.tolist() == orders
            assert of.importance[name] == pytest.approx(grown.mean() * n / (n - 1), rel=1e-9, abs=1e-12)
            assert of.loss == pytest.approx(np.mean([(y - model(x)) ** 2 for x, y in data]), rel=1e-12)
    assert set(found[0].names) == ({"ab", "c"} if grouped else {"a", "b", "c"})


@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 2), (60, 1), (60, 3)])
def test_batch_pfi_has_the_error_of_its_docstring(n, k):
    # Var(A + B) - Var(growth) / P, at least Var(A), over N; of observations N - 1, of single growths N P.
    data = [(x, ONE(x) + 0.3 * y) for x, y in rows(n, 11)]
    batch = batch_pfi(ONE, data, loss="squared", n_permutations=k, seed=4)
    rng = np.random.default_rng(4)
    floors = 0
    for name in "abc":
        grown, given = np.zeros((k, n)), np.zeros((k, n))
        for p in range(k):
            order = rng.permutation(n)
            grown[p] = naive_growth(ONE, data, [name], order.tolist())
            given[p, order] = grown[p]
        both = (grown.mean(axis=0) + given.mean(axis=0)).var(ddof=1) - grown.var() / k
        alone = grown.mean(axis=0).var(ddof=1)
        floors += both < alone
        assert batch.importance[name] == pytest.approx(grown.mean() * n / (n - 1), rel=1e-12)
        assert batch.std_error[name] == pytest.approx(math.sqrt(max(both, alone) / n) * n / (n - 1), rel=1e-9)
    if n == 60:
        assert floors < 3  # the floor alone would hide the formula


# SAGE


def combined(x, z, kept, players):
    row = {}
    for player, features in players.items():
        source = x if player in kept else z
        row |= {f: source[f] for f in features if f in source}
    return row


def enumerated(model, data, players):
    """Shapley values of the squared loss of the mean over all rows, and the largest variance of a mean over them."""
    names, n = list(players), len(data)
    worth, most = {}, 0.0
    for size in range(len(names) + 1):
        for kept in combinations(names, size):
            found = np.array([[model(combined(x, z, kept, players)) for z, _ in data] for x, _ in data])
            targets = np.array([y for _, y in data])
            worth[frozenset(kept)] = float(((targets - found.mean(axis=1)) ** 2).mean())
            most = max(most, float(found.var(axis=1).mean()) / (n - 1))
    values = {}
    for name in names:
        others = [other for other in names if other != name]
        values[name] = sum(
            (worth[frozenset(kept)] - worth[frozenset((*kept, name))]) / (len(names) * math.comb(len(others), size))
            for size in range(len(names))
            for kept in combinations(others, size)
        )
    return values, most


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("features", "lacking"), [("ab", 0.0), ("abc", 0.0), ("abc", 0.3)])
@pytest.mark.parametrize("n_samples", [2, 3, 30])
@pytest.mark.share(2, "features", "lacking", "n_samples", "grouped")
def test_sage_of_the_squared_loss_has_the_enumerated_mean(features, lacking, n_samples, grouped):
    # Not linear, so that interactions count.
    def model(x):
        return x.get("a", 0.0) * x.get("b", 1.0) + x.get("c", 0.5)

    data = [({f: v for f, v in x.items() if f in features} or {"a": 0.0}, y) for x, y in rows(12, 2, lacking)]
    players = {f: [f] for f in features}
    groups = {"ab": ["a", "b"]} if grouped else None
    if grouped:
        players = {"ab": ["a", "b"], **{f: [f] for f in features if f not in "ab"}}
    expected, of_rows = enumerated(model, data, players)
    runs = [sage_of(model, "squared", data, n_samples, seed, groups).importance for seed in range(60)]
    for name, value in expected.items():
        mean, error = mean_and_error([run[name] for run in runs])
        # That the data are a sample may be corrected for or not: up to the variance of a mean over all of them.
        assert abs(mean - value) < 4 * error + of_rows + 1e-12


@pytest.mark.parametrize("concept", [small_and_red, medium_or_large])
@pytest.mark.parametrize(
    ("loss", "unit", "truth"),
    [("squared", 1.0, oracles.squared), ("brier", 2.0, oracles.squared), ("cross_entropy", 1.0, oracles.log_loss)],
)
@pytest.mark.share(2, "concept", "loss")
def test_sage_of_stagger_is_the_exact_one(concept, loss, unit, truth):
    high = 0.95 if loss == "cross_entropy" else 1.0
    number = lambda x: high if concept(x) else 1.0 - high  # noqa: E731
    model = concept if loss == "squared" else probabilities(concept, high)
    exact = oracles.exact_sage(concept, number, truth)
    data = [(x, concept(x)) for x in POINTS]
    n_samples = 12 if loss == "cross_entropy" else 2  # the correction is of the second order: exact for the others
    runs = [sage_of(model, loss, data, n_samples, seed).importance for seed in range(70)]
    one = oracles.one_draw_limit(concept, number, truth)
    # 27 rows: loss'' / 2 times the largest variance of a prediction, 1/4, over 26; cross-entropy is steeper.
    slack = {"squared": 0.01, "brier": 0.02, "cross_entropy": 0.02}[loss]
    for name in FEATURES:
        mean, error = mean_and_error([run[name] for run in runs])
        assert abs(mean - unit * exact[name]) < 4 * error + slack
    wrong = max(abs(one[name] - exact[name]) * unit for name in FEATURES)
    assert wrong > 1.5 * slack  # that of one draw would be seen


@settings(max_examples=60)
@given(
    data=ROWS,
    weights=st.fixed_dictionaries(dict.fromkeys("abc", VALUES)),
    n_samples=st.sampled_from([1, 2, 3, 4, 20]),
    grouped=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_sage_sums_to_the_improvement(data, weights, n_samples, grouped, seed):
    model = Linear(weights)
    found = sage_of(model, "squared", data, n_samples, seed, {"ab": ["a", "b"]} if grouped else None)
    mean = math.fsum(model(x) for x, _ in data) / len(data)
    improvement = math.fsum((y - mean) ** 2 - (y - model(x)) ** 2 for x, y in data) / len(data)
    scale = max(1.0, *((abs(y) + sum(map(abs, weights.values())) * 10.0) ** 2 for _, y in data))
    assert abs(sum(found.importance.values()) - improvement) < 1e-12 * scale
    assert found.loss == pytest.approx(math.fsum((y - model(x)) ** 2 for x, y in data) / len(data), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n_samples", [1, 2, 3, 50])
@pytest.mark.parametrize("loss", ["zero_one", "brier", "cross_entropy"])
def test_sage_of_classes_sums_to_the_improvement(loss, n_samples):
    data = [(x, medium_or_large(x)) for x in POINTS] + [(POINTS[0], 1)]
    table = DataTable(probabilities(small_and_red, 0.9), data, loss, None)
    mean = {1: np.mean([0.9 if small_and_red(x) else 0.1 for x, _ in data])}
    mean[0] = 1.0 - mean[1]
    if loss == "zero_one":
        mean = {0: 1.0, 1: 0.0}
    improvement = np.mean([table.loss(y, mean) - table.loss(y, table.function(x)) for x, y in data])
    for seed in range(5):
        importance = sage_of(probabilities(small_and_red, 0.9), loss, data, n_samples, seed).importance
        assert abs(sum(importance.values()) - improvement) < 1e-12


# Both


@pytest.mark.parametrize("take", [pfi_contributions, sage_contributions])
def test_equal_models_differ_by_exactly_nothing(take):
    data = rows(20, 6)
    one, same = take(tables(data, ONE, Linear(dict(ONE.weights))), 3, np.random.default_rng(2))
    nothing = same.minus(one)
    assert set(nothing.importance.values()) == set(nothing.std_error.values()) == {0.0}
    assert nothing.loss == 0.0


@pytest.mark.parametrize("take", [pfi_contributions, sage_contributions])
def test_models_are_given_the_same_rows(take):
    data, seen = rows(6, 6), ([], [])

    def recording(of):
        return lambda x: of.append(tuple(sorted(x.items()))) or 0.0

    before = [(dict(x), y) for x, y in data]
    take(tables(data, *map(recording, seen)), 2, np.random.default_rng(2))
    assert seen[0] == seen[1] != []
    assert data == before


@pytest.mark.parametrize("take", [pfi_contributions, sage_contributions])
def test_minus_is_the_difference_of_the_importances(take):
    one, other = take(tables(rows(20, 6), ONE, OTHER), 4, np.random.default_rng(2))
    difference = one.minus(other)
    for name in one.names:
        assert difference.importance[name] == pytest.approx(one.importance[name] - other.importance[name], abs=1e-12)
    assert difference.loss == pytest.approx(one.loss - other.loss)
    np.testing.assert_allclose(difference.parts.mean(axis=2), difference.own, rtol=0, atol=1e-12)


@pytest.mark.parametrize("take", [pfi_contributions, sage_contributions])
def test_a_model_without_a_prediction_and_an_infinite_loss_are_refused(take):
    data = rows(6, 6)
    with pytest.raises(NoPredictionError, match="no prediction for some rows"):
        take(tables(data, lambda x: math.nan), 2, np.random.default_rng(2))
    with pytest.raises(InvalidParameterError, match="finite"):
        take(tables(data, lambda x: 1e200), 2, np.random.default_rng(2))


@pytest.mark.parametrize("take", [pfi_contributions, sage_contributions])
def test_data_without_features_has_no_importances(take):
    (found,) = take(tables([({}, 1.0)] * 4, lambda x: 0.5), 2, np.random.default_rng(2))
    assert (found.importance, found.std_error, found.loss) == ({}, {}, 0.25)
