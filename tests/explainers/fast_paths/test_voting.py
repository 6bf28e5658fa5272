"""Voting, stacking, and classifiers of many classes that are made of others."""

from __future__ import annotations

import pytest
from river import compose, ensemble, linear_model, multiclass, naive_bayes, neighbors, optim, preprocessing, tree

from attributary_explainers.evaluation.schema import Schema

from ..evaluation.harness import twins
from .harness import all_covered, follow, refused
from .streams import binary, blobs, texts
from .twins import follow_twins

N = 240
LABELS = ("b", "a", "d", "c")


def logistic(rate=0.1):
    return preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(rate))


def members():
    return [
        naive_bayes.GaussianNB(),
        tree.HoeffdingTreeClassifier(grace_period=20, delta=0.05),
        preprocessing.StandardScaler() | linear_model.SoftmaxRegression(optim.SGD(0.1)),
        neighbors.KNNClassifier(3, engine=neighbors.LazySearch(30)),
    ]


def nearly_all(model, stream, *reasons, of=0.9, **options):
    """Follow the stream; what is not covered is so for these reasons alone."""
    report = follow(model, stream, **options)
    assert report.steps >= 40
    assert report.reasons <= set(reasons), report.reasons
    assert report.covered >= of * report.steps, report
    return report


TIE = "two classes are equally probable"


@pytest.mark.parametrize("use_probabilities", [True, False])
def test_voting(use_probabilities):
    model = ensemble.VotingClassifier(members(), use_probabilities=use_probabilities)
    nearly_all(model, blobs(N, labels=LABELS), TIE, label=True, of=0.7)


def test_as_many_votes_name_the_label_that_was_voted_for_first():
    # Of two members and two classes: wherever the members differ, each class has one vote.
    model = ensemble.VotingClassifier([naive_bayes.GaussianNB(), logistic()], use_probabilities=False)
    nearly_all(model, binary(N), TIE, label=True)


def test_a_member_that_is_replaced_and_another_way_to_count_are_seen():
    def meddle(step, model):
        if step == 60:
            model.data[0] = naive_bayes.GaussianNB()
        if step == 90:
            model.use_probabilities = False
        if step == 120:
            model.data.append(naive_bayes.GaussianNB())

    model = ensemble.VotingClassifier([naive_bayes.GaussianNB(), logistic(0.5)])
    nearly_all(model, binary(N), TIE, label=True, after=meddle)


@pytest.mark.parametrize(
    "inner", [logistic(), naive_bayes.GaussianNB(), tree.HoeffdingTreeClassifier(grace_period=20)], ids=str
)
def test_one_against_the_rest(inner):
    all_covered(multiclass.OneVsRestClassifier(inner), blobs(N, labels=LABELS))


@pytest.mark.parametrize("inner", [logistic(), naive_bayes.GaussianNB()], ids=str)
def test_one_against_one(inner):
    # Naive Bayes has equally probable classes where a variance is 0.
    nearly_all(multiclass.OneVsOneClassifier(inner), blobs(N, labels=LABELS), TIE, label=True)


@pytest.mark.parametrize("method", ["random", "exact"])
@pytest.mark.parametrize("inner", [logistic(), naive_bayes.GaussianNB()], ids=str)
@pytest.mark.share(2, "inner", "method")
def test_output_codes(inner, method):
    model = multiclass.OutputCodeClassifier(inner, code_size=3, coding_method=method, seed=3)
    nearly_all(model, blobs(N, labels=LABELS), "two codes are equally near", label=True, of=0.8)


def test_a_pipeline_ends_in_labels_and_votes_are_of_labels():
    pairs = multiclass.OneVsOneClassifier(naive_bayes.GaussianNB())
    voting = ensemble.VotingClassifier([pairs, naive_bayes.GaussianNB()], use_probabilities=False)
    nearly_all(preprocessing.StandardScaler() | voting, blobs(N), TIE, label=True)


@pytest.mark.parametrize("include_features", [True, False])
@pytest.mark.parametrize(
    "decides",
    [
        linear_model.SoftmaxRegression(optim.SGD(0.05)),
        tree.HoeffdingTreeClassifier(grace_period=20, delta=0.1),
        preprocessing.StandardScaler() | naive_bayes.GaussianNB(),
    ],
    ids=str,
)
@pytest.mark.share(2, "decides", "include_features")
def test_stacking(decides, include_features):
    model = ensemble.StackingClassifier(members(), decides.clone(), include_features=include_features)
    # Without a feature there is nothing before a member knows a class.
    nearly_all(model, blobs(N, labels=LABELS), "no member of a stack predicts yet", of=0.99)


def test_stacking_of_categories_behind_transformers():
    numbers = compose.Select("size", "constant")
    encoded = (compose.Select("colour", "door") | preprocessing.OneHotEncoder()) + numbers
    inner = [encoded | linear_model.LogisticRegression(), numbers | naive_bayes.GaussianNB()]
    all_covered(ensemble.StackingClassifier(inner, numbers | naive_bayes.GaussianNB()), texts(N))


def test_a_stack_that_is_changed():
    def meddle(step, model):
        if step == 60:
            model.meta_classifier = naive_bayes.GaussianNB()
        if step == 90:
            model.include_features = False
        if step == 120:
            model.data[1] = naive_bayes.GaussianNB()

    model = ensemble.StackingClassifier([naive_bayes.GaussianNB(), logistic()], linear_model.LogisticRegression())
    all_covered(model, binary(N), after=meddle)


def test_what_is_refused():
    schema = Schema(["a", "oof_0_True"])
    pairs = multiclass.OneVsOneClassifier(linear_model.LogisticRegression())
    both = [linear_model.LogisticRegression(), linear_model.LogisticRegression()]
    refused("no probabilities", ensemble.VotingClassifier([pairs, *both]), schema)
    refused("no probabilities", ensemble.StackingClassifier([pairs, *both], both[0]), schema)
    refused("no probabilities", ensemble.StackingClassifier(both, pairs), schema)
    refused("the same name", ensemble.StackingClassifier(both, both[0]), schema, to_predict=True)
    weighted = ensemble.BOLEClassifier(linear_model.LogisticRegression(), n_models=2, seed=1)
    refused("leaves out", ensemble.StackingClassifier([weighted, *both], both[0]), schema)
    numbers = ensemble.VotingClassifier([linear_model.LinearRegression(), *both])
    refused("no classifier", numbers, schema, to_predict=True)


def test_voting_is_explained_as_by_the_model():
    model = ensemble.VotingClassifier(members())
    fast, naive = twins(model)
    assert follow_twins(model, fast, naive, blobs(120, labels=LABELS)) > 0.7
