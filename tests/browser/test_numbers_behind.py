"""Behind every chart stand the same numbers as a table, and files of what is drawn."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits
from tests.browser.looks import incident_of, settled
from tests.browser.stand_in import StandIn

pytestmark = [pytest.mark.browser, pytest.mark.long]


def saved(page: Page, name: str, kind: str) -> Path:
    """Save a panel as a file, and return where it is."""
    page.locator(f'summary[aria-label="Save {name}"]').first.click()
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save {name} as {kind}").first.click()
    assert download.value.suggested_filename.endswith(f".{kind.lower()}")
    return Path(download.value.path())


@pytest.mark.parametrize("view", ["model", "incident", "compare"])
def test_each_chart_has_a_table_of_its_numbers(view: str, server: StandIn, visits: Visits) -> None:
    paths = {"model": "/models/bank", "incident": incident_of(server, "bank", "inputs"),
             "compare": "/compare?a=bank@%233000000&b=bank@now"}  # fmt: skip
    page = visits.open(server, paths[view])
    settled(page)
    names = [
        button.get_attribute("aria-label") or ""
        for button in page.get_by_role("button", name=re.compile("^Show .* as table$")).all()
    ]
    assert len(names) >= {"model": 4, "incident": 2, "compare": 1}[view]
    for name in names:
        button = page.get_by_role("button", name=name, exact=True)
        button.click()
        region = page.get_by_role(
            "region", name=name.removeprefix("Show ").replace(" as table", ", as a table"), exact=True
        )
        expect(region).to_be_visible()
        assert region.locator("tbody tr").count() > 0
        button.click()
        expect(region).to_be_hidden()


def test_the_tables_of_an_incident_have_the_numbers_of_the_event(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, incident_of(server, "bank", "inputs"))
    settled(page)
    event = next(one for one in server.answers.told if one.row.what == "inputs" and one.row.model_id == "bank").event
    values = list(csv.DictReader(saved(page, "Values of salary", "CSV").read_text().splitlines()))
    for side in ("before", "now"):
        of = event["features"]["salary"]["values_after" if side == "now" else "values_before"]
        assert [float(row[side]) for row in values] == [*of["quantiles"], of["missing"], of["n"]]
    page.get_by_text("Compared with the model before").click()
    features = event["explanation"]["importances"]["pfi"]["features"]
    rows = list(csv.DictReader(saved(page, "PFI before → after", "CSV").read_text().splitlines()))
    assert [row["feature"] for row in rows] == list(features)
    for row in rows:
        feature = features[row["feature"]]
        assert float(row["before"]) == pytest.approx(feature["before"])
        assert float(row["change"]) == pytest.approx(feature["delta"])
        assert float(row["change, ± 95 %"]) == pytest.approx(1.96 * feature["delta_std_error"])
        assert (row["beyond noise"] == "yes") == feature["significant"]


def test_pictures_of_a_comparison_are_pictures(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/compare?a=bank@%233000000&b=bank@now")
    settled(page)
    title = "What they rely on, and by how much it differs"
    drawn = saved(page, title, "SVG").read_text()
    assert drawn.startswith("<svg")
    assert "salary" in drawn
    assert saved(page, title, "PNG").read_bytes().startswith(b"\x89PNG")


def test_the_series_of_a_model_are_saved_as_they_were_answered(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/bank?window=24h")
    settled(page)
    rows = list(csv.DictReader(saved(page, "Importance", "CSV").read_text().splitlines()))
    assert len(rows) > 100
    last = server.answers.series("bank").features[0]
    assert float(rows[-1][last.feature]) == pytest.approx(last.importance[-1], rel=0.05)
