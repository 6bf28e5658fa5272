"""Rows whose values change their kind, or have new ones without end, are still explained as by the naive path."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from river import naive_bayes, tree

from attributary_explainers import IncrementalPFI, make_reservoir
from attributary_explainers.evaluation import function as functions
from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.schema import NotEncodableError

from ..fast_paths.harness import learnt
from ..fast_paths.streams import blobs
from ..fast_paths.twins import explain_both
from .harness import fast_function, twins


def test_a_number_that_becomes_text_takes_the_path_that_it_takes_after_a_restart() -> None:
    def stream(n: int) -> Iterator[Any]:
        for i, (x, y) in enumerate(blobs(n, labels=("a", "b"))):
            yield ({**x, "x2": "unknown"} if 40 <= i < 50 or i % 7 == 6 else x), y

    model = tree.HoeffdingTreeClassifier(grace_period=1000, leaf_prediction="mc")
    taken: list[tuple[int, int]] = []
    function = fast_function(model)
    for x, y in stream(80):
        for asked in (function, fast_function(model)):
            try:
                asked.encode(x)
                by_one = 1
            except (NotCoveredError, NotEncodableError):
                by_one = 0
            before = asked.counts["fast"]
            asked.many([x, x])
            taken.append((asked.counts["fast"] - before, by_one))
        assert taken[-1] == taken[-2]
        if not isinstance(x["x2"], str):
            model.learn_one(x, y)
    assert (1, 1) in taken


def test_a_missing_value_keeps_what_has_been_made_for_the_others() -> None:
    model = learnt(tree.HoeffdingTreeClassifier(grace_period=1000, leaf_prediction="mc"), blobs(60))
    function = fast_function(model)
    rows = [x for x, _ in blobs(4)]
    function.many(rows)
    schema, made = function._schema, function._evaluator
    for missing in (None, float("nan"), b"bytes", 2**60 + 1):
        assert function.many([{**rows[0], "x1": missing}]) == [model.predict_proba_one({**rows[0], "x1": missing})]
        assert function.many(rows) == function.many(rows)
        assert function._schema is schema
        assert function._evaluator is made
    assert function.counts["fast"] == 9


def test_codes_do_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_MOST_CODES", 20)
    rows = [({"id": f"user {i}", "n": i % 3}, i % 3 > 1) for i in range(90)]
    model = learnt(tree.HoeffdingTreeClassifier(grace_period=1000, leaf_prediction="nb"), rows[:30])
    made = (twins(model, reservoir=make_reservoir("sliding_window", 8), n_samples=2) for _ in range(2))
    fast, naive = next(made)[0], next(made)[1]
    schemas, sizes = set(), []
    for i, (x, y) in enumerate(rows[10:]):
        explain_both(fast, naive, x, y, i)
        schema = fast._function._schema
        schemas.add(schema)
        sizes.append(max(map(len, schema.codes.values())))
    assert max(sizes) <= 2 * (30 + 9)
    # The model holds 30 by itself: that is no reason to begin anew each time.
    assert len(schemas) == 2
    assert fast._function.counts == {"fast": 80}


def test_a_dict_that_is_used_again() -> None:
    model = naive_bayes.GaussianNB()
    fast, naive = twins(model, n_samples=2)
    given: dict[str, float] = {}
    for i, (x, y) in enumerate(blobs(60)):
        given.clear()
        if i % 10 != 9:
            given.update(x)
        explain_both(fast, naive, given, y, i)
        model.learn_one(x, y)
    assert fast._function.counts["fast"] > 5


def test_stored_rows_are_an_array_again_when_the_strange_one_is_gone() -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=1000, leaf_prediction="mc")
    few = make_reservoir("sliding_window", 5)
    explainer = IncrementalPFI(model, reservoir=few, seed=1, n_samples=2, missing="value")
    complete = []
    for i, (x, y) in enumerate(blobs(30)):
        explainer.explain_one({**x, "x1": math.nan} if i == 10 else x, y)
        model.learn_one(x, y)
        stored = explainer.imputer.stored
        complete.append(stored is not None and stored.is_complete)
    # Found out at the next observation, which makes the array anew.
    assert complete == [False] + 9 * [True] + 6 * [False] + 14 * [True]


def test_a_category_that_comes_back_in_another_type_is_encoded_as_after_a_restart():
    model = tree.HoeffdingTreeClassifier(nominal_attributes=["colour"])
    function = fast_function(model)
    for value in ("a", 1, "b"):
        schema, _ = function.encode({"colour": value, "size": 0.5})
    assert schema.values(schema.position["colour"]) == ["a", 1, "b"]
    again, row = function.encode({"colour": True, "size": 0.5})
    assert again.values(again.position["colour"]) == [True]
    assert fast_function(model).encode({"colour": True, "size": 0.5})[1].tolist() == row.tolist()
