"""Which models are known to be cheap to ask about many rows."""

import pytest
from river import (
    anomaly,
    cluster,
    compose,
    dummy,
    ensemble,
    feature_extraction,
    forest,
    linear_model,
    naive_bayes,
    neighbors,
    preprocessing,
    stats,
    tree,
)
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, SGDClassifier, SGDRegressor
from sklearn.preprocessing import StandardScaler

from attributary_explainers.models.batch import as_batch
from attributary_explainers.models.cost import is_cheap
from attributary_explainers.models.sklearn import SklearnModel
from tests.explainers.models.stand_ins import linear, scaled, wrapped

CHEAP = [
    linear_model.LogisticRegression(),
    scaled(linear()),
    scaled(scaled(linear_model.PARegressor())),
    scaled(linear_model.SoftmaxRegression()),
    compose.TransformerUnion(preprocessing.MinMaxScaler(), compose.Select("a")) | linear_model.LogisticRegression(),
    dummy.StatisticRegressor(stats.Mean()),
    scaled(anomaly.OneClassSVM()),
    scaled(wrapped(SGDRegressor())),
    wrapped(SGDClassifier(), [0, 1]),
    LinearRegression(),
    RandomForestRegressor(),
    SklearnModel(LinearRegression(), features=["a"]),
    as_batch(len),
]


class MyRegression(linear_model.LinearRegression):
    pass


DEAR = [
    tree.HoeffdingTreeClassifier(),
    forest.ARFClassifier(n_models=2),
    neighbors.KNNClassifier(),
    naive_bayes.GaussianNB(),
    scaled(naive_bayes.GaussianNB()),
    feature_extraction.PolynomialExtender() | linear(),
    preprocessing.OneHotEncoder() | linear(),
    compose.FuncTransformer(dict) | linear(),
    MyRegression(),
    ensemble.BaggingRegressor(linear()),
    compose.Pipeline(),
    lambda x: 0.0,
    cluster.KMeans(),
    KMeans(),
    StandardScaler(),
    3.0,
]


@pytest.mark.parametrize(
    ("model", "cheap"),
    [*((model, True) for model in CHEAP), *((model, False) for model in DEAR)],
    ids=lambda case: str(case) if isinstance(case, bool) else type(case).__name__,
)
def test_linear_and_vectorised_models_alone_are_known_to_be_cheap(model, cheap):
    assert is_cheap(model) is cheap
