"""Each view answers what it is asked, complains of nothing, and is found sound by axe."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visits
from tests.browser.looks import change_of, cut_texts, findings, settled, too_wide
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser


def test_the_fleet_says_whether_anything_is_wrong_with_which_model_and_since_when(
    server: StandIn, visits: Visits
) -> None:
    page = visits.open(server, at_start=True)
    expect(page.locator("h1")).to_contain_text("models changed in the last 24 h")
    view = page.locator("#view")
    for text in ("bank", "12 min ago", "refused", "4 266", "fidelity", "3 120"):
        expect(view).to_contain_text(re.compile(text.replace(" ", r"\s")))
    expect(page.locator("#head")).to_contain_text("live")
    # All of that is above the fold.
    for text in ("bank", "12 min ago", "fidelity"):
        box = page.locator("#view").get_by_text(text).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900
    assert findings(page) == []


@pytest.mark.long
def test_a_shift_of_the_loss_that_is_over_is_not_called_worse_and_differs_by_points(
    server: StandIn, visits: Visits
) -> None:
    page = visits.open(server, change_of(server, "bank", "loss_shift_released"))
    settled(page)
    view = page.locator("#view")
    expect(view).to_contain_text("Shift of the loss is over")
    expect(view).not_to_contain_text("is over: worse")
    page = visits.open(server, change_of(server, "bank", "loss_shift"))
    settled(page)
    row = page.locator("tr", has_text="Loss of the model")
    before, after, apart = row.locator("td").all_inner_texts()[:3]
    assert [before[-2:], after[-2:], apart[-7:]] == [" %", " %", " points"]
    low, high = re.findall(r"[+-][\d.]+", apart)
    gain = float(after.removesuffix(" %")) - float(before.removesuffix(" %"))
    assert float(low) < gain < float(high)


def test_a_model_shows_its_importances_and_what_they_are_to_be_read_with(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/bank")
    settled(page)
    view = page.locator("#view")
    expect(page.locator("h1")).to_contain_text("bank")
    for text in ("salary", "version 2", "42", "Discrepancy", "missing_label"):
        expect(view).to_contain_text(text)
    assert page.locator(".plot canvas").count() >= 2
    assert findings(page) == []


def test_a_model_says_since_when_its_loss_is_watched_and_where_it_is_not_judged_yet(
    server: StandIn, visits: Visits
) -> None:
    facts = visits.open(server, "/models/newcomer").locator(".facts")
    not_yet = "loss watch not judged yet: 170 labelled observations of 1 344; until then no shift of the loss is told"
    expect(facts).to_contain_text(re.compile(not_yet.replace(" ", r"\s")))
    page = visits.open(server, "/models/bank")
    settled(page)
    seen = "loss watch guarded since observation 256: would see a rise of the error from 20.4 % to 29.5 % within 500"
    expect(page.locator(".facts")).to_contain_text(seen)
    expect(page.locator(".facts")).not_to_contain_text("until then")
    guard = {"since": 700, "waits_for": None, "reach": None, "sentence": "guarded since observation 700"}
    server.push("status", {"model_id": "bank", "state": "explained", "guard": guard})
    expect(page.locator(".facts")).to_contain_text("loss watch guarded since observation 700")
    assert findings(page) == []


def test_a_change_says_what_happened_and_whether_it_may_be_believed(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, change_of(server, "bank", "explanation"), at_start=True)
    settled(page)
    row = next(one for one in server.answers.told if one.row.event == "explanation" and one.row.model_id == "bank").row
    first = row.sentence.split("; ")[0].replace("->", "→")
    expect(page.locator("h1")).to_contain_text(re.compile(re.escape(first).replace(r"\ ", r"\s")))
    view = page.locator("#view")
    for text in (
        "Followed",
        "12 min ago",
        "drift detector",
        "0.49 > 0.2",
        "n = 1 000",
        "within noise (5)",
        "Reference now",
    ):
        expect(view).to_contain_text(re.compile(re.escape(text).replace(r"\ ", r"\s"), re.IGNORECASE))
    expect(view.get_by_role("heading", name="PFI before → after")).to_be_visible()
    expect(view.get_by_role("heading", name="SAGE before → after")).to_be_visible()
    expect(view.locator(".chain li")).to_have_count(2)
    assert findings(page) == []


@pytest.mark.long
def test_a_comparison_lists_features_by_how_much_they_differ(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/compare?a=bank@%233000000&b=bank@now")
    settled(page)
    rows = page.locator("table.compare tbody tr")
    expect(rows.first).to_contain_text("salary")
    expect(rows).to_have_count(9)
    assert findings(page) == []


def test_names_that_are_html_stay_text(server: StandIn, visits: Visits) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    page = visits.open(server, "/models/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    page.on("dialog", lambda dialog: visits.problems.append(f"dialog: {dialog.message}"))
    settled(page)
    expect(page.locator("h1")).to_contain_text(hostile)
    expect(page.locator("#view")).to_contain_text("<script>alert(2)</script>")
    for path in (
        "/",
        change_of(server, hostile, "importance_shift"),
        "/compare?a=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E@now&b=bank@now",
    ):
        page.goto(server.url + path)
        page.wait_for_selector("#view h1")
        settled(page)
        expect(page.locator("#view")).to_contain_text(hostile)
        assert page.locator("#view img, #view script, #view svg[onload]").count() == 0
    assert page.evaluate("globalThis.alerted === undefined")


@pytest.mark.parametrize("path", ["/", "/models/bank"])
def test_nothing_is_cut_or_wider_than_a_phone(path: str, server: StandIn, visits: Visits) -> None:
    page = visits.open(server, path, width=390, height=844, scheme="dark")
    settled(page)
    assert too_wide(page) == []
    assert cut_texts(page) == []
