"""Standard errors that know of shared rows: the two sums written out, and processes whose variance is known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers import RESERVOIR_NAMES, SmoothedImportance, make_reservoir
from attributary_explainers.smoothing.influence import RowInfluence
from attributary_explainers.smoothing.kernels import smooth
from tests.explainers.naive import influence_variance
from tests.explainers.oracles import smoothing_weights


class Written:
    """A history of increments with their draws, and what the docstring of `RowInfluence` makes of it at any time."""

    def __init__(self, alpha):
        self.alpha, self.values, self.draws = alpha, [], []

    def variance(self, name):
        values = [values.get(name, 0.0) for values in self.values]
        return influence_variance(self.alpha, values, [(t, of.get(name)) for t, of in enumerate(self.draws)])


@settings(max_examples=60)
@given(
    alpha=st.floats(0.01, 1.0),
    kind=st.sampled_from(RESERVOIR_NAMES),
    size=st.integers(1, 5),
    n_draws=st.integers(1, 4),
    n=st.integers(1, 18),
    shared=st.booleans(),
    known=st.sampled_from(["always", "now and then", "never"]),
    seed=st.integers(0, 2**32),
)
def test_at_every_prefix_it_is_the_double_sum_over_the_whole_history(
    alpha, kind, size, n_draws, n, shared, known, seed
):
    rng, reservoir = np.random.default_rng(seed), make_reservoir(kind, size)
    smoothed, written = SmoothedImportance(alpha, size), Written(alpha)
    influence = smoothed.influence
    reservoir.update({"t": -1}, rng)  # an observation that was stored but not explained has no influence of its own
    smoothed.stored(0)
    for t in range(n):
        # "late" comes in the middle, and any feature but "a" may be absent.
        names = ["a", *(name for name in ("b", "late") if rng.random() < 0.7 and (name == "b" or t > n // 2))]
        parts = rng.normal(2.0, 1.0, size=(len(names), n_draws))
        slots = rng.integers(len(reservoir), size=n_draws if shared else (len(names), n_draws))
        has_slots = known == "always" or (known == "now and then" and rng.random() < 0.5)
        smoothed.update(dict(zip(names, parts.mean(axis=1).tolist(), strict=True)), parts, slots if has_slots else None)
        sources = np.broadcast_to([reservoir.rows[slot]["t"] for slot in slots.ravel()], (1, slots.size))
        sources = np.broadcast_to(sources.reshape(-1, n_draws), (len(names), n_draws)).tolist()
        written.values.append(dict(zip(names, parts.mean(axis=1).tolist(), strict=True)))
        written.draws.append(
            {name: list(zip(sources[i], parts[i].tolist(), strict=True)) for i, name in enumerate(names)}
            if has_slots
            else {}
        )
        # Before the observation is stored, after it, and whether or not it is.
        expected = [written.variance(name) for name in smoothed.mean()]
        # 1e-10: sums of squares of at most 9, of which a part cancels.
        assert influence.variance().tolist() == pytest.approx(expected, rel=1e-9, abs=1e-10)
        smoothed.stored(reservoir.update({"t": t}, rng))
        assert influence.variance().tolist() == pytest.approx(expected, rel=1e-9, abs=1e-10)
        if t:
            check_larger_of_the_two(smoothed, written)


def check_larger_of_the_two(smoothed, written):
    weights = smoothing_weights(written.alpha, len(written.values))
    q = float(weights @ weights)
    for name, error in smoothed.std_error().items():
        values = np.array([of.get(name, 0.0) for of in written.values])
        if q > 1.0 - 1e-6:
            continue  # a single value counts: its spread is divided by a rounding
        alone = float(weights @ (values - weights @ values) ** 2) * q / (1.0 - q)
        assert error**2 == pytest.approx(max(alone * 2.0 / 3.0, written.variance(name)), rel=1e-6, abs=1e-7)


def add(influence, rate, deviations, parts, slots):
    """Add one observation's deviations from a mean of 0, one for each feature; `parts` and `slots` are of its draws."""
    slots = np.ascontiguousarray(slots if slots.ndim == 2 else slots[None])
    columns, moments = np.arange(influence.width), np.zeros((3, influence.width))
    smooth(rate, columns, deviations, parts, slots, 2, influence.width, moments, influence.table)


def test_a_forgotten_feature_leaves_the_influence_of_the_others():
    rng = np.random.default_rng(1)
    three, two = RowInfluence(4), RowInfluence(4)
    three.grow(3)
    two.grow(2)
    for t in range(30):
        deviations, parts, slots = rng.normal(size=3), rng.normal(size=(3, 2)), rng.integers(4, size=(3, 2))
        rate = 1.0 / (t + 1)
        if t < 20:
            add(three, rate, deviations, parts, slots)
        else:
            add(three, rate, deviations[[2, 0]], parts[[2, 0]], slots[[2, 0]])
        add(two, rate, deviations[[2, 0]], parts[[2, 0]], slots[[2, 0]])
        if t == 19:
            three.select(np.array([2, 0]))  # in the middle of an observation, as `SmoothedImportance` forgets
        three.stored(t % 4)
        two.stored(t % 4)
        if t >= 19:
            assert three.variance().tolist() == two.variance().tolist()
    assert (two.variance() > 0).all()


@pytest.mark.parametrize("kind", RESERVOIR_NAMES)
def test_a_restored_influence_goes_on_bit_for_bit(kind):
    rng, reservoir, influence = np.random.default_rng(2), make_reservoir(kind, 3), RowInfluence(3)
    influence.grow(2)
    reservoir.update({}, rng)
    for t in range(1, 40):
        if t == 20:
            influence = RowInfluence.from_snapshot(snapshot := influence.snapshot())
            twin = RowInfluence.from_snapshot(snapshot)
        step = (0.1, rng.normal(size=2), rng.normal(size=(2, 3)), rng.integers(len(reservoir), size=3))
        slot = reservoir.update({}, rng)
        add(influence, *step)
        influence.stored(slot)
        if t == 25:
            before = twin.variance().tolist()
            assert before != influence.variance().tolist()  # two that were restored share nothing
    assert RowInfluence.from_snapshot(snapshot).variance().tolist() == before
    assert RowInfluence.from_snapshot(influence.snapshot()).variance().tolist() == influence.variance().tolist()


N_RUNS = 3000
CORRELATED = np.array([[1.0, 0.6], [0.6, 0.8]])
"""Variances of a and b and what they have in common: an observation explained well may be a bad replacement."""


def positions(how, n_rows, n_draws, rng):
    """Slots of each run's draws, shape (N_RUNS, n_draws)."""
    if how == "independent":
        return rng.integers(n_rows, size=(N_RUNS, n_draws))
    return rng.permuted(np.tile(np.arange(n_rows), (N_RUNS, 1)), axis=1)[:, :n_draws]


@pytest.mark.parametrize("kind", RESERVOIR_NAMES)
@pytest.mark.parametrize(
    ("how", "size", "n_draws"), [("distinct", 8, 4), ("distinct", 5, 1), ("independent", 40, 2), ("independent", 4, 6)]
)
@pytest.mark.parametrize("alpha", [0.03, 0.3])
def test_the_expectation_is_the_true_variance_of_a_linear_process(kind, how, size, n_draws, alpha):
    """lambda_t = a(x_t) + mean over draws of [b(z) + e], of which phi is the weighted mean: its variance is known.

    Every column is a run of its own: of all of them the same slot is replaced at a time, but they draw for themselves.
    """
    rng, n, e_deviation = np.random.default_rng([3, size, n_draws]), 60, 0.7
    reservoir, influence = make_reservoir(kind, size), RowInfluence(size)
    influence.grow(N_RUNS)
    columns = np.arange(N_RUNS)
    # The first observations fill the reservoir: draws come from a full one.
    a, b = np.moveaxis(rng.multivariate_normal([0.0, 0.0], CORRELATED, size=(n + size, N_RUNS)), 2, 0)
    for t in range(size):
        influence.stored(reservoir.update({"t": t}, rng))
    weights = smoothing_weights(alpha, n)
    weight_as_source = np.zeros((n + size, N_RUNS))
    for t in range(size, n + size):
        slots = positions(how, size, n_draws, rng)
        sources = np.array([row["t"] for row in reservoir.rows])[slots]
        e = rng.normal(0.0, e_deviation, size=(N_RUNS, n_draws))
        parts = a[t][:, None] + b[sources, columns[:, None]] + e
        rate = float(smoothing_weights(alpha, t - size + 1)[-1])
        add(influence, rate, parts.mean(axis=1), parts, slots)
        np.add.at(weight_as_source, (sources, columns[:, None]), weights[t - size] / n_draws)
        influence.stored(reservoir.update({"t": t}, rng))
    own = np.concatenate([np.zeros(size), weights])[:, None]
    (aa, ab), (_, bb) = CORRELATED
    # Of observation i, phi holds own_i a_i + source_i b_i; of the rest, the weights squared over the draws.
    true = (own**2 * aa + 2 * own * weight_as_source * ab + weight_as_source**2 * bb).sum(axis=0)
    true += float(weights @ weights) * e_deviation**2 / n_draws
    difference = influence.variance() - true
    error = float(difference.std(ddof=1)) / math.sqrt(N_RUNS)
    assert error < 0.03 * true.mean()  # so that 10 % would be seen
    assert abs(difference.mean()) < 4 * error
