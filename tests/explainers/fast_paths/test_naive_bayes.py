"""Gaussian naive Bayes."""

from __future__ import annotations

import pytest
from river import naive_bayes

from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator
from attributary_explainers.evaluation.schema import Schema

from .harness import follow
from .streams import agrawal, blobs

N = 400


def fully_covered(report, n=N):
    assert report.covered == report.steps == n, report.reasons


@pytest.mark.parametrize("labels", [("b", "a", "c"), (2, 0, 1), (True, False)])
def test_classes_that_come_late(labels):
    fully_covered(follow(naive_bayes.GaussianNB(), blobs(N, labels=labels)))


@pytest.mark.parametrize("d", [1, 30])
def test_one_feature_and_thirty(d):
    fully_covered(follow(naive_bayes.GaussianNB(), blobs(N, d), n_rows=20))


def test_ranges_that_differ_by_orders():
    fully_covered(follow(naive_bayes.GaussianNB(), agrawal(N // 2, 0, 4)))


def test_no_variance_and_density_far_away():
    stream = (({"a": 1.0 + (i >= 20), "b": 1e6 * (i % 7 == 0), "c": x["x0"]}, y) for i, (x, y) in enumerate(blobs(60)))
    fully_covered(follow(naive_bayes.GaussianNB(), stream), 60)


def test_a_feature_that_a_class_has_not_seen():
    model = naive_bayes.GaussianNB()
    stream = list(blobs(60, 3, ("b", "a")))
    for x, y in stream:
        model.learn_one(x if y == "a" else {"x0": x["x0"]}, y)
    fully_covered(follow(model, (({**x, "new": 1.0}, y) for x, y in stream)), 60)


def test_a_class_that_has_seen_nothing_and_variances_of_a_sample():
    def meddle(_, model):
        for gaussians in model.gaussians.values():
            for gaussian in gaussians.values():
                gaussian._var.ddof = 1

    model = naive_bayes.GaussianNB()
    model.learn_one({}, "nothing")
    fully_covered(follow(model, blobs(60), after=meddle), 60)
    assert "nothing" not in model.gaussians


def test_a_feature_without_variance_for_a_while():
    stream = (({"a": 1.0 + (i >= 20), "b": x["x0"]}, y) for i, (x, y) in enumerate(blobs(60)))
    fully_covered(follow(naive_bayes.GaussianNB(), stream), 60)


def test_the_model_is_only_read():
    model = naive_bayes.GaussianNB()
    model.learn_one({"a": 1.0}, True)
    schema = Schema(["a", "b"])
    make_evaluator(model, schema).predict(schema.encode_many([{"a": 1.0, "b": 2.0}]))
    assert set(model.gaussians) == {True}
    assert set(model.gaussians[True]) == {"a"}


def test_categories_are_refused():
    with pytest.raises(NotCoveredError, match="categories"):
        make_evaluator(naive_bayes.GaussianNB(), Schema(["a"], ["a"]))
