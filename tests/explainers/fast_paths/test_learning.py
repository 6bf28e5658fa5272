"""What trees have learnt, read by compiled code: the same bits as where Python looks, and nearly always."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from river import drift, forest, tree
from river.datasets import synth

from attributary_explainers.compiled import is_compiling
from attributary_explainers.evaluation.registry import make_evaluator
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.fast_paths.trees import classifiers, structure
from attributary_explainers.fast_paths.trees.leaves.classes import ClassLeaves
from attributary_explainers.meanwhile import waiting

from .harness import Row, mixtures, same_bits
from .test_trees_upkeep import ALTERNATING, CLASSIFIERS, QUICK
from .tree_cases import branches, drifting, leaves

pytestmark = pytest.mark.skipif(not is_compiling(), reason="kernels are not compiled")

MODELS: dict[str, Any] = {
    **CLASSIFIERS,
    "tree, by majority": lambda: tree.HoeffdingTreeClassifier(**QUICK, leaf_prediction="mc"),
    "adaptive, by Bayes": lambda: tree.HoeffdingAdaptiveTreeClassifier(**QUICK, **ALTERNATING, leaf_prediction="nb"),
}

AT_LEAST = {"tree": 0.5, "tree, by majority": 0.5, "adaptive": 0.4, "forest": 0.15, "bag": 0.1}
"""Shares of observations after which nothing is left to Python; in others trees have settings that it has to read."""


@pytest.fixture(autouse=True)
def compiled_at_once() -> Iterator[None]:
    with waiting():
        yield


@pytest.mark.parametrize("categories", [0, 4])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.share(2, "name", "categories")
def test_it_is_what_python_reads(name: str, categories: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, rng, counts = MODELS[name](), random.Random(3), Counter[str]()
    labels: Sequence[Any] = ("a", "b", "c", "d")
    stream = drifting(300, labels[:2], categories=categories) + drifting(300, labels, categories=categories, seed=2)
    schema = Schema(stream[0][0], ("colour", "shape") if categories else ())
    by_kernel, by_python = make_evaluator(model, schema), make_evaluator(model, schema)
    kernel = classifiers.classify_at_once

    def counted(*args: Any) -> int:
        found: int = kernel(*args)
        counts["asked"] += 1
        counts["nothing is left"] += found > 0
        return found

    monkeypatch.setattr(classifiers, "classify_at_once", counted)
    past: list[Row] = []
    for step, (x, y) in enumerate(stream):
        rows = list(mixtures(x, past, 8, rng))
        X = schema.encode_many(rows)
        found = by_kernel.predict(X).copy()
        with monkeypatch.context() as patch:
            patch.setattr(ClassLeaves, "room_for_news", lambda *_: None)
            expected = by_python.predict(X)
        assert by_kernel.labels == by_python.labels, step
        assert np.array_equal(found, expected, equal_nan=True), step
        for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 1, 2))):
            model.learn_one(x, y)
        past.append(x)
    if name in AT_LEAST:
        assert counts["nothing is left"] > AT_LEAST[name] * counts["asked"], counts


def test_a_leaf_that_was_put_to_sleep_and_woken_is_taken_in_alone() -> None:
    """A tree would be compared anew as a whole: rows would be sent down it twice until all of it had been met."""
    model = forest.ARFClassifier(n_models=3, seed=1)
    stream = list(synth.Agrawal(classification_function=1, seed=1).take(3000))
    for x, y in stream[:1000]:
        model.learn_one(x, y)
    schema = Schema(stream[0][0])
    evaluator: Any = make_evaluator(model, schema)
    n_woken = n_epochs = 0
    for step, (x, y) in enumerate(stream[1000:]):
        X = schema.encode_many([x, stream[step][0]])
        found = dict(zip(evaluator.labels, evaluator.predict(X)[0].tolist(), strict=True)) if step else {}
        named = model.predict_proba_one(x) if step else {}
        assert all(abs(found[label] - p) < 1e-12 for label, p in named.items())
        evaluator.predict(X)
        known = evaluator._structure
        reached = [evaluator._leaves.records[slot].leaf for slot in known.table[:, 4].tolist()]
        observers, epoch = [leaf.splitters for leaf in reached], known._epoch
        model.learn_one(x, y)
        woken = sum(leaf.splitters is not seen for leaf, seen in zip(reached, observers, strict=True))
        evaluator.predict(X)
        if evaluator._structure is known and step > 100:
            n_woken += woken
            n_epochs += known._epoch - epoch
    assert n_woken > 3
    assert n_epochs < n_woken / 2


def test_splits_are_taken_in_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    model = forest.ARFClassifier(n_models=4, seed=1, grace_period=15, delta=0.3, drift_detector=drift.NoDrift())
    stream, rng, replaced = drifting(500), random.Random(2), list[int]()
    schema, past = Schema(stream[0][0]), [x for x, _ in stream[:20]]
    model.learn_one(*stream[0])
    evaluator: Any = make_evaluator(model, schema)
    replace = structure.Structure._replace
    monkeypatch.setattr(structure.Structure, "_replace", lambda self, t: (replaced.append(t), replace(self, t)))
    for x, y in stream:
        X = schema.encode_many(list(mixtures(x, past, 6, rng)))
        found = evaluator.predict(X).copy()
        same_bits(found, evaluator, make_evaluator(model, schema), X, "a new evaluator")
        model.learn_one(x, y)
    n_splits = sum(len(list(branches(member))) for member in model)
    assert n_splits > 40
    assert len(replaced) < n_splits / 8, "those of roots, and where Python has to make room"


NOMINAL: Any = {"nominal_attributes": ["whole", "truth"]}
TEXTS: dict[str, Any] = {
    "tree": lambda: tree.HoeffdingTreeClassifier(grace_period=60, delta=0.05, max_depth=2, **NOMINAL),
    "adaptive": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1, grace_period=300, **NOMINAL),
    "forest": lambda: forest.ARFClassifier(3, seed=1, drift_detector=None, warning_detector=None, **NOMINAL),
}


@pytest.mark.parametrize("name", TEXTS)
def test_categories_are_read_without_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of them, also of integers and booleans, and leaves that are new for those that were not there before."""
    model, rng, counts = TEXTS[name](), random.Random(3), Counter[str]()
    stream = []
    for i, (x, y) in enumerate(drifting(600, ("a", "b", "c"), numbers=2, categories=12)):
        whole = rng.randrange(3 + i // 60)
        label = y if rng.random() < 0.4 else ("a", "b", "c")[whole % 3]
        stream.append(({**x, "whole": whole, "truth": rng.random() < 0.5}, label))
    schema = Schema(stream[0][0], ("colour", "shape", "whole", "truth"))
    for x, y in stream[:20]:
        model.learn_one(x, y)
    evaluator: Any = make_evaluator(model, schema)
    by_python = make_evaluator(model, schema)
    kernel, load, put = classifiers.classify_at_once, ClassLeaves._load_observers, structure.Structure._put

    def counted(*args: Any) -> int:
        found: int = kernel(*args)
        counts["nothing is left"] += found > 0
        return found

    monkeypatch.setattr(classifiers, "classify_at_once", counted)
    past = [x for x, _ in stream[:20]]
    for x, y in stream[20:]:
        X = schema.encode_many(list(mixtures(x, past, 6, rng)))
        with monkeypatch.context() as patch:
            patch.setattr(ClassLeaves, "_load_observers", lambda *a: (counts.update(["read by Python"]), load(*a))[1])
            patch.setattr(structure.Structure, "_put", lambda *a: (counts.update(["put by Python"]), put(*a))[1])
            found = evaluator.predict(X).copy()
        with monkeypatch.context() as patch:
            patch.setattr(ClassLeaves, "room_for_news", lambda *_: None)
            assert np.array_equal(found, by_python.predict(X), equal_nan=True)
        model.learn_one(x, y)
        past.append(x)
    assert counts["nothing is left"] > 0.9 * len(stream), counts
    if name == "forest":
        n_leaves = sum(len(list(leaves(member))) for member in model)
        assert counts["put by Python"] < n_leaves / 4, "those of splits by categories, and where there was no room"
    else:  # rows of a forest come to leaves that they have not come to before, which Python reads
        assert counts["read by Python"] < 0.1 * len(stream), counts
    assert evaluator._leaves.tables.any()


def test_where_rows_go_is_asked_again_when_an_only_child_gets_a_heavier_sibling() -> None:
    settings: dict[str, Any] = {"grace_period": 10, "delta": 0.9, "tau": 0.9, "merit_preprune": False}
    model = tree.HoeffdingTreeClassifier(leaf_prediction="mc", **settings)
    for i in range(40):
        model.learn_one({"c": "only"}, i % 2 == 0)
    assert len(model._root.children) == 1, "a split by a category that was the only one"
    schema = Schema({"c": "only"}, ("c",))
    evaluator = make_evaluator(model, schema)
    said = []
    for _ in range(60):
        found = evaluator.predict(schema.encode_many([{"c": "more"}, {"c": "never seen"}]))[1].tolist()
        expected = model.predict_proba_one({"c": "never seen"})
        assert found == pytest.approx([expected[label] for label in (False, True)], abs=1e-12)
        said.append(tuple(found))
        model.learn_one({"c": "more"}, True)
    assert said[0] == (0.5, 0.5)
    assert said[-1] == pytest.approx((0.0, 1.0)), "it takes the heavier child"
