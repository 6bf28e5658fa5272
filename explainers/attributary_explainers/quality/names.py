"""River's metrics by name, what they read, and which models they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from river import metrics

from ..errors import InvalidParameterError
from ..losses.losses import Loss
from ..wording import did_you_mean

Reads = Literal["label", "two labels", "two probabilities", "probability", "number"]
"""What a metric reads: `two labels` and `two probabilities` are defined where there are exactly two classes."""


@dataclass(frozen=True)
class QualityMetric:
    """One of River's metrics, and what it reads."""

    make: Any
    reads: Reads


_OF_LABELS = {
    "accuracy": metrics.Accuracy,
    "balanced_accuracy": metrics.BalancedAccuracy,
    "cohen_kappa": metrics.CohenKappa,
    "macro_f1": metrics.MacroF1,
    "macro_jaccard": metrics.MacroJaccard,
    "macro_precision": metrics.MacroPrecision,
    "macro_recall": metrics.MacroRecall,
    "micro_f1": metrics.MicroF1,
    "micro_jaccard": metrics.MicroJaccard,
    "micro_precision": metrics.MicroPrecision,
    "micro_recall": metrics.MicroRecall,
    "weighted_f1": metrics.WeightedF1,
    "weighted_jaccard": metrics.WeightedJaccard,
    "weighted_precision": metrics.WeightedPrecision,
    "weighted_recall": metrics.WeightedRecall,
}
_OF_TWO_LABELS = {
    "f1": metrics.F1,
    "jaccard": metrics.Jaccard,
    "mcc": metrics.MCC,
    "precision": metrics.Precision,
    "recall": metrics.Recall,
}
_OF_NUMBERS = {
    "mae": metrics.MAE,
    "mape": metrics.MAPE,
    "mse": metrics.MSE,
    "r2": metrics.R2,
    "rmse": metrics.RMSE,
    "smape": metrics.SMAPE,
}

METRICS: dict[str, QualityMetric] = {
    **{name: QualityMetric(make, "label") for name, make in _OF_LABELS.items()},
    **{name: QualityMetric(make, "two labels") for name, make in _OF_TWO_LABELS.items()},
    "roc_auc": QualityMetric(metrics.ROCAUC, "two probabilities"),
    "cross_entropy": QualityMetric(metrics.CrossEntropy, "probability"),
    **{name: QualityMetric(make, "number") for name, make in _OF_NUMBERS.items()},
}
"""Name to metric: River's class names in snake case, of those that take weights and need no arguments."""

QUALITY_NAMES = tuple(sorted(METRICS))
"""Names that `Quality` knows, besides `ALIASES`."""

ALIASES = {
    "auc": "roc_auc",
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


def known_metric(name: str) -> str:
    """Return the published name of a metric, from its name or an alias.

    Raises
    ------
    InvalidParameterError
        No metric has that name; the message names the nearest one, and all.
    """
    plain = str(name).strip().lower()
    plain = ALIASES.get(plain, plain)
    if plain in METRICS:
        return plain
    hint = did_you_mean(plain, [*QUALITY_NAMES, *ALIASES])
    for alias, published in ALIASES.items():
        hint = hint.replace(repr(alias), repr(published))
    raise InvalidParameterError("quality", f"made of {', '.join(QUALITY_NAMES)}", name, hint=hint)


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
        if reads not in _readable(METRICS[name].reads):
            raise InvalidParameterError("quality", _remedy(name, reads, loss), list(names))
    return known


def _readable(reads: Reads) -> tuple[str, ...]:
    if reads == "number":
        return ("number", "any")
    return ("probabilities", "label", "any") if "label" in reads else ("probabilities", "any")


def _remedy(name: str, reads: str, loss: Loss) -> str:
    fitting = [other for other, metric in METRICS.items() if reads in _readable(metric.reads)]
    if not fitting:
        return f"empty for a model that predicts a {reads}, which has no label to compare with ({name} needs one)"
    if reads == "label" and METRICS[name].reads != "number":
        return (
            f"without {name}, which needs probabilities, while the loss {loss.name} asks the model for its label only: "
            f"set loss to brier or cross_entropy, if the model has probabilities, or choose of {', '.join(fitting)}"
        )
    what = "a number" if reads == "number" else "classes"
    return f"of the metrics for a model that predicts {what} ({', '.join(fitting)}), which {name} is not"
