"""Data frames of importances; pandas is imported only when needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import ExplainerError
from ..ranking import BAND
from .cards import most_important_first


def data_frame(columns: Mapping[str, Sequence[Any]], index: Sequence[str] | str) -> Any:
    """Return a data frame of columns, with the columns in `index` as index.

    Raises
    ------
    ExplainerError
        pandas is not installed; the message says what to do.
    """
    try:
        import pandas
    except ImportError:
        raise ExplainerError(
            "to_frame() needs pandas, which is not installed: pip install pandas, or read `importance` and "
            "`half_width`, which are dicts"
        ) from None
    return pandas.DataFrame(dict(columns)).set_index(index if isinstance(index, str) else list(index))


def importance_frame(
    importance: Mapping[Any, float],
    std_error: Mapping[Any, float] | None = None,
    half_width: Mapping[Any, float] | None = None,
    raw: Mapping[Any, float] | None = None,
) -> Any:
    """Return a frame with a row per feature, the most important first.

    Columns: importance, std_error, half_width, and low and high, the ends of the 95 % interval; NaN where a value is
    not known. With `raw` a column `raw_importance`. Without `half_width` it is 1.96 standard errors.
    """
    names = most_important_first(importance)
    errors = std_error or {}
    widths = {name: BAND * error for name, error in errors.items()} if half_width is None else half_width
    of_width = [widths.get(name, math.nan) for name in names]
    values = [importance[name] for name in names]
    columns: dict[str, Sequence[Any]] = {
        "feature": names,
        "importance": values,
        "std_error": [errors.get(name, math.nan) for name in names],
        "half_width": of_width,
        "low": [value - width for value, width in zip(values, of_width, strict=True)],
        "high": [value + width for value, width in zip(values, of_width, strict=True)],
    }
    if raw is not None:
        columns["raw_importance"] = [raw.get(name, math.nan) for name in names]
    return data_frame(columns, "feature")


def curve_frame(curves: Iterable[tuple[Any, Sequence[Any], Sequence[float]]]) -> Any:
    """Return a frame of curve points: feature (index), value, prediction."""
    points = [(name, value, p) for name, grid, means in curves for value, p in zip(grid, means, strict=True)]
    columns = [[point[i] for point in points] for i in range(3)]
    return data_frame(dict(zip(("feature", "value", "prediction"), columns, strict=True)), "feature")


def joined_frame(frames: Mapping[str, Any]) -> Any:
    """Join the frames of explainers, with the explainer in the index."""
    filled = data_frame({"explainer": list(frames)}, "explainer")  # says what to install where pandas is not there
    if not len(filled):
        return filled
    import pandas

    return pandas.concat(dict(frames), names=["explainer"])
