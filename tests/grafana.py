"""What Grafana does with a dashboard before anything is drawn: fill in variables, choose a step, ask Prometheus.

As of Grafana 11.6 with its Prometheus data source; only what the dashboards of this project use.
"""

from __future__ import annotations

import json
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from support.monitoring import Prometheus, Series

ALL = "$__all"
_NAME = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_SPECIAL = re.compile(r"[$^*{}\[\]+?.()|]")
_POINTS = 300
"""Steps of a graph at most; Grafana takes as many as it has pixels."""


@dataclass(frozen=True)
class Asked:
    """A query as Prometheus was asked, and its answer."""

    ref: str
    legend: str
    expr: str
    answer: list[Series]

    def names(self) -> list[str]:
        """The legend of each series."""
        return [renamed(self.legend, series.labels) for series in self.answer]


class Session:
    """A dashboard that somebody looks at.

    Parameters
    ----------
    dashboard
        Its JSON.
    start, end
        The time range, in seconds.
    scrape_s
        The scrape interval that the data source is told.
    chosen
        Variable to value; the others have what they have when the dashboard is opened.
    """

    def __init__(
        self,
        prometheus: Prometheus,
        dashboard: dict[str, Any],
        start: float,
        end: float,
        scrape_s: int,
        chosen: Mapping[str, str] | None = None,
    ) -> None:
        self._prometheus = prometheus
        self.dashboard = dashboard
        self.scrape_s = scrape_s
        step = max((end - start) / _POINTS, scrape_s)
        self.step_s = int(-(-step // 1))
        # Both ends on a multiple of the step, as Grafana has them.
        self.end = end // self.step_s * self.step_s
        self.start = start // self.step_s * self.step_s
        self.values: dict[str, str | list[str]] = {}
        self._variables = {found["name"]: found for found in dashboard["templating"]["list"]}
        for name, variable in self._variables.items():
            if variable["type"] == "custom":
                value: str | list[str] = variable["current"]["value"]
            elif variable["type"] == "query":
                value = self._first(variable, self.options(name))
            else:
                continue  # the data source
            self.values[name] = (chosen or {}).get(name, value)

    def only(self, values: Mapping[str, str | list[str]]) -> Session:
        """The same with other values of some variables."""
        other = copy(self)
        other.values = {**self.values, **values}
        return other

    def options(self, name: str) -> list[str]:
        """The values of a variable of the type `query`."""
        variable = self._variables[name]
        asked = self.text(variable["query"])
        if found := re.fullmatch(r"label_values\((.*), (\w+)\)", asked, flags=re.DOTALL):
            return self._label_values(*found.groups())
        found = re.fullmatch(r"query_result\((.*)\)", asked, flags=re.DOTALL)
        assert found is not None, asked
        answer = self._prometheus.query(found[1], self.end)
        shown = [_as_text(series) for series in answer]
        pattern = re.compile(variable["regex"].strip("/"))
        return [match[1] for text in shown if (match := pattern.search(text))]

    def _first(self, variable: dict[str, Any], options: list[str]) -> str | list[str]:
        if not variable["multi"]:
            return options[0] if options else ""
        return variable.get("allValue") or options

    def text(self, text: str) -> str:
        """With every variable filled in."""
        span = int(self.end - self.start)
        own = {
            "__interval": f"{self.step_s}s",
            "__interval_ms": str(self.step_s * 1000),
            "__range": f"{span}s",
            "__rate_interval": f"{max(self.step_s + self.scrape_s, 4 * self.scrape_s)}s",
        }

        def value(found: re.Match[str]) -> str:
            name = found[1] or found[2]
            return own[name] if name in own else self._escaped(name)

        return _NAME.sub(value, text)

    def _escaped(self, name: str) -> str:
        value, variable = self.values[name], self._variables[name]
        if isinstance(value, str) and (value == variable.get("allValue") or not variable["multi"]):
            # What All stands for is taken as it is.
            return value if variable["multi"] else value.replace("\\", "\\\\").replace('"', '\\"')
        values = [value] if isinstance(value, str) else value
        escaped = [_SPECIAL.sub(r"\\\\\g<0>", one.replace("\\", "\\\\\\\\")) for one in values]
        return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"

    def ask(self, panel: Mapping[str, Any]) -> list[Asked]:
        """What a panel asks, and what it is told."""
        return [self._ask(target) for target in panel.get("targets", [])]

    def _ask(self, target: Mapping[str, Any]) -> Asked:
        expr = self.text(target["expr"])
        if target.get("instant"):
            answer = self._prometheus.query(expr, self.end)
        else:
            answer = self._prometheus.query_range(expr, self.start, self.end, self.step_s)
        return Asked(target["refId"], target.get("legendFormat", ""), expr, answer)

    def annotations(self) -> list[tuple[dict[str, Any], Asked]]:
        """Every annotation with what it is told."""
        return [
            (annotation, self._ask({**annotation["target"], "instant": False}))
            for annotation in self.dashboard["annotations"].get("list", [])
        ]

    def marks(self) -> list[tuple[float, str, str]]:
        """Begin in seconds, colour and title of every mark of an annotation; of steps one after the other it is one."""
        found = set()
        for annotation, asked in self.annotations():
            for series in asked.answer:
                title = renamed(annotation["titleFormat"], series.labels)
                marked = [at for at, value in series.points if value > 0]
                begun = [at for at, before in zip(marked, [0.0, *marked], strict=False) if at > before + self.step_s]
                found |= {(at, annotation["iconColor"], title) for at in begun}
        return sorted(found)

    def _label_values(self, selector: str, label: str) -> list[str]:
        asked = urllib.parse.urlencode({"match[]": selector, "start": self.start, "end": self.end})
        url = f"{self._prometheus.url}/api/v1/label/{label}/values?{asked}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return sorted(json.load(answer)["data"])


def panels(dashboard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every panel, those of folded rows too; not the rows themselves."""
    for panel in dashboard["panels"]:
        if panel["type"] != "row":
            yield panel
        yield from panel.get("panels", [])


def renamed(legend: str, labels: Mapping[str, str]) -> str:
    """A legend with its labels filled in."""
    if legend in ("", "__auto"):
        return ", ".join(labels.values())
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), legend)


def transformed(panel: Mapping[str, Any], asked: Sequence[Asked]) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of a table after the panel's transformations: joined, filtered, renamed."""
    options = {one["id"]: one["options"] for one in panel["transformations"]}
    left_out = re.compile(options["filterFieldsByName"]["exclude"]["pattern"])
    renames = options["organize"]["renameByName"]
    key = options.get("joinByField", {}).get("byField")
    rows: dict[Any, dict[str, Any]] = {}
    names: dict[str, None] = {key: None} if key else {}
    for one in asked:
        field = f"Value #{one.ref}" if len(asked) > 1 else "Value"
        for n, series in enumerate(one.answer):
            fields = {**series.labels, field: series.value}
            rows.setdefault(series.labels[key] if key else n, {}).update(fields)
            names.update(dict.fromkeys(fields))
    kept = [name for name in names if not left_out.fullmatch(name)]
    return [renames.get(name, name) for name in kept], [[row.get(name) for name in kept] for row in rows.values()]


def _as_text(series: Series) -> str:
    at, value = series.points[-1]
    labels = ",".join(f'{name}="{label}"' for name, label in series.labels.items())
    number = f"{value:.3f}".rstrip("0").rstrip(".")
    return f"{{{labels}}} {number} {int(at * 1000)}"
