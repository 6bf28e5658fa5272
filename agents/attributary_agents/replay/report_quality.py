"""Draws the quality of a model for the report: River's metrics, beside the loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .report_axes import N_COLOURS, Line, Point
from .report_data import Model
from .report_page import figure
from .report_svg import Mark, line_chart

_OWN_SCALE = ("cross_entropy", "mae", "mape", "mse", "r2", "rmse", "smape")
"""Metrics that are not at most 1 and seldom below 0: each has a chart of its own."""


def quality_charts(model: Model, x_range: tuple[float, float], marks: Sequence[Mark]) -> Iterator[str]:
    """Yield a chart of the metrics that are shares, and one of each other metric."""
    known = [name for name in _names(model) if any(point["value"] is not None for _, point in _points(model, name))]
    shares = [name for name in known if name not in _OWN_SCALE]
    for names in filter(None, (shares, *([name] for name in known if name in _OWN_SCALE))):
        lines = []
        for i, name in enumerate(names):
            points = _points(model, name)
            now: list[Point] = [(at, found["value"], None) for at, found in points]
            reference: list[Point] = [(at, found["reference"], None) for at, found in points]
            colour = i % N_COLOURS
            lines += [Line(name, now, colour), Line(f"{name}, reference", reference, colour, is_reference=True)]
        title = "Quality" if names is shares else f"Quality: {names[0]}"
        caption = "By River's metrics, before the model learns each observation, smoothed. Dashed: over the reference."
        yield figure(title, caption, line_chart(title, lines, x_range, marks))


def _names(model: Model) -> list[str]:
    return list(dict.fromkeys(name for _, quality in model.quality.points for name in quality))


def _points(model: Model, name: str) -> list[tuple[int, dict[str, float | None]]]:
    unknown: dict[str, float | None] = {"value": None, "reference": None}
    return [(at, quality.get(name, unknown)) for at, quality in model.quality.points]
