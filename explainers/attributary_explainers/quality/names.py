"""River's metrics by name, their inputs, and the models they fit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from river import metrics

from ..errors import InvalidParameterError
from ..losses.losses import Loss
from ..wording import did_you_mean

Reads = Literal["label", "two labels", "two probabilities", "probability", "number"]
"""What a metric reads: `two labels` and `two probabilities` are defined where there are exactly two classes."""


@dataclass(frozen=True)
class QualityMetric:
    """A River metric, and the output it reads."""

    make: Any
    reads: Reads


def _by_name(classes: str) -> dict[str, Any]:
    """Return classes of River by their names in snake case."""
    found = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(): getattr(metrics, name) for name in classes.split()}
    return dict(sorted(found.items()))


_OF_LABELS = _by_name(
    "Accuracy BalancedAccuracy CohenKappa MacroF1 MacroJaccard MacroPrecision MacroRecall MicroF1 MicroJaccard "
    "MicroPrecision MicroRecall WeightedF1 WeightedJaccard WeightedPrecision WeightedRecall"
)
_OF_TWO_LABELS = _by_name("F1 Jaccard MCC Precision Recall")
_OF_NUMBERS = _by_name("MAE MAPE MSE R2 RMSE SMAPE")

METRICS: dict[str, QualityMetric] = {
    **{name: QualityMetric(make, "label") for name, make in _OF_LABELS.items()},
    **{name: QualityMetric(make, "two labels") for name, make in _OF_TWO_LABELS.items()},
    "roc_auc": QualityMetric(metrics.ROCAUC, "two probabilities"),
    "cross_entropy": QualityMetric(metrics.CrossEntropy, "probability"),
    **{name: QualityMetric(make, "number") for name, make in _OF_NUMBERS.items()},
}
"""Name to metric: River's class names in snake case, of those that take weights and need no arguments."""

QUALITY_NAMES = tuple(sorted((*METRICS, "pr_auc")))
"""Names that `Quality` knows, besides `ALIASES` and precision and recall at a rate or threshold, see `at_of`."""

ALIASES = {
    "auc": "roc_auc",
    "average_precision": "pr_auc",
    "f1_macro": "macro_f1",
    "f1_micro": "micro_f1",
    "f1_weighted": "weighted_f1",
    "kappa": "cohen_kappa",
    "log_loss": "cross_entropy",
    "mean_absolute_error": "mae",
    "mean_squared_error": "mse",
    "rocauc": "roc_auc",
    "root_mean_squared_error": "rmse",
}
"""Other words for the same metrics, to the names under which they are published."""

_DEFAULTS = {"probabilities": ("accuracy", "roc_auc"), "label": ("accuracy",), "number": ("mae", "r2")}


_AT = re.compile(r"(precision|recall)_at_(\d+(?:\.\d+)?)(%?)")


class At(NamedTuple):
    """Which observations count as predicted to be positive."""

    metric: str
    """`precision` or `recall`."""
    number: float
    """The share of all observations, in (0, 1], those with the highest scores; or the least probability, in (0, 1)."""
    is_rate: bool


def at_of(name: str) -> At | None:
    """Return the meaning of `precision_at_1%` or `recall_at_0.9`, or None.

    With a per cent sign it is at a rate, without one at a threshold.

    Examples
    --------
    >>> at_of("precision_at_1%"), at_of("recall_at_0.9")
    (At(metric='precision', number=0.01, is_rate=True), At(metric='recall', number=0.9, is_rate=False))
    """
    found = _AT.fullmatch(name)
    if found is None:
        return None
    number = float(found[2]) / 100.0 if found[3] else float(found[2])
    is_rate = bool(found[3])
    return At(found[1], number, is_rate) if 0.0 < number < 1.0 or (is_rate and number == 1.0) else None


def reads_of(name: str) -> Reads:
    """Return the kind of output that a known metric reads."""
    return METRICS[name].reads if name in METRICS else "two probabilities"


def has_positive(name: str) -> bool:
    """Return whether a known metric depends on the positive class."""
    return name in _OF_THE_POSITIVE or at_of(name) is not None


_OF_THE_POSITIVE = ("f1", "jaccard", "precision", "recall", "pr_auc")


def known_metric(name: str) -> str:
    """Return the published name of a metric, from its name or an alias.

    Raises
    ------
    InvalidParameterError
        No metric has that name; the message names the nearest one, and all.
    """
    plain = str(name).strip().lower()
    plain = ALIASES.get(plain, plain)
    if plain in QUALITY_NAMES:
        return plain
    if at_of(plain) is not None:
        return _AT.sub(lambda found: f"{found[1]}_at_{float(found[2]):g}{found[3]}", plain)
    found = _AT.fullmatch(plain)
    if found is not None and not found[3] and 1.0 <= float(found[2]) <= 100.0:  # no probability, or all of them
        rate = f"{found[1]}_at_{float(found[2]):g}%"
        expected = (
            f"{rate}, of so many per cent with the highest scores, or a probability below 1, as {found[1]}_at_0.9"
        )
        raise InvalidParameterError("quality", expected, name)
    hint = did_you_mean(plain, [*QUALITY_NAMES, *ALIASES])
    for alias, published in ALIASES.items():
        hint = hint.replace(repr(alias), repr(published))
    expected = f"made of {', '.join(QUALITY_NAMES)}, and precision or recall as precision_at_1% or recall_at_0.9"
    raise InvalidParameterError("quality", expected, name, hint=hint)


def quality_metrics(names: Sequence[str] | None, loss: Loss) -> tuple[str, ...]:
    """Return the names of the metrics of a model, in order and each once.

    Parameters
    ----------
    names
        Names or aliases; empty for none. None stands for the metrics that fit what the loss reads: accuracy and
        roc_auc of probabilities, accuracy of a label, mae and r2 of a number, none of a score or of an unknown output.
    loss
        The model's loss. It says what the model is asked for.

    Raises
    ------
    InvalidParameterError
        A name is unknown, or a metric does not read what the model is asked for.
    """
    reads = "score" if loss.is_score else loss.output
    if names is None:
        return _DEFAULTS.get(reads, ())
    known = tuple(dict.fromkeys(map(known_metric, names)))
    for name in known:
        if reads not in _readable(reads_of(name)):
            raise InvalidParameterError("quality", _remedy(name, reads, loss), list(names))
    return known


def _readable(reads: Reads) -> tuple[str, ...]:
    if reads == "number":
        return ("number", "any")
    return ("probabilities", "label", "any") if "label" in reads else ("probabilities", "any")


def _remedy(name: str, reads: str, loss: Loss) -> str:
    fitting = [other for other in (*METRICS, "pr_auc") if reads in _readable(reads_of(other))]
    if not fitting:
        return f"empty for a model that predicts a {reads}, which has no label to compare with ({name} needs one)"
    if reads == "label" and reads_of(name) != "number":
        return (
            f"without {name}, which needs probabilities, while the loss {loss.name} asks the model for its label only: "
            f"set loss to brier or cross_entropy, if the model has probabilities, or choose of {', '.join(fitting)}"
        )
    what = "a number" if reads == "number" else "classes"
    return f"of the metrics for a model that predicts {what} ({', '.join(fitting)}), which {name} is not"
