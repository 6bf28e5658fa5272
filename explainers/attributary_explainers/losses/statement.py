"""States a loss in words, and says which losses are scores."""

from __future__ import annotations

from ..wording import show_number

SCORES = ("score", "neg_score")
"""Names of the losses that read no label."""

_ADDED = {
    "score": "score: how much it rises where a feature is not known",
    "neg_score": "score: what a feature adds to it",
}


def is_score(name: object) -> bool:
    """Return whether the named loss is a score, which reads no label."""
    return name in SCORES


def measured(name: str | None) -> str:
    """Return the name of a mean loss in sentences.

    Examples
    --------
    >>> measured("brier"), measured("neg_score")
    ('loss', 'mean score')
    """
    return "mean score" if is_score(name) else "loss"


def loss_statement(name: str, unit: str, largest: float | None) -> str:
    """Return name, unit and largest value of a loss in words.

    Of a score it is what the importances are, for it has no unit of its own, and no largest value.

    Examples
    --------
    >>> loss_statement("brier", "squared probability", 2.0)
    'brier loss: squared probability, at most 2'
    >>> loss_statement("squared", "unit of the target, squared", None)
    'squared loss: unit of the target, squared'
    >>> loss_statement("neg_score", "unit of the score", None)
    'score: what a feature adds to it'
    """
    if is_score(name):
        return _ADDED[name]
    said = f"{name} loss" if unit == name else f"{name} loss: {unit}"
    return said if largest is None else f"{said}, at most {show_number(largest)}"
