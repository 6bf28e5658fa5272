"""Draws the pictures of the page that the docs show: python -m tests.browser.pictures --out docs/images/page."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import chromium, shown
from tests.browser.looks import incident_of, settled
from tests.browser.stand_in import StandIn

WIDTHS = {1440: 900, 768: 1024, 390: 844}
MOST_BYTES = 150_000


def main() -> None:
    """Draw them all; each is looked at before it is committed."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.pictures", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="draw those whose name has this in it")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    server = StandIn()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for name, path, width, scheme, is_whole in pictures(server):
            if given.only not in name:
                continue
            # Of a phone twice the pixels, as phones have them, would weigh four times as much.
            context = browser.new_context(
                viewport={"width": width, "height": WIDTHS[width]}, color_scheme=scheme, timezone_id="UTC"
            )
            page = context.new_page()
            page.goto(server.url + path)
            ready(page)
            small = reduced(page.screenshot(full_page=is_whole))
            (given.out / f"{name}.png").write_bytes(small)
            print(f"{name}.png: {len(small) / 1000:.0f} kB")
            context.close()
        browser.close()
    server.stop()


def pictures(server: StandIn) -> list[tuple[str, str, int, Any, bool]]:
    """Return name, path, width, scheme, and whether all of the page is drawn."""
    incident = incident_of(server, "bank", "inputs")
    compared = "/compare?a=bank@%233000000&b=bank@now"
    return [
        ("fleet-1440-light", "/", 1440, "light", False),
        ("fleet-1440-dark", "/", 1440, "dark", False),
        ("model-1440-light", "/models/bank?window=1h", 1440, "light", False),
        ("model-1440-dark", "/models/bank?window=1h", 1440, "dark", False),
        ("incident-1440-light", incident, 1440, "light", True),
        ("compare-1440-light", compared, 1440, "light", False),
        ("fleet-768-light", "/", 768, "light", False),
        ("model-768-dark", "/models/bank?window=1h", 768, "dark", False),
        ("fleet-390-light", "/", 390, "light", False),
        ("model-390-dark", "/models/bank?window=1h", 390, "dark", False),
    ]


def ready(page: Page) -> None:
    """Wait until all is drawn."""
    shown(page)
    settled(page)
    page.get_by_text("live", exact=False).first.wait_for()
    page.wait_for_timeout(600)


def reduced(png: bytes) -> bytes:
    """Return a picture with its most frequent colours, as many as keep it below the size that the docs take."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    counted = image.getcolors(image.width * image.height) or []
    frequent = [colour for _, colour in sorted(counted, reverse=True)]
    small = io.BytesIO()
    for n_colours in (256, 128, 64, 32):
        palette = Image.new("P", (1, 1))
        palette.putpalette([part for colour in frequent[:n_colours] for part in colour])
        small = io.BytesIO()
        image.quantize(palette=palette, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
        if small.tell() <= MOST_BYTES:
            break
    return small.getvalue()


if __name__ == "__main__":
    main()
