"""The explanation's own arithmetic and its sentence, on numbers written by hand."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from attributary_explainers import InvalidParameterError
from tests.explainers.changes import change_of, explanation_of


def explanation(before, after, *, head=None, **changes):
    return explanation_of(change_of(before, after, **changes), **(head or {}))


BEFORE = {"salary": 0.30, "elevel": 0.01, "age": 0.20, "loan": 0.0}
AFTER = {"salary": 0.01, "elevel": 0.20, "age": 0.205, "loan": 0.001}
# 1.96 * hypot(0.01, 0.01) = 0.0277 stands after each plus-minus sign.
MOVED = "salary lost 0.29 ± 0.03 of its importance, elevel gained 0.19 ± 0.03; age, loan within noise"
SHORTCUTS = [
    *("loss", "features", "before", "after", "before_std_error", "after_std_error", "delta", "delta_std_error"),
    *("model_part", "data_part", "before_ranks", "after_ranks", "shift", "ndcg", "p_values"),
]
HEAD = "credit changed at 10 384 (discrepancy 0.52 > 0.30)"


@pytest.mark.parametrize("route", ["detector", "discrepancy"])
def test_the_sentence_word_for_word(route):
    assert explanation(BEFORE, AFTER, head={"route": route}).sentence("credit") == f"{HEAD}: {MOVED}; due to the model"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((None, None), "credit has a new version at 10 384 (discrepancy 0.52)"),
        (("7", "8"), "credit went from version 7 to version 8 at 10 384 (discrepancy 0.52)"),
        ((None, "8"), "credit went to version 8 at 10 384 (discrepancy 0.52)"),
        (("7", None), "credit has a new version at 10 384 (discrepancy 0.52)"),
    ],
)
def test_the_sentence_of_a_version_word_for_word(names, said):
    # Whose doing it is goes without saying, and the discrepancy need not exceed anything.
    head = {"route": "version", "version_before": names[0], "version": names[1]}
    assert explanation(BEFORE, AFTER, head=head).sentence("credit") == f"{said}: {MOVED}"


def test_the_sentence_of_changed_data_word_for_word_is_of_the_data_part():
    # delta says elevel and salary; the reference model shows salary alone, and that is what is named.
    crossed = {**BEFORE, "salary": 0.10}
    made = explanation(BEFORE, AFTER, crossed=crossed, head={"kind": "data", "discrepancy": 0.08})
    assert made.sentence("credit") == (
        "the data of credit changed at 10 384, the model did not (discrepancy 0.08 <= 0.30): "
        "salary lost 0.20 ± 0.03 of its importance; age, elevel, loan within noise"
    )


@pytest.mark.parametrize(
    ("crossed", "part_error", "cause", "said"),
    [
        (BEFORE, None, "model", "; due to the model"),
        (AFTER, None, "data", "; due to the data"),
        ({**BEFORE, "salary": 0.01}, None, "both", "; due to model and data"),
        (None, 1.0, None, ""),
    ],
)
def test_the_sentence_ends_with_the_cause_where_a_part_is_beyond_noise(crossed, part_error, cause, said):
    made = explanation(BEFORE, AFTER, crossed=crossed, part_error=part_error)
    assert made.cause == cause
    assert made.sentence("credit") == f"{HEAD}: {MOVED}{said}"


def test_the_place_can_be_counted_otherwise():
    assert explanation(BEFORE, AFTER).sentence("credit", 1_234_567).startswith("credit changed at 1 234 567 (")
    assert explanation(BEFORE, AFTER).sentence().startswith("the model changed at 10 384 (")


def test_the_largest_change_comes_first_whatever_its_sign():
    swapped = explanation(AFTER, BEFORE)
    assert swapped.significant() == ["salary", "elevel"]
    assert "salary gained 0.29 ± 0.03 of importance, elevel lost 0.19 ± 0.03;" in swapped.sentence("credit")


def test_a_sentence_without_a_significant_change_says_so():
    text = explanation(BEFORE, AFTER, error=1.0).sentence("credit")
    assert text == f"{HEAD}: no feature's importance changed beyond noise; its loss is 0.04, that of the reference 0.31"


def test_without_importances_there_is_a_sentence_and_a_clear_error():
    made = explanation(BEFORE, AFTER, head={"importances": {}})
    assert made.sentence("credit") == HEAD
    assert made.cause is None
    for name in ("first", *SHORTCUTS):
        with pytest.raises(InvalidParameterError, match=r"^importances must be pfi or sage"):
            getattr(made, name)
    with pytest.raises(InvalidParameterError, match=r"^importances must be pfi or sage"):
        made.significant()


def test_the_shortcuts_are_those_of_the_first_method():
    pfi, sage = change_of(BEFORE, AFTER), change_of(AFTER, BEFORE, method="sage", loss="brier", error=0.02)
    made = explanation(BEFORE, AFTER, head={"importances": {"sage": sage, "pfi": pfi}})
    assert made.first is sage
    for name in SHORTCUTS:
        assert getattr(made, name) == getattr(sage, name)
    assert made.significant() == sage.significant()
    assert made.cause == sage.cause()
    expected = sum(abs(BEFORE[f] / sum(BEFORE.values()) - AFTER[f] / sum(AFTER.values())) for f in BEFORE) / 2
    assert made.shift == pytest.approx(expected, rel=1e-12)


def test_a_sentence_in_which_every_feature_changed_names_no_others():
    text = explanation({"a": 0.0, "b": 1.0}, {"a": 1.0, "b": 0.5}).sentence("m")
    assert text == (
        "m changed at 10 384 (discrepancy 0.52 > 0.30): a gained 1.00 ± 0.03 of importance, b lost 0.50 ± 0.03; "
        "due to the model"
    )


@pytest.mark.parametrize(("after", "said"), [(0.9, "a gained 0.90 ± 0.03 of importance"), (0.0, None)])
def test_of_a_single_feature_no_others_are_within_noise(after, said):
    text = explanation({"a": 0.0}, {"a": after}).sentence("m")
    assert (said in text) if said else ("no feature's importance changed beyond noise" in text)
    assert "within" not in text


def test_a_sentence_names_four_features_and_counts_the_rest():
    before = {f"f{i}": 0.0 for i in range(8)}
    after = {f"f{i}": (i + 1) / 10 for i in range(6)} | {"f6": 0.0, "f7": 0.0}
    text = explanation(before, after).sentence("m")
    assert text.endswith(
        ": f5 gained 0.60 ± 0.03 of importance, f4 gained 0.50 ± 0.03, f3 gained 0.40 ± 0.03, f2 gained 0.30 ± 0.03, "
        "2 more changed by less; f6, f7 within noise; due to the model"
    )


@pytest.mark.parametrize(
    ("n_quiet", "said"),
    [
        (1, "; q0 within noise;"),
        (4, "; q0, q1, q2, q3 within noise;"),  # one more would be no shorter than its name
        (5, "; q0, q1, q2 and 2 more within noise;"),
        (30, "; q0, q1, q2 and 27 more within noise;"),
    ],
)
def test_quiet_features_are_named_the_most_important_first(n_quiet, said):
    quiet = {f"q{i}": 0.5 - i / 100 for i in reversed(range(n_quiet))}
    text = explanation({"a": 0.0, **quiet}, {"a": 0.4, **quiet}).sentence("m")
    assert said in text


@pytest.mark.parametrize("unit", [1e-9, 1e5])
def test_what_is_named_does_not_depend_on_the_unit(unit):
    scaled = [{f: value * unit for f, value in of.items()} for of in (BEFORE, AFTER)]
    made = explanation(*scaled, error=0.01 * unit, after_error=0.01 * unit)
    assert made.p_values == pytest.approx(explanation(BEFORE, AFTER).p_values, rel=1e-9)
    assert made.significant() == ["salary", "elevel"]
    assert made.shift == pytest.approx(explanation(BEFORE, AFTER).shift)
    exponent = {1e-9: "2.9e-10 ± 3e-11", 1e5: "29000 ± 2772"}[unit]
    assert f"salary lost {exponent} of its importance" in made.sentence("m")


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_an_error_that_is_not_finite_is_not_written(error):
    made = explanation({"a": 0.0, "b": 1.0}, {"a": 1.0, "b": 0.5})
    whole = dataclasses.replace(made.first, delta_std_error={"a": 0.01, "b": error})
    text = dataclasses.replace(made, importances={"pfi": whole}).sentence("m")
    assert "nan" not in text
    assert "inf" not in text


@pytest.mark.parametrize("d", [1, 2, 9, 40])
@pytest.mark.parametrize("level", [0.05, 0.01])
def test_significance_of_a_single_change_is_bonferroni_over_the_features(d, level):
    # Holm's smallest p-value is multiplied by the number of features.
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
    # Of independent features: 1 - (1 - .05/9)^9 = .049; within four standard deviations of 2000 runs.
    expected = 1.0 - (1.0 - level / d) ** d
    assert abs(named / n_runs - expected) < 4 * math.sqrt(expected * (1 - expected) / n_runs)


@pytest.mark.parametrize(
    ("discrepancy", "threshold", "said"),
    [
        (0.52, 0.3, "0.52 > 0.30"),
        (0.304, 0.3, "0.304 > 0.300"),
        (1.3e-4, 1e-4, "0.00013 > 0.00010"),
        (0.2999, 0.3, "0.2999 <= 0.3000"),
        (0.3, 0.3, "0.30 <= 0.30"),
        (5.0, 0.3, "5.00 > 0.30"),
    ],
)
def test_discrepancy_and_threshold_can_be_told_apart(discrepancy, threshold, said):
    made = explanation(BEFORE, AFTER, head={"discrepancy": discrepancy, "threshold": threshold})
    assert f"(discrepancy {said})" in made.sentence("m")


@pytest.mark.parametrize(
    ("amount", "error", "said"),
    [
        (0.29, 0.015, "0.29 ± 0.03"),
        (0.02, 0.0001, "0.0200 ± 0.0002"),
        (1234.5, 28.0, "1234 ± 55"),
        (12.3, 1.5, "12 ± 3"),
        # Significant digits where decimals say nothing.
        *((0.0049, 0.0, "0.0049"), (0.005, 0.0, "0.01"), (1.2e-9, 0.0, "1.2e-09")),
        *((12.345, 0.0, "12.35"), (123456.0, 0.0, "1.2e+05")),
    ],
)
def test_an_amount_has_the_decimals_of_its_error(amount, error, said):
    made = explanation({"a": 0.0}, {"a": amount}, part_error=0.0)
    first = dataclasses.replace(made.first, delta_std_error={"a": error})
    assert f": a gained {said} of importance;" in dataclasses.replace(made, importances={"pfi": first}).sentence("m")
