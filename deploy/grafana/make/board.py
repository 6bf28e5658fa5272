"""Builds a dashboard: places its panels, adds variables, annotations and links, and writes the JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from .panels import SOURCE, Panel

WIDTH = 24
FLEET, MODEL, OPERATIONS = "attributary-fleet", "attributary-model", "attributary-operations"
TAG = "attributary"
HERE = "${__url_time_range}&var-datasource=${datasource}"
"""The part of a link that keeps time range and data source in another dashboard."""

_ALL = "$__all"


def data_source() -> builders.DatasourceVariable:
    """Return the variable for the Prometheus to ask."""
    return builders.DatasourceVariable("datasource").label("Data source").type("prometheus")


def variable(
    name: str,
    label: str,
    query: str,
    *,
    multi: bool = False,
    all_value: str = "",
    hidden: bool = False,
    regex: str = "",
) -> builders.QueryVariable:
    """Return a variable whose values Prometheus knows; it is asked again whenever the time range changes.

    Parameters
    ----------
    multi
        Several values may be chosen, and all are at first. Grafana escapes them for a regular expression: use `=~`.
    all_value
        What All stands for; without it, for the values that there are.
    """
    made = builders.QueryVariable(name).label(label).query(query).datasource(SOURCE)
    made.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(models.VariableSort.NATURAL_ASC)
    made.multi(multi).include_all(multi)
    if multi:
        made.current(models.VariableOption(True, ["All"], [_ALL]))
        if all_value:
            made.all_value(all_value)
    if hidden:
        made.hide(models.VariableHide.HIDE_VARIABLE)
    if regex:
        made.regex(regex)
    return made


def choice(name: str, label: str, values: Sequence[str], chosen: str) -> builders.CustomVariable:
    """Return a variable with fixed values."""
    made = builders.CustomVariable(name).label(label).values(",".join(values))
    made.current(models.VariableOption(True, chosen, chosen))
    return made.options([models.VariableOption(value == chosen, value, value) for value in values])


class Annotation(models.AnnotationQuery, Builder[models.AnnotationQuery]):
    """Marks every graph where a query is above 0; adds the fields of Prometheus that the library does not know."""

    def __init__(self, name: str, expr: str, *, colour: str, title: str, text: str, tags: str = "") -> None:
        super().__init__(name=name, datasource=SOURCE, icon_color=colour, expr=expr)
        self._own = {
            "titleFormat": title,
            "textFormat": text,
            "tagKeys": tags,
            "useValueForTime": False,
            # Versions of Grafana differ in where they look for the query.
            "target": {"refId": "Anno", "expr": expr, "range": True, "instant": False},
        }

    def build(self) -> models.AnnotationQuery:
        """Return the annotation itself, which is its own builder."""
        return self

    def to_json(self) -> dict[str, object]:
        """Return the library's JSON with the fields that it lacks."""
        return {**super().to_json(), **self._own}


class Board:
    """Builds a dashboard line by line."""

    def __init__(self, uid: str, title: str, description: str) -> None:
        self.uid = uid
        self._made = builders.Dashboard(title).uid(uid).description(description).tags([TAG]).editable()
        self._made.time("now-15m", "now").refresh("10s").timezone("browser")
        self._made.tooltip(models.DashboardCursorSync.CROSSHAIR)
        self._made.link(
            builders.DashboardLink("Attributary")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(False)
            .keep_time(True)
            .include_vars(True)
        )
        self._y = 0
        self._panels = 0

    def variables(self, *made: Any) -> None:
        """Add variables, in the order in which they depend on each other."""
        self._made.variables([data_source(), *made])

    def annotations(self, *made: Annotation) -> None:
        """Add marks on every graph."""
        self._made.annotations(list(made))

    def heading(self, title: str) -> None:
        """Add a line with a title, under which the next panels can be folded."""
        self._made.with_row(self._at(builders.Row(title), 0, WIDTH, 1))
        self._y += 1

    def line(self, *panels: Panel) -> None:
        """Add panels side by side.

        Raises
        ------
        ValueError
            They are wider than the grid.
        """
        if (width := sum(panel.width for panel in panels)) > WIDTH:
            raise ValueError(f"a line of panels is {WIDTH} wide at most, got {width}")
        x = 0
        for panel in panels:
            self._made.with_panel(self._at(panel.builder, x, panel.width, panel.height))
            x += panel.width
        self._y += max(panel.height for panel in panels)

    def move_up(self, height: int) -> None:
        """Start the next line `height` units higher, beside a panel that is higher than its neighbours."""
        self._y -= height

    def _at(self, builder: Any, x: int, width: int, height: int) -> Any:
        self._panels += 1
        return builder.id(self._panels).grid_pos(models.GridPos(x=x, y=self._y, w=width, h=height))

    def text(self) -> str:
        """Return the JSON that Grafana reads."""
        return json.dumps(self._made.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
