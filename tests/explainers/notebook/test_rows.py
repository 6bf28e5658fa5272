"""Rows of pandas, named tuples and arrays are what the dict of the same values is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import attributary_explainers as ae
from attributary_explainers.missing import is_missing

from . import objects

FEATURES = ("size", "color", "shape")


def frame(n=150):
    pairs = objects.stream(n)
    return pd.DataFrame([x for x, _ in pairs]), pd.Series([y for _, y in pairs])


FORMS = {
    "iterrows": lambda X: [row for _, row in X.iterrows()],
    "one row": lambda X: [X.iloc[[i]] for i in range(len(X))],
    "itertuples": lambda X: list(X.itertuples()),
    "numpy scalars": lambda X: [{name: np.int64(row[name]) for name in FEATURES} for _, row in X.iterrows()],
    "rows of an array": lambda X: list(ae.rows(X.to_numpy(), list(X.columns))),
    "rows of a data frame": lambda X: list(ae.rows(X)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [*objects.EXPLAINERS, *objects.WATCHERS])
@pytest.mark.share(3, "name", "form")
def test_every_explainer_says_of_every_form_what_it_says_of_dicts(name, form):
    make = {**objects.EXPLAINERS, **objects.WATCHERS}[name]
    X, y = frame(80)
    model = objects.model()
    for x, label in objects.stream(80, seed=5):
        model.learn_one(x, label)
    as_dicts, as_given = make(model), make(model)
    for row, given, label in zip(X.to_dict("records"), FORMS[form](X), y.tolist(), strict=True):
        if name in objects.WATCHERS:
            y_pred = model.predict_proba_one(row)
            assert repr(as_given.update(given, label, y_pred)) == repr(as_dicts.update(row, label, y_pred))
        else:
            assert repr(as_given.explain_one(given, label)) == repr(as_dicts.explain_one(row, label))


def test_values_of_numpy_and_pandas_become_plain_and_missing_ones_none():
    series = pd.Series({"n": np.int64(3), "f": np.float32(0.5), "b": np.True_, "na": pd.NA, "nat": pd.NaT, "s": "a"})
    (found,) = ae.rows([series])
    assert {name: (value, type(value)) for name, value in found.items()} == {
        "n": (3, int), "f": (0.5, float), "b": (True, bool), "na": (None, type(None)), "nat": (None, type(None)),
        "s": ("a", str),
    }  # fmt: skip


@pytest.mark.parametrize("value", [pd.NA, pd.NaT, None, float("nan"), np.nan, np.float32("nan")])
def test_what_pandas_has_for_missing_is_missing(value):
    assert is_missing(value)


def test_a_frame_of_several_types_keeps_them_by_row():
    of_pandas = pd.array([1, None], "Int64")
    X = pd.DataFrame({"age": [34, 51], "city": ["Bern", None], "rate": [0.5, np.nan], "n": of_pandas})
    first, second = ae.rows(X)
    assert first == {"age": 34, "city": "Bern", "rate": 0.5, "n": 1}
    assert type(first["age"]) is int
    assert second["n"] is None
    assert is_missing(second["city"])
    assert list(ae.rows(X, ["age"])) == [{"age": 34}, {"age": 51}]
    (alone,) = ae.rows([X.iloc[[0]]])
    assert alone == first


def test_an_array_needs_names():
    pfi = ae.IncrementalPFI(len, loss="squared")
    with pytest.raises(ae.InvalidParameterError, match="rows\\(X, names\\)"):
        pfi.explain_one(np.array([1.0, 2.0]), 1.0)
    with pytest.raises(ae.InvalidParameterError, match="a data frame with one row"):
        pfi.explain_one(frame()[0], 1.0)
    with pytest.raises(ae.InvalidParameterError, match="2 names"):
        list(ae.rows(np.ones((1, 2)), ["a"]))
    with pytest.raises(ae.InvalidParameterError, match="a list of names"):
        ae.rows(np.ones((1, 2)), "ab")
    with pytest.raises(ae.InvalidParameterError, match="columns of the data frame"):
        list(ae.rows(frame()[0], ["sise"]))


PAIRS = [({"a": 1, "b": 2.0}, 3), ({"a": 4, "b": 5.0}, 6)]


@pytest.mark.parametrize(
    "given",
    [
        lambda: ae.observations(PAIRS),
        lambda: ae.observations(iter(PAIRS)),
        lambda: ae.observations([x for x, _ in PAIRS], [3, 6]),
        lambda: ae.observations(pd.DataFrame([x for x, _ in PAIRS]), pd.Series([3, 6])),
        lambda: ae.observations(pd.DataFrame([x for x, _ in PAIRS]), pd.DataFrame({"y": [3, 6]})),
        lambda: ae.observations(np.array([[1, 2.0], [4, 5.0]]), np.array([3, 6]), feature_names=["a", "b"]),
        lambda: ae.observations([(1, 2.0), (4, 5.0)], (y for y in (3, 6)), feature_names=["a", "b"]),
        lambda: ae.observations([((1, 2.0), 3), ((4, 5.0), 6)], feature_names=["a", "b"]),
    ],
)
def test_observations_are_pairs_in_every_form(given):
    assert list(given()) == PAIRS


@pytest.mark.parametrize(
    ("X", "y", "names", "expected"),
    [
        ([{"a": 1}], None, None, [({"a": 1}, None)]),
        ([(1, 2)], None, ["a", "b"], [({"a": 1, "b": 2}, None)]),
        (pd.DataFrame({"a": [1]}), None, None, [({"a": 1}, None)]),
    ],
)
def test_without_labels_they_are_none(X, y, names, expected):
    assert list(ae.observations(X, y, feature_names=names)) == expected


@pytest.mark.parametrize("y", [[1], [1, 2, 3], iter([1]), iter([1, 2, 3])])
def test_as_many_labels_as_rows_are_needed(y):
    with pytest.raises(ae.InvalidParameterError, match="as long as X"):
        list(ae.observations([{"a": 1}, {"a": 2}], y))


def test_batch_methods_take_frames():
    X, y = frame(40)
    by_hand = [(x, y) for x, y in zip(X.to_dict("records"), y.tolist(), strict=True)]
    model = objects.model()
    for x, label in by_hand:
        model.learn_one(x, label)
    assert ae.batch_pfi(model, ae.observations(X, y), seed=1) == ae.batch_pfi(model, by_hand, seed=1)
    series = [(row, label) for (_, row), label in zip(X.iterrows(), y, strict=True)]
    assert ae.batch_sage(model, series, seed=1) == ae.batch_sage(model, by_hand, seed=1)
