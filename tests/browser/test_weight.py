"""What a page weighs, compressed: files, and the first data."""

from __future__ import annotations

import gzip
from collections import Counter

import pytest
from playwright.sync_api import Response

from tests.browser.conftest import Visits
from tests.browser.looks import incident_of, settled
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser

MOST = 140_000
VIEWS = {
    "fleet": lambda server: "/",
    "model": lambda server: "/models/bank",
    "many features": lambda server: "/models/wide",
    "many classes": lambda server: "/models/letters",
    "late labels": lambda server: "/models/bikes",
    "incident": lambda server: incident_of(server, "bank", "inputs"),
    "comparison": lambda server: "/compare?a=bank@now&b=bank@%23100000",
}


@pytest.mark.parametrize(
    "view", ["model", *(pytest.param(one, marks=pytest.mark.long) for one in VIEWS if one != "model")]
)
def test_a_page_and_its_first_data_weigh_at_most_140_kb(
    view: str, server: StandIn, visits: Visits, capsys: pytest.CaptureFixture[str]
) -> None:
    page = visits.open(server, "/nowhere")
    weights: Counter[str] = Counter()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(server.url + VIEWS[view](server))
    page.wait_for_selector("#view h1")
    settled(page)
    for answer in answers:
        if answer.url.endswith("/stream") or answer.status != 200:
            continue
        kind = "uPlot" if "/vendor/" in answer.url else answer.headers.get("content-type", "").split(";")[0]
        weights[kind] += len(gzip.compress(answer.body(), 6))
    with capsys.disabled():
        parts = ", ".join(f"{kind} {weight / 1000:.1f}" for kind, weight in weights.most_common())
        print(f"\n{view}: {sum(weights.values()) / 1000:.1f} kB: {parts}")
    assert weights["text/javascript"] > 20_000
    assert sum(weights.values()) <= MOST
