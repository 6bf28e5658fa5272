"""The explanation's own arithmetic and its sentence, on numbers written by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from attributary_explainers import ChangeExplanation


def explanation(before, after, *, error=0.01, after_error=0.01, **changes):
    values = {
        "n_observations": 10_384,
        "n_detected": 10_085,
        "reference_observation": 300,
        "detector": "adwin",
        "detector_params": {"delta": 0.025},
        "signal": "zero_one",
        "window": 300,
        "discrepancy": 0.52,
        "threshold": 0.3,
        "n_discrepancy": 600,
        "distance": "label",
        "loss": "zero_one",
        "before": before,
        "after": after,
        "before_std_error": dict.fromkeys(before, error),
        "after_std_error": dict.fromkeys(after, after_error),
    }
    return ChangeExplanation(**{**values, **changes})


BEFORE = {"salary": 0.30, "elevel": 0.01, "age": 0.20, "loan": 0.0}
AFTER = {"salary": 0.01, "elevel": 0.20, "age": 0.205, "loan": 0.001}


def test_the_sentence_word_for_word():
    assert explanation(BEFORE, AFTER).sentence("credit") == (
        "credit changed at 10 384 (discrepancy 0.52 > 0.30): "
        "salary lost 0.29, elevel gained 0.19; the others within noise"
    )


def test_the_largest_change_comes_first_whatever_its_sign():
    swapped = explanation(AFTER, BEFORE)
    assert swapped.significant() == ["salary", "elevel"]
    assert "salary gained 0.29, elevel lost 0.19" in swapped.sentence("credit")


def test_a_sentence_without_a_significant_change_says_so():
    text = explanation(BEFORE, AFTER, error=1.0).sentence("credit")
    assert text == "credit changed at 10 384 (discrepancy 0.52 > 0.30): no feature's importance changed beyond noise"


def test_a_sentence_in_which_every_feature_changed_names_no_others():
    text = explanation({"a": 0.0, "b": 1.0}, {"a": 1.0, "b": 0.5}).sentence("m")
    assert text == "m changed at 10 384 (discrepancy 0.52 > 0.30): a gained 1.00, b lost 0.50"


def test_a_sentence_names_four_features_and_counts_the_rest():
    before = {f"f{i}": 0.0 for i in range(8)}
    after = {f"f{i}": (i + 1) / 10 for i in range(6)} | {"f6": 0.0, "f7": 0.0}
    text = explanation(before, after).sentence("m")
    assert text.endswith(
        ": f5 gained 0.60, f4 gained 0.50, f3 gained 0.40, f2 gained 0.30, 2 more changed by less; "
        "the others within noise"
    )


@pytest.mark.parametrize(
    ("change", "written"),
    [(0.0049, "0.0049"), (0.005, "0.01"), (1.2e-9, "1.2e-09"), (12.345, "12.35"), (123456.0, "1.2e+05")],
)
def test_amounts_keep_significant_digits_where_decimals_say_nothing(change, written):
    text = explanation({"a": 0.0}, {"a": change}, error=0.0, after_error=0.0).sentence("m")
    assert text.endswith(f"a gained {written}")


def test_delta_is_after_minus_before_and_a_missing_side_is_0():
    made = explanation({"a": 0.3, "gone": 0.2}, {"a": 0.1, "new": 0.4}, error=0.03, after_error=0.04)
    assert made.features == ["a", "gone", "new"]
    assert made.delta == pytest.approx({"a": -0.2, "gone": -0.2, "new": 0.4})
    assert made.delta_std_error == pytest.approx({"a": 0.05, "gone": 0.03, "new": 0.04})
    assert made.before_ranks == {"a": 1, "gone": 2}
    assert made.after_ranks == {"new": 1, "a": 2}


@pytest.mark.parametrize("d", [1, 2, 9, 40])
@pytest.mark.parametrize("level", [0.05, 0.01])
def test_significance_is_bonferroni_over_the_features(d, level):
    z = stats.norm.ppf(1.0 - level / (2 * d))
    error = math.hypot(0.03, 0.04)
    for factor, named in ((1.001, ["f0"]), (0.999, [])):
        for sign in (1.0, -1.0):
            after = dict.fromkeys((f"f{i}" for i in range(d)), 0.0) | {"f0": sign * factor * z * error}
            made = explanation(dict.fromkeys(after, 0.0), after, error=0.03, after_error=0.04)
            assert made.significant(level) == named


def test_under_no_change_a_feature_is_named_in_at_most_the_level_of_the_runs():
    rng, n_runs, d, level = np.random.default_rng(1), 2000, 9, 0.05
    named = 0
    for row in rng.normal(0.0, math.hypot(0.03, 0.04), size=(n_runs, d)).tolist():
        after = {f"f{i}": value for i, value in enumerate(row)}
        made = explanation(dict.fromkeys(after, 0.0), after, error=0.03, after_error=0.04)
        named += bool(made.significant(level))
    # Bonferroni of independent features: 1 - (1 - .05/9)^9 = .049; within four standard deviations of 2000 runs.
    expected = 1.0 - (1.0 - level / d) ** d
    assert abs(named / n_runs - expected) < 4 * math.sqrt(expected * (1 - expected) / n_runs)


def test_an_unchanged_feature_of_no_spread_is_not_significant():
    made = explanation({"a": 0.0, "b": 0.0}, {"a": 0.0, "b": 1.0}, error=0.0, after_error=0.0)
    assert made.significant() == ["b"]
