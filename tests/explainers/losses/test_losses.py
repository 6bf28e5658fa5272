"""Losses have closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers import LOSS_NAMES, InvalidParameterError, Loss, ModelError, as_loss
from attributary_explainers.predictions import most_probable

MIXED = {1: 0.2, "1": 0.5, (1, 2): 0.2, None: 0.1}
"""Labels that River allows: anything hashable."""

probability_lists = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5)


def test_every_name_gives_the_loss_of_that_name():
    assert set(LOSS_NAMES) == {
        "zero_one",
        "expected_zero_one",
        "cross_entropy",
        "brier",
        "absolute",
        "squared",
        "score",
        "neg_score",
    }
    assert [as_loss(name).name for name in LOSS_NAMES] == list(LOSS_NAMES)


@pytest.mark.parametrize("p", [1e-12, 0.05, 0.5, 0.95, 1.0 - 1e-12])
def test_cross_entropy_is_minus_the_logarithm_of_the_labels_probability(p):
    assert as_loss("cross_entropy")("a", {"a": p, "b": 1.0 - p}) == -math.log(p)


@pytest.mark.parametrize("label", list(MIXED))
def test_labels_of_mixed_types_are_told_apart(label):
    assert as_loss("cross_entropy")(label, MIXED) == -math.log(MIXED[label])
    assert as_loss("zero_one")(label, MIXED) == float(label != "1")
    naive = sum((p - (other == label)) ** 2 for other, p in MIXED.items())
    assert as_loss("brier")(label, MIXED) == pytest.approx(naive, abs=1e-15)


@pytest.mark.parametrize("epsilon", [1e-15, 1e-7, 0.01, 0.49])
def test_cross_entropy_clips_at_epsilon_on_both_sides(epsilon):
    loss = as_loss("cross_entropy", epsilon=epsilon)
    assert loss("a", {"a": 0.0, "b": 1.0}) == -math.log(epsilon)
    assert loss("a", {"a": epsilon / 2, "b": 1.0}) == -math.log(epsilon)
    assert loss("c", {"a": 0.5, "b": 0.5}) == -math.log(epsilon)  # a class never predicted
    assert loss("a", {"a": 1.0}) == -math.log(1.0 - epsilon)
    assert loss("a", {"a": 0.495, "b": 0.505}) == -math.log(0.495)


def test_epsilon_is_1e_minus_15_unless_told():
    assert as_loss("cross_entropy")("a", {"b": 1.0}) == -math.log(1e-15)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, -0.1, 1.0, math.nan, math.inf, True, "small", None])
def test_epsilon_outside_its_range_is_refused_by_name(epsilon):
    with pytest.raises(InvalidParameterError, match=r"^epsilon must be a number > 0 and < 0\.5, got ") as caught:
        as_loss("cross_entropy", epsilon=epsilon)
    assert (caught.value.parameter, repr(caught.value.value)) == ("epsilon", repr(epsilon))


@given(probability_lists, st.integers(0, 6))
def test_brier_is_the_sum_over_classes_of_squared_differences(probabilities, y):
    prediction = dict(enumerate(probabilities))
    classes = set(prediction) | {y}
    naive = math.fsum((prediction.get(c, 0.0) - (c == y)) ** 2 for c in classes)
    assert as_loss("brier")(y, prediction) == pytest.approx(naive, rel=1e-12, abs=1e-15)


@given(st.integers(0, 3), st.integers(0, 3))
def test_brier_of_a_certain_prediction_is_twice_the_zero_one_loss(y, predicted):
    assert as_loss("brier")(y, {predicted: 1.0}) == 2.0 * as_loss("zero_one")(y, {predicted: 1.0})


@given(probability_lists)
def test_zero_one_of_a_tie_takes_the_first_label_as_river_does(probabilities):
    prediction = dict(enumerate(probabilities))
    first = probabilities.index(max(probabilities))
    assert most_probable(prediction) == first
    assert [as_loss("zero_one")(y, prediction) for y in prediction] == [float(y != first) for y in prediction]


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_losses_on_numbers_are_their_formulas(y, prediction):
    assert as_loss("absolute")(y, prediction) == abs(y - prediction)
    assert as_loss("squared")(y, prediction) == (y - prediction) * (y - prediction)
    assert as_loss("score")(y, prediction) == prediction
    assert as_loss("neg_score")(y, prediction) == -prediction


def test_a_boolean_target_is_a_number_to_a_regression_loss():
    assert as_loss("squared")(True, 0.25) == 0.5625


def test_squared_loss_of_a_diverging_model_is_infinite_not_an_exception():
    # 1e200 is finite, so it is a usable prediction; its square is not. An explainer skips an infinite loss.
    assert as_loss("squared")(0.0, 1e200) == math.inf


@pytest.mark.parametrize("name", ["absolute", "squared"])
@pytest.mark.parametrize("target", ["red", None, (1, 2)])
def test_a_target_that_is_no_number_is_named(name, target):
    with pytest.raises(ModelError) as caught:
        as_loss(name)(target, 1.0)
    assert repr(target) in str(caught.value)


@pytest.mark.parametrize("loss", ["hinge", "", "Brier", 3, None, ["squared"]])
def test_an_unknown_loss_is_refused_with_the_known_ones(loss):
    with pytest.raises(InvalidParameterError) as caught:
        as_loss(loss)
    assert caught.value.parameter == "loss"
    assert all(name in str(caught.value) for name in LOSS_NAMES)
    assert repr(loss) in str(caught.value)


def test_a_loss_is_returned_as_it_is_and_a_callable_is_wrapped():
    def cost(y, prediction):
        return 3.0 * y + prediction

    wrapped = as_loss(cost, output="number")
    assert (wrapped.name, wrapped.output, wrapped(2.0, 1.0)) == ("cost", "number", 7.0)
    own = Loss("own", "label", cost)
    assert as_loss(own, output="number") is own


@pytest.mark.parametrize("value", ["0.5", b"1", None, "high", 1j, [1.0, 2.0]])
def test_what_a_loss_of_the_user_s_own_returns_is_a_number(value):
    def cost(y, prediction):
        return value

    with pytest.raises(
        InvalidParameterError, match=r"^loss must be a function that returns a number, got .* from cost$"
    ):
        as_loss(cost, output="number")(2.0, 1.0)


@pytest.mark.parametrize("value", [np.float32(0.5), np.array(0.5), True, 3])
def test_whatever_number_a_loss_of_the_user_s_own_returns_is_a_float(value):
    found = as_loss(lambda y, prediction: value, output="number")(2.0, 1.0)
    assert type(found) is float
    assert found == value


@pytest.mark.parametrize(
    ("name", "meant"),
    [("mse", "squared"), ("MAE", "absolute"), ("log_loss", "cross_entropy"), ("accuracy", "zero_one")],
)
def test_of_a_name_that_a_loss_has_elsewhere_the_name_here_is_said(name: str, meant: str) -> None:
    with pytest.raises(
        InvalidParameterError, match=rf"^loss must be one of .*, got '{name}': did you mean '{meant}'\?$"
    ):
        as_loss(name)
