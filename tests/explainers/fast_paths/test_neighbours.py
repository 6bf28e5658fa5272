"""Nearest neighbours by exhaustive search."""

from __future__ import annotations

import math
import random

import pytest
from river import compose, neighbors, preprocessing

from attributary_explainers.evaluation.schema import Schema

from .harness import all_covered, learnt, predicted, refused
from .streams import agrawal, blobs, line

N = 300


def lazy(size=80):
    return neighbors.LazySearch(window_size=size)


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
    "parameters", [{}, {"weighted": False}, {"softmax": True}, {"n_neighbors": 1}, {"n_neighbors": 200}], ids=str
)
@pytest.mark.parametrize("stream", [blobs, grid, fine_grid])
@pytest.mark.share(2, "parameters", "stream")
def test_the_classifier_is_the_model_with_ties_too(parameters, stream):
    all_covered(neighbors.KNNClassifier(engine=lazy(), **parameters), stream(N))


@pytest.mark.parametrize("method", ["mean", "median", "weighted_mean"])
@pytest.mark.parametrize("k", [1, 4, 5])
@pytest.mark.share(2, "k", "method")
def test_the_regressor_is_the_model(method, k):
    all_covered(neighbors.KNNRegressor(k, engine=lazy(), aggregation_method=method), line(N, 3), number=True)


def test_ties_in_the_regressor():
    model = neighbors.KNNRegressor(4, engine=lazy(), aggregation_method="weighted_mean")
    all_covered(model, ((x, len(y) + ord(y)) for x, y in grid(N)), number=True)


@pytest.mark.parametrize("labels", [(2, 0, 1), (True, False)])
@pytest.mark.parametrize("d", [1, 30])
def test_labels_and_numbers_of_features(labels, d):
    all_covered(neighbors.KNNClassifier(engine=lazy()), blobs(N, d, labels))


def test_behind_a_pipeline():
    all_covered(preprocessing.StandardScaler() | neighbors.KNNClassifier(engine=lazy()), agrawal(N // 2, 0, 4))
    all_covered(compose.Select("x2", "x0") | neighbors.KNNClassifier(engine=lazy()), blobs(N))


def test_different_squares_with_the_same_root():
    """River compares distances: then the older row is nearer, however the squares compare."""
    rng = random.Random(3)
    row, older, seen = {"a": 0.0, "b": 0.0}, 2.5e-8, 0
    while seen < 20:
        a = 1.0 + rng.random()
        if not a * a < a * a + older * older or math.sqrt(a * a) != math.sqrt(a * a + older * older):
            continue
        seen += 1
        two = [({"a": a, "b": older}, "older"), ({"a": a, "b": 0.0}, "newer")]
        model = learnt(neighbors.KNNClassifier(1, engine=lazy(50)), two)
        found = predicted(model, [row])
        assert model.predict_proba_one(row) == {"older": 1.0, "newer": 0.0}
        assert found.tolist() == [[0.0, 1.0]]


def test_a_window_that_is_exchanged_is_seen():
    spare = learnt(neighbors.KNNClassifier(engine=lazy()), blobs(120, labels=("b", "a"), seed=5))

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

    all_covered(neighbors.KNNClassifier(engine=lazy()), blobs(N), after=meddle)


def test_stored_rows_with_other_features_are_not_covered_until_they_are_gone():
    model = learnt(neighbors.KNNClassifier(engine=lazy(20)), [({"other": 1.0}, "a")])
    report = all_covered(model, blobs(60), uncovered=20)
    assert any("a stored row" in reason for reason in report.reasons)


def test_stored_rows_without_some_features():
    parts = (({name: x[name] for name in list(x)[: 1 + i % 4]}, y) for i, (x, y) in enumerate(blobs(20, seed=2)))
    all_covered(learnt(neighbors.KNNClassifier(engine=lazy(20)), parts), blobs(60))


def test_neighbours_that_are_not_covered_are_refused():
    def near(*arguments, **parameters):
        return neighbors.KNNClassifier(*arguments, **{"engine": lazy(), **parameters})

    schema, x = Schema(["a"]), {"a": 1.0}
    refused("SWINN", neighbors.KNNClassifier(), schema)
    refused("Euclidean", near(engine=neighbors.LazySearch(10, dist_func=lambda a, b: 0.0)), schema)
    refused("categories", near(), Schema(["a"], ["a"]))
    refused("no neighbour", near(0), schema)
    infinite = learnt(neighbors.KNNRegressor(engine=lazy()), [(x, float("inf"))])
    refused("target", infinite, schema, to_predict=True)
    refused("target", learnt(near(), [(x, None)]), schema, to_predict=True)
    forgetful = learnt(near(), [(x, "u")])
    forgetful.classes.clear()
    refused("forgotten", forgetful, schema, to_predict=True)
