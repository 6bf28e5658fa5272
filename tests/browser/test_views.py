"""Each view answers what it is asked, complains of nothing, and is found sound by axe."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visits
from tests.browser.looks import cut_texts, findings, incident_of, settled, too_wide
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser


def test_the_fleet_says_whether_anything_is_wrong_with_which_model_and_since_when(
    server: StandIn, visits: Visits
) -> None:
    page = visits.open(server, at_start=True)
    expect(page.locator("h1")).to_contain_text(re.compile(r"12 of 9.822 models have an incident, first: "))
    view = page.locator("#view")
    for text in ("bank", "12 min ago", "refused", "4 266", "fidelity", "3 120"):
        expect(view).to_contain_text(re.compile(text.replace(" ", r"\s")))
    expect(page.locator("#head")).to_contain_text("live")
    # All of that is above the fold.
    for text in ("bank", "12 min ago", "being confirmed"):
        box = page.locator("#view").get_by_text(text).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900
    assert findings(page) == []


def test_what_is_open_and_bad_comes_first_and_what_is_over_last(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, at_start=True)
    expect(page.locator(".fleet-view")).to_have_attribute("data-verdict", "bad")
    rows = page.locator(".incidents > li")
    told = rows.all_inner_texts()
    assert "since" in told[0]
    tones = [one.get_attribute("class") for one in rows.all()]
    assert tones == sorted(tones, key=["tone-bad", "tone-warn", "tone-plain", "tone-over"].index)
    expect(rows.filter(has_text="8 stores changed together at")).to_contain_text(
        re.compile(r"at (\d+ \w+, )?\d\d:\d\d: price")
    )
    rows.filter(has_text="8 stores").locator("summary").click()
    expect(rows.filter(has_text="8 stores").get_by_role("link")).to_have_count(8)
    expect(page.get_by_text("has not changed after all")).to_have_count(0)
    page.get_by_role("button", name="more").click()
    expect(rows.filter(has_text="bikes has not changed after all")).to_contain_text("withdrawn")


def test_a_fleet_in_which_one_is_being_confirmed_is_amber_and_one_that_is_over_says_nothing_is_wrong(
    own_server: Callable[..., StandIn], visits: Visits
) -> None:
    server = own_server(with_stores=False)
    server.answers.told = [one for one in server.answers.told if one.row.standing in ("suspected", "over")]
    page = visits.open(server)
    expect(page.locator("h1")).to_contain_text("Nothing is wrong")
    expect(page.locator(".fleet-view")).to_have_attribute("data-verdict", "warn")
    server.answers.told = [one for one in server.answers.told if one.row.standing == "over"]
    page = visits.open(server)
    expect(page.locator(".fleet-view")).to_have_attribute("data-verdict", "good")


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
    not_yet = "loss watch not judged yet: 170 labelled observations of 1 344; until then no rise of the loss is told"
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


def test_an_incident_says_what_is_wrong_since_when_how_much_and_what_to_do(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, incident_of(server, "bank", "inputs"), at_start=True)
    settled(page)
    expect(page.locator("h1")).to_have_text("salary of bank is broken")
    figures = [" ".join(one.split()) for one in page.locator(".three dd .value").all_inner_texts()]
    assert figures[1:] == ["12 min", "20.4 % → 36.2 %"]
    for text in (
        "critical",
        "Act now: check the source of salary",
        "salary is 1 740 to 12 300, and was 20 900 to 148 000 before",
    ):
        expect(page.locator("#view")).to_contain_text(text)
    for head in ("Values of salary", "Importance before → since"):
        expect(page.get_by_role("heading", name=head)).to_be_visible()
    # All but the evidence is above the fold.
    box = page.get_by_role("heading", name="Values of salary").bounding_box()
    assert box is not None
    assert box["y"] < 600
    expect(page.get_by_role("heading", name="PFI before → after")).to_be_hidden()
    page.get_by_text("Compared with the model before").click()
    expect(page.get_by_role("heading", name="PFI before → after")).to_be_visible()
    expect(page.locator("#view")).to_contain_text("0.49 > 0.2")
    assert findings(page) == []


def test_words_that_a_feature_has_are_bars_of_before_and_now(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, incident_of(server, "clicks", "relies_differently"))
    settled(page)
    page.get_by_role("button", name="Show Values of device as table").click()
    rows = [one.split("\t") for one in page.locator(".numbers tbody tr").all_inner_texts()]
    assert [(name, round(float(now)), round(float(before))) for name, now, _, before, _ in rows] == [
        ("phone", 0, 61), ("Phone", 44, 0), ("desktop", 0, 28), ("Desktop", 20, 0), ("tablet", 6, 10),
        ("missing", 30, 1),
    ]  # fmt: skip


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
        incident_of(server, hostile, "inputs"),
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
