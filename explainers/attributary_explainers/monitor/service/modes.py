"""Says what a model without labels is watched for, as a worker does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InvalidParameterError
from ..settings import Settings

DEFAULT = Settings()
"""What is watched of a model of which nothing is said."""


def change_of(mode: str, learn: bool, change: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the parameters by which changes are explained: without a loss that a detector of change could read.

    Parameters
    ----------
    change
        What the user has said, or that of `DEFAULT`.

    Raises
    ------
    InvalidParameterError
        Changes of an anomaly detector that learns are wanted: verdicts are of losses, and it has none.
    """
    if change is None or mode == "labelled":
        return change
    if mode == "anomaly" and learn:
        if change is DEFAULT.change:
            return None
        raise InvalidParameterError("change", "None for an anomaly detector that learns: its score is no loss", change)
    if change.get("detector") is not None:
        raise InvalidParameterError("change", f"no `detector` with mode={mode!r}: it reads a loss", change)
    return {"detector": None, **change}
