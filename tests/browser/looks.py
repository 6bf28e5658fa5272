"""Asks a page how it looks: what is cut, what scrolls, what has the focus; and axe for what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.stand_in import StandIn

PROBES = (Path(__file__).parent / "probes.js").read_text()


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
    # Locators: a condition in JavaScript is evaluated again and again, which the page's policy refuses.
    expect(page.locator('[aria-busy="true"]')).to_have_count(0)
    expect(page.locator(".plot:not(:has(canvas))")).to_have_count(0)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def change_of(server: StandIn, model_id: str, event: str) -> str:
    """Return the path of the latest change of a kind of a model."""
    found = next(one for one in server.answers.told if (one.row.model_id, one.row.event) == (model_id, event))
    return f"/changes/{quote(found.id, safe='')}"
