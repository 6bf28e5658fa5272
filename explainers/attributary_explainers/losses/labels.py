"""Checks that a loss can compare a label with the model's prediction."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Number
from typing import Any

import numpy as np

from ..errors import InvalidParameterError, LabelError
from ..ordering import sort_key
from ..predictions import is_usable
from ..typing import Prediction
from ..wording import did_you_mean
from .losses import Loss, as_loss

_SHOWN = 6


_OF_LABELS = (as_loss("zero_one"), as_loss("expected_zero_one"))


def is_of_labels(loss: Loss) -> bool:
    """Return whether a loss is the share of wrong labels, by any name."""
    return loss in _OF_LABELS


def check_label(loss: Loss, y: Any, prediction: Prediction) -> None:
    """Check whether the first label has a type of the model's classes.

    Labels are the same where Python says that they are equal: False, 0, 0.0 and numpy's False and 0 are one label, and
    so are the texts "0" and `np.str_("0")`. A number and a text are never equal, so 0 and "0" are two labels. A class
    that the model does not know is a label all the same, as long as it is of the type of one that it knows: a number
    beside numbers, a text beside texts.

    A score reads no label, and a user's own loss may read what it likes: both take anything. Where there is no
    prediction yet, the observation is skipped, whatever its label is. LabelError: there is no label, or its type is
    that of no class of the prediction, or the target is no number.

    Examples
    --------
    >>> from attributary_explainers.losses.losses import as_loss
    >>> check_label(as_loss("brier"), 1, {False: 0.5, True: 0.5})
    >>> check_label(as_loss("brier"), "1", {False: 0.5, True: 0.5})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    attributary_explainers.errors.LabelError: the label '1' is a text, and the model's classes are numbers: False, ...
    """
    if loss.is_score or not loss.is_named or not is_usable(prediction):
        return
    # A target that is NaN gives a loss that is no number: such an observation is skipped.
    is_none = y is None or (isinstance(y, float) and y != y and loss.output != "number")
    if is_none and not (isinstance(prediction, dict) and y in prediction):
        raise LabelError(
            f"the loss {loss.name} compares the prediction with the label or target, and there is none"
            f"{'' if y is None else ' (it is NaN)'}: give y, as in explain_one(x, y)"
        )
    if loss.output == "number":
        loss.arguments_at(y, 0)
    elif isinstance(prediction, dict):
        _check_class(y, prediction)


def check_positive(positive: Any, classes: Collection[Any]) -> None:
    """Refuse a positive class that is none of the two or more that are known.

    InvalidParameterError: none of them is equal to it; the message names them.
    """
    if positive is None or len(classes) < 2 or positive in classes:
        return
    known = sorted(classes, key=sort_key)
    shown = ", ".join(map(repr, known[:_SHOWN])) + (", …" if len(known) > _SHOWN else "")
    raise InvalidParameterError("positive", f"one of the classes {shown}", positive, hint=did_you_mean(positive, known))


def _check_class(y: Any, classes: dict[Any, float]) -> None:
    try:
        if y in classes:
            return
    except TypeError:
        raise LabelError(
            f"a label must be hashable, as a text, a number or a tuple is, got {type(y).__name__}"
        ) from None
    kinds = {_kind(label) for label in classes}
    if _kind(y) in kinds:
        return
    shown = ", ".join(map(repr, list(classes)[:_SHOWN])) + (", …" if len(classes) > _SHOWN else "")
    raise LabelError(
        f"the label {y!r} is a {_kind(y)}, and the model's classes are {' or '.join(sorted(f'{k}s' for k in kinds))}: "
        f"{shown}. No prediction could ever be right: give labels as the model's classes are written, or teach the "
        "model these labels"
    )


def _kind(label: Any) -> str:
    if isinstance(label, str):
        return "text"
    return "number" if isinstance(label, (Number, np.bool_)) else type(label).__name__
