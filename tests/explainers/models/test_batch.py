"""Callables of many rows: what they are given, what they may return, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest

from attributary_explainers import (
    InvalidParameterError,
    ModelError,
    dump_model,
    freeze,
    load_model,
    model_function,
)
from attributary_explainers.models.batch import as_batch
from attributary_explainers.predictions import predict_rows

ROWS = [{"a": 1.0, "b": 2}, {"b": -1.5, "a": 4}, {"a": True, "b": 0.0}]


class Weighted:
    """3 a - b of a table with the columns a and b, and the shapes that it was given."""

    def __init__(self):
        self.given = []

    def __call__(self, table):
        self.given.append((type(table), table.dtype, table.shape))
        return table @ np.array([3.0, -1.0])


def sizes(rows):
    return [row["size"] for row in rows]


def equal(a, b):
    if isinstance(a, dict):
        return list(a) == list(b) and all(math.isclose(a[k], b[k], abs_tol=1e-12) for k in a)
    return a == b or math.isclose(a, b, abs_tol=1e-12)


RETURNS = [
    ("number", lambda rows: [row["a"] for row in rows], None, [1.0, 4.0, 1.0]),
    ("number", lambda rows: (row["a"] for row in rows), None, [1.0, 4.0, 1.0]),
    ("number", lambda rows: np.array([row["a"] for row in rows], dtype=np.float32), None, [1.0, 4.0, 1.0]),
    ("number", lambda rows: np.array([[row["a"]] for row in rows]), None, [1.0, 4.0, 1.0]),
    ("number", lambda rows: pd.Series([row["a"] for row in rows], index=range(5, 5 + len(rows))), None, [1, 4, 1]),
    ("any", lambda rows: [row["a"] for row in rows], None, [1.0, 4.0, 1.0]),
    ("label", lambda rows: ["hi" if row["a"] > 2 else "lo" for row in rows], None, ["lo", "hi", "lo"]),
    ("label", lambda rows: np.array(["hi" if row["a"] > 2 else "lo" for row in rows]), None, ["lo", "hi", "lo"]),
    ("label", lambda rows: [(row["a"] > 2, "x") for row in rows], None, [(False, "x"), (True, "x"), (False, "x")]),
    ("probabilities", lambda rows: [{"u": 0.25, "v": 0.75} for _ in rows], None, [{"u": 0.25, "v": 0.75}] * 3),
    ("probabilities", lambda rows: np.array([[0.25, 0.75]] * len(rows)), ["u", "v"], [{"u": 0.25, "v": 0.75}] * 3),
    ("probabilities", lambda rows: pd.DataFrame([[0.25, 0.75]] * len(rows)), ["u", "v"], [{"u": 0.25, "v": 0.75}] * 3),
    ("label", lambda rows: np.array([[0.25, 0.75]] * len(rows)), ["u", "v"], ["v"] * 3),
    ("number", lambda rows: [None if row["a"] > 2 else 0.5 for row in rows], None, [0.5, None, 0.5]),
    ("probabilities", lambda rows: [{}] * len(rows), None, [None] * 3),
    ("number", lambda rows: None, None, [None] * 3),
]  # fmt: skip


@pytest.mark.parametrize(("output", "function", "classes", "expected"), RETURNS)
def test_whatever_sequence_comes_back_is_one_prediction_per_row(output, function, classes, expected):
    one = model_function(as_batch(function, classes=classes), output)
    if output == "label":
        expected = [{label: 1.0} for label in expected]
    together = predict_rows(one, ROWS)
    assert all(equal(p, q) for p, q in zip(together, expected, strict=True))
    assert all(equal(p, one(row)) for p, row in zip(together, ROWS, strict=True))


def test_labels_and_numbers_of_arrays_are_builtins():
    (label,) = predict_rows(model_function(as_batch(lambda rows: np.array([7])), "label"), [{}])[0]
    assert type(label) is int
    assert type(predict_rows(model_function(as_batch(lambda rows: np.array([7])), "number"), [{}])[0]) is float


def test_named_features_make_an_array_in_their_order():
    model = Weighted()
    function = model_function(as_batch(model, features=["a", "b"]), "number")
    assert predict_rows(function, ROWS) == [1.0, 13.5, 3.0]
    assert function({"b": np.float32(2.0), "unknown": "x", "a": np.int64(1)}) == 1.0
    assert model.given == [(np.ndarray, np.float64, (3, 2)), (np.ndarray, np.float64, (1, 2))]


@pytest.mark.parametrize("row", [{"a": 1.0}, {"a": 1.0, "b": None}, {"a": 1.0, "b": math.nan}])
def test_an_absent_feature_is_nan(row):
    seen = []
    function = model_function(as_batch(lambda table: seen.append(table) or [0.0], features=["a", "b"]), "number")
    function(row)
    assert seen[0].dtype == np.float64
    assert seen[0][0, 0] == 1.0
    assert math.isnan(seen[0][0, 1])


@pytest.mark.parametrize("value", ["3.5", "red", (1, 2), object(), 1j])
def test_a_value_that_is_no_number_is_refused_by_the_name_of_its_feature(value):
    function = model_function(as_batch(lambda table: table[:, 0], features=["a", "b"]), "number")
    with pytest.raises(ModelError, match="number as feature 'b'") as caught:
        predict_rows(function, [{"a": 1, "b": 1}, {"a": 1, "b": value}])
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("returned", "classes", "says"),
    [
        ([1.0, 2.0], None, "expected 3 predictions, one per row, got 2"),
        ([], None, "got 0"),
        (np.zeros(4), None, r"shape \(4,\)"),
        (np.zeros((3, 2)), None, r"shape \(3, 2\).*classes="),
        (np.zeros((3, 1, 1)), None, r"shape \(3, 1, 1\)"),
        (np.float64(1.0), None, r"shape \(\)"),
        (np.zeros((3, 3)), ["u", "v"], r"array \(3, 2\).*\['u', 'v'\].*shape \(3, 3\)"),
        (np.zeros((2, 2)), ["u", "v"], r"array \(3, 2\).*shape \(2, 2\)"),
        (1.0, None, "expected a sequence of 3 predictions.*got 1.0"),
        ("abc", None, "expected a sequence of 3 predictions.*got 'abc'"),
        ({"u": 1.0}, None, "expected a sequence of 3 predictions"),
    ],
)
def test_a_wrong_length_or_shape_says_what_was_expected_and_what_came(returned, classes, says):
    function = model_function(as_batch(lambda rows: returned, classes=classes), "any")
    with pytest.raises(ModelError, match=says):
        predict_rows(function, ROWS)


@pytest.mark.parametrize(
    ("output", "returned"),
    [
        ("probabilities", 0.5),
        ("probabilities", {"u": "0.5"}),
        ("number", "0.5"),
        ("number", {"u": 1.0}),
        ("label", [1]),
    ],
)
def test_an_element_of_the_wrong_kind_is_named(output, returned):
    function = model_function(as_batch(lambda rows: [returned] * len(rows)), output)
    with pytest.raises(ModelError) as caught:
        predict_rows(function, ROWS)
    assert repr(returned) in str(caught.value)


@pytest.mark.parametrize(
    ("parameter", "arguments"),
    [
        ("function", {"function": 3}),
        ("features", {"features": "ab"}),
        ("features", {"features": []}),
        ("features", {"features": ["a", "b", "a"]}),
        ("classes", {"classes": []}),
        ("classes", {"classes": [1, 1.0]}),
    ],
)
def test_parameters_are_checked_by_name(parameter, arguments):
    with pytest.raises(InvalidParameterError) as caught:
        as_batch(**{"function": sizes, **arguments})
    assert caught.value.parameter == parameter


def test_no_row_is_no_call():
    model = Weighted()
    assert predict_rows(model_function(as_batch(model, features=["a", "b"]), "number"), []) == []
    assert model.given == []


def test_what_the_callable_raises_is_let_through():
    def broken(rows):
        raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError):
        predict_rows(model_function(as_batch(broken), "number"), ROWS)


def test_a_batch_model_is_saved_and_frozen():
    model = as_batch(Weighted(), features=["a", "b"])
    for copy in (freeze(model), load_model(dump_model(model))):
        assert copy is not model
        assert copy.predict_many(ROWS) == model.predict_many(ROWS)
    with pytest.raises(ModelError, match="cannot save"):
        freeze(as_batch(lambda rows: [0.0] * len(rows)))
