"""How a model is taught one observation, and what is said of one that cannot be."""

from __future__ import annotations

from functools import partial

import pytest
from river import anomaly, linear_model, preprocessing
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier, SGDRegressor

from attributary_explainers import IncrementalPFI, ModelError, as_batch, model_kind
from attributary_explainers.models.learning import learn_function

X = {"a": 0.3, "b": 0.6}


@pytest.mark.parametrize(
    "model",
    [
        anomaly.HalfSpaceTrees(n_trees=2, height=2, window_size=3, seed=1),
        preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(n_trees=2, height=2, window_size=3, seed=1),
        anomaly.QuantileFilter(anomaly.HalfSpaceTrees(n_trees=2, height=2, window_size=3, seed=1), q=0.9),
        preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        linear_model.LinearRegression(),
    ],
    ids=["detector", "pipeline", "filter", "classifier", "regressor"],
)
def test_each_kind_learns(model):
    learn, explaining = learn_function(model), IncrementalPFI(model, seed=1)
    for i in range(6):
        explaining.explain_one({"a": i / 6, "b": 1 - i / 6}, i % 2)
        learn({"a": i / 6, "b": 1 - i / 6}, i % 2)
    assert explaining.n_observations == 5


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            SGDClassifier(),
            r"river\.compat\.SKL2RiverClassifier.*params: {loss: log_loss}.*classes.*or set `learn: false`",
        ),
        (SGDRegressor(), r"river\.compat\.SKL2RiverRegressor.*or set `learn: false`"),
        (RandomForestClassifier(), "RandomForestClassifier cannot learn one observation.*`learn: false`"),
        (lambda x: 1.0, "no method learn_one.*`learn: false`"),
        (as_batch(len), "no method learn_one.*`learn: false`"),
    ],
)
def test_what_cannot_learn_is_refused_with_the_remedy(model, said):
    with pytest.raises(ModelError, match=said):
        learn_function(model)


class Homemade:
    """Written in River's manner, and no class of River's."""

    def __init__(self):
        self.n = {"no": 1, "yes": 1}

    def predict_proba_one(self, x):
        return {label: n / sum(self.n.values()) for label, n in self.n.items()}

    def learn_one(self, x, y):
        self.n[y] += 1


def test_an_object_in_river_s_manner_is_a_classifier():
    model = Homemade()
    explaining, learn = IncrementalPFI(model, seed=1), learn_function(model)
    for i in range(10):
        explaining.explain_one({"a": i}, "yes")
        learn({"a": i}, "yes")
    assert (model_kind(model), explaining.loss.name, explaining.n_observations) == ("classifier", "brier", 9)
    assert model.n == {"no": 1, "yes": 11}


def test_one_with_predict_one_alone_is_told_what_is_missing():
    class Secretive:
        def predict_one(self, x):
            return 1

    with pytest.raises(ModelError, match=r"whether its predict_one gives a label or a number.*river\.base\.Classifier"):
        IncrementalPFI(Secretive())


def learn_x(given, x):
    given.append((x,))


def learn_x_and_weight(given, x, weight=1.0):
    given.append((x, weight))


def learn_x_y(given, x, y):
    given.append((x, y))


def learn_x_and_perhaps_y(given, x, y=None, **_more):
    given.append((x, y))


def learn_whatever(given, *values):
    given.append(values)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (learn_x, (X,)),
        (learn_x_and_weight, (X, 1.0)),
        (learn_x_y, (X, "odd")),
        (learn_x_and_perhaps_y, (X, "odd")),
        (learn_whatever, (X, "odd")),
    ],
)
def test_a_detector_that_is_not_rivers_is_given_the_label_where_it_takes_one(method, expected):
    class Detector:
        def __init__(self):
            self.given = []

        def score_one(self, x):
            return 0.0

    detector = Detector()
    detector.learn_one = partial(method, detector.given)
    learn_function(detector)(X, "odd")
    assert detector.given == [expected]
