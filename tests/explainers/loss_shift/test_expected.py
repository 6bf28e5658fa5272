"""How much of a rise the inputs explain: losses that are functions of inputs, and damage, which explains none."""

import math

import numpy as np
import pytest

from attributary_explainers.loss_shift.events import Suspect
from attributary_explainers.loss_shift.suspects import expected_share, kind_of_rise

SUSPECT = Suspect("a", 1.0, 1.0, 0.0, -1.0, 0.1, 0.0, 0.0, significant=True)
IDLE = Suspect("b", 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, significant=False)


def numbers(rng, n, d=6, shift=0.0):
    table = rng.normal(size=(n, d))
    table[:, 0] += shift
    return table


def dicts(table):
    return [dict(enumerate(row)) for row in table.tolist()]


def noisy(rng, table):
    """Absolute loss of a right model whose noise grows with the first feature."""
    return np.abs(np.exp(0.5 * table[:, 0]) * rng.normal(size=len(table)))


def test_more_observations_from_the_noisy_region_are_expected():
    rng = np.random.default_rng(0)
    before, pool = numbers(rng, 1000), numbers(rng, 8000)
    chosen = pool[rng.choice(8000, 1000, p=(w := np.exp(pool[:, 0])) / w.sum())]
    share = expected_share(dicts(before), noisy(rng, before), dicts(chosen), noisy(rng, chosen))
    assert share > 0.6


def test_a_loss_that_is_a_function_of_a_category_is_explained_wholly():
    def xs(n_red):
        return [{"colour": "red", "x": 1.0}] * n_red + [{"colour": "blue", "x": 1.0}] * (400 - n_red)

    def loss(of):
        return np.array([3.0 if x["colour"] == "red" else 1.0 for x in of])

    # Without any spread within the two levels nothing is shrunk.
    assert expected_share(xs(100), loss(xs(100)), xs(300), loss(xs(300))) == pytest.approx(1.0)
    # Half of a rise by 2 on top of it: the other part is not expected.
    assert expected_share(xs(100), loss(xs(100)), xs(300), loss(xs(300)) + 1.0) == pytest.approx(0.5)


def test_missing_values_and_truth_values_have_levels_of_their_own():
    before = [{"a": None if i % 4 == 0 else 0.5, "b": True} for i in range(400)]
    after = [{"a": math.nan if i % 4 else 0.5, "b": 1} for i in range(400)]
    losses = [np.array([2.0 if (v := x["a"]) is None or v != v else 1.0 for x in xs]) for xs in (before, after)]
    assert expected_share(before, losses[0], after, losses[1]) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("how", ["permuted", "noise", "stuck", "unit", "everywhere"])
@pytest.mark.share(3, "how", "seed")
def test_damage_is_not_explained(how, seed):
    rng = np.random.default_rng(seed)
    before, after = numbers(rng, 1000), numbers(rng, 1000)
    targets = [2.0 * table[:, 1] + np.exp(0.3 * table[:, 0]) * rng.normal(size=1000) for table in (before, after)]
    damaged = after.copy()
    if how == "permuted":
        damaged[:, 1] = rng.permutation(damaged[:, 1])
    elif how == "noise":
        damaged[:, 1] += rng.normal(size=1000)
    elif how == "stuck":
        damaged[:, 1] = 0.0
    elif how == "unit":
        damaged[:, 1] *= 100.0
    else:
        targets[1] += 2.0 * rng.normal(size=1000)
    losses = [np.abs(y - 2.0 * table[:, 1]) for y, table in zip(targets, (before, damaged), strict=True)]
    assert expected_share(dicts(before), losses[0], dicts(damaged), losses[1]) < 0.25


def test_names_that_come_once_explain_nothing():
    rng = np.random.default_rng(0)
    before, after = ([{"id": f"{side}{i}", "a": float(i % 7)} for i in range(300)] for side in "ba")
    share = expected_share(before, rng.exponential(size=300), after, 2.0 * rng.exponential(size=300))
    assert share < 0.1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (np.ones(99), 2 * np.ones(200)),
        (np.ones(200), 2 * np.ones(99)),
        (np.ones(200), np.ones(200)),
        (2 * np.ones(200), np.ones(200)),
        (np.full(200, np.nan), np.ones(200)),
        (np.ones(200), np.full(200, np.inf)),
        (np.array([]), np.array([])),
    ],
)
def test_where_it_cannot_be_told(before, after):
    assert expected_share([{"a": 1.0}] * len(before), before, [{"a": 2.0}] * len(after), after) is None


def test_strange_values():
    rng = np.random.default_rng(0)
    kinds = [None, math.inf, -math.inf, 10**400, "red", True, [1], math.nan, 0.5]
    before = [{"a": kinds[i % 9], "b": math.inf} for i in range(300)]
    after = [{"a": kinds[i % 4], "c": 1} if i % 2 else {} for i in range(300)]
    assert 0.0 <= expected_share(before, rng.random(300), after, 1.0 + rng.random(300)) <= 1.0


@pytest.mark.parametrize(
    ("expected", "features", "is_number", "kind"),
    [
        (None, [SUSPECT], True, "rose"),
        (0.34, [SUSPECT], True, "harder"),
        (0.9, [], False, "harder"),
        (0.1, [IDLE, SUSPECT], True, "worse"),
        (0.1, [IDLE], True, "rose"),
        (0.0, [SUSPECT], False, "rose"),
    ],
)
def test_what_a_rise_is(expected, features, is_number, kind):
    assert kind_of_rise(expected, features, is_number=is_number) == kind
