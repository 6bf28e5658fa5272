"""River's linear models: where their weights are, and which link they have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from river import linear_model
from river.optim import losses
from river.utils import VectorDict

from ...evaluation.evaluator import NotCoveredError
from ...ordering import sort_key

Weights: TypeAlias = tuple[Any, Any, Any]
"""A class or None, the weights by feature, and the intercept."""

IDENTITY, SIGMOID, SOFTMAX = 0, 1, 2


@dataclass(frozen=True)
class LinearKind:
    """Where a type of linear model keeps its weights, and how its sum becomes a prediction."""

    weights: Callable[[Any], list[Weights]]
    """Gives the weights of a model as they are now: one set, or one for each class in the order of the labels."""
    link: int
    leaves_out: bool = False
    """Whether a feature without a weight is left out, whatever its value is; else it is multiplied by 0."""


def glm_weights(model: Any) -> list[Weights]:
    """Return the weights of a generalised linear model.

    Raises
    ------
    NotCoveredError
        They are kept in another type, or the loss may have another link.
    """
    if type(model._weights) is not VectorDict:
        raise NotCoveredError("the weights are kept in another type")
    if type(model.loss) not in (_REGRESSION if type(model) is linear_model.LinearRegression else _BINARY):
        raise NotCoveredError(f"the loss {type(model.loss).__name__} may have another link")
    return [(None, model._weights, model.intercept)]


def _passive_aggressive(model: Any) -> list[Weights]:
    return [(None, model.weights, model.intercept)]


def _alma(model: Any) -> list[Weights]:
    return [(None, model.w, 0.0)]


def _softmax(model: Any) -> list[Weights]:
    weights = model.weights
    return [(label, weights[label], 0.0) for label in sorted(weights, key=sort_key)]


def _bayesian(model: Any) -> list[Weights]:
    # `_ensure_m` without keeping the result: the model is only read.
    mean = model._ss_inv_arr @ model._eta_arr if model._m_dirty and model._idx else model._m_arr
    return [(None, {feature: mean[i] for feature, i in model._idx.items()}, 0.0)]


_BINARY = (losses.Log, losses.Hinge, losses.BinaryFocalLoss)
_REGRESSION = (
    losses.Squared,
    losses.Absolute,
    losses.Huber,
    losses.Quantile,
    losses.Cauchy,
    losses.EpsilonInsensitiveHinge,
)  # losses.Poisson has another link

KINDS: dict[type, LinearKind] = {
    linear_model.LogisticRegression: LinearKind(glm_weights, SIGMOID),
    linear_model.Perceptron: LinearKind(glm_weights, SIGMOID),
    linear_model.LinearRegression: LinearKind(glm_weights, IDENTITY),
    linear_model.PAClassifier: LinearKind(_passive_aggressive, SIGMOID, leaves_out=True),
    linear_model.PARegressor: LinearKind(_passive_aggressive, IDENTITY, leaves_out=True),
    linear_model.ALMAClassifier: LinearKind(_alma, SIGMOID, leaves_out=True),
    linear_model.SoftmaxRegression: LinearKind(_softmax, SOFTMAX, leaves_out=True),
    linear_model.BayesianLinearRegression: LinearKind(_bayesian, IDENTITY, leaves_out=True),
}
"""The covered types."""
