"""Nearest neighbours by exhaustive search."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from river import compose, neighbors, preprocessing

from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator
from attributary_explainers.evaluation.schema import Schema

from .harness import follow
from .streams import agrawal, blobs, line

N = 300


def lazy(size=80):
    return neighbors.LazySearch(window_size=size)


def fully_covered(report, n=N):
    assert report.steps == n
    assert report.covered == n, report.reasons


def grid(n, seed=1):
    """Few values: many rows at the same distance, and many that are the same."""
    rng = random.Random(seed)
    for i in range(n):
        x = {"b": rng.randint(0, 2), "a": rng.choice([0.1, 0.2, 0.3]), "c": rng.choice([0.1, 0.2, 0.3, 0.7])}
        yield x, rng.choice(["u", "v", "w"][: 2 + (i > n // 2)])


def fine_grid(n, seed=2):
    """Equal distances but for rounding, which depends on the order of the features."""
    rng = random.Random(seed)
    for _ in range(n):
        yield {name: rng.choice([0.1, 0.2, 0.3, 0.7]) for name in "dcbae"}, rng.choice("uv")


@pytest.mark.parametrize(
    "parameters",
    [{}, {"weighted": False}, {"softmax": True}, {"n_neighbors": 1}, {"n_neighbors": 200}],
    ids=str,
)
@pytest.mark.parametrize("stream", [blobs, grid, fine_grid])
def test_the_classifier(parameters, stream):
    fully_covered(follow(neighbors.KNNClassifier(engine=lazy(), **parameters), stream(N)))


@pytest.mark.parametrize("method", ["mean", "median", "weighted_mean"])
@pytest.mark.parametrize("k", [1, 4, 5])
def test_the_regressor(method, k):
    model = neighbors.KNNRegressor(k, engine=lazy(), aggregation_method=method)
    fully_covered(follow(model, line(N, 3), number=True))


def test_ties_in_the_regressor():
    model = neighbors.KNNRegressor(4, engine=lazy(), aggregation_method="weighted_mean")
    fully_covered(follow(model, ((x, len(y) + ord(y)) for x, y in grid(N)), number=True))


@pytest.mark.parametrize("labels", [(2, 0, 1), (True, False)])
@pytest.mark.parametrize("d", [1, 30])
def test_labels_and_numbers_of_features(labels, d):
    fully_covered(follow(neighbors.KNNClassifier(engine=lazy()), blobs(N, d, labels)))


def test_behind_a_pipeline():
    scaled = preprocessing.StandardScaler() | neighbors.KNNClassifier(engine=lazy())
    fully_covered(follow(scaled, agrawal(N // 2, 0, 4)))
    selected = compose.Select("x2", "x0") | neighbors.KNNClassifier(engine=lazy())
    fully_covered(follow(selected, blobs(N)))


def test_different_squares_with_the_same_root():
    """River compares distances: then the older row is nearer, however the squares compare."""
    rng = random.Random(3)
    schema = Schema(["a", "b"])
    row, older, seen = {"a": 0.0, "b": 0.0}, 2.5e-8, 0
    while seen < 20:
        a = 1.0 + rng.random()
        if not a * a < a * a + older * older or math.sqrt(a * a) != math.sqrt(a * a + older * older):
            continue
        seen += 1
        model = neighbors.KNNClassifier(1, engine=lazy(50))
        model.learn_one({"a": a, "b": older}, "older")
        model.learn_one({"a": a, "b": 0.0}, "newer")
        found = make_evaluator(model, schema).predict(schema.encode_many([row]))
        assert model.predict_proba_one(row) == {"older": 1.0, "newer": 0.0}
        assert found.tolist() == [[0.0, 1.0]]


def test_a_window_that_is_exchanged_is_seen():
    spare = neighbors.KNNClassifier(engine=lazy())
    for x, y in blobs(120, labels=("b", "a"), seed=5):
        spare.learn_one(x, y)

    def meddle(step, model):
        if step == 100:
            model._nn.window.extend(list(spare._nn.window)[:60])
        if step == 130:
            model._nn.window.clear()
        if step == 160:
            model._nn = spare._nn
        if step == 180:
            model._nn.window.popleft()
        if step == 200:
            model._nn.window[0] = model._nn.window[1]

    fully_covered(follow(neighbors.KNNClassifier(engine=lazy()), blobs(N), after=meddle))


def test_stored_rows_with_other_features_are_not_covered_until_they_are_gone():
    model = neighbors.KNNClassifier(engine=lazy(20))
    model.learn_one({"other": 1.0}, "a")
    report = follow(model, blobs(60))
    assert report.covered == 60 - 20
    assert any("a stored row" in reason for reason in report.reasons)


def test_stored_rows_without_some_features():
    model = neighbors.KNNClassifier(engine=lazy(20))
    for i, (x, y) in enumerate(blobs(20, seed=2)):
        model.learn_one({name: x[name] for name in list(x)[: 1 + i % 4]}, y)
    fully_covered(follow(model, blobs(60)), 60)


def test_refusals():
    schema = Schema(["a"])
    X = np.zeros((1, 1))
    with pytest.raises(NotCoveredError, match="SWINN"):
        make_evaluator(neighbors.KNNClassifier(), schema)
    other = neighbors.LazySearch(10, dist_func=lambda a, b: 0.0)
    with pytest.raises(NotCoveredError, match="Euclidean"):
        make_evaluator(neighbors.KNNClassifier(engine=other), schema)
    with pytest.raises(NotCoveredError, match="categories"):
        make_evaluator(neighbors.KNNClassifier(engine=lazy()), Schema(["a"], ["a"]))
    with pytest.raises(NotCoveredError, match="no neighbour"):
        make_evaluator(neighbors.KNNClassifier(0, engine=lazy()), schema)
    regressor = neighbors.KNNRegressor(engine=lazy())
    regressor.learn_one({"a": 1.0}, float("inf"))
    with pytest.raises(NotCoveredError, match="target"):
        make_evaluator(regressor, schema).predict(X)
    classifier = neighbors.KNNClassifier(engine=lazy())
    classifier.learn_one({"a": 1.0}, None)
    with pytest.raises(NotCoveredError, match="target"):
        make_evaluator(classifier, schema).predict(X)
    classifier = neighbors.KNNClassifier(engine=lazy())
    classifier.learn_one({"a": 1.0}, "u")
    classifier.classes.clear()
    with pytest.raises(NotCoveredError, match="forgotten"):
        make_evaluator(classifier, schema).predict(X)
