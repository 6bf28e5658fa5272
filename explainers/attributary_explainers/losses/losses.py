"""Losses: how wrong one prediction is. Lower is better.

A loss says which output of the model it reads:
class probabilities, the label, or a number. Classification predictions are always a dict of label to
probability here; a label is its one-hot case, so that a mean over draws (iSAGE) is defined for it too and
integer labels are never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from ..predictions import most_probable
from ..typing import Output, Prediction, Probabilities
from ..validation import check_choice, check_number

CROSS_ENTROPY, BRIER, ABSOLUTE, SQUARED, SCORE = range(1, 6)
"""Losses that the compiled kernels know (losses/kernels.py)."""

DEFAULT_EPSILON = 1e-15
"""Probabilities are clipped to [epsilon, 1 - epsilon] before a logarithm, as the iSAGE paper's tables are."""

Array: TypeAlias = npt.NDArray[np.float64]

Derivatives: TypeAlias = Callable[[Any, Any, Array], tuple[Array, Array] | None]
"""`(y, label, p) -> (first, second)`: derivatives of the loss in one component of the prediction, at its values `p`.

The component is the probability of `label`, or the number that is predicted (label None). None: it is not read.
"""


@dataclass(frozen=True)
class Loss:
    """A loss with its name and the model output that it reads.

    Parameters
    ----------
    name
        Named in every event and metric that carries an importance, whose unit it is.
    output
        `"probabilities"`, `"label"` or `"number"`.
    function
        `(y, prediction) -> float`; the prediction is a dict of label to probability for the first two
        outputs, a float for the last.
    derivatives
        First and second derivatives by component of the prediction, for a loss whose mixed second derivatives are
        zero (all of ours are such). With them `IncrementalSAGE` takes out the bias that a finite number of draws
        gives, and says how far stored rows sway importance. None: it does neither.
    most_bias
        No larger bias is subtracted: where the second derivative is steep, few draws can say more than there is.
    epsilon
        Clipping of probabilities, where the loss does that.

    Examples
    --------
    >>> loss = as_loss("cross_entropy")
    >>> round(loss("red", {"red": 0.5, "blue": 0.5}), 6)
    0.693147
    """

    name: str
    output: Output
    function: Callable[[Any, Any], float]
    derivatives: Derivatives | None = None
    most_bias: float = math.inf
    epsilon: float = DEFAULT_EPSILON
    code: int = field(default=0, init=False)
    """Which of the compiled kernels' losses this is; 0 for none, as for one that `replace` has made of another."""

    def __call__(self, y: Any, prediction: Prediction) -> float:
        """Loss of `prediction` for the label or target `y`."""
        return float(self.function(y, prediction))


def as_loss(
    loss: str | Loss | Callable[[Any, Any], float],
    *,
    output: Output = "probabilities",
    epsilon: float = DEFAULT_EPSILON,
) -> Loss:
    """Return the loss of that name, or wrap a callable `(y, prediction) -> float`.

    Parameters
    ----------
    loss
        `zero_one`, `cross_entropy` (nats), `brier` (sum over classes of squared differences), `absolute`,
        `squared` or `score` (the prediction itself, for models without a target), a `Loss`, or a callable.
    output
        What a bare callable reads; ignored for a name or a `Loss`, which say so themselves.
    epsilon
        Valid range (0, 0.5). Clipping of probabilities in `cross_entropy`: the largest loss is
        `-log(epsilon)`, 34.5 for the default. Larger bounds single observations' influence more tightly.

    Raises
    ------
    InvalidParameterError
        The name is unknown, or epsilon is out of range.
    """
    if isinstance(loss, Loss):
        return loss
    if callable(loss):
        return Loss(getattr(loss, "__name__", type(loss).__name__), output, loss)
    name = check_choice("loss", loss, _LOSSES)
    if name == "cross_entropy":
        return _cross_entropy(check_number("epsilon", epsilon, above=0.0, below=0.5))
    return _LOSSES[name]


def _compiled(code: int, loss: Loss) -> Loss:
    object.__setattr__(loss, "code", code)
    return loss


def _zero_one(y: Any, prediction: Probabilities) -> float:
    return float(most_probable(prediction) != y)


def _cross_entropy(epsilon: float) -> Loss:
    ceiling = 1.0 - epsilon

    def cross_entropy(y: Any, prediction: Probabilities) -> float:
        return -math.log(min(max(prediction.get(y, 0.0), epsilon), ceiling))

    def derivatives(y: Any, label: Any, p: Array) -> tuple[Array, Array] | None:
        if label != y:
            return None
        inverse = 1.0 / np.maximum(p, epsilon)
        return -inverse, inverse * inverse

    # Another epsilon is another loss: it is named, so that importances in different units are told apart.
    name = "cross_entropy" if epsilon == DEFAULT_EPSILON else f"cross_entropy(epsilon={epsilon:g})"
    return _compiled(CROSS_ENTROPY, Loss(name, "probabilities", cross_entropy, derivatives, 0.5, epsilon))


def _brier(y: Any, prediction: Probabilities) -> float:
    # Sum over the classes: (p_y - 1)^2 plus p^2 of the others. A label not predicted at all counts with p = 0.
    p_y = prediction.get(y, 0.0)
    return (1.0 - p_y) ** 2 + sum(p * p for label, p in prediction.items() if label != y)


def _brier_derivatives(y: Any, label: Any, p: Array) -> tuple[Array, Array]:
    return 2.0 * (p - float(label == y)), np.full(p.shape, 2.0)


def _absolute(y: Any, prediction: float) -> float:
    return abs(_target(y) - prediction)


def _absolute_derivatives(y: Any, _label: Any, p: Array) -> tuple[Array, Array]:
    # Not smooth at y: its curvature is all in that point, and taking it for 0 leaves the bias where it is.
    return np.sign(p - _target(y)), np.zeros(p.shape)


def _squared(y: Any, prediction: float) -> float:
    difference = _target(y) - prediction
    return difference * difference  # infinite where ** would raise OverflowError: a diverging model is no exception


def _squared_derivatives(y: Any, _label: Any, p: Array) -> tuple[Array, Array]:
    return 2.0 * (p - _target(y)), np.full(p.shape, 2.0)


def _target(y: Any) -> float:
    try:
        return float(y)
    except (TypeError, ValueError):
        raise ModelError(f"the target of a regression loss must be a number, got {y!r}") from None


def _score(_y: Any, prediction: float) -> float:
    return prediction


def _score_derivatives(_y: Any, _label: Any, p: Array) -> tuple[Array, Array]:
    return np.ones(p.shape), np.zeros(p.shape)


_LOSSES: dict[str, Loss] = {
    "zero_one": Loss("zero_one", "label", _zero_one),
    "cross_entropy": _cross_entropy(DEFAULT_EPSILON),
    "brier": _compiled(BRIER, Loss("brier", "probabilities", _brier, _brier_derivatives)),
    "absolute": _compiled(ABSOLUTE, Loss("absolute", "number", _absolute, _absolute_derivatives)),
    "squared": _compiled(SQUARED, Loss("squared", "number", _squared, _squared_derivatives)),
    "score": _compiled(SCORE, Loss("score", "number", _score, _score_derivatives)),
}

LOSS_NAMES = tuple(_LOSSES)
"""Names that `as_loss` knows."""
