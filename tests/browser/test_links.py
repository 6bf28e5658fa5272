"""An address shows again what it was copied from; a bad one says what was meant."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visits, shown
from tests.browser.looks import incident_of, settled
from tests.browser.stand_in import StandIn

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_a_window_by_observations_is_shown_again(server: StandIn, visits: Visits) -> None:
    path = "/models/bank?by=observation&from=4000000&to=4100000&explainer=sage&top=3&x=age"
    page = visits.open(server, path)
    settled(page)
    text = page.locator("#view").inner_text()
    asked = [one for one in server.requests if "/importances" in one and "from=4000000" in one]
    assert asked
    assert all("to=4100000" in one and "by=observation" in one for one in asked)
    again = visits.open(server, page.url.removeprefix(server.url))
    settled(again)
    assert again.locator("#view").inner_text() == text


def test_a_link_of_the_head_changes_the_address_and_back_undoes_it(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/bank")
    settled(page)
    page.locator("#head").get_by_role("link", name=re.compile("^7 d")).click()
    expect(page).to_have_url(re.compile("window=7d"))
    page.go_back()
    expect(page).not_to_have_url(re.compile("window=7d"))
    expect(page.locator("h1")).to_contain_text("bank")


def test_a_model_that_is_not_there_names_the_one_that_was_meant(server: StandIn, visits: Visits) -> None:
    visits.tolerate("404")
    page = visits.open(server, "/models/bnak")
    expect(page.locator("#view")).to_contain_text("bnak")
    page.get_by_role("link", name=re.compile("Did you mean bank")).click()
    expect(page.locator("h1")).to_contain_text("bank")
    expect(page).to_have_url(re.compile("/models/bank$"))


@pytest.mark.parametrize("path", ["/incidents/nothing", "/nowhere/at/all", "/models/%00%ff"])
def test_what_is_not_there_leads_to_the_fleet(path: str, server: StandIn, visits: Visits) -> None:
    visits.tolerate("404")
    page = visits.open(server, path)
    page.locator("#view").get_by_role("link", name=re.compile("All models")).click()
    expect(page.locator("h1")).to_contain_text("have an incident")


def test_a_window_without_events_offers_the_nearest_one(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/bank?by=observation&from=900000000&to=900000100")
    settled(page)
    expect(page.locator("#view")).to_contain_text(re.compile("no events", re.IGNORECASE))


def test_an_incident_leads_to_its_comparison_and_its_model(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, incident_of(server, "bank", "inputs"))
    page.get_by_role("link", name="Compare before and after").click()
    shown(page)
    expect(page.locator("h1")).to_contain_text("bank: two moments compared")
    expect(page.locator(".head-of").last).to_contain_text("version 2")
    page.go_back()
    page.get_by_role("link", name="See it in the model").click()
    expect(page).to_have_url(re.compile("/models/bank.*by=observation"))


def test_losses_that_differ_are_not_subtracted(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/compare?a=bank@now&b=bikes@now")
    settled(page)
    expect(page.locator("#view")).to_contain_text("Only shares and ranks are compared")
    heads = page.locator("table.compare").first.locator("thead th")
    expect(heads.filter(has_text="share, B − A")).to_have_count(1)
    expect(heads.filter(has_text=re.compile("^B − A"))).to_have_count(0)
