"""Answers of the slices of an explanation, as plain data for a snapshot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.rows import Rows
from ...errors import SnapshotError
from ...packing import Values


def plain_answer(answer: Any) -> Any:
    """Return an answer as plain data: None, numbers or predictions."""
    if answer is None:
        return None
    if isinstance(answer, np.ndarray):
        return {"shape": list(answer.shape), "numbers": answer.astype(np.float64).tobytes()}
    said = Rows([of_row if isinstance(of_row, dict) else {} for of_row in answer])
    numbers = Values([math.nan if isinstance(of_row, dict) else of_row for of_row in answer])
    return {"said": said.snapshot(), "numbers": numbers.snapshot()}


def answer_from(plain: Any) -> Any:
    """Return the answer that `plain_answer` gave the data of.

    Raises
    ------
    SnapshotError
        These are no such data.
    """
    if plain is None:
        return None
    if "shape" in plain:
        return np.frombuffer(plain["numbers"], np.float64).reshape(plain["shape"])
    said, numbers = Rows.from_snapshot(plain["said"]), Values.from_snapshot(plain["numbers"])
    if len(said) != len(numbers):
        raise SnapshotError("stored predictions are not what an explainer has written: start a new explainer")
    return [dict(of_row) or number for of_row, number in zip(said, numbers, strict=True)]
