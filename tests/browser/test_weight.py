"""What a page weighs, compressed: files, and the first data."""

from __future__ import annotations

import gzip
from collections import Counter

import pytest
from playwright.sync_api import Response

from tests.browser.conftest import Visits
from tests.browser.looks import settled
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser

MOST = 150_000


@pytest.mark.parametrize("path", ["/", "/models/bank"])
def test_a_page_and_its_first_data_weigh_at_most_150_kb(
    path: str, server: StandIn, visits: Visits, capsys: pytest.CaptureFixture[str]
) -> None:
    page = visits.open(server, "/nowhere")
    weights: Counter[str] = Counter()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(server.url + path)
    page.wait_for_selector("#view h1")
    settled(page)
    for answer in answers:
        if answer.url.endswith("/stream") or answer.status != 200:
            continue
        kind = answer.headers.get("content-type", "").split(";")[0]
        weights[kind] += len(gzip.compress(answer.body(), 6))
    with capsys.disabled():
        print(f"\n{path}: {sum(weights.values()) / 1000:.1f} kB", dict(weights.most_common()))
    assert weights["text/javascript"] > 20_000
    assert sum(weights.values()) <= MOST
