"""Smoothed means against direct weighted sums over the whole past."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers import InvalidParameterError, SmoothedImportance, SmoothedMean, SmoothedPrediction
from attributary_explainers.smoothing.importance import Weights, memory_of
from tests.explainers.oracles import smoothing_weights

alphas = st.floats(0.001, 1.0)
numbers = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40)


def close(value, scale=1e3):
    # Values reach `scale`; 40 sums of them differ by less than 1e-12 of it, and 1 - (1 - alpha)^n by 1e-16 / alpha.
    return pytest.approx(value, rel=1e-9, abs=1e-9 * scale)


@given(alphas, st.integers(1, 60))
def test_weights_sum_and_square_as_written_out(alpha, n):
    weights = Weights(alpha)
    for _ in range(n):
        share = weights.step()
    direct = alpha * (1.0 - alpha) ** np.arange(n)
    assert weights.n == n
    assert weights.total == pytest.approx(direct.sum(), rel=1e-9)
    assert weights.total == pytest.approx(1.0 - (1.0 - alpha) ** n, rel=1e-9)  # Theorem 2
    assert share == pytest.approx(alpha / direct.sum(), rel=1e-9)
    assert weights.squares == pytest.approx((direct**2).sum() / direct.sum() ** 2, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.3])
def test_the_effective_sample_size_of_a_long_stream_is_two_over_alpha_minus_one(alpha):
    weights = Weights(alpha)
    for _ in range(round(30 / alpha)):  # (1 - alpha)^n = e^-30 is left of the start
        weights.step()
    assert 1.0 / weights.squares == pytest.approx(2.0 / alpha - 1.0, rel=1e-9)


def test_tiny_weights_are_the_plain_mean():
    # alpha n = 1e-6: the weights differ by 1e-6 of themselves.
    smoothed, values = SmoothedImportance(1e-8), np.random.default_rng(1).normal(3.0, 2.0, size=100)
    for n, value in enumerate(values.tolist(), start=1):
        smoothed.update({"a": value})
        if n in (2, 20):
            error = values[:n].std(ddof=1) / math.sqrt(n)
            assert smoothed.std_error()["a"] == pytest.approx(error, rel=1e-5)
    assert smoothed.mean()["a"] == pytest.approx(values.mean(), rel=1e-5)


@pytest.mark.parametrize("alpha", [1e-17, 5e-324])
def test_every_alpha_that_is_taken_works(alpha):
    mean = SmoothedMean(alpha)
    assert mean.update(2.0) == 2.0
    assert mean.update(4.0) == pytest.approx(3.0, rel=1e-9)  # equal weights, as near as no matter


@given(alphas, numbers)
def test_mean_importance_is_the_weighted_mean(alpha, values):
    smoothed = SmoothedImportance(alpha)
    for n, value in enumerate(values, start=1):
        smoothed.update({"a": value, "b": -2.0 * value})
        mean = float(smoothing_weights(alpha, n) @ np.array(values[:n]))
        assert smoothed.mean() == close({"a": mean, "b": -2.0 * mean})
        assert smoothed.raw_mean()["a"] == close(mean * (1.0 - (1.0 - alpha) ** n))


@given(alphas, numbers, st.data())
def test_a_feature_not_named_has_the_increment_0(alpha, values, data):
    named = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    sparse, dense = SmoothedImportance(alpha), SmoothedImportance(alpha)
    for value, present in zip(values, named, strict=True):
        sparse.update({"a": 1.0, **({"late": value} if present else {})})
        dense.update({"a": 1.0, "late": value if present else 0.0})
    if any(named):
        assert sparse.mean() == close(dense.mean())
        first, second = sparse.std_error()["late"], dense.std_error()["late"]
        assert math.isnan(first) == math.isnan(second)
        if not math.isnan(second):
            assert first == pytest.approx(second, rel=1e-6, abs=1e-6)


def test_names_are_remembered_until_their_weight_has_faded():
    assert memory_of(0.001) == 27618  # 0.999^27618 is the first power below 1e-12
    assert 0.999**27618 < 1e-12 < 0.999**27617
    assert memory_of(0.5) == memory_of(1.0) == 1000
    assert memory_of(5e-324) == 2**62, "the smallest alpha that there is"


@pytest.mark.parametrize("alpha", [0.02, 0.5, 1.0])
def test_a_name_that_is_not_seen_again_is_forgotten_and_the_others_are_not_touched(alpha):
    memory = memory_of(alpha)
    rng, n = np.random.default_rng(3), 2 * memory + 5
    smoothed, alone = SmoothedImportance(alpha), SmoothedImportance(alpha)
    last = {"gone": 2, "back": 3, "now and then": 1}
    values = rng.normal(size=n).tolist()
    present = set()
    for i, value in enumerate(values, start=1):
        increments = {"a": value}
        for name in ("gone", "back", "now and then"):
            if i == last[name] or (name == "now and then" and i % 500 == 0) or (name == "back" and i == n - 1):
                increments[name] = 1.0
                last[name] = i
        smoothed.update(increments)
        alone.update({"a": value})
        # Never before its time: an importance that still counts would be lost.
        present = set(smoothed.mean())
        assert all(name in present for name, seen in last.items() if seen <= i < seen + memory)
    assert smoothed.mean()["a"] == alone.mean()["a"]
    assert smoothed.std_error()["a"] == alone.std_error()["a"]
    assert smoothed.half_width()["a"] == alone.half_width()["a"]
    assert "gone" not in present
    assert {"a", "back", "now and then"} <= present
    assert set(smoothed.std_error()) == set(smoothed.half_width()) == set(smoothed.raw_mean()) == present
    assert smoothed.mean()["back"] == pytest.approx(float(smoothing_weights(alpha, n)[-2]), rel=1e-6, abs=1e-12)
    # The core takes the arrays in this order of memory alone.
    assert smoothed.moments.flags.c_contiguous
    smoothed.update({"a": 1.0, "new": 1.0})
    assert smoothed.moments.flags.c_contiguous


def test_a_stream_of_ever_new_names_has_bounded_state():
    smoothed = SmoothedImportance(0.5)
    held = []
    for i in range(5000):
        smoothed.update({"a": 1.0, f"new {i}": 1.0})
        if i % 7 == 0:
            held.append(len(smoothed.mean()))
    assert max(held) <= 2 * 1000 + 1
    assert max(held[360:]) <= max(held[:360]) + 7


@given(alphas, numbers)
def test_a_smoothed_mean_or_number_is_the_weighted_mean_from_the_first_value_on(alpha, values):
    mean, prediction = SmoothedMean(alpha), SmoothedPrediction(alpha)
    assert mean.value is None
    for n, value in enumerate(values, start=1):
        expected = float(smoothing_weights(alpha, n) @ np.array(values[:n]))
        assert mean.update(value) == mean.value == close(expected)
        assert prediction.update(value) == close(expected)
    assert SmoothedPrediction(alpha).update(values[0]) == pytest.approx(values[0], rel=1e-12)


@given(alphas, st.lists(st.dictionaries(st.sampled_from(["a", 1, None]), st.floats(0, 1), min_size=1), max_size=20))
def test_smoothed_probabilities_of_a_class_predicted_late_were_0_before(alpha, predictions):
    smoothed = SmoothedPrediction(alpha)
    for n, prediction in enumerate(predictions, start=1):
        mean = smoothed.update(prediction)
        weights = smoothing_weights(alpha, n)
        for label in {label for past in predictions[:n] for label in past}:
            direct = sum(w * past.get(label, 0.0) for w, past in zip(weights, predictions[:n], strict=True))
            assert mean[label] == pytest.approx(direct, rel=1e-9, abs=1e-12)


def test_of_more_than_a_hundred_classes_those_that_have_faded_are_dropped():
    alpha, smoothed, n = 0.5, SmoothedPrediction(0.5), 0
    for n in range(1, 400):
        mean = smoothed.update({"always": 0.75, n: 0.25})
        # What is left of label k is 0.25 times its weight; 1e-12 is reached after 38 halvings. Up to 100 stay.
        assert len(mean) <= 101
        weights = smoothing_weights(alpha, n)
        for label, value in mean.items():
            direct = 0.75 if label == "always" else 0.25 * weights[label - 1]
            assert value == pytest.approx(direct, rel=1e-9, abs=1e-15)
        assert math.fsum(mean.values()) == pytest.approx(1.0, abs=1e-10)  # what is dropped is less than 400 * 1e-12
    assert len(mean) < 101
    assert {n - k for k in range(35)} < set(mean)  # whatever still counts is there
    few = SmoothedPrediction(alpha)
    for _ in range(200):
        few.update({"now": 1.0})
    few.update({"once": 1.0})
    for _ in range(200):
        mean = few.update({"now": 1.0})
    assert set(mean) == {"now", "once"}  # a hundred are no burden


@given(alphas, st.integers(101, 130))
def test_a_class_that_is_predicted_is_never_dropped(alpha, n_classes):
    smoothed = SmoothedPrediction(alpha)
    prediction = dict.fromkeys(range(n_classes), 1e-13)  # each below the limit, all predicted
    for _ in range(5):
        assert smoothed.update(prediction) == pytest.approx(prediction, rel=1e-9)


def test_the_handed_out_mean_does_not_alias_the_prediction():
    smoothed, prediction = SmoothedPrediction(0.5), {"a": 1.0}
    smoothed.update(prediction)
    prediction["a"] = 7.0
    assert smoothed.update({"a": 1.0}) == {"a": 1.0}


@pytest.mark.parametrize("kind", [Weights, SmoothedImportance, SmoothedMean, SmoothedPrediction])
@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.0000001, math.nan, True, "0.1", None])
def test_alpha_outside_its_range_is_refused(kind, alpha):
    with pytest.raises(InvalidParameterError, match=r"^alpha must be a number > 0 and <= 1, got "):
        kind(alpha)
