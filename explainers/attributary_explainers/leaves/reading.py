"""Reads a model's forest, of whichever library it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..models.sklearn import is_estimator
from ..typing import Array, Features, Output
from .forest import Forest, UnreadableError
from .river import read_river
from .sklearn import read_estimator


def read_forest(model: Any, rows: Sequence[Features], output: Output) -> tuple[Forest, Array]:
    """Return a model's forest, and the rows as it compares them, shape (rows, columns).

    Raises
    ------
    UnreadableError
        It is no forest that can be read.
    """
    if is_estimator(model):
        return read_estimator(model, rows)
    if output == "any":
        raise UnreadableError("what the loss reads is not known")
    return read_river(model, rows)
