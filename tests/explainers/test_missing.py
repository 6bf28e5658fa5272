"""What None and NaN mean: each policy on each kind of missing value, and what the explainers make of it."""

import math
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from attributary_explainers import MISSING_NAMES, IncrementalPFI, IncrementalSAGE, InvalidParameterError
from attributary_explainers.missing import check_missing, drop_missing, has_missing, is_missing, read_missing
from tests.explainers.stand_ins import Linear, Recording

EXPLAINERS = [IncrementalPFI, IncrementalSAGE]
MISSING = [None, math.nan, np.nan, np.float32("nan"), np.float64("nan"), Decimal("NaN"), Decimal("sNaN")]
PRESENT = [0, 0.0, False, "", "nan", (), [], {}, math.inf, Decimal(0), Fraction(1, 2), 10**400, np.int64(0), 1j, b""]


@pytest.mark.parametrize("value", MISSING, ids=lambda value: f"{type(value).__name__} {value!r}")
def test_a_missing_value_is_read_as_the_policy_says(value):
    x = {"a": 1.0, "b": value, "c": 2.0}
    before = list(x.items())
    assert is_missing(value)
    assert has_missing(x)
    assert drop_missing(x) == {"a": 1.0, "c": 2.0}
    assert read_missing(x, "value") is x
    assert read_missing(x, "absent") == {"a": 1.0, "c": 2.0}
    assert read_missing(x, "skip") is None
    assert list(read_missing(x, {"b": 7.0}).items()) == [("a", 1.0), ("b", 7.0), ("c", 2.0)]
    assert read_missing(x, {"a": 7.0}) == {"a": 1.0, "c": 2.0}  # nothing is said of b: it is absent
    assert read_missing(x, {"b": None})["b"] is None
    assert all(mine[1] is its[1] for mine, its in zip(x.items(), before, strict=True))


@pytest.mark.parametrize("value", PRESENT, ids=lambda value: f"{type(value).__name__} {str(value)[:5]}")
@pytest.mark.parametrize("policy", [*MISSING_NAMES, {"b": 7.0}])
def test_a_value_that_is_there_is_read_as_it_is(policy, value):
    x = {"a": 1.0, "b": value}
    assert not is_missing(value)
    assert read_missing(x, policy) is x


@pytest.mark.parametrize("policy", MISSING_NAMES)
def test_an_observation_without_features_is_complete(policy):
    x = {}
    assert read_missing(x, policy) is x


@pytest.mark.parametrize("policy", ["drop", "", None, 3, ["skip"], True])
def test_an_unknown_policy_is_refused_with_the_known_ones(policy):
    with pytest.raises(InvalidParameterError, match=r"^missing must be one of absent, skip, value, got ") as caught:
        IncrementalPFI(Recording(), loss="squared", missing=policy)
    assert caught.value.parameter == "missing"


def test_values_by_feature_are_copied_and_any_mapping_will_do():
    values = OrderedDict(a=0.0)
    checked = check_missing(values)
    values["a"] = 9.0
    assert checked == {"a": 0.0}
    assert type(checked) is dict


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_what_parameters_say_is_the_readers_own(explainer):
    explaining = explainer(Recording(), loss="squared", missing={"a": 0.0})
    explaining.parameters["missing"]["a"] = 9.0
    explaining.snapshot()["parameters"]["missing"]["a"] = 9.0
    assert explaining.parameters["missing"] == {"a": 0.0}


def stream(n=60, seed=1):
    """Every fourth observation lacks a value of `b`, each time another kind of nothing."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        a, b, c = rng.normal(size=3).tolist()
        yield {"a": a, "b": MISSING[i // 4 % 6] if i % 4 == 3 else b, "c": c}, a - 2.0 * c


class Strict(Recording):
    """Fails a test that lets a missing value reach it."""

    def __call__(self, x):
        assert not any(value is None or value != value for value in x.values()), x
        super().__call__(x)
        return Linear({"a": 1.0, "b": 0.5, "c": -2.0})(x)


@pytest.mark.parametrize(
    ("policy", "read"),
    [
        ("absent", lambda x: {name: value for name, value in x.items() if name != "b"}),
        ({"b": 5.0, "never there": 1.0}, lambda x: {**x, "b": 5.0}),
    ],
    ids=["absent", "a value of the user's"],
)
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_an_observation_is_without_the_feature_or_has_the_users_value(explainer, policy, read):
    one, two = (explainer(Strict(), loss="squared", alpha=0.1, missing=m, seed=2) for m in (policy, "value"))
    for i, (x, y) in enumerate(stream()):
        assert one.explain_one(x, y) == two.explain_one(read(x) if i % 4 == 3 else x, y)
    assert one.std_error == two.std_error
    assert (one.n_observations, dict(one.skipped)) == (59, {"nothing_stored": 1})
    assert one.model.rows == two.model.rows


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_skip_is_as_if_the_observation_had_not_been(explainer):
    one, two = (explainer(Strict(), loss="squared", alpha=0.1, missing=m, seed=3) for m in ("skip", "value"))
    for i, (x, y) in enumerate(stream()):
        importance = one.explain_one(x, y)
        if i % 4 != 3:
            assert importance == two.explain_one(x, y)
        else:
            assert importance == two.importance
    assert (one.n_observations, dict(one.skipped)) == (44, {"nothing_stored": 1, "missing": 15})
    assert one.n_skipped == 16
    assert one.reservoir.rows == two.reservoir.rows
    assert one.model.rows == two.model.rows


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_value_hands_on_what_came(explainer):
    model = Recording(1.0)
    explaining = explainer(model, loss="squared", missing="value", n_samples=3, seed=5)
    for x, y in stream():
        explaining.explain_one(x, y)
    assert explaining.n_observations == 59
    handed = [row["b"] for row in model.rows]
    assert sum(value is None for value in handed) > 5
    assert sum(value is not None and value != value for value in handed) > 5


@pytest.mark.parametrize("policy", ["absent", {"b": 0.0}])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_prediction_for_something_else_is_not_used(explainer, policy):
    # The caller's prediction is right where nothing is missing, and for another observation where something is.
    model = Linear({"a": 1.0, "b": 0.5, "c": -2.0})
    given, computed = (explainer(model, loss="squared", alpha=0.1, missing=policy, seed=6) for _ in range(2))
    n_wrong = 0
    for i, (x, y) in enumerate(stream()):
        missing = i % 4 == 3
        n_wrong += missing
        y_pred = 1e6 if missing else model(x)
        assert given.explain_one(x, y, y_pred=y_pred) == computed.explain_one(x, y)
    assert n_wrong == 15


@pytest.mark.parametrize("policy", [*MISSING_NAMES, {"a": 0.0}])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_callers_observation_is_left_alone(explainer, policy):
    explaining = explainer(Recording(), loss="squared", missing=policy, seed=7)
    for i in range(12):
        x = {"a": None if i % 3 else 1.0, "b": i}
        before = dict(x)
        explaining.explain_one(x, 0.0)
        assert (x, list(x)) == (before, list(before))


@pytest.mark.parametrize("policy", MISSING_NAMES)
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_nothing_but_missing_values_is_no_observation(explainer, policy):
    explaining = explainer(lambda x: 1.0, loss="squared", missing=policy, seed=8)
    for _ in range(5):
        explaining.explain_one({"a": None, "b": math.nan}, 0.0)
    expected = {"value": {"nothing_stored": 1}, "absent": {"no_features": 5}, "skip": {"missing": 5}}
    assert dict(explaining.skipped) == expected[policy]
    assert explaining.n_observations == 5 - explaining.n_skipped


@pytest.mark.parametrize("policy", MISSING_NAMES)
@pytest.mark.parametrize(
    "value", [10**400, Decimal("sNaN"), Fraction(10**400, 3)], ids=lambda value: type(value).__name__
)
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_numbers_that_no_float_holds_do_not_stop_the_stream(explainer, value, policy):
    explaining = explainer(lambda x: 1.0, loss="squared", missing=policy, seed=9)
    for i in range(6):
        explaining.explain_one({"a": value if i % 2 else 1.0, "b": i}, 0.0)
    assert explaining.n_observations + explaining.n_skipped == 6
    assert explaining.n_observations > 1
