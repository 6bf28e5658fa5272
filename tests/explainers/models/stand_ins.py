"""River models and a stream that the tests of several kinds of model share."""

import random

from river import anomaly, compat, compose, linear_model, preprocessing


def linear():
    return linear_model.LinearRegression()


def half_space():
    return anomaly.HalfSpaceTrees(n_trees=3, window_size=10, seed=1)


def scaled(model):
    return compose.Pipeline(preprocessing.StandardScaler(), model)


def wrapped(estimator, classes=None):
    return compat.convert_sklearn_to_river(estimator, classes)


def stream(n, seed=1):
    """Features with the label and the number that they give."""
    rng = random.Random(seed)
    for _ in range(n):
        x = {"a": rng.random(), "b": rng.random(), "c": rng.random()}
        yield x, x["a"] > 0.5, 2.0 * x["a"]


def learn(model, kind, rows):
    for x, label, number in rows:
        if kind == "anomaly_detector":
            model.learn_one(x)
        else:
            model.learn_one(x, label if kind == "classifier" else number)
    return model
