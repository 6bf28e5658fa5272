"""Makes tables and bars side by side: several queries whose answers are joined by a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import barchart, common, table
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import dashboard as models

from .panels import Panel, Query, Steps, as_steps, common_parts


def joined(key: str, queries: Sequence[Query], hidden: Sequence[str] = ()) -> list[models.DataTransformerConfig]:
    """Return the steps that join the tables of the queries into one with a row for each value of the label `key`.

    The columns stand in the order of the queries, under their names. Labels other than `key` that only one of the
    queries has become columns too; `hidden` ones do not.
    """
    names = {f"Value #{chr(ord('A') + n)}" if len(queries) > 1 else "Value": q.name for n, q in enumerate(queries)}
    left_out = "|".join(("Time.*", *(f"{label}( \\d+)?" for label in hidden), *(n for n in names if not names[n])))
    join = models.DataTransformerConfig("joinByField", options={"byField": key, "mode": "outer"})
    return [
        *([join] if len(queries) > 1 else []),
        models.DataTransformerConfig(
            "filterFieldsByName", options={"exclude": {"pattern": f"^({left_out})$"}, "include": {"names": []}}
        ),
        models.DataTransformerConfig(
            "organize",
            options={
                "renameByName": {field: name for field, name in names.items() if name},
                "indexByName": {},
                "excludeByName": {},
            },
        ),
    ]


@dataclass(frozen=True)
class Column:
    """Says how a table's column looks: `link` is a URL, `bar` draws a bar of the value."""

    name: str
    unit: str = ""
    decimals: int | None = None
    steps: Steps = ()
    link: tuple[str, str] = ("", "")
    bar: bool = False

    def properties(self) -> list[models.DynamicConfigValue]:
        """Return the column's properties as Grafana's overrides."""
        found: dict[str, Any] = {}
        if self.unit:
            found["unit"] = self.unit
        if self.decimals is not None:
            found["decimals"] = self.decimals
        if self.steps:
            found["thresholds"] = {"mode": "absolute", "steps": [step.to_json() for step in as_steps(self.steps)]}
            found["custom.cellOptions"] = {"type": "color-text"}
        if self.bar:
            found["custom.cellOptions"] = {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}
        if self.link[1]:
            found["links"] = [{"title": self.link[0], "url": self.link[1], "targetBlank": False}]
        return [models.DynamicConfigValue(name, value) for name, value in found.items()]


def rows(
    title: str,
    description: str,
    key: str,
    *queries: Query,
    columns: Sequence[Column] = (),
    hidden: Sequence[str] = (),
    sort_by: str = "",
    unit: str = "short",
    size: tuple[int, int] = (24, 9),
    empty: str = "none",
    link: tuple[str, str] = ("", ""),
) -> Panel:
    """Return a table of present values: a row for each value of the label `key`, a column for each query.

    `link` is the title and the URL of one that stands in the panel's corner.
    """
    panel = common_parts(
        table.Panel(), title, description, queries, unit=unit, empty=empty, instant=True, as_table=True
    )
    panel.transformations(joined(key, queries, hidden)).show_header(True).cell_height(commons.TableCellHeight.SM)
    panel.filterable(True)
    for column in columns:
        panel.override_by_name(column.name, column.properties())
    if sort_by:
        panel.sort_by([common.TableSortByFieldState().display_name(sort_by).desc(True)])
    if link[1]:
        panel.links(
            [builders.DashboardLink(link[0]).type(models.DashboardLinkType.LINK).url(link[1]).target_blank(True)]
        )
    return Panel(panel, *size)


def compared(
    title: str, description: str, key: str, *queries: Query, hidden: Sequence[str], size: tuple[int, int]
) -> Panel:
    """Return bars side by side: a group for each value of the label `key`, in it a bar for each query."""
    panel = common_parts(
        barchart.Panel(), title, description, queries, unit="short", empty="no importance yet", instant=True,
        as_table=True,
    )  # fmt: skip
    panel.transformations(joined(key, queries, hidden)).x_field(key).orientation(commons.VizOrientation.AUTO)
    panel.show_value(commons.VisibilityMode.NEVER).group_width(0.7).bar_width(0.9).fill_opacity(80)
    panel.color_scheme(builders.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC))
    panel.legend(
        common.VizLegendOptions()
        .display_mode(commons.LegendDisplayMode.LIST)
        .placement(commons.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs([])
    )
    return Panel(panel, *size)
