"""Makes panels of each kind, so that a dashboard says only what is its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from grafana_foundation_sdk.builders import barchart, bargauge, common, prometheus, stat, statetimeline, table, text
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import timeseries as series
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.text import TextMode

from .queries import PREFIX, catalogued

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
GREEN, YELLOW, RED = "green", "yellow", "red"

P = TypeVar("P", series.Panel, stat.Panel, table.Panel, bargauge.Panel, barchart.Panel, statetimeline.Panel)
Steps = Sequence[tuple[float | None, str]]
"""Pairs of a value and the colour from it on; the first value is None."""


@dataclass(frozen=True)
class Query:
    """Holds what a panel asks, and the name of the answer: a legend like `{{feature}}`, or a column's name."""

    expr: str
    name: str = ""


@dataclass(frozen=True)
class Panel:
    """Holds a panel and its size: Grafana's grid is 24 wide, and a unit of height is 30 pixels."""

    builder: Any
    width: int
    height: int


def explained(description: str, queries: Sequence[Query]) -> str:
    """Return the description of a panel with the catalogue's text about every metric that it asks for."""
    names = dict.fromkeys(name for query in queries for name in re.findall(rf"\b{PREFIX}\w+", query.expr))
    return description + "".join(f"\n\n`{name}`: {catalogued(name)[0]}." for name in names)


def common_parts(
    panel: P,
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    unit: str,
    empty: str,
    instant: bool = False,
    as_table: bool = False,
    steps: Steps = ((None, GREEN),),
    decimals: int | None = None,
    least: float | None = None,
    most: float | None = None,
) -> P:
    """Set what panels of every kind have: title, description, queries, unit, limits, and a text for no data."""
    panel.title(title).description(explained(description, queries)).datasource(SOURCE).unit(unit).no_value(empty)
    panel.thresholds(builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(as_steps(steps)))
    if decimals is not None:
        panel.decimals(decimals)
    if least is not None:
        panel.min(least)
    if most is not None:
        panel.max(most)
    for number, query in enumerate(queries):
        target = prometheus.Dataquery().ref_id(chr(ord("A") + number)).datasource(SOURCE).expr(query.expr)
        target.legend_format(query.name or "__auto")
        target.format(PromQueryFormat.TABLE if as_table else PromQueryFormat.TIME_SERIES)
        panel.with_target(target.instant() if instant else target.range())
    return panel


def as_steps(steps: Steps) -> list[models.Threshold]:
    """Return the steps in the library's type."""
    return [models.Threshold(value, colour) for value, colour in steps]


def graph(
    title: str,
    description: str,
    *queries: Query,
    unit: str = "short",
    size: tuple[int, int] = (12, 8),
    empty: str = "no data in this time range",
    least: float | None = None,
    most: float | None = None,
    at_least_up_to: float | None = None,
    bars: bool = False,
    stacked: bool = False,
    steps: Steps = (),
    dashed: str = "",
    right: tuple[str, str] = ("", ""),
) -> Panel:
    """Return a panel with lines over time, or with bars of what happened in each step.

    Parameters
    ----------
    steps
        Limits, drawn as dashed lines.
    dashed
        Name of the query that is itself a limit.
    at_least_up_to
        Value up to which the axis goes, where all are smaller.
    right
        Name of the query whose axis stands on the right, and its unit.
    """
    panel = common_parts(
        series.Panel(), title, description, queries, unit=unit, empty=empty, steps=steps or ((None, GREEN),),
        least=least, most=most,
    )  # fmt: skip
    # By name: a feature has the same colour in every panel.
    panel.color_scheme(builders.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    panel.legend(
        common.VizLegendOptions()
        .display_mode(commons.LegendDisplayMode.LIST)
        .placement(commons.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs([])
    )
    panel.tooltip(common.VizTooltipOptions().mode(commons.TooltipDisplayMode.MULTI).sort(commons.SortOrder.DESCENDING))
    panel.draw_style(commons.GraphDrawStyle.BARS if bars else commons.GraphDrawStyle.LINE)
    panel.line_width(1).fill_opacity(70 if bars or stacked else 0).show_points(commons.VisibilityMode.NEVER)
    if at_least_up_to is not None:
        panel.axis_soft_max(at_least_up_to)
    if bars or stacked:
        panel.stacking(common.StackingConfig().mode(commons.StackingMode.NORMAL).group("A"))
    if steps:
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(commons.GraphThresholdsStyleMode.DASHED))
    if dashed:
        panel.override_by_name(
            dashed,
            [
                models.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": RED}),
                models.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 10]}),
            ],
        )
    if right[0]:
        panel.override_by_name(
            right[0],
            [
                models.DynamicConfigValue("custom.axisPlacement", "right"),
                models.DynamicConfigValue("unit", right[1]),
                models.DynamicConfigValue("min", 0),
            ],
        )
    return Panel(panel, *size)


def band(title: str, description: str, value: str, half_width: str, *, repeat: str) -> Panel:
    """Return a value with a band of half a width to either side, once for each value of the variable `repeat`."""
    queries = [
        Query(value, "importance"),
        Query(f"{value} + {half_width}", "upper"),
        Query(f"{value} - {half_width}", "lower"),
    ]
    made = graph(title, description, *queries, size=(6, 6))
    panel = made.builder
    panel.legend(common.VizLegendOptions().show_legend(False).display_mode(commons.LegendDisplayMode.HIDDEN).calcs([]))
    panel.repeat(repeat).repeat_direction("h").max_per_row(4)
    # `fillBelowTo` fills from the line down to the one of that name.
    panel.override_by_name(
        "upper",
        [
            models.DynamicConfigValue("custom.lineWidth", 0),
            models.DynamicConfigValue("custom.fillBelowTo", "lower"),
            models.DynamicConfigValue("custom.fillOpacity", 25),
            models.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "blue"}),
        ],
    )
    panel.override_by_name("lower", [models.DynamicConfigValue("custom.lineWidth", 0)])
    panel.override_by_name("importance", [models.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "blue"})])
    return made


def number(
    title: str,
    description: str,
    query: Query,
    *,
    unit: str = "short",
    size: tuple[int, int] = (4, 4),
    empty: str = "none",
    steps: Steps = ((None, GREEN),),
    decimals: int | None = None,
    name_only: bool = False,
    trend: bool = False,
) -> Panel:
    """Return one number, coloured by its thresholds; with `trend`, its past is drawn behind it."""
    panel = common_parts(
        stat.Panel(), title, description, [query], unit=unit, empty=empty, steps=steps, instant=not trend,
        decimals=decimals,
    )  # fmt: skip
    panel.color_scheme(builders.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
    panel.graph_mode(commons.BigValueGraphMode.AREA if trend else commons.BigValueGraphMode.NONE)
    panel.color_mode(commons.BigValueColorMode.VALUE)
    panel.text_mode(commons.BigValueTextMode.NAME if name_only else commons.BigValueTextMode.VALUE)
    return Panel(panel, *size)


def gauges(
    title: str,
    description: str,
    query: Query,
    *,
    unit: str,
    size: tuple[int, int] = (6, 8),
    empty: str = "none",
    steps: Steps = ((None, GREEN),),
    most: float | None = None,
) -> Panel:
    """Return a horizontal bar for the present value of each series."""
    panel = common_parts(
        bargauge.Panel(), title, description, [query], unit=unit, empty=empty, steps=steps, instant=True,
        least=0, most=most,
    )  # fmt: skip
    panel.orientation(commons.VizOrientation.HORIZONTAL).display_mode(commons.BarGaugeDisplayMode.BASIC)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
    panel.color_scheme(builders.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
    return Panel(panel, *size)


def states(
    title: str,
    description: str,
    query: Query,
    *,
    unit: str = "none",
    size: tuple[int, int],
    most: float,
    empty: str = "no data in this time range",
) -> Panel:
    """Return a line for each series, coloured by its value over time, red at most; equal values are joined."""
    panel = common_parts(
        statetimeline.Panel(), title, description, [query], unit=unit, empty=empty,
        least=1 if most > 1 else 0, most=most, decimals=0,
    )  # fmt: skip
    panel.color_scheme(builders.FieldColor().mode(models.FieldColorModeId.CONTINUOUS_GR_YL_RD))
    shown = commons.VisibilityMode.AUTO if most > 1 else commons.VisibilityMode.NEVER
    panel.merge_values(True).show_value(shown).row_height(0.9).fill_opacity(70)
    panel.legend(common.VizLegendOptions().show_legend(False).display_mode(commons.LegendDisplayMode.HIDDEN).calcs([]))
    return Panel(panel, *size)


def note(title: str, content: str, *, size: tuple[int, int]) -> Panel:
    """Return a panel with text in Markdown."""
    return Panel(text.Panel().title(title).mode(TextMode.MARKDOWN).content(content), *size)
