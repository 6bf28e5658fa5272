"""Changes in importance between forests: exact differences, with standard errors that hold over data sets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from attributary_explainers import SklearnModel
from attributary_explainers.batch.contributions import pfi_steps, sage_steps
from attributary_explainers.batch.slices import finish
from attributary_explainers.batch.tables import DataTable
from attributary_explainers.change.measure import Measure
from attributary_explainers.losses.losses import as_loss

NAMES = ["a", "b", "c"]
STEPS = {"pfi": pfi_steps, "sage": sage_steps}


def data(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.2 * rng.normal(size=n)


def forest(seed):
    X, y = data(1000 + seed, 150)
    return SklearnModel(RandomForestRegressor(3, max_depth=4, random_state=seed).fit(X, y), features=NAMES)


ONE, OTHER = forest(1), forest(2)


def tables(seed, n, *models):
    X, y = data(seed, n)
    pairs = [(dict(zip(NAMES, row, strict=True)), t) for row, t in zip(X.tolist(), y.tolist(), strict=True)]
    return [DataTable(model, pairs, "squared", None) for model in models]


@pytest.mark.long
@pytest.mark.parametrize("method", STEPS)
def test_the_standard_errors_are_the_spread_between_data_sets(method):
    taken = [
        finish(STEPS[method](tables(seed, 40, ONE, OTHER), 2, np.random.default_rng(1), most_ns=1e9))
        for seed in range(120)
    ]
    assert all(of.drawn is not None for pair in taken for of in pair)
    for found in ([a for a, _ in taken], [b.minus(a) for a, b in taken]):
        for name in NAMES:
            spread = np.std([of.importance[name] for of in found], ddof=1)
            errors = np.sqrt(np.mean([of.std_error[name] ** 2 for of in found]))
            # The spread of 120 runs is known to 6.5 %, heavier tails apart.
            assert 0.72 < errors / spread < 1.28, (method, name)


@pytest.mark.parametrize("method", STEPS)
def test_what_is_exact_is_what_draws_are_around(method):
    (exact,) = finish(STEPS[method](tables(7, 60, ONE), 1, np.random.default_rng(1), most_ns=1e9))
    runs = [finish(STEPS[method](tables(7, 60, ONE), 4, np.random.default_rng(seed)))[0] for seed in range(40)]
    for name in NAMES:
        values = [run.importance[name] for run in runs]
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        slack = 0.0 if method == "pfi" else exact.loss / 60  # SAGE: that the data are a sample is corrected for
        assert abs(np.mean(values) - exact.importance[name]) < 4 * error + slack
    assert exact.loss == pytest.approx(runs[0].loss)


@pytest.mark.parametrize("method", STEPS)
def test_no_exact_value_of_one_model_is_compared_with_a_sampled_one(method):
    one, other = finish(STEPS[method](tables(3, 20, ONE, lambda x: x["a"]), 2, np.random.default_rng(1), most_ns=1e9))
    assert one.drawn is None is other.drawn
    assert one.parts is not None


@pytest.mark.parametrize("before", [False, True])
def test_a_change_between_forests_does_not_depend_on_the_seed(before):
    measure = Measure(("pfi", "sage"), as_loss("squared"), {}, 1, 4)
    pairs, earlier = (list(zip(t.xs, t.ys, strict=True)) for t in tables(5, 50, ONE, OTHER))
    then = earlier if before else None
    found = [finish(measure.compare_steps(ONE, OTHER, pairs, seed, before=then)) for seed in (1, 2)]
    assert found[0] == found[1]
    assert set(found[0]) == {"pfi", "sage"}
