"""The bias of few draws, by enumerating every set of draws; the loss beside a mean; the influence of a single draw."""

import math
from dataclasses import replace
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers import Loss, as_loss
from attributary_explainers.incremental.sage import loss_of_noisy_mean, sage_increments_of
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


def coalition_losses(loss, y, predictions, n):
    """Losses of coalitions with `n` of the predictions each, as the second player's part of a walk through each."""
    plain, losses, influence = [], [], []
    for i in range(0, len(predictions), n):
        given = GivenPredictions([predictions[i], *predictions[i : i + n]])
        walks = [
            sage_increments_of(loss, y, given, np.array([[0, 1]]), n, 0.0, 0.0, in_halves=halves, with_parts=True)
            for halves in (False, True)
        ]
        if isinstance(walks[1], str):
            return None if walks[1] == "no_prediction" else walks[1]
        plain.append(walks[0].increments[1])
        losses.append(walks[1].increments[1])
        influence.append(walks[0].parts[1] - plain[-1])
    return Found(np.array(plain), np.array(losses), np.array(influence))


def mean_of(weighted):
    """Mean of numbers or dicts of probabilities, from pairs (prediction, weight)."""
    if not isinstance(weighted[0][0], dict):
        return math.fsum(p * w for p, w in weighted)
    return {c: math.fsum(p.get(c, 0.0) * w for p, w in weighted) for of, _ in weighted for c in of}


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


def in_two_sets(one_set, n_rows, n_draws):
    """Every combination of two independent sets of draws, m // 2 and m - m // 2 of them, from the same rows."""
    combined = product(one_set(n_rows, n_draws // 2), one_set(n_rows, n_draws - n_draws // 2))
    return [((*first, *second), v * w) for (first, v), (second, w) in combined]


def expected_losses(loss, y, rows, draws):
    """Expectation of the loss over the draws, as it is and less its bias."""
    n = len(draws[0][0])
    predictions = [rows[slot] for slots, _ in draws for slot in slots]
    found = coalition_losses(as_loss(loss), y, predictions, n)
    weights = [weight for _, weight in draws]
    assert math.fsum(weights) == pytest.approx(1.0, abs=1e-12)
    return tuple(
        math.fsum(w * value for w, value in zip(weights, values, strict=True)) for values in (found.plain, found.losses)
    )


@pytest.mark.parametrize("how", [independent, one_of_each_part])
@pytest.mark.parametrize(("n_rows", "n_draws"), [(1, 2), (3, 2), (3, 3), (3, 4), (3, 5), (5, 4), (2, 6)])
@pytest.mark.parametrize(("loss", "y", "population"), CASES)
def test_over_all_draws_from_given_rows_the_bias_is_gone_exactly(loss, y, population, n_rows, n_draws, how):
    rows = [population[i % 3][0] for i in range(n_rows)]
    rows.sort(key=repr)  # any order of the rows will do
    limit = as_loss(loss)(y, mean_of([(row, 1.0 / n_rows) for row in rows]))
    plain, corrected = expected_losses(loss, y, rows, in_two_sets(how, n_rows, n_draws))
    assert corrected == pytest.approx(limit, abs=1e-12)
    if n_rows > 1:
        assert plain > limit + 0.01


@pytest.mark.parametrize("how", [independent, one_of_each_part])
@pytest.mark.parametrize(("n_rows", "n_draws"), [(2, 2), (2, 3), (3, 2), (4, 2), (4, 3), (4, 5)])
@pytest.mark.parametrize(("loss", "y", "population"), CASES)
def test_over_all_samples_of_rows_in_two_halves_the_bias_is_gone_exactly(loss, y, population, n_rows, n_draws, how):
    # The rows themselves are a sample, in which every sequence has its probability: an older half, which the first
    # m // 2 draws are from, and a younger one. Their means are independent with the expectation of the population.
    limit = as_loss(loss)(y, mean_of(population))
    n_older, n_first = n_rows // 2, n_draws // 2
    of_older, of_younger = how(n_older, n_first), how(n_rows - n_older, n_draws - n_first)
    draws = [
        ((*first, *(n_older + slot for slot in second)), v * w)
        for (first, v), (second, w) in product(of_older, of_younger)
    ]
    terms, uncorrected, total = [], [], 0.0
    for sample in product(range(3), repeat=n_rows):
        halves = sorted(sample[:n_older]) + sorted(sample[n_older:])  # strata are of sorted rows
        probability = math.prod(population[i][1] for i in sample)
        plain, corrected = expected_losses(loss, y, [population[i][0] for i in halves], draws)
        terms.append(probability * corrected)
        uncorrected.append(probability * plain)
        total += probability
    assert total == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(uncorrected) > limit + 0.01
    assert math.fsum(terms) == pytest.approx(limit, abs=1e-12)


def test_what_two_sets_from_the_same_rows_have_in_common_stays():
    """The variance over the rows: why the halves are of different rows."""
    population, found = [(0.0, 0.5), (2.0, 0.5)], 0.0
    for rows in product((0.0, 2.0), repeat=3):
        found += expected_losses("squared", 1.0, sorted(rows), in_two_sets(independent, 3, 4))[1] / 8
    assert as_loss("squared")(1.0, mean_of(population)) == 0.0
    assert found == pytest.approx(1.0 / 3.0, abs=1e-12)  # of values 1 from their mean, over three rows


@pytest.mark.parametrize("n_draws", [2, 3, 5])
@pytest.mark.parametrize("rows", list(combinations([-1.0, 0.25, 2.0, 4.0], 3)))
def test_of_the_absolute_loss_a_target_beyond_the_predictions_has_no_bias(rows, n_draws):
    for y in (-2.0, 5.0):
        plain, corrected = expected_losses("absolute", y, rows, in_two_sets(independent, 3, n_draws))
        limit = abs(y - math.fsum(rows) / 3)
        assert corrected == pytest.approx(limit, abs=1e-12)
        if n_draws % 2 == 0:  # else the mean of all draws is not that of the halves, with the same expectation
            assert plain == pytest.approx(corrected, abs=1e-12)


def expected_binary(loss, y, n_draws, low=0.2, high=0.8):
    """Of both halves of independent draws a binomial number gives `high`: expectation of plain and corrected loss."""
    half, totals = n_draws // 2, [0.0, 0.0]
    binomial = [math.comb(half, k) / 2.0**half for k in range(half + 1)]
    of_number = as_loss(loss).output == "number"
    for i, j in product(range(half + 1), repeat=2):
        draws = [*[high] * i, *[low] * (half - i), *[high] * j, *[low] * (half - j)]
        predictions = draws if of_number else [{1: p, 0: 1.0 - p} for p in draws]
        found = coalition_losses(as_loss(loss), y, predictions, n_draws)
        totals[0] += binomial[i] * binomial[j] * found.plain[0]
        totals[1] += binomial[i] * binomial[j] * found.losses[0]
    return totals


def test_of_cross_entropy_a_bias_of_the_order_of_the_square_remains():
    limit = -math.log(0.5)
    plain, corrected = zip(*(expected_binary("cross_entropy", 1, n) for n in (16, 32, 64)), strict=True)
    for before, after in ((0, 1), (1, 2)):
        # Twice the draws: half the bias that the plain loss has, a quarter of that which remains.
        assert 1.9 < (plain[before] - limit) / (plain[after] - limit) < 2.2
        assert 3.5 < (corrected[before] - limit) / (corrected[after] - limit) < 4.5
    assert abs(corrected[0] - limit) < 0.2 * abs(plain[0] - limit)


@pytest.mark.parametrize("n_draws", [4, 16, 64])
def test_of_the_absolute_loss_at_its_corner_two_fifths_of_the_bias_go(n_draws):
    # E|mean - 1/2| is as 1 / sqrt(m): of two halves it is sqrt(2) times that, and 2 - sqrt(2) of it remain.
    plain, corrected = expected_binary("absolute", 0.5, n_draws)
    assert 0.57 < corrected / plain < 0.68
    assert n_draws < 64 or corrected / plain == pytest.approx(2.0 - math.sqrt(2.0), abs=0.01)


@given(draws=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=7), y=st.sampled_from([0, 1, "never predicted"]))
def test_the_correction_of_cross_entropy_is_at_most_one_half(draws, y):
    # One improbable class among the draws is no reason to believe in any loss at all.
    predictions = [{1: p, 0: 1.0 - p} for p in draws]
    loss, half = as_loss("cross_entropy"), len(draws) // 2
    corrected = coalition_losses(loss, y, predictions, len(draws)).losses[0]
    a, b = (mean_of([(p, 1.0 / len(of)) for p in of]) for of in (predictions[:half], predictions[half:]))
    plain = loss(y, mean_of([(a, 0.5), (b, 0.5)]))
    assert -1e-9 <= plain - corrected <= 0.5 + 1e-9
    excess = (loss(y, a) + loss(y, b)) / 2 - plain
    assert plain - corrected == pytest.approx(min(excess, 0.5), rel=1e-9, abs=1e-9)


def test_no_more_is_subtracted_than_a_loss_allows():
    for most in (0.0, 0.3, math.inf):
        for loss in (as_loss("squared"), Loss("own", "number", lambda y, p: (y - p) ** 2)):
            # Halves -1 and 1: at the mean 0 the loss is 0, and 1 at both.
            found = coalition_losses(replace_keeping_code(loss, most), 0.0, [-1.0, 1.0], 2)
            assert (found.plain.tolist(), found.losses.tolist()) == ([0.0], [-min(most, 1.0)])


def replace_keeping_code(loss, most_bias):
    changed = replace(loss, most_bias=most_bias)
    object.__setattr__(changed, "code", loss.code)
    return changed


@pytest.mark.parametrize("epsilon", [1e-15, 0.01])
@pytest.mark.parametrize("p", [0.03, 0.5, 0.97])
def test_slopes_of_losses_on_probabilities_are_finite_differences(p, epsilon):
    prediction = {"a": p, "b": 1.0 - p}
    for loss in (as_loss("cross_entropy", epsilon=epsilon), as_loss("brier")):
        for y, label in product(("a", "b", "c"), "ab"):

            def at(value, y=y, label=label, loss=loss):
                return loss(y, {**prediction, label: value})

            check_slope(loss, y, label, prediction[label], at, 1e-4)


@pytest.mark.parametrize("name", ["squared", "absolute", "score"])
@pytest.mark.parametrize(("y", "p"), [(1.5, -2.0), (1.5, 3.0), (True, 0.25), (-1e3, 1.0)])
def test_slopes_of_losses_on_numbers_are_finite_differences(name, y, p):
    loss = as_loss(name)
    check_slope(loss, y, None, p, lambda value: loss(y, value), 1e-2)


def check_slope(loss, y, label, p, at, step):
    # At p = 0.03 the logarithm's next terms are (step / p)^2 = 1e-5 of these.
    expected = (at(p + step) - at(p - step)) / (2 * step)
    assert loss.slope(y, label, p) == pytest.approx(expected, rel=1e-4, abs=1e-8)


def test_which_losses_say_their_slope():
    assert as_loss("zero_one").slope is None
    assert as_loss(lambda y, p: 0.0).slope is None
    for name in ("cross_entropy", "brier", "absolute", "squared", "score"):
        assert as_loss(name).slope is not None


def test_a_loss_that_jumps_is_left_as_it_is():
    jumping = Loss("jumping", "number", lambda y, p: float(abs(y - p) > 1.0), is_smooth=False)
    for loss, predictions in (
        ("zero_one", [{1: 1.0}, {0: 1.0}, {0: 1.0}, {1: 1.0}, {0: 1.0}, {1: 1.0}]),
        (jumping, [1.0, 2.0, 5.0, -1.0, 0.0, 0.0]),
    ):
        found = coalition_losses(as_loss(loss), 0, predictions, 3)
        assert found.losses.tolist() == found.plain.tolist()
        assert found.influence.shape == (len(predictions) // 3, 0)


def test_a_loss_of_the_users_own_is_corrected_without_derivatives():
    for loss in (lambda y, p: (y - p) ** 2, Loss("own", "number", lambda y, p: (y - p) ** 2)):
        found = coalition_losses(as_loss(loss), 0, [1.0, 2.0, 5.0, -1.0], 2)
        known = coalition_losses(as_loss("squared"), 0, [1.0, 2.0, 5.0, -1.0], 2)
        assert found.losses.tolist() == known.losses.tolist() == [2.0, -5.0]  # products of the two draws
        assert found.influence.shape == (2, 0)


@pytest.mark.parametrize("name", ["absolute", "score"])
def test_losses_that_are_linear_where_the_draws_are_are_left_as_they_are(name):
    found = coalition_losses(as_loss(name), -1.5, [1.0, 2.0, 5.0, -1.0], 4)
    assert found.losses.tolist() == found.plain.tolist()
    assert found.influence.tolist() == [[-0.75, 0.25, 3.25, -2.75]]  # the mean is 1.75, the slope 1


def test_one_draw_says_nothing_of_its_bias():
    found = coalition_losses(as_loss("squared"), 0.0, [1.0, 2.0], 1)
    assert (found.plain.tolist(), found.losses.tolist(), found.influence.shape) == ([1.0, 4.0], [1.0, 4.0], (2, 0))


def test_without_correction_the_losses_are_plain_and_the_influence_is_known():
    found = coalition_losses(as_loss("squared"), 0.0, [1.0, 3.0], 2)
    assert (found.plain.tolist(), found.losses.tolist()) == ([4.0], [3.0])
    assert found.influence.tolist() == [[-4.0, 4.0]]  # slope 4 at the mean 2, one below and one above


MEANS = [
    ("squared", 1.5, (None,), [2.0]),
    ("absolute", 1.5, (None,), [2.0]),
    ("score", None, (None,), [2.0]),
    ("brier", "a", ("a", "b"), [0.3, 0.7]),
    ("brier", "never predicted", ("a", "b"), [0.3, 0.7]),
    ("cross_entropy", "a", ("b", "a"), [0.7, 0.3]),
    ("cross_entropy", "never predicted", ("a", "b"), [0.3, 0.7]),
]


@pytest.mark.parametrize(("name", "y", "names", "means"), MEANS)
def test_the_loss_beside_a_mean_prediction_is_less_its_noise(name, y, names, means):
    loss, means = as_loss(name), np.array(means)
    own = replace(loss, name="own")
    for errors in (np.zeros(len(means)), np.array([0.1, 0.0])[: len(means)], np.array([0.2, 0.05])[: len(means)]):
        found = [loss_of_noisy_mean(one, y, names, means, errors, without_noise=True) for one in (loss, own)]
        as_is = [loss_of_noisy_mean(one, y, names, means, errors, without_noise=False) for one in (loss, own)]
        plain = loss(y, means[0] if names == (None,) else dict(zip(names, means.tolist(), strict=True)))
        assert as_is == pytest.approx([plain] * 2, abs=1e-14)
        assert found[0] == pytest.approx(found[1], abs=1e-14)
        variance = float((errors**2).sum())
        if name in ("squared", "brier"):
            # Exact whatever the distribution: E (m + noise - y)^2 = (m - y)^2 + variance.
            assert plain - found[0] == pytest.approx(variance, abs=1e-14)
        elif name == "cross_entropy" and y == "a":
            # Half of 1 / p^2 times the variance, and terms of the fourth order: 1 / 4 of (s / p)^4.
            s = float(errors[1]) / 0.3
            assert plain - found[0] == pytest.approx(s * s / 2 + s**4 / 4, abs=1e-3)
        else:
            assert plain - found[0] == pytest.approx(0.0, abs=1e-14)


def test_the_noise_taken_from_a_loss_beside_a_mean_is_bounded_too():
    # The class was predicted nearly never, and the error of that is larger than it: a logarithm of 1e-15.
    for loss in (as_loss("cross_entropy"), replace(as_loss("cross_entropy"), name="own")):
        found = loss_of_noisy_mean(loss, 1, (0, 1), np.array([0.99, 0.01]), np.array([0.05, 0.05]), without_noise=True)
        assert found == pytest.approx(-math.log(0.01) - 0.5, abs=1e-12)


def test_a_loss_that_jumps_is_left_as_it_is_beside_a_mean():
    names, means, errors = ("a", "b"), np.array([0.51, 0.49]), np.array([0.1, 0.1])
    for y, expected in (("a", 0.0), ("b", 1.0)):
        assert loss_of_noisy_mean(as_loss("zero_one"), y, names, means, errors, without_noise=True) == expected


@given(
    values=st.lists(st.floats(0.05, 0.95), min_size=2, max_size=5),
    name=st.sampled_from(["cross_entropy", "brier", "squared"]),
    y=st.sampled_from([0, 1]),
    in_halves=st.booleans(),
)
def test_the_influence_of_a_draw_is_the_slope_of_the_loss_towards_it(values, name, y, in_halves):
    loss, step, n = as_loss(name), 1e-5, len(values)
    as_prediction = (lambda p: p) if name == "squared" else (lambda p: {1: p, 0: 1.0 - p})
    own = replace(loss, name="own")
    # A draw's share in the mean, in which both halves count the same.
    half, share = n // 2, [1.0 / n] * n
    if in_halves:
        share = [0.5 / half] * half + [0.5 / (n - half)] * (n - half)
    given = GivenPredictions([as_prediction(p) for p in (values[0], *values)])
    how = {"in_halves": in_halves, "with_parts": True}
    mean = math.fsum(w * p for w, p in zip(share, values, strict=True))
    for one in (loss, own):
        walk = sage_increments_of(one, y, given, np.array([[0, 1]]), n, 0.0, 0.0, **how)
        influence = walk.parts[1] - walk.increments[1]
        for k, value in enumerate(values):
            ahead, behind = (loss(y, as_prediction(mean + s * (value - mean))) for s in (step, -step))
            slope = n * share[k] * (ahead - behind) / (2 * step)
            assert influence[k] == pytest.approx(slope, rel=1e-4, abs=1e-6)
        assert influence.sum() == pytest.approx(0.0, abs=1e-9)


def test_a_missing_or_mixed_prediction_gives_nothing():
    loss = as_loss("squared")
    assert coalition_losses(loss, 0.0, [1.0, None], 2) is None
    assert coalition_losses(loss, 0.0, [{1: 1.0}, 1.0], 2) is None
    assert coalition_losses(loss, 0.0, [1.0, {1: 1.0}], 2) is None


def test_what_overflows_is_infinite_and_raises_nothing():
    with np.errstate(all="raise"):
        found = coalition_losses(as_loss("squared"), 0.0, [1e200, -1e200, 1e200, 1.0], 4)
    assert found == "not_finite"
