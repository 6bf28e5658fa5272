"""Asks a page how it looks: what is cut, what scrolls, what has the focus; and axe for what it finds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.stand_in import StandIn

WITHIN_MS = 15_000
"""How long a page is waited for on a busy machine; nothing is told by how long it takes."""

PROBES = (Path(__file__).parent / "probes.js").read_text()


def until(page: Page, condition: str) -> None:
    """Wait until an expression holds. Each time it is asked anew: a page whose policy forbids eval lets only that."""
    end = time.monotonic() + WITHIN_MS / 1000
    while not page.evaluate(f"() => Boolean({condition})"):
        assert time.monotonic() < end, f"it has not come to be: {condition}"
        page.wait_for_timeout(20)


def _asked(page: Page, probe: str) -> Any:
    return page.evaluate(f"{PROBES.rstrip()}.{probe}()")


def findings(page: Page) -> list[str]:
    """Return what axe finds that is serious or critical, one line each, with where it is."""
    results = Axe().run(page).response
    return [
        f"{one['impact']}: {one['id']}: {node['target']} {node['html'][:120]}"
        for one in results["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:5]
    ]


def cut_texts(page: Page) -> list[str]:
    """Return texts that are cut, and cannot be read whole."""
    found: list[str] = _asked(page, "cut")
    return found


def too_wide(page: Page) -> list[str]:
    """Return what makes the page scroll sideways."""
    found: list[str] = _asked(page, "over")
    return found


def too_small(page: Page) -> list[str]:
    """Return what is to be pressed and is smaller than 24 pixels."""
    found: list[str] = _asked(page, "small")
    return found


def focused(page: Page) -> dict[str, Any] | None:
    """Return what has the focus; None where nothing has."""
    found: dict[str, Any] | None = _asked(page, "focused")
    return found


def settled(page: Page) -> None:
    """Wait until what a view fetches after it is shown has come, and has been drawn."""
    until(page, "!document.querySelector('[aria-busy=\"true\"]')")
    until(page, "document.querySelectorAll('.plot').length === document.querySelectorAll('.plot canvas').length")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def incident_of(server: StandIn, model_id: str, what: str) -> str:
    """Return the path of the latest incident of a kind of a model."""
    found = next(one for one in server.answers.told if (one.row.model_id, one.row.what) == (model_id, what))
    return f"/incidents/{quote(found.id, safe='')}"
