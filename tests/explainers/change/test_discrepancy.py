"""The distance between two models, its mean over a data set, and its smoothed mean over a stream."""

import math
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers import InvalidParameterError, as_batch, expected_discrepancy, model_function
from attributary_explainers.change.discrepancy import IncrementalDiscrepancy, as_distance
from tests.explainers.oracles import POINTS, medium_or_large, small_and_red, smoothing_weights
from tests.explainers.plain_data import strangers
from tests.explainers.stand_ins import Recording

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


def smoothed(alpha, distances):
    return float(smoothing_weights(alpha, len(distances)) @ distances) if distances else None


def agree(found, expected):
    return found == expected if None in (found, expected) else math.isclose(found, expected, abs_tol=1e-9)


STREAMS = st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.5, None, math.nan]), st.floats(-9, 9)), max_size=40)


@given(STREAMS, st.sampled_from([0.01, 0.2, 0.7, 1.0]), st.sampled_from([1, 2, 7, 50]), st.integers(0, 39))
@settings(derandomize=True)
def test_at_every_prefix_it_is_the_weighted_mean_of_the_distances_whose_batch_is_complete(stream, alpha, size, stop):
    # A row is what the reference predicts for it.
    def make():
        return IncrementalDiscrepancy(model_function(lambda x: x["r"], "number"), as_distance("number"), alpha, size)

    running = make()
    for n, (referred, current) in enumerate(stream, start=1):
        running.update({"r": referred}, current)
        done = stream[: n // size * size]
        distances = [abs(r - c) for r, c in done if r is not None and not math.isnan(r)]
        assert agree(running.value, smoothed(alpha, distances))
        assert running.n == len(distances)
        if n == stop:  # stopped here, whatever waits, it goes on as if it had not been
            snapshot = running.snapshot()
            assert strangers(snapshot) == []
            running = make()
            running.restore(pickle.loads(pickle.dumps(snapshot)))


def test_the_reference_is_asked_once_per_row_and_many_at_once():
    model = Recording(1.0)
    calls = []

    def many(rows):
        calls.append(len(rows))
        return [model(row) for row in rows]

    running = IncrementalDiscrepancy(model_function(as_batch(many), "number"), as_distance("number"), 0.1, 6)
    for i in range(20):
        running.update({"a": i}, 0.0)
    assert (calls, running.n) == ([6, 6, 6], 18)
    assert model.rows == [{"a": i} for i in range(18)]


def test_a_reference_that_raises_costs_its_batch_and_nothing_else():
    def raising(x):
        if x["a"] == 4:
            raise OSError("gone")
        return 0.0

    running = IncrementalDiscrepancy(raising, as_distance("number"), 0.5, 3)
    raised = []
    for i in range(12):
        try:
            running.update({"a": i}, float(i))
        except OSError:
            raised.append(i)
    assert raised == [5]
    assert running.n == 9
    assert running.value == pytest.approx(smoothed(0.5, [0.0, 1.0, 2.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]), rel=1e-12)


def test_a_snapshot_is_not_changed_by_what_follows():
    running = IncrementalDiscrepancy(lambda x: 0.0, as_distance("number"), 0.5, 4)
    for i in range(6):
        running.update({"a": i}, float(i))
    snapshot = running.snapshot()
    before = repr(snapshot)
    assert len(snapshot["waiting"]) == 2
    for i in range(6):
        running.update({"a": i}, float(i))
    assert repr(snapshot) == before


def test_a_distance_that_overflows_does_not_stay_for_ever():
    running = IncrementalDiscrepancy(lambda x: 1e308, as_distance("number"), 0.5)
    for prediction in (1e308, -1e308, 1e308, 1e308):
        running.update({}, prediction)
    assert math.isfinite(running.value)
