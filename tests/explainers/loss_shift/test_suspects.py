"""Which features are suspect: exact enumeration, closed forms of linear models, and features that are not read."""

import math

import numpy as np
import pytest

from attributary_explainers import as_batch, as_loss, batch_pfi, expected_pfi
from attributary_explainers.loss_shift.suspects import losses, naming_loss, suspects
from attributary_explainers.models.function import model_function

NAMES = ["a", "b", "c", "d", "idle"]
WEIGHTS = np.array([2.0, -1.5, 1.0, 0.7, 0.0])
SQUARED = as_loss("squared")


def line(table):
    return np.nan_to_num(table) @ WEIGHTS


MODEL = as_batch(line, features=NAMES)


def table_of(n, seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 5))
    return table, line(table) + rng.normal(size=n)


def rows_of(table, targets):
    return [
        ({name: None if v != v else v for name, v in zip(NAMES, row, strict=True)}, y)
        for row, y in zip(table.tolist(), targets.tolist(), strict=True)
    ]


def suspects_of(damage, n=1000, model=MODEL, loss=SQUARED, **given):
    table, targets = table_of(n, seed=2)
    table = table.copy()
    damage(table, np.random.default_rng(3))
    found = suspects(
        model_function(model, loss.output), loss, rows_of(*table_of(n, 1)), rows_of(table, targets), **given
    )
    return {one.name: one for one in found}


def nothing(table, rng):
    pass


def shuffled(column):
    def damage(table, rng):
        table[:, column] = rng.permutation(table[:, column])

    return damage


def test_importances_are_those_of_batch_pfi_on_the_same_draws():
    before, after = rows_of(*table_of(200, 1)), rows_of(*table_of(200, 2))
    found = {s.name: s for s in suspects(model_function(MODEL, "number"), SQUARED, before, after, seed=9)}
    pfi = batch_pfi(MODEL, before, loss="squared", n_permutations=3, seed=9)
    assert {name: one.importance_before for name, one in found.items()} == pytest.approx(pfi.importance, rel=1e-12)
    exact = expected_pfi(MODEL, after, loss="squared")
    for name, one in found.items():
        assert one.importance_after == pytest.approx(exact.importance[name], abs=5 * exact.std_error[name])
        assert one.delta == one.importance_after - one.importance_before


@pytest.mark.parametrize("column", [0, 2, 3])
def test_a_feature_that_is_no_longer_that_of_its_observation(column):
    found = suspects_of(shuffled(column))
    first = next(iter(found.values()))
    assert first.name == NAMES[column]
    assert first.significant
    # Importance is twice the covariance of the feature's part with the target: 2 w^2, and 0 afterwards.
    assert first.delta == pytest.approx(-2 * WEIGHTS[column] ** 2, abs=4 * first.delta_std_error)
    assert first.moved == 0.0
    assert first.score == pytest.approx(1.01 * abs(first.delta), rel=1e-12)


def test_noise_is_invisible_to_importance_and_named_by_its_move():
    def noise(table, rng):
        table[:, 2] += 2.0 * rng.normal(size=len(table))
        table[:, 4] += 5.0

    found = suspects_of(noise)
    assert next(iter(found)) == "c"
    noisy = found["c"]
    assert abs(noisy.delta) < 4 * noisy.delta_std_error
    assert noisy.significant
    assert noisy.moved > 0.1
    # Noise of variance 4 is replaced by the difference of two observations: a loss of 1 + 4 becomes 1 + 2.
    gain = noisy.score - 0.01 * (abs(noisy.delta) + noisy.moved * noisy.importance_before)
    gain -= noisy.moved * noisy.importance_before + (abs(noisy.delta) if noisy.p_value <= 0.05 else 0.0)
    assert gain == pytest.approx(2.0, abs=0.4)


def test_another_unit_is_named_far_before_those_that_lose_their_importance():
    def unit(table, rng):
        table[:, 3] *= 100.0

    classes = as_batch(
        lambda t: np.column_stack([1 - 1 / (1 + np.exp(-line(t))), 1 / (1 + np.exp(-line(t)))]),
        features=NAMES,
        classes=[False, True],
    )
    loss = as_loss("cross_entropy", epsilon=1e-3)
    rng = np.random.default_rng(0)
    before, after = ((t, line(t) + rng.logistic(size=len(t)) > 0) for t in (table_of(800, 1)[0], table_of(800, 2)[0]))
    unit(after[0], rng)
    with np.errstate(over="ignore"):
        found = suspects(model_function(classes, "probabilities"), loss, rows_of(*before), rows_of(*after))
    assert found[0].name == "d"
    assert found[0].score > 3.0 * found[1].score
    assert next(one for one in found if one.name == "idle").score == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_a_feature_that_is_not_read_has_the_score_0(seed):
    def damage(table, rng):
        table[:, 4] = 1e6 * rng.normal(size=len(table)) + 1e7
        table[:, 0] *= -1.0

    idle = suspects_of(damage, n=200, seed=seed)["idle"]
    assert (idle.score, idle.importance_before, idle.importance_after, idle.delta_std_error) == (0.0, 0.0, 0.0, 0.0)
    assert (idle.p_value, idle.significant) == (1.0, False)
    assert idle.moved > 0.5


def test_where_nothing_happened_hardly_anything_is_named():
    named = 0
    for seed in range(40):
        halves = [rows_of(*table_of(150, 100 + 2 * seed + i)) for i in range(2)]
        found = suspects(model_function(MODEL, "number"), SQUARED, *halves, seed=seed, n_permutations=1)
        named += any(one.significant for one in found)
    assert named <= 10  # 10 % of 40, by importance and by the move together, and three standard deviations


def test_a_group_is_one():
    found = suspects_of(shuffled(1), groups={"both": ["b", "idle"]})
    assert next(iter(found)) == "both"
    assert set(found) == {"a", "both", "c", "d"}


def test_missing_values_are_a_value_and_read_by_the_policy():
    def nulls(table, rng):
        table[rng.random(len(table)) < 0.9, 2] = math.nan

    found = suspects_of(nulls, missing={"c": 0.0})
    assert next(iter(found)) == "c"
    assert found["c"].moved > 0.7
    filled = suspects_of(lambda t, r: (nulls(t, r), np.nan_to_num(t, copy=False)))
    assert {n: s.delta for n, s in found.items()} == {n: s.delta for n, s in filled.items()}
    skipped = suspects_of(nulls, missing="skip")
    assert skipped["c"].significant


def test_observations_that_the_model_cannot_take_are_left_out_of_importance():
    def strict(x):
        if x["a"] is None:
            raise ValueError("no a")
        return math.nan if x["b"] is None else 2.0 * x["a"] - 1.5 * x["b"]

    def nulls(table, rng):
        table[::3, 0] = math.nan
        table[::5, 1] = math.nan

    found = suspects_of(nulls, n=300, model=strict)
    assert all(math.isfinite(one.score) for one in found.values())
    assert set(list(found)[:2]) == {"a", "b"}


def test_strange_values_vanishing_and_new_features():
    rng = np.random.default_rng(0)

    def row(i, is_after):
        x = {"text": "red" if rng.random() < 0.5 else "blue", "flag": bool(i % 2), "huge": 1e300 * rng.normal()}
        x.update({"gone": 1.0} if not is_after else {"new": math.inf, "int": 2**70})
        if is_after:
            x["text"] = "RED" if x["text"] == "red" else "blue"
        return x, "yes" if (x["text"].lower() == "red") == (rng.random() < 0.9) else "no"

    def model(x):
        return "yes" if x["text"] == "red" else "no"

    loss = as_loss("zero_one")
    before, after = ([row(i, is_after) for i in range(300)] for is_after in (False, True))
    found = suspects(model_function(model, "label"), loss, before, after)
    assert found[0].name == "text"
    assert found[0].significant
    assert [one.score for one in found[1:]] == [0.0] * 5
    assert sorted(str(one.name) for one in found) == ["flag", "gone", "huge", "int", "new", "text"]


def test_a_model_that_cannot_be_asked_afterwards_is_judged_by_what_was_important():
    def strict(x):
        return 2.0 * x["a"] - 1.5 * x["b"] + 0.5 * x["c"]

    def nulls(table, rng):
        table[:, 1] = math.nan
        table[:, 4] += 9.0

    found = suspects_of(nulls, n=300, model=strict)
    assert next(iter(found)) == "b"
    assert [name for name, one in found.items() if one.significant] == ["b"]
    assert all(math.isnan(one.importance_after) for one in found.values())


@pytest.mark.parametrize("n", [0, 1, 5, 19])
def test_without_importances_of_before_features_are_ordered_by_their_move(n):
    before = [({"a": 0.0, "b": 15.0 + i}, 0.0) for i in range(n)]
    after = [({"a": 0.0, "b": 0.1 * i}, 0.0) for i in range(100)]
    found = suspects(model_function(lambda x: x["b"], "number"), SQUARED, before, after)
    assert all(one.score == 0.0 and not one.significant and math.isnan(one.delta) for one in found)
    assert found[0].name == ("b" if n >= 5 else "a")


@pytest.mark.parametrize("outlier", [1e6, 1e200, -1e300])
def test_one_observation_far_out_does_not_decide(outlier):
    def one_far_out(table, rng):
        shuffled(2)(table, rng)
        table[5, 0] = outlier

    found = suspects_of(one_far_out)
    assert next(iter(found)) == "c"
    assert found["c"].delta == pytest.approx(-2.0, abs=5 * found["c"].delta_std_error)


@pytest.mark.parametrize(
    ("output", "name"),
    [("probabilities", "cross_entropy(epsilon=1e-06)"), ("label", "zero_one"), ("number", "squared")],
)
def test_the_loss_by_which_features_are_named(output, name):
    assert (naming_loss(output).name, naming_loss(output).output) == (name, output)


def test_under_the_squared_loss_noise_takes_no_importance_from_the_others():
    def noise(table, rng):
        table[:, 0] += 3.0 * rng.normal(size=len(table))

    squared, absolute = (suspects_of(noise, loss=loss) for loss in (SQUARED, as_loss("absolute")))
    assert next(iter(squared)) == "a"
    assert all(squared[name].p_value > 0.01 for name in "bcd")
    assert all(absolute[name].p_value < 1e-6 for name in "bcd")


def test_losses_are_nan_where_there_is_none():
    rows = [({"a": 1.0}, 3.0), ({"a": None}, 3.0), ({"a": 1e200}, 3.0)]
    found = losses(model_function(lambda x: x["a"], "number"), SQUARED, rows)
    assert found[0] == 4.0
    assert np.isnan(found[1:]).all()


def test_the_same_seed_gives_the_same():
    assert suspects_of(shuffled(0), n=100, seed=4) == suspects_of(shuffled(0), n=100, seed=4)
