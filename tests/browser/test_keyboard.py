"""The page is used from the keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits, shown
from tests.browser.looks import focused, incident_of, settled
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser
MOST_STEPS = 150


def walk(page: Page) -> list[str]:
    """Go through the page with Tab until it has been left or begins anew; say what is amiss on the way."""
    amiss: list[str] = []
    first = None
    for step in range(MOST_STEPS):
        page.keyboard.press("Tab")
        one = focused(page)
        if one is None:
            return amiss if step > 3 else [*amiss, f"nothing has the focus after {step + 1} steps"]
        key = (one["tag"], one["name"], one["y"], one["x"])
        if first is None:
            first = key
        elif key == first:
            return amiss
        if not one["isVisible"]:
            amiss.append(f"not visible: {one}")
        if not one["isMarked"]:
            amiss.append(f"not marked: {one}")
        if not one["name"]:
            amiss.append(f"without a name: {one}")
    return amiss


def test_a_model_is_found_opened_and_left_by_keys(server: StandIn, visits: Visits) -> None:
    page = visits.open(server)
    page.keyboard.press("/")
    found = focused(page)
    assert found is not None
    assert found["tag"] == "INPUT"
    page.keyboard.type("bik")
    expect(page.get_by_role("option", name=re.compile("bikes"))).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/models/bikes"))
    expect(page.locator("h1")).to_contain_text("bikes")
    page.go_back()
    shown(page)
    expect(page.locator("h1")).to_contain_text("have an incident")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("find a model")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.long
def test_the_first_step_skips_to_the_content(server: StandIn, visits: Visits) -> None:
    page = visits.open(server)
    page.keyboard.press("Tab")
    one = focused(page)
    assert one is not None
    assert "Skip" in one["name"]
    assert one["isVisible"]
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('view').contains(document.activeElement)")


@pytest.mark.long
@pytest.mark.parametrize("view", ["fleet", "model", "incident", "compare"])
def test_every_step_is_seen_and_the_end_is_reached(view: str, server: StandIn, visits: Visits) -> None:
    paths = {
        "fleet": "/?q=b", "model": "/models/bank", "incident": incident_of(server, "bank", "inputs"),
        "compare": "/compare?a=bank@%233000000&b=bank@now",
    }  # fmt: skip
    page = visits.open(server, paths[view])
    settled(page)
    assert walk(page) == []


@pytest.mark.long
def test_enter_on_a_row_opens_it(server: StandIn, visits: Visits) -> None:
    page = visits.open(server)
    page.locator("#view a.name", has_text="bank").first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/models/bank"))
    page.keyboard.press("g")
    expect(page.locator("h1")).to_contain_text("have an incident")


@pytest.mark.long
def test_arrow_keys_read_the_points_of_a_chart(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/models/bank")
    settled(page)
    page.locator(".plot").first.focus()
    page.keyboard.press("End")
    reading = page.locator(".reading").first
    expect(reading).to_contain_text("salary")
    last = reading.text_content()
    page.keyboard.press("ArrowLeft")
    expect(reading).not_to_have_text(last or "")
    expect(reading).to_have_attribute("aria-live", "polite")


@pytest.mark.long
def test_two_moments_are_chosen_and_compared_by_keys(server: StandIn, visits: Visits) -> None:
    page = visits.open(server, "/compare?a=bank@now&b=bank@now")
    settled(page)
    page.get_by_label("Model of B").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("clicks")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("b=clicks@now"))
    expect(page.locator("h1")).to_contain_text("bank and clicks")
    page.get_by_role("button", name="Swap").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("a=clicks@now&b=bank@now"))
    expect(page.locator("h1")).to_contain_text("clicks and bank")
    page.get_by_role("button", name="before and after the last incident").focus()
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile(r"a=bank@%23\d+&b=bank@%23\d+"))
    expect(page.locator("table.compare tbody tr").first).to_contain_text("salary")
