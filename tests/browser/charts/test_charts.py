"""Shows that charts say what the answers say: in their tables, their files, to the keyboard, and as events come."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect

from attributary_explainers.wording import show_estimate, show_number
from tests.browser.blank import STATIC
from tests.browser.conftest import Visits, shown
from tests.browser.looks import until
from tests.browser.stand_in import StandIn
from tests.browser.stand_in.walks import walk

pytestmark = pytest.mark.browser
SVG = "{http://www.w3.org/2000/svg}"
_POINT = re.compile(r"-?[\d.]+ -?[\d.]+")


def _asked(server: StandIn, model: str, explainer: str = "pfi") -> list[str]:
    """Return the addresses by which importances of an explainer were asked for."""
    path = f"/api/v1/models/{model}/importances"
    return [one for one in server.requests if one.startswith(path) and f"explainer={explainer}" in one]


def _answer(server: StandIn, model: str) -> dict[str, Any]:
    """Return what the page was answered last, by asking for the same."""
    with urlopen(server.url + _asked(server, model)[-1]) as response:
        found: dict[str, Any] = json.load(response)
    return found


def _drawn(page: Page) -> None:
    page.wait_for_selector(".plot .uplot")


def _table(page: Page, title: str) -> list[list[str]]:
    """Return the cells of the table behind a chart, its heads first."""
    page.get_by_role("button", name=f"Show {title} as table").click()
    table = page.get_by_role("region", name=f"{title}, as a table").locator("table")
    return table.evaluate("(table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent))")  # type: ignore[no-any-return]


def _saved(page: Page, title: str, kind: str, path: Path) -> Path:
    page.get_by_label(f"Save {title}", exact=True).click()
    with page.expect_download() as found:
        page.get_by_role("button", name=f"Save {title} as {kind}").click()
    name = found.value.suggested_filename
    assert re.fullmatch(rf"bank_{title.replace(' ', '-')}_\d{{8}}T\d{{6}}Z\.{kind.lower()}", name)
    found.value.save_as(path / name)
    return path / name


def _expected(answer: dict[str, Any]) -> list[list[Any]]:
    """Return the numbers of a chart of importances, a row per point, as the answer has them."""
    lines = [one[key] for one in answer["features"] for key in ("importance", "low", "high")]
    return [list(row) for row in zip(answer["time_ms"], answer["observation"], *lines, strict=True)]


def test_a_table_behind_a_chart_has_the_numbers_of_the_answer(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/bank")
    _drawn(page)
    head, *rows = _table(page, "Importance")
    answer = _answer(server, "bank")
    names = [one["feature"] for one in answer["features"]]
    assert head == ["time", "observation", *(f"{name}{edge}" for name in names for edge in ("", ", low", ", high"))]
    expected = _expected(answer)
    assert len(rows) == len(expected) > 100
    for row, (time_ms, *numbers) in zip(rows, expected, strict=True):
        assert datetime.fromisoformat(row[0]).timestamp() * 1000 == pytest.approx(time_ms, abs=1)
        assert [None if one == "–" else float(one) for one in row[1:]] == [
            None if one is None else float(f"{one:.6g}") for one in numbers
        ]


@pytest.mark.long
def test_a_csv_file_has_all_digits(server: StandIn, visits: Visits, tmp_path: Path) -> None:
    page = visits.open(server, "/models/bank")
    _drawn(page)
    text = _saved(page, "Importance", "CSV", tmp_path).read_bytes().decode()
    head, *rows = list(csv.reader(io.StringIO(text, newline="")))
    expected = _expected(_answer(server, "bank"))
    assert len(head) == len(expected[0])
    assert [[float(one) if one else None for one in row[1:]] for row in rows] == [row[1:] for row in expected]


@pytest.mark.long
def test_an_svg_file_has_a_place_for_every_number(server: StandIn, visits: Visits, tmp_path: Path) -> None:
    page = visits.open(server, "/models/clicks")
    _drawn(page)
    page.get_by_label("Save Importance", exact=True).click()
    with page.expect_download() as found:
        page.get_by_role("button", name="Save Importance as SVG").click()
    found.value.save_as(tmp_path / "importance.svg")
    root = ElementTree.parse(tmp_path / "importance.svg").getroot()
    answer = _answer(server, "clicks")
    assert root.tag == f"{SVG}svg"
    assert root.findtext(f"{SVG}title") == "clicks: Importance"
    lines: dict[str | None, set[str]] = {}
    for path in root.iter(f"{SVG}path"):
        if path.get("class") == "line":
            # A line that changes from grey to its colour has the point where it does so in both pieces.
            lines.setdefault(path.get("data-name"), set()).update(_POINT.findall(path.get("d") or ""))
    assert {name: len(points) for name, points in lines.items()} == {
        one["feature"]: sum(value is not None for value in one["importance"]) for one in answer["features"]
    }
    bands = [path.get("d") or "" for path in root.iter(f"{SVG}path") if path.get("class") == "band"]
    assert [len(_POINT.findall(one)) for one in bands] == [
        2 * sum(value is not None for value in one["low"]) for one in answer["features"]
    ]
    assert not [one for one in root.iter() if one.get("style")]


@pytest.mark.long
def test_every_panel_is_saved_as_a_picture_that_stands_alone(
    server: StandIn, visits: Visits, tmp_path: Path
) -> None:  # fmt: skip
    page = visits.open(server, "/models/bank")
    _drawn(page)
    for title in ("Importance", "Loss and baseline", "SAGE beside PFI", "Partial dependence"):
        picture = ElementTree.parse(_saved(page, title, "SVG", tmp_path)).getroot()
        texts = [one.text for one in picture.iter(f"{SVG}text")]
        assert f"bank: {title}" in texts
        if title == "SAGE beside PFI":
            assert "salary" in texts
        data = _saved(page, title, "PNG", tmp_path).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        size = [int.from_bytes(data[at : at + 4], "big") for at in (16, 20)]
        assert size == [2 * round(float(picture.get(name) or 0)) for name in ("width", "height")]


@pytest.mark.long
def test_arrow_keys_read_the_points(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/bank")
    _drawn(page)
    answer = _answer(server, "bank")
    plot, line = page.locator(".plot").first, page.locator(".reading").first

    def reads(i: int) -> None:
        first = answer["features"][0]
        half = None if first["low"][i] is None else (first["high"][i] - first["low"][i]) / 2
        expect(line).to_contain_text(f"{first['feature']} {show_estimate(first['importance'][i], half)}")
        expect(line).to_contain_text(f"observation {answer['observation'][i]:,}".replace(",", " "))

    plot.focus()
    last = len(answer["time_ms"]) - 1
    for key, at in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", last)):
        plot.press(key)
        reads(at)
    expect(line).to_have_attribute("aria-live", "polite")
    plot.press("PageUp")
    nearest = {
        min(range(last + 1), key=lambda i: abs(answer["time_ms"][i] - one["time_ms"])) for one in answer["marks"]
    }
    reads(max(nearest))
    expect(line).to_contain_text(max(answer["marks"], key=lambda one: one["time_ms"])["text"])
    plot.press("Enter")
    page.wait_for_url("**/incidents/**")


def test_a_zoom_is_the_address_and_asks_for_its_window(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/wide")
    _drawn(page)
    answer = _answer(server, "wide")
    plot = page.locator(".plot").first
    plot.focus()
    plot.press("End")
    plot.press("+")
    page.wait_for_url("**from=*to=*")
    expect(page.get_by_role("button", name="back to live")).to_be_visible()
    wanted = {name: int(values[0]) for name, values in parse_qs(urlsplit(page.url).query).items()}
    first, last = answer["time_ms"][0], answer["time_ms"][-1]
    assert wanted["from"] == pytest.approx((first + last) / 2, abs=2)
    assert wanted["to"] == pytest.approx(last, abs=2)
    asked = parse_qs(urlsplit(_asked(server, "wide")[-1]).query)
    assert (asked["from"], asked["to"]) == ([str(wanted["from"])], [str(wanted["to"])])
    # The chart still has the focus, and Escape shows all again.
    plot.press("Escape")
    expect(page).to_have_url(re.compile(r"/models/\w+$"))
    page.go_back()
    page.wait_for_url("**from=*to=*")


@pytest.mark.long
def test_a_drag_zooms(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/wide?by=observation")
    _drawn(page)
    answer = _answer(server, "wide")
    box = page.locator(".u-over").first.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=4)
    page.mouse.up()
    page.wait_for_url("**from=*to=*")
    wanted = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
    first, last = answer["observation"][0], answer["observation"][-1]
    room = (last - first) / 50
    assert float(wanted["from"]) == pytest.approx(first + 0.25 * (last - first), abs=room)
    assert float(wanted["to"]) == pytest.approx(first + 0.5 * (last - first), abs=room)
    expect(page.get_by_role("button", name="back to live")).to_be_visible()
    _, *rows = _table(page, "Importance")
    assert all(float(wanted["from"]) <= float(row[1]) <= float(wanted["to"]) for row in rows)


def _push(server: StandIn, observation: int) -> None:
    found = server.answers.series("wide", points=2, top=50)
    server.push("importance", {
        "model_id": "wide", "explainer": "pfi", "time_ms": int(time.time() * 1000), "observation": observation,
        "version": "1", "model_loss": 0.2, "baseline_loss": 0.5, "fidelity": None,
        "features": {one.feature: [0.0625, 0.01, one.latest_share, one.latest_rank] for one in found.features},
    })  # fmt: skip


@pytest.mark.long
def test_a_zoomed_chart_waits_and_an_open_one_goes_on(own_server: Callable[..., StandIn], visits: Visits) -> None:
    server = own_server()
    page = visits.open(server, "/models/wide")
    _drawn(page)
    _, *before = _table(page, "Importance")
    expect(page.locator(".live-word")).to_have_text("live")
    latest = server.answers.series("wide", points=2)
    _push(server, latest.observation[-1] + 500)
    rows = page.get_by_role("region", name="Importance, as a table").locator("tbody tr")
    expect(rows.last.locator("td").first).to_have_text(str(latest.observation[-1] + 500))
    expect(rows.last.locator("td").nth(1)).to_have_text("0.0625")
    page.get_by_role("button", name="Show Importance as table").click()
    plot = page.locator(".plot").first
    plot.focus()
    plot.press("Home")
    plot.press("+")
    expect(page.get_by_role("button", name="Zoomed – back to live")).to_be_visible()
    for n, words in ((1, "1 new event – back to live"), (2, "2 new events – back to live")):
        _push(server, latest.observation[-1] + 500 + 500 * n)
        expect(page.get_by_role("button", name=words)).to_be_visible()
    page.get_by_role("button", name="back to live").click()
    expect(page).to_have_url(re.compile(r"/models/\w+$"))
    assert len(before) > 100


@pytest.mark.long
def test_an_appended_event_is_what_a_reload_shows(server: StandIn, visits: Visits) -> None:
    numbers = walk(server.answers.spec("wide"), "pfi", server.answers.now_ms)
    n = numbers.n
    first, before, last = (int(numbers.observation[i]) for i in (n - 300, n - 2, n - 1))
    whole = server.answers.series("wide", "pfi", first, last, "observation", 600, 10)
    names = [one.feature for one in whole.features]
    part = server.answers.series("wide", "pfi", first, before, "observation", 600, 10, names)
    figures = {name: values[-1] for name, values in whole.figures.model_dump().items() if isinstance(values, list)}
    event = {
        "model_id": "wide", "explainer": "pfi", "time_ms": whole.time_ms[-1], "observation": last, **figures,
        "features": {one.feature: [one.latest, one.latest_half_width, one.latest_share, one.latest_rank]
                     for one in whole.features},
    }  # fmt: skip
    page = visits.open(server, "/")
    got = page.evaluate(
        """async ([series, event]) => (await import("page/views/model.js")).append(series, event, null)""",
        [part.model_dump(mode="json"), event],
    )
    assert got["time_ms"] == whole.time_ms
    assert got["observation"] == whole.observation
    assert got["n_events"] == whole.n_events
    assert [one["feature"] for one in got["features"]] == names
    for one, expected in zip(got["features"], whole.features, strict=True):
        for key in ("importance", "low", "high", "share"):
            assert one[key] == pytest.approx(getattr(expected, key), rel=1e-3, abs=1e-5)
        assert one["rank"] == expected.rank
        assert one["moved"] == pytest.approx(expected.moved, rel=1e-2, abs=1e-4)
    for key, values in figures.items():
        assert got["figures"][key][-1] == values
    # What a stream says twice is one point.
    again = page.evaluate(
        """async ([series, event]) => (await import("page/views/model.js")).append(series, event, null)""",
        [got, event],
    )
    assert again["time_ms"] == whole.time_ms


@pytest.mark.long
def test_a_window_without_events_says_where_the_last_one_is(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/bank?from=1000000000000&to=1000003600000")
    said = page.locator(".no-events")
    expect(said).to_contain_text(
        re.compile(r"No events between 9 Sept? 2001, .* and 9 Sept? 2001, .*; the nearest one is")
    )
    said.get_by_role("button").click()
    expect(page).not_to_have_url(re.compile("from=1000000000000"))
    expect(said).to_be_hidden()
    _, *rows = _table(page, "Importance")
    assert rows


@pytest.mark.long
def test_what_is_drawn_is_the_address(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/wide?top=5&measure=rank")
    _drawn(page)
    expect(page.get_by_role("button", name="rank", exact=True)).to_have_attribute("aria-pressed", "true")
    rows = page.locator(".legend tbody")
    expect(rows).to_have_count(5)
    expect(page.locator(".others")).to_contain_text(re.compile(r"^195 others, together \d"))
    _, *cells = _table(page, "Importance")
    answer = _answer(server, "wide")
    assert [float(one) for one in cells[-1][2:]] == [one["rank"][-1] for one in answer["features"]]
    page.get_by_label("top").select_option("20")
    page.wait_for_url("**top=20*")
    expect(rows).to_have_count(20)
    search = page.get_by_label("Find a feature", exact=True)
    search.focus()
    expect(page.locator("#feature-names option")).to_have_count(200)
    missing = server.answers.series("wide", "pfi", points=2, top=50).features[-1].feature
    search.fill(missing)
    search.press("Enter")
    page.wait_for_url(f"**x={missing}*")
    expect(page.locator(".legend .is-chosen .name")).to_have_text(missing)
    page.reload()
    shown(page)
    expect(page.locator(".legend .is-chosen .name")).to_have_text(missing)
    expect(rows).to_have_count(21)


@pytest.mark.long
def test_the_legend_shows_and_hides_lines(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/bank")
    _drawn(page)
    first = _answer(server, "bank")["features"][0]["feature"]
    plot = page.locator(".plot").first
    expect(plot).to_have_attribute("aria-label", re.compile(rf"At the end: {first} "))
    toggle = page.get_by_role("button", name=f"Line of {first}")
    toggle.focus()
    toggle.press("Enter")
    expect(toggle).to_have_attribute("aria-pressed", "false")
    expect(toggle).to_be_focused()
    expect(plot).not_to_have_attribute("aria-label", re.compile(rf"At the end: {first} "))


@pytest.mark.long
def test_the_legend_says_what_the_answer_says(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/bikes")
    _drawn(page)
    answer = _answer(server, "bikes")
    for i, one in enumerate(answer["features"]):
        cells = page.locator(".legend tbody").nth(i).locator("th, td").all_text_contents()
        assert cells[1] == one["feature"]
        assert cells[2] == show_estimate(one["latest"], one["latest_half_width"])
        assert cells[4] == str(one["latest_rank"])
    loss = server.answers.row(server.answers.spec("bikes")).model_loss
    assert loss is not None
    expect(page.locator(".facts")).to_contain_text(f"√loss {show_number(loss**0.5)}")


@pytest.mark.long
def test_an_explainer_without_intervals_has_lines_in_colour_and_says_so(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/letters?explainer=mdi")
    _drawn(page)
    expect(page.locator("#view")).to_contain_text("By the splits of its trees, which have no interval.")
    expect(page.locator("#view")).not_to_contain_text("bands come with more")
    expect(page.locator(".legend .is-collecting")).to_have_count(0)
    answer = server.answers.series("letters", "mdi", points=2, top=10)
    for i, one in enumerate(answer.features):
        cells = page.locator(".legend tbody").nth(i).locator("th, td").all_text_contents()
        assert one.latest_half_width is None
        assert cells[2] == show_estimate(one.latest, None)
        assert "±" not in cells[2]
    expect(page.get_by_text("PFI beside MDI")).to_be_visible()


@pytest.mark.long
def test_modes_are_said_over_the_page(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/clicks")
    expect(page.locator(".mode-band")).to_have_text("These are importances of the predictions, not of being right")
    page = visits.open(server, "/models/fraud-a")
    expect(page.locator(".mode-band")).to_contain_text("of a mirror; fidelity 0.71")


@pytest.mark.long
def test_a_theme_is_drawn_at_once(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/wide")
    _drawn(page)
    paint = "document.querySelector('.plot canvas').toDataURL()"
    before = page.evaluate(paint)
    page.evaluate(
        "(before) => { globalThis.before = before; document.documentElement.dataset.theme = 'dark'; }", before
    )
    until(page, f"{paint} !== globalThis.before")


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_colours_of_series_are_read_on_both_papers() -> None:
    """WCAG 2.2 AA asks 4.5 to 1 of text: names and values are written in the colours of lines."""
    text = (STATIC / "css" / "tokens.css").read_text()
    blocks = [
        dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})\s*;", block)) for block in re.findall(r"\{([^{}]*)\}", text)
    ]
    themes = [block for block in blocks if "s10" in block]
    assert len(themes) == 3
    for theme in themes:
        assert len({theme[f"s{i}"] for i in range(1, 11)}) == 10
        for name in ("muted", "accent", "good", "bad", "warn", *(f"s{i}" for i in range(1, 11))):
            for paper in ("paper", "card"):
                assert _contrast(theme[name], theme[paper]) >= 4.5, (name, paper, theme[name])


def test_neighbours_have_other_dashes() -> None:
    text = (STATIC / "js" / "chart" / "colours.js").read_text()
    found = re.search(r"DASHES = (\[\[.*?\]\]);", text)
    assert found is not None
    dashes = json.loads(found[1])
    assert len(dashes) == 10
    assert all(one != other for one, other in pairwise(dashes))
