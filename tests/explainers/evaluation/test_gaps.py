"""Rows that lack features: one schema for all of them, the model's own predictions, and the draws of the naive path."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from numbers import Number
from typing import Any

import numpy as np
import pytest
from river import (
    compose,
    drift,
    ensemble,
    forest,
    imblearn,
    linear_model,
    naive_bayes,
    neighbors,
    optim,
    preprocessing,
    tree,
)

from attributary_explainers import IncrementalPDP, IncrementalPFI, IncrementalSAGE, make_reservoir
from attributary_explainers.evaluation import function as functions
from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator, number_types, read_as_categories
from attributary_explainers.evaluation.schema import GapSchema, NotEncodableError, Schema, categorical_features
from attributary_explainers.pickling import dump_model, load_model

from ..fast_paths.harness import Report, check, mixtures
from ..fast_paths.streams import blobs, line, texts
from ..fast_paths.twins import bits, explain_both, follow_twins
from .harness import fast_function, twins

Stream = Iterator[tuple[dict[Any, Any], Any]]


def gappy(stream: Stream, share: float = 0.25, seed: int = 3) -> Stream:
    """Features that are there now and then; one comes late, one goes, and some rows have hardly any."""
    rng = random.Random(seed)
    for i, (x, y) in enumerate(stream):
        names = list(x)
        kept = [name for name in names if rng.random() > (0.8 if i % 11 == 10 else share)]
        kept = [name for name in kept if not (name == names[1] and i < 30) and not (name == names[2] and i > 80)]
        yield {name: x[name] for name in kept or names[:1]}, y


def counted(stream: Stream) -> Stream:
    """Counts, as of words."""
    return (({name: int(abs(value)) for name, value in x.items()}, y) for x, y in stream)


def logistic(rate: float = 0.1) -> Any:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(rate))


def of_numbers_and_text() -> Any:
    # What is selected by its name has to be there; by its type, it may lack.
    numbers = compose.SelectType(Number) | preprocessing.StandardScaler()
    return (numbers + (compose.SelectType(str) | preprocessing.OneHotEncoder())) | linear_model.LogisticRegression()


MODELS: dict[str, tuple[Callable[[], Any], Callable[[int], Stream]]] = {
    "linear": (linear_model.LinearRegression, line),
    "bayesian": (linear_model.BayesianLinearRegression, line),
    "passive aggressive": (linear_model.PARegressor, line),
    "softmax": (lambda: preprocessing.MaxAbsScaler() | linear_model.SoftmaxRegression(optim.SGD(0.1)), blobs),
    "two scalers": (lambda: preprocessing.StandardScaler() | logistic(), lambda n: blobs(n, labels=(True, False))),
    "text": (of_numbers_and_text, texts),
    "ordinal": (
        lambda: (
            ((compose.SelectType(str) | preprocessing.OrdinalEncoder()) + compose.SelectType(Number))
            | linear_model.LogisticRegression()
        ),
        texts,
    ),
    "bayes": (naive_bayes.GaussianNB, blobs),
    "bernoulli": (lambda: naive_bayes.BernoulliNB(true_threshold=0.5), blobs),
    "multinomial": (naive_bayes.MultinomialNB, lambda n: counted(blobs(n))),
    "complement": (naive_bayes.ComplementNB, lambda n: counted(blobs(n))),
    "scaled bayes": (lambda: compose.Prefixer("a_") | preprocessing.StandardScaler() | naive_bayes.GaussianNB(), blobs),
    "bag": (lambda: ensemble.BaggingClassifier(naive_bayes.GaussianNB(), 3, seed=1), blobs),
    "boost": (lambda: ensemble.AdaBoostClassifier(naive_bayes.GaussianNB(), 3, seed=1), blobs),
    "tree": (lambda: tree.HoeffdingTreeClassifier(grace_period=15, delta=0.1), blobs),
    "tree of texts": (lambda: tree.HoeffdingTreeClassifier(grace_period=15, delta=0.1), texts),
    "adaptive tree": (lambda: tree.HoeffdingAdaptiveTreeClassifier(grace_period=15, delta=0.1, seed=1), blobs),
    "tree of numbers": (lambda: tree.HoeffdingTreeRegressor(grace_period=15, delta=0.1), line),
    "forest": (lambda: forest.ARFClassifier(3, grace_period=15, delta=0.1, seed=1), blobs),
    "forest of numbers": (lambda: forest.ARFRegressor(3, grace_period=15, delta=0.1, seed=1), line),
    "bag of trees": (
        lambda: ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(grace_period=15), 3, seed=1),
        blobs,
    ),
    "target": (lambda: preprocessing.TargetStandardScaler(linear_model.LinearRegression()), line),
    "retrained": (lambda: drift.DriftRetrainingClassifier(naive_bayes.GaussianNB()), blobs),
    "sampled": (
        lambda: imblearn.RandomSampler(naive_bayes.GaussianNB(), {"a": 0.5, "b": 0.3, "c": 0.2}, seed=1),
        blobs,
    ),
}


OF_NUMBERS = ("linear", "bayesian", "passive aggressive", "target", "tree of numbers", "forest of numbers")


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_lack_features_are_the_models_own_whatever_else_has_a_column(name: str) -> None:
    make, stream = MODELS[name]
    model, rng, report = make(), random.Random(1), Report()
    number = hasattr(model, "predict_one") and name in OF_NUMBERS
    ask = model.predict_one if number else model.predict_proba_one
    past: list[Any] = []
    for step, (x, y) in enumerate(gappy(stream(100))):
        rows = list(mixtures(x, past, 5, rng)) + past[-2:]
        names = {feature for row in rows for feature in row}
        texts_there = {feature for row in rows for feature in categorical_features(row)} | read_as_categories(model)
        kinds = number_types(model)
        schema = GapSchema(names, texts_there & names, kinds)
        wider = GapSchema([*names, "never there", "aa"], texts_there & names, kinds)
        found, labels = predicted(model, schema, rows)
        if found is not None:
            report.covered += 1
            check(found, labels, [ask(dict(row)) for row in rows], report, f"step {step}")
            assert np.array_equal(found, predicted(model, wider, rows)[0], equal_nan=True)
            alone = Schema(x, texts_there & x.keys(), kinds)
            assert np.array_equal(found[:1], predicted(model, alone, rows[:1])[0], equal_nan=True)
        model.learn_one(x, y)
        past = [*past[-40:], x]
    assert report.covered >= 95, report


def predicted(model: Any, schema: Schema, rows: list[Any]) -> tuple[Any, Any]:
    try:
        X = schema.encode_many(rows)
        evaluator = make_evaluator(model, schema)
        return evaluator.predict(X).copy(), evaluator.labels
    except NotCoveredError:
        return None, None


REMOVALS: list[tuple[str, dict[str, Any]]] = [
    ("bayes", {}),
    ("bayes", {"sampling": "independent"}),
    ("bayes", {"removal": "product"}),
    ("bayes", {"removal": "observational", "reservoir": ("geometric", 20)}),
    ("linear", {"reservoir": ("geometric", 12)}),
    ("text", {}),
    ("bayes", {"groups": {"both": ["x0", "x2"]}}),
    ("text", {"groups": {"both": ["size", "colour"]}}),
    ("adaptive tree", {}),
    ("forest", {}),
    ("forest of numbers", {}),
]


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize(("name", "options"), REMOVALS)
@pytest.mark.share(2, "explainer", "options")
def test_explanations_are_those_of_the_naive_path(explainer: Any, name: str, options: dict[str, Any]) -> None:
    make, stream = MODELS[name]
    model = make()
    found = {**options, "reservoir": make_reservoir(*options["reservoir"])} if "reservoir" in options else options
    again = {**options, "reservoir": make_reservoir(*options["reservoir"])} if "reservoir" in options else options
    fast, naive = explainer_twins(model, explainer, found, again)
    for own in (fast, naive):
        own.know_names()
    share = follow_twins(model, fast, naive, gappy(stream(100)))
    # A category that is drawn where the observation has nothing is left to the model.
    assert share > (0.5 if "colour" in str(options) else 0.9), fast._function.counts


def explainer_twins(model: Any, explainer: Any, one: dict[str, Any], other: dict[str, Any]) -> tuple[Any, Any]:
    return twins(model, explainer, **one)[0], twins(model, explainer, **other)[1]


@pytest.mark.parametrize("missing", ["absent", "value"])
def test_a_missing_value_is_absent_only_where_it_is_said_to_be(missing: str) -> None:
    model = naive_bayes.GaussianNB()
    fast, naive = twins(model, missing=missing)
    for i, (x, y) in enumerate(gappy(blobs(100))):
        seen = {**x, "x3": math.nan if i % 2 else None} if i % 5 == 4 else x
        explain_both(fast, naive, seen, y, i)
        model.learn_one(x, y)
    n_fast = fast._function.counts["fast"]
    # As a value it is passed on to the model, which alone knows what comes of it, as long as it may be drawn.
    assert n_fast > 92 if missing == "absent" else 20 < n_fast <= 80


def test_partial_dependence_of_rows_that_lack_features() -> None:
    model = naive_bayes.GaussianNB()
    fast, naive = pdp_twins(model)
    for i, (x, y) in enumerate(gappy(blobs(100))):
        explain_both(fast, naive, x, y, i)
        model.learn_one(x, y)
    assert fast._function.counts["fast"] > 70


def pdp_twins(model: Any) -> tuple[Any, Any]:
    def made() -> Any:
        return IncrementalPDP(model, alpha=0.05, grid_size=4, window=16, seed=1, label="b")

    other = made()
    other._function = other._function._naive
    return made(), other


def test_the_schema_stays_and_a_process_that_begins_later_gives_the_same_bits() -> None:
    model = of_numbers_and_text()
    going = IncrementalSAGE(model, n_samples=4, alpha=0.03, seed=1), IncrementalPFI(model, alpha=0.03, seed=1)
    others: list[tuple[Any, Any]] = []
    schemas = set()
    for step, (x, y) in enumerate(gappy(texts(100))):
        if step in (5, 60):
            copied = load_model(dump_model(model))
            others.append((copied, [type(one).from_snapshot(one.snapshot(), copied) for one in going]))
        for one in going:
            one.explain_one(x, y)
        for copied, again in others:
            for one, its in zip(going, again, strict=True):
                its.explain_one(x, y)
                assert bits(its.snapshot()) == bits(one.snapshot()), step
            copied.learn_one(x, y)
        model.learn_one(x, y)
        schemas.add(going[0]._function._schema)
    assert len(schemas) <= 6
    for one in going:
        assert one._function.counts["fast"] > 90


def test_encoding() -> None:
    schema = GapSchema(["b", "a", "k"], ["k"])
    X = schema.encode_many([{"a": 1.0, "b": 2, "k": "red"}, {"k": "blue"}, {"b": True}, {}])
    expected = [[1.0, 2.0, 0.0], [math.nan, math.nan, 1.0], [math.nan, 1.0, math.nan], [math.nan] * 3]
    assert np.array_equal(X, expected, equal_nan=True)
    assert np.array_equal(schema.encode({"k": "blue", "a": 0.5}), [0.5, math.nan, 1.0], equal_nan=True)
    assert schema.decode(X[1], schema.features) == {"k": "blue"}
    assert schema.decode(X[3], schema.features) == {}
    known = schema.encode_known([{"a": 1.0, "other": math.nan}, {"other": "text"}])
    assert np.array_equal(known, [[1.0, math.nan, math.nan], [math.nan] * 3], equal_nan=True)
    for x in ({}, {"other": 1.0}, {"a": math.nan}, {"a": None}, {"a": "text"}, {"a": math.inf}, {"a": 2**53 + 1}):
        with pytest.raises(NotEncodableError):
            schema.encode(x)


def test_features_that_do_not_come_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_MOST_FEATURES", 10)
    model = naive_bayes.GaussianNB()
    function, widths = fast_function(model), []
    for i in range(60):
        schema, row = function.encode({"stays": 1.0, f"x{i // 2}": 2.0})
        assert np.nansum(row) == 3.0
        widths.append(len(schema))
    assert max(widths) == 10
    assert min(widths[20:]) < 10


def test_a_feature_that_no_path_takes_does_not_cost_the_others_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    model = linear_model.LogisticRegression()
    model.learn_one({"a": 1.0, "b": 2.0}, True)
    function = fast_function(model)
    for x in ({"a": 1.0, "b": 2.0}, {"a": 1.0, "k": "text"}, {"a": 2.0}, {"b": 1.0, "k": 1.0}, {"a": 2.0, "b": 1.0}):
        try:
            expected = [model.predict_proba_one(x)] * 2
        except TypeError:
            monkeypatch.setattr(functions, "say", lambda _, reason: said.append(reason))
            with pytest.raises(NotCoveredError):
                function.predict(function.encode(x)[1][None])
            continue  # the model itself raises
        before = function.counts["fast"]
        for found, own in zip(function.many([x, x]), expected, strict=True):
            assert found == pytest.approx(own, abs=1e-12)
        assert function.counts["fast"] == before + 1
    assert said == ["a linear model gets categories"]


def test_what_has_to_be_there_is_missed() -> None:
    def scaled() -> Any:
        return compose.Select("a", "b") | preprocessing.StandardScaler()

    rows = [{"a": 1.0, "b": 2.0}, {"a": 1.0}]
    for last in (linear_model.LogisticRegression(), naive_bayes.GaussianNB()):
        schema = GapSchema("abc")
        evaluator = make_evaluator(scaled() | last, schema)
        evaluator.predict(schema.encode_many(rows[:1]))
        with pytest.raises(NotCoveredError, match="selected by its name"):
            evaluator.predict(schema.encode_many(rows))
    left_out = make_evaluator(scaled() | compose.Discard("b") | linear_model.LogisticRegression(), schema)
    left_out.predict(schema.encode_many(rows[:1]))
    with pytest.raises(NotCoveredError, match="selected by its name"):
        left_out.predict(schema.encode_many(rows))


def test_neighbours_have_other_schemas() -> None:
    model = ensemble.BaggingClassifier(neighbors.KNNClassifier(), 2, seed=1)
    function = fast_function(model)
    assert not function.encode({"a": 1.0})[0].takes_gaps
