"""Reasons why a model failed on all rows of a rehearsal, and remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attributary_explainers import Loss, TrainedModel, model_kind
from attributary_explainers.models.sklearn import is_estimator

from ..config.models import ModelConfig
from ..config.steps import FileConfig

_SHOWN = 5
_MANY = 0.5
"""Share of the rows from which on different numbers are too many to be classes."""


def text_features(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the features with text in any row, in the order of their names."""
    return sorted({name for x in rows for name, value in x.items() if isinstance(value, str)})


def without_text(x: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with a number in place of each text."""
    return {name: 0.0 if isinstance(value, str) else value for name, value in x.items()}


def encode_text(model: Any, names: Sequence[str]) -> str:
    """Say that the model takes numbers only, and how to encode the text."""
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    if isinstance(model, TrainedModel):
        how = "train it with an encoder before it, in one pipeline, and save both together"
    elif is_estimator(model):
        how = (
            "fit a pipeline that encodes it, as make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown="
            f'"ignore"), {list(names[:_SHOWN])}), remainder="passthrough"), estimator)'
        )
    else:
        how = (
            "let a factory put an encoder before the model, ((compose.SelectType(str) | preprocessing.OneHotEncoder()) "
            "+ compose.SelectType(numbers.Number)) | model"
        )
    return f"the model takes numbers only, and there is text in {shown}: {how}; or leave the text out"


def wrong_labels(config: ModelConfig, model: Any) -> str:
    """Say that labels have the wrong type for the model, with a remedy."""
    said = (
        "the labels are not of the type that the model reads: a regressor takes numbers, for labels take a classifier; "
        "to a classifier give labels as the model's classes are written"
    )
    file = config.model
    if model_kind(model) != "classifier" or not isinstance(file, FileConfig) or file.classes is not None:
        return said
    return f"{said}, or name those in the order of its numbers: model: {{file: {file.file}, …, classes: [LABEL, …]}}"


def no_prediction(model: Any) -> str:
    """Say that a model that does not learn predicts nothing."""
    name = type(model).__name__
    fitted = "fit it before, in the function that `factory` names" if is_estimator(model) else "teach it before"
    return (
        f"{name} predicts nothing, on none of the rows, and does not learn (`learn: false`), so nothing would ever be "
        f"explained: {fitted}, or let it learn"
    )


def nothing_explained(skipped: Mapping[str, Mapping[str, int]], n_used: int) -> str:
    """Say that no row was explained, and why."""
    reasons = "; ".join(
        f"{name}: " + ", ".join(f"{n} ({reason.replace('_', ' ')})" for reason, n in counts.items())
        for name, counts in skipped.items()
    )
    how = (
        "where values are missing, the key `missing` says what to make of them"
        if "missing" in reasons
        else ("see that the model predicts a finite number or probabilities for such rows")
    )
    return f"none of the {n_used} rows used was explained, skipped {reasons or 'without a reason'}: {how}"


def numbers_as_classes(loss: Loss, ys: Sequence[Any]) -> str | None:
    """Say that a classifier's labels look like numbers; None if they do not.

    They do where more than half of at least ten are different, all are numbers, and some have fractions.
    """
    found = many_numbers(loss, ys)
    if found is None or all(y == int(y) for y in ys):
        return None
    return f"{found}: take a regressor, or name the column of the label with --target"


def many_numbers(loss: Loss, ys: Sequence[Any]) -> str | None:
    """Say that a classifier's labels are many numbers; None if they are not."""
    numbers = [y for y in ys if isinstance(y, (int, float)) and not isinstance(y, bool)]
    n = len(set(numbers))
    if loss.output not in ("probabilities", "label") or len(numbers) < max(len(ys), 10) or n <= _MANY * len(ys):
        return None
    return f"the labels are {n} different numbers in {len(ys)} rows, and to a classifier each is a class of its own"
