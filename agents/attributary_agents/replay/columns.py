"""Columns of a file that are hardly features: ids, times, row numbers.

They are found by the first rows.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

from attributary_explainers.wording import show_count, show_number

from ..files.source import SAMPLE, Source

_MOST_VALUES = 100
_NEARLY_ALL = 0.9
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


def doubtful_columns(source: Source) -> Iterator[str]:
    """Yield a sentence for each column that is hardly a feature.

    The first 1000 rows decide. Hardly a feature is text of which nearly all values differ, and more than 100 do: each
    would be a category of its own. So are numbers that rise by the same step from each row to the next, in more than
    100 rows, and numbers with a decimal comma, which are read as text.
    """
    columns: dict[str, list[Any]] = {}
    n_rows = 0
    for value in islice(source.objects(), SAMPLE):
        n_rows += 1
        for name, cell in value["x"].items() if isinstance(value.get("x"), dict) else ():
            if cell is not None:
                columns.setdefault(name, []).append(cell)
    for name, cells in columns.items():
        if what := _doubt(cells, n_rows):
            yield f"{name or '(no name)'}: {what.format(name=shlex.quote(name))}"


def _doubt(cells: list[Any], n_rows: int) -> str:
    """Return the reason why a column is hardly a feature, or empty text.

    The reason has a place for the column's name.
    """
    if all(isinstance(cell, (int, float)) for cell in cells):
        step = _step(cells) if len(cells) == n_rows else None
        if step is None:
            return ""
        return (
            f"numbers that rise by {show_number(step)} in each of {show_count(n_rows)} rows: a row number or a time? "
            "--drop {name} leaves it out"
        )
    texts = [cell if isinstance(cell, str) else str(cell) for cell in cells]
    if len(texts) > 1 and all(map(_DECIMAL_COMMA.fullmatch, texts)):
        return "numbers with a decimal comma are read as text: write them with a point"
    n_different = len(set(texts))
    if n_different <= _MOST_VALUES or n_different < _NEARLY_ALL * len(texts):
        return ""
    return (
        f"text with {show_count(n_different)} different values in {show_count(n_rows)} rows: an identifier or a time? "
        "--drop {name} leaves it out"
    )


def _step(numbers: list[int | float]) -> float | None:
    """Return the step by which more than 100 numbers evenly rise, or None."""
    if len(numbers) <= _MOST_VALUES:
        return None
    steps = [later - earlier for earlier, later in pairwise(numbers)]
    is_even = all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps)
    return float(steps[0]) if steps[0] > 0 and is_even else None
