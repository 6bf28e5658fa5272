"""Batch PFI: exact values on STAGGER, its standard error between data sets, and features that some rows lack."""

import numpy as np
import pytest

from attributary_explainers import batch_pfi
from tests.explainers.oracles import exact_pfi, mean_and_error, medium_or_large, small_and_red, stagger_stream


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
