"""iSAGE where the values are known on paper: STAGGER with one draw and with many, and closed forms."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from attributary_explainers import GeometricReservoir, IncrementalSAGE
from tests.explainers.oracles import (
    FEATURES,
    draws_limit,
    exact_sage,
    log_loss,
    mean_and_error,
    medium_or_large,
    one_draw_limit,
    small_and_red,
    smoothing_weights,
    squared,
    stagger_stream,
)
from tests.explainers.stand_ins import Linear, fed

N_RUNS = 12
N_ERRORS = 4
"""Standard errors of the mean of 12 runs: a right mean is farther off once in 480 (Student, 11 degrees)."""


class Case(NamedTuple):
    concept: Callable
    loss: str

    @property
    def number(self):
        """The model as a number, for the oracles."""
        return self.concept if self.loss == "squared" else lambda x: 0.95 if self.concept(x) else 0.05

    @property
    def model(self):
        number = self.number
        return number if self.loss == "squared" else lambda x: {1: number(x), 0: 1.0 - number(x)}

    def limit(self, oracle, **parameters):
        """Values by an oracle."""
        loss = {"squared": squared, "cross_entropy": log_loss}[self.loss]
        return oracle(self.concept, self.number, loss, **parameters)


CASES = [Case(concept, loss) for concept in (small_and_red, medium_or_large) for loss in ("squared", "cross_entropy")]
of_cases = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.concept.__name__}-{case.loss}")

PAPER = {"sampling": "independent", "bias_correction": False}
"""The paper's estimator, whose limits at few draws are known."""


def mean_and_error_of_runs(case, *, n, size, **parameters):
    runs = []
    for seed in range(N_RUNS):
        reservoir = GeometricReservoir(size)
        sage = IncrementalSAGE(case.model, loss=case.loss, reservoir=reservoir, seed=seed, **parameters)
        runs.append(fed(sage, stagger_stream(case.concept, n, seed)).importance)
    return {feature: mean_and_error([run[feature] for run in runs]) for feature in FEATURES}


@of_cases
def test_one_draw_tends_to_its_own_limit(case):
    alpha, far = 0.004, 0
    runs = mean_and_error_of_runs(case, n=700, alpha=alpha, n_samples=1, size=100, **PAPER)
    limit, exact = case.limit(one_draw_limit), case.limit(exact_sage)
    for feature, (mean, error) in runs.items():
        # The smoothed mean prediction holds the share alpha of the observation itself and has the variance
        # alpha / 2 of the prediction: both shift the loss by less than alpha here.
        assert abs(mean - limit[feature]) < N_ERRORS * error + alpha
        far += abs(mean - exact[feature]) > N_ERRORS * error + alpha
    assert far > 0  # the run is long enough to tell the limit from the SAGE values


@pytest.mark.long
@of_cases
def test_sixty_draws_of_the_papers_tend_to_the_sage_values(case):
    alpha, n, size, m = 0.012, 350, 60, 60
    runs = mean_and_error_of_runs(case, n=n, alpha=alpha, n_samples=m, size=size, **PAPER)
    exact, limit = case.limit(exact_sage), case.limit(one_draw_limit)
    # What sixty draws leave of the bias, exactly: observation t draws from min(t - 1, size) rows; the first has none.
    weights, n_rows = smoothing_weights(alpha, n - 1), dict.fromkeys(range(1, size + 1), 0.0)
    for t, weight in enumerate(weights.tolist(), start=2):
        n_rows[min(t - 1, size)] += weight
    expected = case.limit(draws_limit, n_draws=m, n_rows=n_rows)
    for feature, (mean, error) in runs.items():
        assert abs(mean - expected[feature]) < N_ERRORS * error + alpha  # alpha: as above
        bias = abs(expected[feature] - exact[feature])
        assert abs(mean - exact[feature]) < N_ERRORS * error + alpha + bias
        if abs(limit[feature] - exact[feature]) > 0.05:
            assert abs(mean - limit[feature]) > abs(mean - exact[feature])
            assert bias < 0.1 * abs(limit[feature] - exact[feature])


@pytest.mark.parametrize("n_samples", [2, pytest.param(10, marks=pytest.mark.long)])
@of_cases
def test_few_draws_tend_to_the_sage_values(case, n_samples):
    # The default. Under the squared loss nothing is left of the bias of few draws; under cross-entropy, where the
    # correction is of the first order, half of the paper's at two draws and less than a fifth at ten.
    alpha, size, is_squared = 0.006, 100, case.loss == "squared"
    runs = mean_and_error_of_runs(case, n=500, alpha=alpha, n_samples=n_samples, size=size)
    exact, papers = case.limit(exact_sage), case.limit(draws_limit, n_draws=n_samples, n_rows={size: 1.0})
    left = 0.0 if is_squared else {2: 0.5, 10: 0.2}[n_samples]
    for feature, (mean, error) in runs.items():
        bias = abs(papers[feature] - exact[feature])
        assert abs(mean - exact[feature]) < N_ERRORS * error + alpha + left * bias  # alpha: as above
        assert error < (0.012 if is_squared else 0.025)


@pytest.mark.parametrize("paper", [True, False])
def test_squared_loss_of_a_linear_model_gives_each_feature_its_variance(paper):
    # y = h(x) and independent features: v(S) = variance of what is not in S, so the values are w_j^2 Var(x_j).
    weights = {"a": 1.0, "b": 2.0, "c": 0.0}
    m, size, runs = 20, 100, []
    for seed in range(2 * N_RUNS):
        rng = np.random.default_rng([seed, 8])
        model = Linear(weights, intercept=1000.0)
        how = {**PAPER, "reservoir": GeometricReservoir(size)} if paper else {}
        sage = IncrementalSAGE(model, loss="squared", alpha=0.008, n_samples=m, seed=seed, **how)
        for row in rng.normal(size=(500, 3)).tolist():
            x = dict(zip("abc", row, strict=True))
            sage.explain_one(x, model(x))
        runs.append(sage)
    # Of a mean of m draws out of L rows the variance is 1/m + (1 - 1/m)/L of the model's. It is added to v(S) of every
    # coalition but the empty and the full: by Shapley, feature j gains share * (w_j^2 - mean of the w^2) on average.
    # The default takes all that out.
    share = 1 / m + (1 - 1 / m) / size if paper else 0.0
    total = 1.0 + 4.0
    for name, weight in weights.items():
        bias = share * (weight**2 - total / 3)
        mean, error = mean_and_error([run.importance[name] for run in runs])
        # The first 100 observations have fewer rows; they weigh at most e^-3.5 = 0.03 and add at most that of it.
        assert abs(mean - weight**2 - bias) < N_ERRORS * error + 0.005 * total + 0.03
        assert error < 0.1
    for run in runs:
        assert run.model_loss == 0.0


@pytest.mark.long
@pytest.mark.parametrize("n_samples", [1, 10])
def test_the_standard_error_is_of_the_size_of_the_spread_between_runs(n_samples):
    values, errors = [], []
    for seed in range(100):
        sage = IncrementalSAGE(medium_or_large, loss="squared", alpha=0.01, n_samples=n_samples, seed=seed)
        fed(sage, stagger_stream(medium_or_large, 350, 900 + seed))
        values.append(sage.importance["size"])
        errors.append(sage.std_error["size"])
    # The spread of 100 runs is known to 7 %. In so short a stream the error is a fifth too large, over 200 runs. What
    # one draw alone does to a loss is not known, so that the rows that increments share are left out of account there:
    # a tenth of the standard error.
    assert (0.7 if n_samples > 1 else 0.6) < np.mean(errors) / np.std(values, ddof=1) < 1.3
