"""Reads metrics of River that are means over rows as losses."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from river import metrics, stats

from ..errors import InvalidParameterError
from ..typing import Output

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
