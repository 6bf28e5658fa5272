"""River models of every kind: what wraps one is seen as what it is, and predicts what River predicts."""

import copy
import random
from functools import partial

import numpy as np
import pytest
from river import (
    active,
    anomaly,
    cluster,
    compat,
    compose,
    conf,
    drift,
    ensemble,
    imblearn,
    linear_model,
    metrics,
    model_selection,
    multiclass,
    multioutput,
    naive_bayes,
    optim,
    preprocessing,
    tree,
)
from sklearn.linear_model import SGDClassifier, SGDRegressor

from attributary_explainers import (
    ChangeExplainer,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    ModelError,
    as_loss,
    is_classifier,
    is_usable,
    model_function,
    resolve_loss,
)
from attributary_explainers.models.function import model_kind
from attributary_explainers.predictions import predict_rows
from tests.explainers.models.stand_ins import half_space, learn, linear, scaled, stream


def logistic():
    return linear_model.LogisticRegression()


BALANCED = {False: 0.5, True: 0.5}
SGD = partial(SGDClassifier, loss="log_loss", random_state=1)

CLASSIFIERS = {
    "bayes": naive_bayes.GaussianNB,
    "scaled logistic": lambda: scaled(logistic()),
    "pipeline in pipeline": lambda: scaled(scaled(naive_bayes.GaussianNB())),
    "union": lambda: compose.TransformerUnion(compose.Select("a"), preprocessing.StandardScaler()) | logistic(),
    "under": lambda: imblearn.RandomUnderSampler(scaled(logistic()), desired_dist=BALANCED, seed=1),
    "over": lambda: imblearn.RandomOverSampler(logistic(), desired_dist=BALANCED, seed=1),
    "hard": lambda: imblearn.HardSamplingClassifier(logistic(), size=10, p=0.5, seed=1),
    "bagging": lambda: ensemble.BaggingClassifier(logistic(), n_models=3, seed=1),
    "adwin bagging": lambda: ensemble.ADWINBaggingClassifier(logistic(), n_models=3, seed=1),
    "boosting": lambda: ensemble.AdaBoostClassifier(naive_bayes.GaussianNB(), n_models=3, seed=1),
    "patches": lambda: ensemble.SRPClassifier(n_models=3, seed=1),
    "stacking": lambda: ensemble.StackingClassifier([logistic(), naive_bayes.GaussianNB()], logistic()),
    "one vs rest": lambda: multiclass.OneVsRestClassifier(logistic()),
    "retraining": lambda: drift.DriftRetrainingClassifier(naive_bayes.GaussianNB()),
    "active": lambda: active.EntropySampler(scaled(logistic()), seed=1),
    "halving": lambda: model_selection.SuccessiveHalvingClassifier(
        [logistic(), linear_model.LogisticRegression(l2=0.1)], metric=metrics.Accuracy(), budget=100
    ),
    "sklearn": lambda: scaled(compat.convert_sklearn_to_river(SGD(), classes=[False, True])),
}
VOTERS = {  # labels only
    "voting": lambda: ensemble.VotingClassifier([logistic(), naive_bayes.GaussianNB()]),
    "one vs one": lambda: scaled(multiclass.OneVsOneClassifier(logistic())),
    "sampled one vs one": lambda: imblearn.RandomUnderSampler(
        multiclass.OneVsOneClassifier(logistic()), desired_dist=BALANCED, seed=1
    ),
    "codes": lambda: multiclass.OutputCodeClassifier(logistic(), code_size=4, seed=1),
}
REGRESSORS = {
    "linear": linear,
    "pipeline of a regressor in a pipeline": lambda: compose.Pipeline(preprocessing.MinMaxScaler(), scaled(linear())),
    "hard regressor": lambda: imblearn.HardSamplingRegressor(linear(), size=10, p=0.5, seed=1),
    "chebyshev": lambda: imblearn.ChebyshevOverSampler(linear()),
    "bagged regressor": lambda: ensemble.BaggingRegressor(linear(), n_models=3, seed=1),
    "greedy": lambda: model_selection.GreedyRegressor([linear(), linear()], metric=metrics.MAE()),
    "scaled target": lambda: scaled(preprocessing.TargetStandardScaler(linear())),
    "transformed target": lambda: compose.TargetTransformRegressor(linear(), lambda y: 2 * y, lambda y: y / 2),
    "clipped": lambda: preprocessing.PredClipper(linear(), y_min=-1, y_max=3),
    "jackknife": lambda: conf.RegressionJackknife(linear()),
    "sklearn regressor": lambda: compat.convert_sklearn_to_river(SGDRegressor(random_state=1)),
}
DETECTORS = {
    "bare half space": half_space,
    "filtered": lambda: anomaly.QuantileFilter(half_space(), q=0.95),
    "half space": lambda: preprocessing.MinMaxScaler() | half_space(),
    "one class": lambda: scaled(anomaly.OneClassSVM()),
}
# kind, default loss, maker
MODELS = {
    **{name: ("classifier", "brier", make) for name, make in CLASSIFIERS.items()},
    **{name: ("classifier", "expected_zero_one", make) for name, make in VOTERS.items()},
    **{name: ("regressor", "squared", make) for name, make in REGRESSORS.items()},
    **{name: ("anomaly_detector", "score", make) for name, make in DETECTORS.items()},
}


def asked(model, kind, loss):
    """What River itself answers."""
    if isinstance(model, active.base.ActiveLearningClassifier):
        model = model.classifier
    if kind == "anomaly_detector":
        return model.score_one
    if kind == "regressor" or loss == "expected_zero_one":
        return model.predict_one
    return model.predict_proba_one


@pytest.mark.parametrize("name", MODELS)
def test_what_wraps_a_model_is_of_its_kind_and_predicts_what_river_says(name):
    kind, loss, make = MODELS[name]
    model = make()
    assert (model_kind(model), resolve_loss(model, None).name) == (kind, loss)
    assert is_classifier(model) == (kind == "classifier")
    learn(model, kind, stream(80))
    output = resolve_loss(model, None).output
    function = model_function(model, output)
    rows = [x for x, *_ in stream(20, seed=2)]
    for x, found, together in zip(rows, map(function, rows), predict_rows(function, rows), strict=True):
        said = asked(model, kind, loss)(dict(x))
        expected = {said: 1.0} if loss == "expected_zero_one" else said
        assert is_usable(found)
        assert found == pytest.approx(expected, rel=0, abs=1e-12)
        assert together == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize("name", ["union", "under", "voting", "active", "scaled target", "filtered", "sklearn"])
@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
def test_a_wrapper_is_explained_as_its_own_prediction_is(name, explainer):
    kind, loss, make = MODELS[name]
    model = learn(make(), kind, stream(80))
    said = asked(model, kind, loss)
    given = explainer(model, n_samples=3, seed=4)
    by_hand = explainer(lambda x: said(dict(x)), loss=loss, n_samples=3, seed=4)
    for x, label, number in stream(30, seed=3):
        for explaining in (given, by_hand):
            explaining.explain_one(x, label if kind == "classifier" else number)
    assert given.n_observations == 29
    assert given.importance == pytest.approx(by_hand.importance, rel=0, abs=1e-12)


def test_a_classifier_without_probabilities_is_refused_where_a_loss_reads_them():
    model = multiclass.OneVsOneClassifier(logistic())
    for loss in ("cross_entropy", "brier"):
        with pytest.raises(ModelError, match="zero_one"):
            IncrementalPFI(model, loss=loss)
    assert resolve_loss(model, lambda y, p: 0.0).output == "label"


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (anomaly.GaussianScorer(), "target among the features"),
        (scaled(anomaly.PredictiveAnomalyDetection(linear())), "target among the features"),
        (anomaly.ThresholdFilter(anomaly.StandardAbsoluteDeviation(), threshold=0.9), "target among the features"),
        (tree.ISOUPTreeRegressor(), "several targets"),
        (multioutput.ClassifierChain(logistic()), "several targets"),
        (multioutput.RegressorChain(linear()), "several targets"),
        (cluster.KMeans(n_clusters=2), "cluster"),
        (scaled(cluster.KMeans(n_clusters=2)), "cluster"),
        (naive_bayes.GaussianNB, "GaussianNB: it is a class, give an instance"),
        (preprocessing.StandardScaler(), "put a classifier"),
    ],
)
@pytest.mark.parametrize("loss", [None, "score"])
def test_what_cannot_be_explained_says_why_and_what_would_do(model, says, loss):
    with pytest.raises(ModelError, match=says):
        IncrementalPFI(model, loss=loss)


def test_a_supervised_score_is_explained_with_the_target_among_the_features():
    detector = anomaly.GaussianScorer(grace_period=5)
    rng = random.Random(4)
    pfi = IncrementalPFI(lambda x: detector.score_one(None, x["y"]), loss="score", alpha=0.01, n_samples=5, seed=4)
    for i in range(300):
        x = {"a": rng.random(), "y": rng.gauss(0, 1) + 8 * (i % 50 == 0)}
        pfi.explain_one(x)
        detector.learn_one(None, x["y"])
    # The score is the distance from the median in probability: the same, on average, for drawn and observed targets.
    assert pfi.importance["a"] == 0.0
    assert pfi.importance["y"] != 0.0


def test_an_active_learner_draws_nothing_while_it_is_explained():
    model = learn(active.EntropySampler(logistic(), seed=1), "classifier", stream(50))
    before = model._rng.getstate()
    pfi = IncrementalPFI(model, seed=1)
    for x, label, _ in stream(10):
        pfi.explain_one(x, label)
    assert (pfi.n_observations, model._rng.getstate()) == (9, before)


def test_an_active_learner_inside_a_pipeline_says_to_be_put_outside():
    with pytest.raises(ModelError, match="wrap the pipeline"):
        IncrementalPFI(scaled(active.EntropySampler(logistic(), seed=1)))


@pytest.mark.parametrize(
    "wrap", [lambda p: p, lambda p: ensemble.BaggingRegressor(p, n_models=2, seed=1), lambda p: compose.Pipeline(p)]
)
def test_a_renamer_changes_no_row_of_the_caller(wrap):
    model = wrap(compose.Renamer({"a": "alpha"}) | linear_model.LinearRegression())
    for x, _, number in stream(50):
        model.learn_one(dict(x), number)
    pfi = IncrementalPFI(model, seed=1)
    for x, _, number in stream(5, seed=2):
        before = dict(x)
        pfi.explain_one(x, number)
        assert list(x.items()) == list(before.items())
    assert list(pfi.importance) == ["a", "b", "c"]
    assert pfi.importance["a"] > 0


def test_any_model_of_a_kind_serves_a_loss_that_takes_any_output():
    loss = as_loss(lambda y, p: 0.0, output="any")
    probabilistic = learn(logistic(), "classifier", stream(30))
    voting = learn(ensemble.VotingClassifier([logistic(), logistic()]), "classifier", stream(30))
    regressor = learn(linear(), "regressor", stream(30))
    x = next(stream(1))[0]
    assert model_function(probabilistic, loss.output)(x) == probabilistic.predict_proba_one(x)
    assert model_function(voting, loss.output)(x) == {voting.predict_one(x): 1.0}
    assert model_function(regressor, loss.output)(x) == regressor.predict_one(x)


@pytest.mark.parametrize("explainer", [IncrementalPDP, ChangeExplainer])
def test_the_other_explainers_take_what_wraps_a_regressor_and_a_voter(explainer):
    regressor = learn(preprocessing.TargetStandardScaler(linear()), "regressor", stream(30))
    explaining = explainer(regressor)
    x, _, number = next(stream(1))
    if explainer is ChangeExplainer:
        explaining.update(x, number, regressor.predict_one(x))
        assert explaining.loss.name == "squared"
        voter = learn(ensemble.VotingClassifier([logistic(), logistic()]), "classifier", stream(30))
        assert ChangeExplainer(voter).loss.name == "expected_zero_one"
        assert ChangeExplainer(voter).loss_of_verdicts.name == "zero_one"
    else:
        explaining.explain_one(x)
        assert explaining.n_missing == {"a": 0, "b": 0, "c": 0}


def test_predicting_changes_no_model():
    for name in ("under", "stacking", "scaled target", "half space", "sklearn", "greedy"):
        kind, _, make = MODELS[name]
        model = learn(make(), kind, stream(60))
        twin = copy.deepcopy(model)
        function = model_function(model, resolve_loss(model, None).output)
        predict_rows(function, [x for x, *_ in stream(20, seed=2)])
        later, rows = list(stream(30, seed=5)), [x for x, *_ in stream(5, seed=6)]
        learn(model, kind, later)
        learn(twin, kind, later)
        again = model_function(twin, resolve_loss(twin, None).output)
        assert predict_rows(function, rows) == predict_rows(again, rows)


def test_optimisers_of_numpy_scalars_predict_builtins():
    model = linear_model.LinearRegression(optimizer=optim.SGD(0.1))
    model.learn_one({"a": np.float64(1.0)}, np.float64(2.0))
    assert type(model_function(model, "number")({"a": np.float64(1.0)})) is float
