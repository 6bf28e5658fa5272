"""The bias of few draws, by enumerating every set of draws; and the influence of a single draw on a loss."""

import math
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers import LOSS_NAMES, Loss, as_loss
from attributary_explainers.incremental.coalitions import walk_of
from attributary_explainers.predictions import GivenPredictions

NUMBERS = [(-1.0, 0.5), (0.25, 0.3), (4.0, 0.2)]
"""Predictions of one coalition as its rows vary, with their probabilities."""
PROBABILITIES = [({"a": 0.1, "b": 0.9}, 0.5), ({"a": 0.7, "b": 0.1, "c": 0.2}, 0.3), ({"c": 1.0}, 0.2)]
"""One of them names no "a" at all: it is 0 there."""
CASES = [("squared", 1.5, NUMBERS), ("brier", "a", PROBABILITIES), ("brier", "never predicted", PROBABILITIES)]


class Found(NamedTuple):
    """Per coalition its loss, that less the bias, and by draw the influence on it."""

    plain: np.ndarray
    losses: np.ndarray
    influence: np.ndarray


def coalition_losses(loss, y, predictions, n, variance_of_rows):
    """Losses of coalitions with `n` of the predictions each, as the second player's part of a walk through each."""
    plain, losses, influence = [], [], []
    for i in range(0, len(predictions), n):
        given = GivenPredictions([predictions[i], *predictions[i : i + n]])
        walks = [
            walk_of(loss, y, given, np.array([[0, 1]]), n, of_rows, 0.0, 0.0) for of_rows in (None, variance_of_rows)
        ]
        if isinstance(walks[1], str):
            return None if walks[1] == "no_prediction" else walks[1]
        plain.append(walks[0].increments[1])
        losses.append(walks[1].increments[1])
        influence.append(walks[1].parts[1] - losses[-1])
    return Found(np.array(plain), np.array(losses), np.array(influence))


def mean_of(weighted):
    """Mean of numbers or dicts of probabilities, from pairs (prediction, weight)."""
    if not isinstance(weighted[0][0], dict):
        return math.fsum(p * w for p, w in weighted)
    return {c: math.fsum(p.get(c, 0.0) * w for p, w in weighted) for c in "abc"}


def independent(n_rows, n_draws):
    """Every sequence of rows, all equally likely."""
    return [(rows, 1.0 / n_rows**n_draws) for rows in product(range(n_rows), repeat=n_draws)]


def one_of_each_part(n_rows, n_parts):
    """Every sequence of one row from each of equal parts, by how much of the part lies in each row."""
    shares = [
        [
            (
                row,
                max(0.0, min(row + 1, (k + 1) * n_rows / n_parts) - max(row, k * n_rows / n_parts)) * n_parts / n_rows,
            )
            for row in range(n_rows)
        ]
        for k in range(n_parts)
    ]
    chosen = product(*([(row, w) for row, w in of_part if w > 0] for of_part in shares))
    return [(tuple(row for row, _ in one), math.prod(w for _, w in one)) for one in chosen]


def stratified(n_rows, n_draws):
    """Every combination of independent stratified sets: two halves, and a draw on its own where their number is odd."""
    sizes = [size for size in (n_draws // 2, n_draws // 2, n_draws % 2) if size]
    combined = product(*(one_of_each_part(n_rows, size) for size in sizes))
    return [(sum((rows for rows, _ in sets), ()), math.prod(weight for _, weight in sets)) for sets in combined]


def expected_losses(loss, y, rows, draws, variance_of_rows):
    """Expectation of the loss over the draws, as it is and less its bias."""
    n = len(draws[0][0])
    predictions = [rows[slot] for slots, _ in draws for slot in slots]
    # Each set of draws as a coalition of its own: all in one call.
    found = coalition_losses(as_loss(loss), y, predictions, n, variance_of_rows)
    weights = [weight for _, weight in draws]
    assert math.fsum(weights) == pytest.approx(1.0, abs=1e-12)
    return tuple(
        math.fsum(w * value for w, value in zip(weights, values, strict=True)) for values in (found.plain, found.losses)
    )


@pytest.mark.parametrize("how", [independent, stratified])
@pytest.mark.parametrize(("n_rows", "n_draws"), [(1, 2), (3, 2), (3, 3), (3, 4), (3, 5), (5, 4), (2, 6)])
@pytest.mark.parametrize(("loss", "y", "population"), CASES)
def test_over_all_draws_from_given_rows_the_bias_is_gone_exactly(loss, y, population, n_rows, n_draws, how):
    rows = [population[i % 3][0] for i in range(n_rows)]
    rows.sort(key=repr)  # any order of the rows will do
    limit = as_loss(loss)(y, mean_of([(row, 1.0 / n_rows) for row in rows]))
    plain, corrected = expected_losses(loss, y, rows, how(n_rows, n_draws), 0.0)
    assert corrected == pytest.approx(limit, abs=1e-12)
    if n_rows > 1:
        assert plain > limit + 0.01


@pytest.mark.parametrize("how", [independent, stratified])
@pytest.mark.parametrize(("n_rows", "n_draws"), [(2, 2), (2, 3), (3, 2), (3, 4), (4, 2), (4, 3)])
@pytest.mark.parametrize(("loss", "y", "population"), CASES)
def test_over_all_samples_of_rows_the_bias_is_gone_exactly(loss, y, population, n_rows, n_draws, how):
    # The rows themselves are a sample: multisets with their multinomial probability, in a fixed order, as sorted rows.
    limit = as_loss(loss)(y, mean_of(population))
    terms, uncorrected, total = [], [], 0.0
    for sample in combinations_with_replacement(range(3), n_rows):
        counts = [sample.count(i) for i in range(3)]
        ways = math.factorial(n_rows) / math.prod(map(math.factorial, counts))
        probability = ways * math.prod(population[i][1] for i in sample)
        rows = [population[i][0] for i in sample]
        plain, corrected = expected_losses(loss, y, rows, how(n_rows, n_draws), 1.0 / n_rows)
        terms.append(probability * corrected)
        uncorrected.append(probability * plain)
        total += probability
    assert total == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(uncorrected) > limit + 0.01
    assert math.fsum(terms) == pytest.approx(limit, abs=1e-12)


def expected_cross_entropy(n_draws, low=0.2, high=0.8):
    """Of both halves of independent draws a binomial number gives `high`: expectation of plain and corrected loss."""
    half, totals = n_draws // 2, [0.0, 0.0]
    binomial = [math.comb(half, k) / 2.0**half for k in range(half + 1)]
    for i, j in product(range(half + 1), repeat=2):
        draws = [*[high] * i, *[low] * (half - i), *[high] * j, *[low] * (half - j)]
        predictions = [{1: p, 0: 1.0 - p} for p in draws]
        found = coalition_losses(as_loss("cross_entropy"), 1, predictions, n_draws, 0.0)
        totals[0] += binomial[i] * binomial[j] * found.plain[0]
        totals[1] += binomial[i] * binomial[j] * found.losses[0]
    return totals


def test_of_cross_entropy_a_bias_of_the_order_of_the_square_remains():
    limit = -math.log(0.5)
    plain, corrected = zip(*(expected_cross_entropy(n) for n in (16, 32, 64)), strict=True)
    for before, after in ((0, 1), (1, 2)):
        # Twice the draws: half the bias that the plain loss has, a quarter of that which remains.
        assert 1.9 < (plain[before] - limit) / (plain[after] - limit) < 2.2
        assert 3.5 < (corrected[before] - limit) / (corrected[after] - limit) < 4.5
    assert abs(corrected[0] - limit) < 0.2 * abs(plain[0] - limit)


@given(
    draws=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=7),
    n_rows=st.one_of(st.none(), st.integers(2, 100)),
    y=st.sampled_from([0, 1, "never predicted"]),
)
def test_the_correction_of_cross_entropy_is_at_most_one_half(draws, n_rows, y):
    # One improbable class among the draws is no reason to believe in any loss at all.
    predictions = [{1: p, 0: 1.0 - p} for p in draws]
    found = coalition_losses(
        as_loss("cross_entropy"), y, predictions, len(draws), 0.0 if n_rows is None else 1.0 / n_rows
    )
    correction = found.plain[0] - found.losses[0]
    assert 0.0 <= correction <= 0.5 + 1e-9


@pytest.mark.parametrize("epsilon", [1e-15, 0.01])
@pytest.mark.parametrize("p", [0.03, 0.5, 0.97])
def test_derivatives_of_losses_on_probabilities_are_finite_differences(p, epsilon):
    prediction = {"a": p, "b": 1.0 - p}
    for loss in (as_loss("cross_entropy", epsilon=epsilon), as_loss("brier")):
        for y, label in product(("a", "b", "c"), "ab"):
            step = 1e-4

            def at(value, y=y, label=label, loss=loss):
                return loss(y, {**prediction, label: value})

            check_derivatives(loss, y, label, prediction[label], at, step)


@pytest.mark.parametrize("name", ["squared", "absolute", "score"])
@pytest.mark.parametrize(("y", "p"), [(1.5, -2.0), (1.5, 3.0), (True, 0.25), (-1e3, 1.0)])
def test_derivatives_of_losses_on_numbers_are_finite_differences(name, y, p):
    loss = as_loss(name)
    check_derivatives(loss, y, None, p, lambda value: loss(y, value), 1e-2)


def check_derivatives(loss, y, label, p, at, step):
    found = loss.derivatives(y, label, np.array([p, p]))
    slope, curvature = ((at(p + step) - at(p - step)) / (2 * step), (at(p + step) - 2 * at(p) + at(p - step)) / step**2)
    if found is None:
        assert slope == curvature == 0.0  # said to be not read
        return
    # At p = 0.03 the logarithm's next terms are (step / p)^2 = 1e-5 of these.
    assert found[0].tolist() == pytest.approx([slope] * 2, rel=1e-4, abs=1e-8)
    assert found[1].tolist() == pytest.approx([curvature] * 2, rel=1e-3, abs=1e-6)


def test_which_losses_say_their_derivatives():
    assert {name for name in LOSS_NAMES if as_loss(name).derivatives is None} == {"zero_one", "expected_zero_one"}
    assert as_loss(lambda y, p: 0.0).derivatives is None


@pytest.mark.parametrize(
    ("loss", "predictions"),
    [
        ("zero_one", [{1: 1.0}, {0: 1.0}, {0: 1.0}, {1: 1.0}]),
        (lambda y, p: (y - p) ** 2, [1.0, 2.0, 5.0, -1.0]),
        (Loss("own", "number", lambda y, p: abs(y - p) ** 3), [1.0, 2.0, 5.0, -1.0]),
    ],
)
def test_losses_without_derivatives_are_left_as_they_are(loss, predictions):
    found = coalition_losses(as_loss(loss), 0, predictions, 2, 0.1)
    assert found.losses.tolist() == found.plain.tolist()
    assert found.influence.shape == (len(predictions) // 2, 0)


@pytest.mark.parametrize("name", ["absolute", "score"])
def test_losses_without_curvature_are_left_as_they_are_but_have_influences(name):
    found = coalition_losses(as_loss(name), 0.5, [1.0, 2.0, 5.0, -1.0], 4, 0.1)
    assert found.losses.tolist() == found.plain.tolist()
    assert found.influence.tolist() == [[-0.75, 0.25, 3.25, -2.75]]  # the mean is 1.75, the slope 1


def test_one_draw_says_nothing_of_its_bias():
    found = coalition_losses(as_loss("squared"), 0.0, [1.0, 2.0], 1, 0.1)
    assert (found.plain.tolist(), found.losses.tolist(), found.influence.shape) == ([1.0, 4.0], [1.0, 4.0], (2, 0))


def test_without_correction_the_losses_are_plain_and_the_influence_is_known():
    found = coalition_losses(as_loss("squared"), 0.0, [1.0, 3.0], 2, None)
    assert (found.plain.tolist(), found.losses.tolist()) == ([4.0], [4.0])
    assert found.influence.tolist() == [[-4.0, 4.0]]  # slope 4 at the mean 2, one below and one above


@given(
    values=st.lists(st.floats(0.05, 0.95), min_size=2, max_size=5),
    name=st.sampled_from(["cross_entropy", "brier", "squared"]),
    y=st.sampled_from([0, 1]),
)
def test_the_influence_of_a_draw_is_the_slope_of_the_loss_towards_it(values, name, y):
    loss, step, n = as_loss(name), 1e-5, len(values)
    as_prediction = (lambda p: p) if name == "squared" else (lambda p: {1: p, 0: 1.0 - p})
    # Two coalitions: the second has the draws in the opposite order.
    predictions = [as_prediction(p) for p in (*values, *reversed(values))]
    found = coalition_losses(loss, y, predictions, n, 0.0)
    mean = math.fsum(values) / n
    for k, value in enumerate(values):
        ahead, behind = (loss(y, as_prediction(mean + s * (value - mean))) for s in (step, -step))
        assert found.influence[0, k] == pytest.approx((ahead - behind) / (2 * step), rel=1e-4, abs=1e-6)
        assert found.influence[1, n - 1 - k] == pytest.approx(found.influence[0, k], rel=1e-9, abs=1e-12)
    assert found.influence.sum(axis=1).tolist() == pytest.approx([0.0, 0.0], abs=1e-9)


def test_a_missing_or_mixed_prediction_gives_nothing():
    loss = as_loss("squared")
    assert coalition_losses(loss, 0.0, [1.0, None], 2, 0.1) is None
    assert coalition_losses(loss, 0.0, [{1: 1.0}, 1.0], 2, 0.1) is None
    assert coalition_losses(loss, 0.0, [1.0, {1: 1.0}], 2, 0.1) is None


def test_what_overflows_is_infinite_and_raises_nothing():
    with np.errstate(all="raise"):
        found = coalition_losses(as_loss("squared"), 0.0, [1e200, -1e200, 1e200, 1.0], 4, 0.1)
    assert found == "not_finite"
