"""Asks a page how it looks: what is cut, what scrolls, what has the focus; and axe for what it finds."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.stand_in import StandIn

CUT = """() => {
  const isUnseen = (one) => one.closest('.unseen, [hidden], datalist, .u-hz, [aria-hidden="true"]') !== null;
  const cut = [];
  for (const one of document.querySelectorAll('body *')) {
    if (isUnseen(one) || one instanceof SVGElement || !one.getClientRects().length) continue;
    const style = getComputedStyle(one);
    const hides = style.overflowX === 'hidden' || style.overflowX === 'clip' || style.textOverflow === 'ellipsis';
    const isInput = one.tagName === 'INPUT' && one.value && one.scrollWidth > one.clientWidth + 1 && !one.title;
    const isCut = hides && one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1 && !one.closest('[title], [aria-label]');
    if (isCut || isInput) cut.push(`${one.tagName}.${one.className}: ${(one.value || one.textContent).slice(0, 80)}`);
  }
  for (const text of document.querySelectorAll('svg text')) {
    if (!text.getClientRects().length || !text.textContent) continue;
    const [inner, outer] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
    if (inner.left < outer.left - 1.5 || inner.right > outer.right + 1.5) cut.push(`svg text: ${text.textContent.slice(0, 80)}`);
  }
  return cut;
}"""

OVER = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = (one) => { for (let up = one.parentElement; up; up = up.parentElement) {
    if (/auto|scroll|hidden|clip/.test(getComputedStyle(up).overflowX)) return true; } return false; };
  return [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > width + 1 && !scrolls(one))
    .map((one) => `${one.tagName}.${one.className} to ${Math.round(one.getBoundingClientRect().right)} of ${width}`).slice(0, 8);
}"""

SMALL = """() => [...document.querySelectorAll('a[href], button, summary, select, input:not([type=hidden])')]
  .filter((one) => one.getClientRects().length && !one.closest('.unseen') && !one.matches('.skip'))
  .filter((one) => {
    const { width, height } = one.getBoundingClientRect();
    // A link within a sentence has the height of its line, as WCAG 2.5.8 has it.
    const isInText = one.tagName === 'A' && getComputedStyle(one).display === 'inline';
    return !isInText && (height < 23.5 || width < 23.5);
  }).map((one) => `${one.tagName}.${one.className}: ${(one.getAttribute('aria-label') || one.textContent).slice(0, 60)} `
    + `${Math.round(one.getBoundingClientRect().width)}x${Math.round(one.getBoundingClientRect().height)}`)"""

FOCUSED = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one);
  const { top, bottom, left, right, width, height } = one.getBoundingClientRect();
  return {
    tag: one.tagName, name: (one.getAttribute('aria-label') || one.textContent || one.value || one.id || '').trim().slice(0, 60),
    isMarked: (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none',
    isVisible: width > 0 && height > 0 && bottom > 0 && right > 0 && top < innerHeight && left < innerWidth,
    y: top + scrollY, x: left,
  };
}"""


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
    found: list[str] = page.evaluate(CUT)
    return found


def too_wide(page: Page) -> list[str]:
    """Return what makes the page scroll sideways."""
    found: list[str] = page.evaluate(OVER)
    return found


def too_small(page: Page) -> list[str]:
    """Return what is to be pressed and is smaller than 24 pixels."""
    found: list[str] = page.evaluate(SMALL)
    return found


def focused(page: Page) -> dict[str, Any] | None:
    """Return what has the focus; None where nothing has."""
    found: dict[str, Any] | None = page.evaluate(FOCUSED)
    return found


def settled(page: Page) -> None:
    """Wait until what a view fetches after it is shown has come, and has been drawn."""
    page.wait_for_function("!document.querySelector('[aria-busy=\"true\"]')")
    page.wait_for_function(
        "() => document.querySelectorAll('.plot').length === document.querySelectorAll('.plot canvas').length"
    )
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def change_of(server: StandIn, model_id: str, event: str) -> str:
    """Return the path of the latest change of a kind of a model."""
    found = next(one for one in server.answers.told if (one.row.model_id, one.row.event) == (model_id, event))
    return f"/changes/{quote(found.id, safe='')}"
