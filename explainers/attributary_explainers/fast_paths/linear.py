"""Fast path of linear models: where River keeps their weights, and links."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

from river import linear_model
from river.optim import losses
from river.utils import VectorDict

from ..core import is_compiled
from ..core.evaluators.linear import IDENTITY, SIGMOID, SOFTMAX, LinearRows
from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import register
from ..evaluation.schema import Schema
from ..ordering import sort_key
from ..typing import Array

Weights: TypeAlias = tuple[list[Any], list[Any], tuple[Any, ...] | None]
"""For each output the weights by feature, and the intercept; then the labels of the outputs, where they are classes."""

_SIDES = (False, True)
_BINARY = (losses.Log, losses.Hinge, losses.BinaryFocalLoss)
_REGRESSION = (
    losses.Squared, losses.Absolute, losses.Huber, losses.Quantile, losses.Cauchy, losses.EpsilonInsensitiveHinge,
)  # fmt: skip
# losses.Poisson has another link


def _glm(model: Any) -> Weights:
    if type(model._weights) is not VectorDict:
        raise NotCoveredError("the weights are kept in another type")
    is_regressor = type(model) is linear_model.LinearRegression
    if type(model.loss) not in (_REGRESSION if is_regressor else _BINARY):
        raise NotCoveredError(f"the loss {type(model.loss).__name__} may have another link")
    return [model._weights], [model.intercept], None if is_regressor else _SIDES


def _softmax(model: Any) -> Weights:
    labels = tuple(sorted(model.weights, key=sort_key))
    return [model.weights[label] for label in labels], [0.0] * len(labels), labels


def _bayesian(model: Any) -> Weights:
    # `_ensure_m` without keeping the result: the model is only read.
    mean = model._ss_inv_arr @ model._eta_arr if model._m_dirty and model._idx else model._m_arr
    return [{feature: mean[i] for feature, i in model._idx.items()}], [0.0], None


class _Kind(NamedTuple):
    """A type of linear model: where its weights are, and its link."""

    read: Callable[[Any], Weights]
    link: int
    leaves_out: bool = True
    """Whether a feature without a weight is left out, whatever its value is; else it is multiplied by 0."""


KINDS: dict[type, _Kind] = {
    linear_model.LogisticRegression: _Kind(_glm, SIGMOID, leaves_out=False),
    linear_model.Perceptron: _Kind(_glm, SIGMOID, leaves_out=False),
    linear_model.LinearRegression: _Kind(_glm, IDENTITY, leaves_out=False),
    linear_model.PAClassifier: _Kind(lambda model: ([model.weights], [model.intercept], _SIDES), SIGMOID),
    linear_model.PARegressor: _Kind(lambda model: ([model.weights], [model.intercept], None), IDENTITY),
    linear_model.ALMAClassifier: _Kind(lambda model: ([model.w], [0.0], _SIDES), SIGMOID),
    linear_model.SoftmaxRegression: _Kind(_softmax, SOFTMAX),
    linear_model.BayesianLinearRegression: _Kind(_bayesian, IDENTITY),
}
"""The covered types."""


class LinearColumns:
    """Evaluates a linear model on columns.

    The sum over the features runs in the order of the columns, and River's in the order of the row: where terms cancel
    that are a thousand times larger than their sum, both have a rounding error of more than 1e-13 of it.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._kind, self._rows = KINDS[type(model)], LinearRows()
        self.labels: tuple[Any, ...] | None = _SIDES if self._kind.link == SIGMOID else None

    def predict(
        self,
        X: Array,
        names: tuple[Any, ...],
        scaler: Any = None,
        hot: Sequence[Any] = (),
        lost: Collection[Any] = (),
    ) -> Array:
        """Return the predictions for rows; see `LinearRows.predict`.

        Parameters
        ----------
        lost
            The names of columns that a scaler has made NaN.

        Raises
        ------
        NotCoveredError
            The loss has a link that is not covered, or the core raises.
        """
        weights, intercepts, self.labels = self._kind.read(self.model)
        if lost:
            if self._kind.leaves_out:
                lost = [name for name in lost if any(name in of_output for of_output in weights)]
            known = [{name: w[name] for name in names if name in w} for w in weights]
            weights = [{**w, **dict.fromkeys(lost, math.nan)} for w in known]
        try:
            P: Array = self._rows.predict(X, names, scaler, weights, intercepts, hot, self._kind.link)
        except ValueError as error:
            raise NotCoveredError(str(error)) from None
        except TypeError:
            raise NotCoveredError("a parameter of the model is no number") from None
        return P


class LinearEvaluator(Evaluator):
    """Evaluates a linear model that sees the rows as they are.

    Raises
    ------
    NotCoveredError
        A feature has categories; or the core is not compiled, and the sum of the model is.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        if KINDS[type(model)].read is _glm and not is_compiled():
            raise NotCoveredError("not compiled: asking the model is faster")
        if schema.codes:
            raise NotCoveredError("a linear model gets categories")
        self.model, self.schema = model, schema
        self._columns = LinearColumns(model)
        self.labels = self._columns.labels

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        P = self._columns.predict(X, self.schema.features)
        self.labels = self._columns.labels
        return P


register(*KINDS, gaps=True)(LinearEvaluator)
