"""States a loss in words: its name, its unit and its largest value."""

from __future__ import annotations

from ..wording import show_number


def loss_statement(name: str, unit: str, largest: float | None) -> str:
    """Return name, unit and largest value of a loss in words, for whatever shows an importance.

    Parameters
    ----------
    name, unit, largest
        Those of the `Loss`.

    Examples
    --------
    >>> loss_statement("brier", "squared probability", 2.0)
    'brier loss: squared probability, at most 2'
    >>> loss_statement("squared", "unit of the target, squared", None)
    'squared loss: unit of the target, squared'
    """
    said = f"{name} loss" if unit == name else f"{name} loss: {unit}"
    return said if largest is None else f"{said}, at most {show_number(largest)}"
