"""What happens is on the page without a reload, and a page that lost its server or Kafka says so and heals."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits
from tests.browser.looks import incident_of, settled, until
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser

ANNOUNCED = "salary of bank is still broken"
LOST = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE",
        "ERR_CONNECTION_CLOSED", "ERR_NETWORK_IO_SUSPENDED")  # fmt: skip


def marked(page: Page) -> None:
    """Leave a mark that a reload would wipe out."""
    page.evaluate("globalThis.isSamePage = true")


def is_same(page: Page) -> bool:
    return bool(page.evaluate("globalThis.isSamePage === true"))


def pushed(server: StandIn) -> None:
    told = next(one for one in server.answers.told if one.row.model_id == "bank")
    server.push_incident(told.id, headline=ANNOUNCED, reason="lasts")


@pytest.mark.parametrize("path", ["/", "/models/bank"])
def test_no_status_takes_an_incident_back_and_a_revision_appears_without_a_reload_and_is_announced(
    path: str, own_server: Callable[..., StandIn], visits: Visits
) -> None:
    server = own_server()
    page = visits.open(server, path)
    settled(page)
    expect(page.locator("#head")).to_contain_text("live")
    marked(page)
    state = page.locator("h1 .state") if path != "/" else page.locator("tr", has_text="bank").first
    expect(state).to_contain_text("incident")
    server.push("status", {
        "model_id": "bank", "version": "2", "state": "explained", "n_observations": 4_321_765,
        "observations_per_second": 4.56, "n_waiting": None, "n_expired": None, "n_refused": 0,
    })  # fmt: skip
    expect(page.locator("#view")).to_contain_text("4.56")  # it has been taken
    expect(state).to_contain_text("incident")
    expect(page.locator("#view")).not_to_contain_text(ANNOUNCED)
    pushed(server)
    expect(page.locator("#view")).to_contain_text(ANNOUNCED)
    expect(page.locator('[aria-live="polite"]', has_text=ANNOUNCED)).to_have_count(1)
    assert is_same(page)


def test_the_view_of_a_model_that_fails_says_what_the_fleet_says(server: StandIn, visits: Visits) -> None:
    page = visits.open(server)
    settled(page)
    said = page.evaluate("""async () => {
        const { stateOf } = await import("page/views/words.js");
        const { summaryOf } = await import("page/views/model.js");
        const answer = await (await fetch("/api/v1/models")).json();
        const row = { ...answer.models[0], state: "learning", is_failing: true, version: null, model_loss: null };
        return [stateOf(row).word, summaryOf({ row }).querySelector(".state").textContent];
    }""")
    assert said == ["failing", "✕ failing"]


@pytest.mark.long
def test_an_importance_is_drawn_as_it_comes(own_server: Callable[..., StandIn], visits: Visits) -> None:
    server = own_server()
    page = visits.open(server, "/models/bank")
    settled(page)
    marked(page)
    server.push("importance", {
        "model_id": "bank", "explainer": "pfi", "time_ms": server.answers.now_ms + 20_000, "observation": 4_204_800,
        "version": "2", "n_features": 9, "n_observations": 2_000, "model_loss": 0.3, "baseline_loss": 0.68,
        "present_loss": None, "discrepancy": 0.1, "shift": 0.4, "n_waiting": None, "n_expired": None, "fidelity": None,
        "features": {"salary": [0.7654, 0.0123, 0.8, 1], "age": [0.1, 0.01, 0.2, 2]},
    })  # fmt: skip
    expect(page.locator("#view")).to_contain_text("0.765")
    assert is_same(page)


@pytest.mark.long
def test_an_incident_that_is_looked_at_is_drawn_anew_by_its_next_revision(
    own_server: Callable[..., StandIn], visits: Visits
) -> None:
    server = own_server()
    page = visits.open(server, incident_of(server, "fraud-a", "worse"))
    settled(page)
    expect(page.locator(".badge")).to_contain_text("being confirmed")
    told = next(one for one in server.answers.told if one.row.model_id == "fraud-a")
    marked(page)
    server.push_incident(told.id, life="withdrawn", reason="noise", headline="fraud-a has not changed after all")
    expect(page.locator("h1")).to_have_text("fraud-a has not changed after all")
    expect(page.locator(".badge")).to_contain_text("withdrawn")
    expect(page.locator(".incident-head")).to_have_class(re.compile("tone-over"))
    assert is_same(page)


@pytest.mark.long
@pytest.mark.parametrize("path", ["/", "/models/bank"])
def test_a_server_that_is_lost_and_comes_back_heals(
    path: str, own_server: Callable[..., StandIn], visits: Visits
) -> None:
    server = own_server()
    page = visits.open(server, path)
    settled(page)
    expect(page.locator("#head")).to_contain_text("live")
    marked(page)
    visits.tolerate(*LOST)
    server.stop()
    expect(page.locator("#head")).to_contain_text("reconnecting")
    expect(page.locator("h1")).to_contain_text("bank" if "bank" in path else "have an incident")  # what was shown stays
    expect(page.locator("dialog[open]")).to_have_count(0)
    pushed(server)  # nobody hears of it
    server.start()
    expect(page.locator("#head")).to_contain_text("live")
    expect(page.locator("#view")).to_contain_text(ANNOUNCED)  # what was missed is fetched
    assert is_same(page)


@pytest.mark.long
def test_a_server_that_reads_its_topics_anew_has_no_importance_for_a_while(
    own_server: Callable[..., StandIn], visits: Visits
) -> None:
    server = own_server()
    page = visits.open(server, "/models/bank")
    settled(page)
    n_panels = page.locator(".panel").count()
    marked(page)
    model = server.answers.model
    server.answers.model = lambda *given: model(*given).model_copy(update={"explainers": []})  # type: ignore[method-assign]
    server.push("reload", {})
    expect(page.locator("#view")).to_contain_text("No importance of this model has been published yet.")
    server.answers.model = model  # type: ignore[method-assign]
    server.push("reload", {})
    expect(page.locator(".panel")).to_have_count(n_panels)
    expect(page.locator("#view")).not_to_contain_text("No importance of this model")
    assert is_same(page)


@pytest.mark.long
def test_a_page_that_is_opened_before_its_server_answers_shows_itself_later(
    own_server: Callable[..., StandIn], visits: Visits
) -> None:
    server = own_server()
    page = visits.open(server, "/models/bank")
    visits.tolerate(*LOST)
    server.stop()
    page.evaluate("history.pushState(null, '', '/'); dispatchEvent(new PopStateEvent('popstate'))")
    expect(page.locator("h1")).to_contain_text("does not answer")
    server.start()
    expect(page.locator("h1")).to_contain_text("have an incident")


@pytest.mark.long
def test_a_hidden_tab_draws_nothing_until_it_is_seen(own_server: Callable[..., StandIn], visits: Visits) -> None:
    server = own_server()
    page = visits.open(server)
    settled(page)
    expect(page.locator("#head")).to_contain_text("live")
    hide = """(isHidden) => {
        Object.defineProperty(document, 'hidden', { get: () => isHidden, configurable: true });
        Object.defineProperty(document, 'visibilityState',
            { get: () => isHidden ? 'hidden' : 'visible', configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate(hide, True)
    page.evaluate("""() => { globalThis.n_drawn = 0;
        new MutationObserver((all) => { n_drawn += all.length; }).observe(document.getElementById('view'),
            { subtree: true, childList: true, characterData: true, attributes: true }); }""")
    heard = """() => new Promise((done) => { const events = new EventSource('/api/v1/stream');
        events.addEventListener('incident', () => { events.close(); setTimeout(done, 700); });
        events.addEventListener('hello', () => { globalThis.isListening = true; }); })"""
    page.evaluate(f"() => {{ globalThis.heard = ({heard})(); }}")
    until(page, "globalThis.isListening")
    pushed(server)
    page.evaluate(
        "globalThis.heard"
    )  # a second stream has had it, and more than the page's pause between redraws is over
    assert page.evaluate("n_drawn") == 0
    page.evaluate(hide, False)
    expect(page.locator("#view")).to_contain_text(ANNOUNCED)


@pytest.mark.long
@pytest.mark.parametrize("is_later", [False, True])
def test_a_broker_that_is_away_is_said_in_a_strip(
    is_later: bool, own_server: Callable[..., StandIn], visits: Visits
) -> None:
    server = own_server()
    if not is_later:
        server.away(True)
    page = visits.open(server)
    settled(page)
    strip = page.get_by_text("Kafka has not answered since")
    if is_later:
        expect(page.locator("#head")).to_contain_text("live")
        expect(strip).to_have_count(0)
        server.away(True)
    expect(strip).to_be_visible()
    expect(strip).to_contain_text("shown is what was read until then")
    server.away(False)
    expect(strip).to_have_count(0)


@pytest.mark.long
def test_a_fleet_without_a_model_says_what_is_missing(own_server: Callable[..., StandIn], visits: Visits) -> None:
    page = visits.open(own_server(empty=True))
    settled(page)
    for text in ("attributary.importances.v1", "bank", "500"):
        expect(page.locator("#view")).to_contain_text(text)
