"""Batch PFI against its definition: Definition 2, Theorem 1 and Definition 3 by enumeration."""

import math
from fractions import Fraction

import numpy as np
import pytest
from river import naive_bayes

from attributary_explainers import InvalidParameterError, ModelError, batch_pfi
from tests.explainers.oracles import exact_pfi, mean_and_error, medium_or_large, small_and_red, stagger_stream
from tests.explainers.stand_ins import Linear

DATA = [({"a": a, "b": b}, y) for a, b, y in [(0, 0, 1), (0, 1, 0), (1, 2, 3), (2, 0, -1), (1, 1, 2), (3, 1, 0)]]
MODEL = Linear({"a": 1, "b": -2})


def growth(i, j, feature):
    """Growth of the squared loss when observation i takes the feature from j."""
    (x, y), z = DATA[i], DATA[j][0]
    return Fraction(int((y - MODEL({**x, feature: z[feature]})) ** 2 - (y - MODEL(x)) ** 2))


def expected_pfi(feature):
    """Definition 3: the mean over all pairs n != m."""
    n = len(DATA)
    return sum(growth(i, j, feature) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))


def test_the_mean_over_permutations_is_expected_pfi():
    runs = [batch_pfi(MODEL, DATA, loss="squared", seed=seed) for seed in range(8000)]
    for feature in "ab":
        mean, error = mean_and_error([run.importance[feature] for run in runs])
        assert abs(mean - float(expected_pfi(feature))) < 4 * error
        # Without the factor N / (N - 1) = 6/5 the mean would be far off.
        assert abs(mean * 5 / 6 - float(expected_pfi(feature))) > 4 * error


def test_many_permutations_are_their_mean():
    # 20 000 permutations of six: the spread of one is below the largest growth, 4 * 6^2; their mean is known to 1.0.
    many = batch_pfi(MODEL, DATA, loss="squared", n_permutations=20_000, seed=1)
    singles = [batch_pfi(MODEL, DATA, loss="squared", seed=seed).importance["a"] for seed in range(300)]
    spread = float(np.std(singles, ddof=1)) / math.sqrt(20_000)
    assert abs(many.importance["a"] - float(expected_pfi("a"))) < 4 * spread


@pytest.mark.parametrize("n_permutations", [1, 3])
def test_equal_to_the_definition_on_the_same_permutations(n_permutations):
    seed, n = 7, len(DATA)
    batch = batch_pfi(MODEL, DATA, loss="squared", n_permutations=n_permutations, seed=seed)
    rng = np.random.default_rng(seed)
    for feature in "ab":
        orders = [rng.permutation(n).tolist() for _ in range(n_permutations)]
        total = sum(growth(i, order[i], feature) for order in orders for i in range(n))
        expected = Fraction(n, n - 1) * total / (n * n_permutations)
        assert batch.importance[feature] == pytest.approx(float(expected), rel=1e-12)
    assert batch.n_observations == n


@pytest.mark.parametrize("n_permutations", [1, 4])
def test_the_standard_error_is_the_documented_one(n_permutations):
    # Var(A + B) - Var(growth) / P, over N: A and B the mean growth of an observation replaced and replaced from.
    concept, seed = medium_or_large, 8
    data = stagger_stream(concept, 400, seed)
    n = len(data)
    batch = batch_pfi(concept, data, loss="zero_one", n_permutations=n_permutations, seed=seed)
    rng = np.random.default_rng(seed)
    for feature in ("size", "color"):
        grown = np.zeros((n_permutations, n))
        donated = np.zeros((n_permutations, n))
        for p in range(n_permutations):
            for i, j in enumerate(rng.permutation(n).tolist()):
                (x, y), z = data[i], data[j][0]
                grown[p, i] = (concept({**x, feature: z[feature]}) != y) - (concept(x) != y)
                donated[p, j] = grown[p, i]
        variance = (grown.mean(axis=0) + donated.mean(axis=0)).var() - grown.var() / n_permutations
        # 2/N: the text leaves open whether variances are divided by N or N - 1, and whether N / (N - 1) is in.
        assert batch.std_error[feature] == pytest.approx(math.sqrt(variance / n), rel=2 / n)


@pytest.mark.parametrize("concept", [small_and_red, medium_or_large])
def test_the_true_concept_gives_the_exact_values(concept):
    runs = [batch_pfi(concept, stagger_stream(concept, 300, seed), loss="zero_one", seed=seed) for seed in range(30)]
    for feature, exact in exact_pfi(concept).items():
        values = [run.importance[feature] for run in runs]
        if exact == 0:
            assert set(values) == {0.0}
            assert {run.std_error[feature] for run in runs} == {0.0}
        else:
            mean, error = mean_and_error(values)
            assert abs(mean - float(exact)) < 4 * error
            assert error < 0.01


@pytest.mark.parametrize("n_permutations", [1, 10])
def test_the_standard_error_is_the_spread_between_data_sets(n_permutations):
    values, errors = [], []
    for seed in range(150):
        data = stagger_stream(medium_or_large, 100, 1000 + seed)
        batch = batch_pfi(medium_or_large, data, loss="zero_one", n_permutations=n_permutations, seed=seed)
        values.append(batch.importance["size"])
        errors.append(batch.std_error["size"])
    # The spread of 150 runs is known to 6 %: three of those, and 10 % for what a permutation shares.
    assert 0.72 < np.mean(errors) / np.std(values, ddof=1) < 1.28


def test_equal_seeds_give_equal_values_and_the_data_is_left_alone():
    before = [(dict(x), y) for x, y in DATA]
    one, two = (batch_pfi(MODEL, DATA, loss="squared", seed=3) for _ in range(2))
    other = batch_pfi(MODEL, DATA, loss="squared", seed=4)
    assert one == two
    assert one != other
    assert before == DATA


def test_a_feature_that_some_rows_lack_moves_as_an_observed_absence():
    seen = []
    data = [({"a": 1.0, "b": 2.0}, 0.0), ({"a": 1.0}, 0.0)]
    batch = batch_pfi(lambda x: seen.append(dict(x)) or 0.0, data, loss="squared", n_permutations=20, seed=5)
    assert set(batch.importance) == {"a", "b"}
    having, lacking = {"a": 1.0, "b": 2.0}, {"a": 1.0}
    pairs = list(zip(seen[::2], seen[1::2], strict=True))
    assert len(pairs) == 1 + 2 * 20
    assert all(sorted(pair, key=len) == [lacking, having] for pair in pairs)  # b has moved, not spread
    assert (lacking, having) in pairs


@pytest.mark.parametrize("data", [[], [({"a": 1.0}, 0.0)]])
def test_fewer_than_two_observations_are_refused(data):
    with pytest.raises(InvalidParameterError, match=r"^data must be at least two observations, got "):
        batch_pfi(MODEL, data, loss="squared")


@pytest.mark.parametrize("n_permutations", [0, -1, 1.5, True])
def test_a_number_of_permutations_below_one_is_refused(n_permutations):
    with pytest.raises(InvalidParameterError, match=r"^n_permutations must be an integer >= 1"):
        batch_pfi(MODEL, DATA, loss="squared", n_permutations=n_permutations)


def test_a_model_without_prediction_is_refused_with_advice():
    with pytest.raises(ModelError, match="let it learn first"):
        batch_pfi(naive_bayes.GaussianNB(), DATA, loss="zero_one")
    with pytest.raises(ModelError, match="no prediction"):
        batch_pfi(lambda x: math.nan, DATA, loss="squared")


def test_an_importance_is_never_nan():
    # A usable prediction and a target that is not: refuse it, as a prediction that is not usable is refused.
    with pytest.raises((ModelError, InvalidParameterError)):
        batch_pfi(MODEL, [*DATA, ({"a": 1, "b": 1}, math.nan)], loss="squared")
