"""Gaussian naive Bayes."""

from __future__ import annotations

import pytest
from river import naive_bayes, preprocessing

from attributary_explainers.evaluation.schema import Schema

from .harness import all_covered, learnt, predicted, refused
from .streams import agrawal, blobs

N = 400


@pytest.mark.parametrize("labels", [("b", "a", "c"), (2, 0, 1), (True, False)])
def test_classes_that_come_late(labels):
    all_covered(naive_bayes.GaussianNB(), blobs(N, labels=labels))


@pytest.mark.parametrize("d", [1, 30])
def test_one_feature_and_thirty(d):
    all_covered(naive_bayes.GaussianNB(), blobs(N, d), n_rows=20)


def test_ranges_that_differ_by_orders():
    all_covered(naive_bayes.GaussianNB(), agrawal(N // 2, 0, 4))


def test_no_variance_for_a_while_and_density_far_away():
    stream = (({"a": 1.0 + (i >= 20), "b": 1e6 * (i % 7 == 0), "c": x["x0"]}, y) for i, (x, y) in enumerate(blobs(60)))
    all_covered(naive_bayes.GaussianNB(), stream)


def test_a_feature_that_a_class_has_not_seen():
    stream = list(blobs(60, 3, ("b", "a")))
    model = learnt(naive_bayes.GaussianNB(), ((x if y == "a" else {"x0": x["x0"]}, y) for x, y in stream))
    all_covered(model, (({**x, "new": 1.0}, y) for x, y in stream))


def test_a_class_that_has_seen_nothing_and_variances_of_a_sample():
    def meddle(_, model):
        for gaussians in model.gaussians.values():
            for gaussian in gaussians.values():
                gaussian._var.ddof = 1

    model = learnt(naive_bayes.GaussianNB(), [({}, "nothing")])
    all_covered(model, blobs(60), after=meddle)
    assert "nothing" not in model.gaussians


def test_the_model_is_only_read():
    model = learnt(naive_bayes.GaussianNB(), [({"a": 1.0}, True)])
    predicted(model, [{"a": 1.0, "b": 2.0}])
    assert set(model.gaussians) == {True}
    assert set(model.gaussians[True]) == {"a"}


def test_categories_are_refused():
    refused("categories", naive_bayes.GaussianNB(), Schema(["a"], ["a"]))


COUNTING = [naive_bayes.BernoulliNB(true_threshold=1.0), naive_bayes.MultinomialNB(0.5), naive_bayes.ComplementNB()]


@pytest.mark.parametrize("model", COUNTING, ids=lambda model: type(model).__name__)
def test_counts(model):
    # The words that there are change.
    stream = [({n: int(abs(v)) for n, v in x.items()}, y) for x, y in blobs(150)]
    changing = [({f"w{i // 30}" if n == "x0" else n: v for n, v in x.items()}, y) for i, (x, y) in enumerate(stream)]
    all_covered(model.clone(), changing)
    all_covered(preprocessing.MaxAbsScaler() | model.clone(), stream[:80])


def test_counts_of_which_the_model_makes_no_logarithm():
    x = {"a": 1.0, "b": 1.0}
    model = learnt(naive_bayes.MultinomialNB(alpha=0.0), [(x, True), ({"a": 1.0}, False)])
    with pytest.raises(ValueError, match="math domain error"):
        model.predict_proba_one(x)
    refused("no finite number", model, Schema(["a", "b"]), to_predict=True)
    refused("categories", naive_bayes.ComplementNB(), Schema(["a"], ["a"]))
