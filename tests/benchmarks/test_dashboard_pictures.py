"""The parts of the dashboards' pictures that can be wrong without anybody seeing it: values, units, colours, cuts."""

from __future__ import annotations

import json
import math

import pytest
from benchmarks.dashboards.draw import parts
from benchmarks.dashboards.draw_graphs import colours_of
from benchmarks.dashboards.units import coloured, shown

from attributary_agents.monitoring.dashboards import dashboards


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (0.256, "percentunit", 0, "26%"),
        (1536, "bytes", None, "1.5 KiB"),
        (12, "bytes", None, "12 B"),
        (0.0123, "s", None, "12.3 ms"),
        (0, "s", None, "0 s"),
        (90, "s", None, "1.5 min"),
        (25, "ops", None, "25 ops/s"),
        (12_345, "short", None, "12.3 K"),
        (12_345, "none", None, "12345"),
        (0.30005, "short", 4, "0.3000"),
        (1_000_000 - 180_000, "dateTimeFromNow", None, "3 minutes ago"),
        (math.nan, "short", None, "NaN"),
    ],
)
def test_values_have_their_unit(value: float, unit: str, decimals: int | None, text: str) -> None:
    assert shown(value, unit, decimals, now=1000.0) == text


def test_a_value_has_the_colour_of_the_highest_step_that_it_reaches() -> None:
    steps = [{"value": None, "color": "green"}, {"value": 0.9, "color": "yellow"}, {"value": 1, "color": "red"}]
    assert [coloured(value, steps) for value in (-5, 0.9, 0.99, 1, 7)] == ["green", "yellow", "yellow", "red", "red"]


def test_a_name_keeps_its_colour_unless_another_of_the_panel_has_it() -> None:
    first = colours_of([f"series {n}" for n in range(10)])
    assert len(set(first.values())) == 10
    again = colours_of(["another", "series 3"])
    assert again["series 3"] == first["series 3"] or again["another"] == first["series 3"]
    assert len(set(again.values())) == 2


def test_a_dashboard_is_cut_at_its_headings_and_nothing_is_lost() -> None:
    for text in dashboards().values():
        panels = json.loads(text)["panels"]
        cut = list(parts(panels))
        assert [panel["id"] for part in cut for panel in part] == [panel["id"] for panel in panels]
        assert all(part[0]["type"] == "row" for part in cut[1:])
