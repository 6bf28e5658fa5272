"""The distance between two models, and its mean over a data set."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers import InvalidParameterError, expected_discrepancy, model_function
from attributary_explainers.change.discrepancy import as_distance
from tests.explainers.oracles import POINTS, medium_or_large, small_and_red

labels = st.sampled_from(["a", 1, None])
probabilities = st.dictionaries(labels, st.floats(0.001, 1.0), min_size=1).map(
    lambda weights: {label: w / sum(weights.values()) for label, w in weights.items()}
)
EVERY = {"label": probabilities, "probability": probabilities, "number": st.floats(-1e6, 1e6)}


def test_the_switch_of_the_stagger_concepts_is_seven_ninths_on_the_grid():
    reference, current = (model_function(concept, "label") for concept in (small_and_red, medium_or_large))
    assert expected_discrepancy(reference, current, POINTS, as_distance("label")) == (7 / 9, 27)
    assert expected_discrepancy(reference, reference, POINTS, as_distance("label")) == (0.0, 27)


@pytest.mark.parametrize("name", list(EVERY))
def test_a_distance_is_a_distance(name):
    distance = as_distance(name)
    assert distance.name == name
    assert distance.output == {"label": "label", "probability": "probabilities", "number": "number"}[name]

    @given(EVERY[name], EVERY[name], EVERY[name])
    def check(a, b, c):
        assert distance(a, a) == 0.0
        assert distance(a, b) == pytest.approx(distance(b, a), rel=1e-12)  # sums in another order
        assert distance(a, b) >= 0.0
        # Rounding of three sums: 1e-9 of the largest value.
        assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-9 * (1 if name != "number" else 1e6)
        if name != "number":
            assert distance(a, b) <= 1.0 + 1e-12

    check()


@given(probabilities, probabilities)
def test_probability_is_total_variation(a, b):
    # The largest difference that any set of labels makes: the set of those likelier under a.
    largest = sum(max(a.get(label, 0.0) - b.get(label, 0.0), 0.0) for label in {*a, *b})
    assert as_distance("probability")(a, b) == pytest.approx(largest, abs=1e-12)


def test_distances_have_their_closed_forms():
    assert as_distance("probability")({"a": 0.7, "b": 0.3}, {"a": 0.2, "b": 0.8}) == pytest.approx(0.5)
    assert as_distance("probability")({"a": 1.0}, {"b": 1.0}) == 1.0
    assert as_distance("label")({"a": 0.7, "b": 0.3}, {"a": 0.51, "b": 0.49}) == 0.0
    assert as_distance("label")({"a": 0.7, "b": 0.3}, {"a": 0.49, "b": 0.51}) == 1.0
    assert as_distance("number")(-1.5, 2.0) == 3.5


def test_rows_without_a_prediction_on_either_side_are_left_out_and_counted():
    rows = [{"a": value} for value in (0.0, 1.0, 2.0, 3.0)]
    first = {0.0: 1.0, 1.0: None, 2.0: math.nan, 3.0: 5.0}
    second = {0.0: 3.0, 1.0: 1.0, 2.0: 1.0, 3.0: 5.5}
    found = expected_discrepancy(lambda x: first[x["a"]], lambda x: second[x["a"]], rows, as_distance("number"))
    assert found == ((2.0 + 0.5) / 2, 2)
    assert expected_discrepancy(lambda x: None, lambda x: 1.0, rows, as_distance("number")) == (0.0, 0)


@pytest.mark.parametrize("name", ["labels", "", None, 1])
def test_an_unknown_distance_is_refused_by_name(name):
    with pytest.raises(InvalidParameterError, match=r"^distance must be one of label, number, probability, got "):
        as_distance(name)
