"""A chart alone: odd values, ticks that tell their places apart, names above tracks, lines with gaps."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Visits
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser
SVG = "{http://www.w3.org/2000/svg}"

LINE = """async ({ series, by, x, range }) => {
  const { lineChart } = await import("page/chart/lines.js");
  const chart = lineChart({ title: "Tried", unit: "nats", by, x, other: x, series, range });
  document.getElementById("view").replaceChildren(chart.element);
  await new Promise((done) => setTimeout(done, 400));
  const canvas = chart.element.querySelector("canvas");
  const picture = new XMLSerializer().serializeToString(await chart.picture());
  return { summary: chart.summary(), drawn: canvas.width, rows: chart.table().rows, picture };
}"""


@pytest.fixture
def alone(server: StandIn, visits: Visits) -> Page:
    """A page on which charts are tried alone."""
    return visits.open(server, "/models/newcomer")


@pytest.mark.long
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "No events in this window."),
        ([None, None], "a has no value"),
        ([0.5], "1 point from"),
        ([1e6, 1.5e6, None, 2e6], "a 2 million"),
        ([1e-3, 1.5e-3, 2e-3], "a 0.002"),
        ([3e-7, 4e-7], "a 4.00 × 10⁻⁷"),
        ([0.0, 0.0], "a 0"),
    ],
)
def test_odd_values_are_drawn(alone: Page, values: list[float | None], said: str) -> None:
    x = [1_000 + 60_000 * i for i in range(len(values))]
    found = alone.evaluate(LINE, {"series": [{"name": "a", "values": values}], "by": "time", "x": x, "range": None})
    assert said in found["summary"]
    assert found["drawn"] > 0
    assert [row[2] for row in found["rows"]] == values
    ElementTree.fromstring(found["picture"])
    assert "NaN" not in found["picture"]


def test_what_lies_beyond_the_range_stands_at_the_rim_with_its_value(alone: Page) -> None:
    values = [0.1, 0.2, 97.5, 0.1, 0.2, -31.0, 0.1]
    x = [60_000 * i for i in range(len(values))]
    series = [{"name": "a", "values": values}]
    found = alone.evaluate(LINE, {"series": series, "by": "time", "x": x, "range": [0.0, 0.3]})
    texts = [one.text for one in ElementTree.fromstring(found["picture"]).iter(f"{SVG}text")]
    assert "▲ 97.5" in texts
    assert "▼ -31" in texts
    assert [row[2] for row in found["rows"]] == values


@pytest.mark.long
def test_ticks_tell_numbers_apart(alone: Page) -> None:
    cases = [
        [0.1, 0.15, 0.2],
        [0.25, 0.5, 0.75, 1.0],
        [5e-4, 1e-3, 1.5e-3],
        [1e6, 1.5e6, 2e6],
        [9_000, 9_500, 10_000],
        [1e-3, 1.5e-3],
        [2e-7, 4e-7],
        [-0.5, 0, 0.5],
    ]
    got = alone.evaluate("async (cases) => cases.map((await import('page/chart/axes.js')).numbers)", cases)
    assert got[0] == ["0.10", "0.15", "0.20"]
    assert got[1] == ["0.25", "0.50", "0.75", "1.00"]
    assert got[4] == ["9 000", "9 500", "10 000"]
    assert got[7] == ["-0.5", "0.0", "0.5"]
    for texts in got:
        assert len(set(texts)) == len(texts)


@pytest.mark.long
def test_ticks_tell_moments_apart(alone: Page) -> None:
    at = 1_795_600_000_000
    cases = [[at + step * i for i in range(5)] for step in (5, 20, 200, 500, 1000, 15_000, 60_000)]
    got = alone.evaluate("async (cases) => cases.map((await import('page/chart/axes.js')).moments)", cases)
    for texts in got:
        assert len(set(texts)) == len(texts)
    assert [text.split("\n")[0][-4:] for text in got[3]] == ["40.0", "40.5", "41.0", "41.5", "42.0"]
    assert got[4][1].endswith(":41")


@pytest.mark.long
def test_no_line_goes_through_a_name_above_its_track(alone: Page) -> None:
    long = "Durchschnittliche_Verbrauchsmenge_je_Haushalt_und_Kalendermonat_07"
    body = """async ([name, width]) => {
        const { layOut, extent } = await import('page/chart/rows.js');
        const colours = { font: 'sans-serif', ink: 'black', muted: 'gray' };
        const rows = [name, name].map((one) => ({ name: one, notes: ['0.1'] }));
        const range = extent([[-1, 0], [1, 0]]);
        const chart = layOut(width, colours, { rows, range, height: 14, draw: (row, place, y) => [] });
        document.body.append(chart);
        const zero = chart.querySelector('path').getAttribute('d').match(/[\\d.]+/g).map(Number);
        const boxes = [...chart.querySelectorAll('text:not([text-anchor])')].map((one) => one.getBBox());
        const names = boxes.map(({ x, y, width, height }) => [x, x + width, y, y + height]);
        chart.remove();
        return { zero, names };
    }"""
    found = alone.evaluate(body, [long, 300])
    lines = [found["zero"][at : at + 3] for at in range(0, len(found["zero"]), 3)]
    assert len(lines) == 2
    assert found["names"]
    assert any(left <= lines[0][0] <= right for left, right, _, _ in found["names"]), "it would go through the name"
    for x, top, bottom in lines:
        for left, right, high, low in found["names"]:
            assert not (left <= x <= right and top < low - 4 and bottom > high)


@pytest.mark.long
def test_lines_without_a_band_are_grey_and_gaps_stay_gaps(alone: Page) -> None:
    found = alone.evaluate(
        "async (one) => { const m = await import('page/chart/axes.js'); return [m.runs(one), m.bands(one)]; }",
        {
            "values": [1.0, 2.0, 3.0, None, 5.0, 6.0],
            "low": [None, None, 2.5, None, 4.5, None],
            "high": [None, None, 3.5, None, 5.5, None],
        },
    )
    runs, bands = found
    assert [(one["from"], one["to"], one["known"]) for one in runs] == [
        (0, 1, False), (1, 2, True), (4, 4, True), (4, 5, False)]  # fmt: skip
    assert [(one["from"], one["to"]) for one in bands] == [(2, 2), (4, 4)]
