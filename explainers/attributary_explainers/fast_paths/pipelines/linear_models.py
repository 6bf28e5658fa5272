"""River's linear models: where their weights are, which link they have, and what of them has been proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import river.utils.math
from river import linear_model
from river.optim import losses
from river.utils import VectorDict

from ...evaluation.evaluator import NotCoveredError
from ...ordering import sort_key

Weights: TypeAlias = tuple[Any, Callable[..., Any], Any]
"""A class or None, what looks up a feature's weight or gives a default, and the intercept."""

IDENTITY, SIGMOID, SOFTMAX = 0, 1, 2


@dataclass(frozen=True)
class LinearKind:
    """A type of linear model."""

    weights: Callable[[Any], list[Weights]]
    """Of a model, as they are now: one set, or one for each class in the order of the labels."""
    link: int
    hashes: dict[tuple[Any, str], str]
    """See `proved`."""


def _glm(model: Any) -> list[Weights]:
    if type(model._weights) is not VectorDict:
        raise NotCoveredError("the weights are kept in another type")
    if type(model.loss) not in (_REGRESSION if type(model) is linear_model.LinearRegression else _BINARY):
        raise NotCoveredError(f"the loss {type(model.loss).__name__} may have another link")
    return [(None, model._weights.get, model.intercept)]


def _passive_aggressive(model: Any) -> list[Weights]:
    return [(None, model.weights.get, model.intercept)]


def _alma(model: Any) -> list[Weights]:
    return [(None, model.w.get, 0.0)]


def _softmax(model: Any) -> list[Weights]:
    weights = model.weights
    return [(label, weights[label].get, 0.0) for label in sorted(weights, key=sort_key)]


def _bayesian(model: Any) -> list[Weights]:
    # `_ensure_m` without keeping the result: the model is only read.
    mean = model._ss_inv_arr @ model._eta_arr if model._m_dirty and model._idx else model._m_arr
    return [(None, {feature: mean[i] for feature, i in model._idx.items()}.get, 0.0)]


_BINARY = (losses.Log, losses.Hinge, losses.BinaryFocalLoss)
_REGRESSION = (
    losses.Squared,
    losses.Absolute,
    losses.Huber,
    losses.Quantile,
    losses.Cauchy,
    losses.EpsilonInsensitiveHinge,
)  # losses.Poisson has another link

_MATH: Any = river.utils.math
_CUT = {(_MATH, "sigmoid"): "907325e5779e"}
_DOT = {(_MATH, "dot"): "012e0d560b59"}
_SUM = {(VectorDict, "dot"): "", (VectorDict, "get"): ""}
_BINARY_MEAN = {(loss, "mean_func"): "ae07e3205972" for loss in _BINARY}
_REGRESSION_MEAN = {(loss, "mean_func"): "5573b6f68302" for loss in _REGRESSION}


def _logistic(kind: type) -> LinearKind:
    own = {(kind, "predict_proba_one"): "84c34e0401b5", (kind, "_raw_dot_one"): "544e9b0cba0d"}
    return LinearKind(_glm, SIGMOID, {**own, **_SUM, **_CUT, **_BINARY_MEAN})


KINDS: dict[type, LinearKind] = {
    linear_model.LogisticRegression: _logistic(linear_model.LogisticRegression),
    linear_model.Perceptron: _logistic(linear_model.Perceptron),
    linear_model.LinearRegression: LinearKind(
        _glm,
        IDENTITY,
        {
            (linear_model.LinearRegression, "predict_one"): "8e7042662804",
            (linear_model.LinearRegression, "_raw_dot_one"): "544e9b0cba0d",
            **_SUM,
            **_REGRESSION_MEAN,
        },
    ),
    linear_model.PAClassifier: LinearKind(
        _passive_aggressive,
        SIGMOID,
        {(linear_model.PAClassifier, "predict_proba_one"): "d3e21dfc59cb", **_DOT, **_CUT},
    ),
    linear_model.PARegressor: LinearKind(
        _passive_aggressive, IDENTITY, {(linear_model.PARegressor, "predict_one"): "c0c020bc36c7", **_DOT}
    ),
    linear_model.ALMAClassifier: LinearKind(
        _alma,
        SIGMOID,
        {
            (linear_model.ALMAClassifier, "predict_proba_one"): "bd68a1fcce65",
            (linear_model.ALMAClassifier, "_raw_dot"): "bf2d0752b11b",
            **_DOT,
            **_CUT,
        },
    ),
    linear_model.SoftmaxRegression: LinearKind(
        _softmax,
        SOFTMAX,
        {
            (linear_model.SoftmaxRegression, "predict_proba_one"): "6fa1016979ac",
            (_MATH, "softmax"): "6aee31afd8a3",
            **_DOT,
        },
    ),
    linear_model.BayesianLinearRegression: LinearKind(
        _bayesian,
        IDENTITY,
        {
            (linear_model.BayesianLinearRegression, "predict_one"): "d84f1c6cb632",
            (linear_model.BayesianLinearRegression, "_ensure_m"): "b490c7e3a37c",
        },
    ),
}
"""What is known of each covered type."""
