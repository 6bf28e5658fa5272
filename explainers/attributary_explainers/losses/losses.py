"""Losses: how wrong a prediction is. Lower is better.

A loss says which output of the model it reads:
class probabilities, the label, or a number. Classification predictions are always a dict of label to
probability here; a label is its one-hot case, so that a mean over draws (iSAGE) is defined for it too and
integer labels are never averaged.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from river import metrics, stats

from ..core import losses as core
from ..core.losses import ABSOLUTE, BRIER, CROSS_ENTROPY, NOT_IN_CORE, SCORE, SQUARED, are_finite
from ..errors import InvalidParameterError, LabelError, ModelError
from ..ordering import sort_key
from ..predictions import Predictions, most_probable
from ..typing import Output, Prediction, Probabilities
from ..validation import LARGEST, check_choice, check_number
from .statement import is_score, loss_statement

_NAMED: dict[type[Any], str] = {
    metrics.MAE: "absolute",
    metrics.MSE: "squared",
    metrics.LogLoss: "cross_entropy",
    metrics.CrossEntropy: "cross_entropy",
}
"""The same losses by name: their values differ in rounding, and they are faster."""

_REMEDIES: tuple[tuple[type[Any], str], ...] = (
    (metrics.Accuracy, "zero_one, which is 1 - accuracy"),
    (metrics.RMSE, "metrics.MSE(), the square of it"),
    (metrics.R2, "metrics.MSE(), which R2 compares with the variance of the targets"),
    (metrics.ROCAUC, "brier or cross_entropy: a better order of the rows lowers them, too"),
    (metrics.base.RegressionMetric, "absolute or squared"),
    (metrics.base.Metric, "zero_one, brier or cross_entropy"),
)


def is_river_metric(loss: Any) -> bool:
    """Return whether a loss is a River metric, or the class of a metric."""
    return issubclass(loss if inspect.isclass(loss) else type(loss), metrics.base.Metric)


def river_loss(metric: Any) -> tuple[Any, Output]:
    """Return the loss that a River metric averages, and the output it reads.

    The loss is a name or a callable. MAE, MSE, LogLoss and CrossEntropy are our losses `absolute`, `squared` and
    `cross_entropy`. MAPE and SMAPE are in percent, as River's. Any metric of the user's own that derives from River's
    `MeanMetric` is read row by row. The metric is not changed, and what it has counted is not read.

    InvalidParameterError: it is a class; larger is better; or it is no mean of one value per row. The message says what
    to use.

    Examples
    --------
    >>> river_loss(metrics.MAE())
    ('absolute', 'number')
    >>> loss, output = river_loss(metrics.MAPE())
    >>> loss(200.0, 150.0), output
    (25.0, 'number')
    """
    kind = type(metric)
    if inspect.isclass(metric):
        raise InvalidParameterError("loss", f"an instance, as {metric.__name__}()", metric)
    output: Output = "probabilities"
    if isinstance(metric, metrics.base.RegressionMetric):
        output = "number"
    elif getattr(metric, "requires_labels", True):
        output = "label"
    if kind in _NAMED:
        return _NAMED[kind], output
    if isinstance(metric, metrics.base.MeanMetric) and not getattr(metric, "bigger_is_better", True):
        scale = _value_at(metric, 1.0)
        if scale > 0.0 and _value_at(metric, 4.0) == 4.0 * scale:
            return MetricOfARow(metric, scale), output
    use = next(remedy for of, remedy in _REMEDIES if isinstance(metric, of))
    expected = f"a mean over rows that is smaller for a better model, which {kind.__name__} is not (use {use})"
    raise InvalidParameterError("loss", expected, kind.__name__)


class MetricOfARow:
    """Contribution of a row to a River metric that is a mean over rows."""

    def __init__(self, metric: Any, scale: float) -> None:
        self.metric, self.scale = metric, scale
        self.__name__ = type(metric).__name__

    def __call__(self, y: Any, prediction: Any) -> float:
        """Return the loss of a prediction for the label or target `y`."""
        if isinstance(prediction, dict) and getattr(self.metric, "requires_labels", False):
            prediction = max(prediction, key=prediction.__getitem__)
        return self.scale * float(self.metric._eval(y, prediction))


def _value_at(metric: Any, mean: float) -> float:
    """Return the metric's value where the mean over rows is `mean`."""
    copied = copy.copy(metric)
    copied._mean = stats.Mean()
    copied._mean.update(mean)
    return float(copied.get())


DEFAULT_EPSILON = 1e-15
"""Probabilities are clipped to [epsilon, 1 - epsilon] before a logarithm, as the iSAGE paper's tables are."""


Slope: TypeAlias = Callable[[Any, Any, float], float]
"""`(y, label, p) -> slope`: derivative of the loss in one component of the prediction, at its value `p`.

The component is the probability of `label`, or the number that is predicted (label None).
"""

LossArguments: TypeAlias = tuple[int, float, int, float]
"""How the core reads predictions: code and epsilon of the loss, column of the label, target."""


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
    slope
        With it `batch_sage` and `ChangeExplainer` say what the rows that were drawn move of the importance. None: the
        standard error is of the explained rows alone.
    most_bias
        No larger bias of few draws is subtracted by SAGE: where a loss is steep, they can say more than there is.
    is_smooth
        Whether the expected loss changes little where the prediction does, so that its bias can be told from a few
        draws. Not so for `zero_one`, which jumps with the most probable label.
    epsilon
        Clipping of probabilities, where the loss does that.
    unit
        Of the loss, and so of every importance under it; empty stands for the name.
    largest
        The largest value that the loss can have; None where there is none, or it is not known.
    is_linear
        Whether the loss of a mean of predictions is the mean of their losses. The SAGE values of such a loss are
        without bias at any number of draws.

    Examples
    --------
    >>> loss = as_loss("cross_entropy")
    >>> round(loss("red", {"red": 0.5, "blue": 0.5}), 6), loss.unit, round(loss.largest, 1)
    (0.693147, 'nats', 34.5)
    """

    name: str
    output: Output
    function: Callable[[Any, Any], float]
    slope: Slope | None = None
    most_bias: float = math.inf
    is_smooth: bool = True
    epsilon: float = DEFAULT_EPSILON
    unit: str = ""
    largest: float | None = None
    is_linear: bool = False
    code: int = field(default=NOT_IN_CORE, init=False)
    """Which of the core's losses this is: that of the user for one that `replace` has made of another, too."""

    def __post_init__(self) -> None:
        """Take the name for the unit where none is given."""
        object.__setattr__(self, "unit", self.unit or self.name)

    def __call__(self, y: Any, prediction: Prediction) -> float:
        """Return loss of `prediction` for the label or target `y`.

        Raises
        ------
        InvalidParameterError
            The user's own function returned what is no number.
        """
        value = self.function(y, prediction)
        return value if type(value) is float else _number(value, self.name)

    @property
    def is_named(self) -> bool:
        """Whether the loss is in `LOSS_NAMES` or of costs, not the user's own."""
        return self.name.startswith("cost(") or self.name.partition("(")[0] in _LOSSES

    @property
    def statement(self) -> str:
        """Name, unit and largest value of the loss, in words."""
        return loss_statement(self.name, self.unit, self.largest)

    @property
    def is_score(self) -> bool:
        """Whether it is of the prediction alone, and reads no label."""
        return self.code == SCORE or is_score(self.name)

    def arguments(self, y: Any, predictions: Predictions, n: int) -> LossArguments | None:
        """Return how the core reads the predictions for `n` rows.

        None where `y` is no number and a prediction is not finite either: such an observation is skipped.

        Raises
        ------
        LabelError
            The loss is of a number, and `y` is none.
        """
        if self.output != "number":
            return self.code, self.epsilon, predictions.column(y), 0.0
        try:
            return self.arguments_at(y, 0)
        except LabelError:
            if are_finite(predictions.array, predictions.start, predictions.start + n):
                raise
            return None  # an observation without a prediction is skipped, whatever its target is

    def arguments_at(self, y: Any, column: int) -> LossArguments:
        """Return how the core reads predictions, given the label's column.

        The column is -1 where no row names the label.

        Raises
        ------
        LabelError
            The loss is of a number, and `y` is none.
        """
        if self.output != "number":
            return self.code, self.epsilon, column, 0.0
        return self.code, self.epsilon, 0, 0.0 if self.code == SCORE else _target(y)


NamedLoss: TypeAlias = str | Mapping[str, Any]
"""A name of `LOSS_NAMES`, or costs by name: `{"cost": {"false_negative": 100, "false_positive": 1}}`."""

AnyLoss: TypeAlias = NamedLoss | Loss | Callable[[Any, Any], float] | metrics.base.Metric
"""What stands for a loss: a `NamedLoss`, a `Loss`, a callable `(y, prediction) -> float`, River's metric."""


def as_loss(loss: AnyLoss, *, output: Output = "probabilities", epsilon: float = DEFAULT_EPSILON) -> Loss:
    """Return a loss by name, or a callable or metric made into a loss.

    Parameters
    ----------
    loss
        One of `LOSS_NAMES`: `brier` (sum over classes of squared differences), `cross_entropy` (nats), `zero_one`,
        `expected_zero_one` (the share of draws with another label), `absolute`, `squared`, `score` (the prediction
        itself, for models without a target), `neg_score` (minus the prediction: an importance is then what the value of
        the feature adds to the score); costs of two classes, as `{"cost": {"false_negative": 100, "false_positive":
        1}}`, of which the model's decision for the class of the least expected cost is charged (`positive` among them
        names the positive class, by default the greater label); a `Loss`; a metric of River that is a mean over rows,
        as `metrics.MAE()` (see `river_loss`); or a callable.
    output
        What a bare callable reads, and costs where it is `"label"`; a name or a `Loss` says so itself.
    epsilon
        Valid range (0, 0.5). Clipping of probabilities in `cross_entropy`: the largest loss is
        `-log(epsilon)`, 34.5 for the default. Larger bounds single observations' influence more tightly.

    Raises
    ------
    InvalidParameterError
        The name is unknown, a cost is no number above 0, or epsilon is out of range.
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, Mapping) or loss == "cost":
        return _cost(loss, "label" if output == "label" else "probabilities")
    if is_river_metric(loss):
        loss, output = river_loss(loss)
    if callable(loss):
        return Loss(getattr(loss, "__name__", type(loss).__name__), output, loss)
    name = check_choice("loss", loss, _LOSSES, elsewhere=_ELSEWHERE)
    if name == "cross_entropy":
        return _cross_entropy(check_number("epsilon", epsilon, above=0.0, below=0.5))
    return _LOSSES[name]


_ELSEWHERE = {
    **dict.fromkeys(("mse", "rmse", "l2", "mean_squared_error"), "squared"),
    **dict.fromkeys(("mae", "l1", "mean_absolute_error"), "absolute"),
    **dict.fromkeys(("logloss", "log_loss", "log", "nll", "logistic"), "cross_entropy"),
    **dict.fromkeys(("accuracy", "error", "error_rate", "misclassification"), "zero_one"),
}
"""The names that losses have elsewhere."""


def _cost(loss: object, output: Output) -> Loss:
    costs = loss.get("cost") if isinstance(loss, Mapping) and len(loss) == 1 else None
    if not isinstance(costs, Mapping) or not {*_COSTS} <= costs.keys() <= {*_COSTS, "positive"}:
        expected = 'costs by name, as {"cost": {"false_negative": 100, "false_positive": 1}}, and `positive` if need be'
        raise InvalidParameterError("loss", expected, loss)
    of_each = [check_number(f"loss.cost.{name}", costs[name], above=0.0, below=LARGEST) for name in _COSTS]
    positive = costs.get("positive")
    said = [f"{name}={str(cost).removesuffix('.0')}" for name, cost in zip(_COSTS, of_each, strict=True)]
    said += [] if positive is None else [f"positive={positive!r}"]
    function = partial(_cost_of, of_each[0], of_each[1], positive)
    return Loss(f"cost({', '.join(said)})", output, function, is_smooth=False, unit="cost", largest=max(of_each))


def with_positive(loss: NamedLoss | None, positive: Any) -> NamedLoss | None:
    """Return the loss, with the positive class added to costs that lack it."""
    costs = costs_without_positive(loss)
    return loss if positive is None or costs is None else {"cost": {**costs, "positive": positive}}


def costs_without_positive(loss: NamedLoss | None) -> Mapping[str, Any] | None:
    """Return the costs of a loss, where they name no positive class."""
    costs = loss.get("cost") if isinstance(loss, Mapping) else None
    return costs if isinstance(costs, Mapping) and costs.get("positive") is None else None


_COSTS = ("false_negative", "false_positive")


def _cost_of(false_negative: float, false_positive: float, positive: Any, y: Any, prediction: Probabilities) -> float:
    others = [label for label in prediction if label != y]
    if not others:
        return 0.0
    other = others[0]
    is_positive = sort_key(y) > sort_key(other) if positive is None else bool(y == positive)
    if len(others) > 1 or not (positive is None or is_positive or other == positive):
        labels = ", ".join(map(repr, sorted({y, *others}, key=sort_key)[:_SHOWN]))
        what = "two classes" if positive is None else f"{positive!r} and one other class"
        raise ModelError(f"costs are of {what}, and the model and the label name {labels}: take another loss, as brier")
    mine, its = (false_negative, false_positive) if is_positive else (false_positive, false_negative)
    right, wrong = mine * prediction.get(y, 0.0), its * prediction[other]
    return 0.0 if right > wrong or (is_positive and right == wrong) else mine


_SHOWN = 4


def _known(code: int, name: str, output: Output, function: Any, **given: Any) -> Loss:
    epsilon = given.get("epsilon", DEFAULT_EPSILON)
    loss = Loss(name, output, function, partial(_slope, code, epsilon), **given)
    object.__setattr__(loss, "code", code)
    return loss


def _slope(code: int, epsilon: float, y: Any, label: Any, p: float) -> float:
    target = _target(y) if code in (ABSOLUTE, SQUARED) else 0.0
    return float(core.slope_of(p, code, epsilon, bool(label == y), target))


def _cross_entropy(epsilon: float) -> Loss:
    # Another epsilon is another loss: it is named, so that importances in different units are told apart.
    name = "cross_entropy" if epsilon == DEFAULT_EPSILON else f"cross_entropy(epsilon={epsilon:g})"
    function = partial(_clipped, epsilon)
    stated = {"unit": "nats", "largest": -math.log(epsilon)}
    return _known(CROSS_ENTROPY, name, "probabilities", function, most_bias=0.5, epsilon=epsilon, **stated)


def _clipped(epsilon: float, y: Any, prediction: Probabilities) -> float:
    return float(core.cross_entropy(prediction.get(y, 0.0), epsilon))


def _zero_one(y: Any, prediction: Probabilities) -> float:
    return float(most_probable(prediction) != y)


def _expected_zero_one(y: Any, prediction: Probabilities) -> float:
    return 1.0 - prediction.get(y, 0.0)


def _slope_of_expected_zero_one(y: Any, label: Any, _p: float) -> float:
    return -1.0 if label == y else 0.0


def _brier(y: Any, prediction: Probabilities) -> float:
    return float(core.brier_of(y, prediction))


def _absolute(y: Any, prediction: float) -> float:
    return float(core.absolute(prediction, _target(y)))


def _squared(y: Any, prediction: float) -> float:
    return float(core.squared(prediction, _target(y)))


def _score(_y: Any, prediction: float) -> float:
    return prediction


def _neg_score(_y: Any, prediction: float) -> float:
    return -prediction


def _slope_of_neg_score(_y: Any, _label: Any, _p: float) -> float:
    return -1.0


def _number(value: Any, name: str) -> float:
    if not isinstance(value, (str, bytes)):  # text is what somebody forgot to convert, and not every one reads as such
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise InvalidParameterError("loss", "a function that returns a number", value, f" from {name}")


def _target(y: Any) -> float:
    # float("1.5") is a number, and a stream of such text is one that somebody forgot to convert.
    if not isinstance(y, (str, bytes)):
        try:
            return float(y)
        except (TypeError, ValueError):
            pass
    raise LabelError(
        f"the target of a regression loss must be a number, got {y!r}: give numbers as numbers, float(y); for labels "
        "take a classifier, or a loss that reads labels"
    )


_LOSSES: dict[str, Loss] = {
    "zero_one": Loss("zero_one", "label", _zero_one, is_smooth=False, unit="share of observations", largest=1.0),
    "expected_zero_one": Loss(
        "expected_zero_one",
        "label",
        _expected_zero_one,
        _slope_of_expected_zero_one,
        unit="share of observations",
        largest=1.0,
        is_linear=True,
    ),
    "cross_entropy": _cross_entropy(DEFAULT_EPSILON),
    "brier": _known(BRIER, "brier", "probabilities", _brier, unit="squared probability", largest=2.0),
    "absolute": _known(ABSOLUTE, "absolute", "number", _absolute, unit="unit of the target"),
    "squared": _known(SQUARED, "squared", "number", _squared, unit="unit of the target, squared"),
    "score": _known(SCORE, "score", "number", _score, unit="unit of the score", is_linear=True),
    "neg_score": Loss("neg_score", "number", _neg_score, _slope_of_neg_score, unit="unit of the score", is_linear=True),
}

LOSS_NAMES = tuple(_LOSSES)
"""Names that `as_loss` knows."""
