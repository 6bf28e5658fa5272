"""A page with nothing on it, in which modules of the page are tried alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Route

from attributary_agents.serve.page import as_served

STATIC = Path(__file__).parents[2] / "agents" / "attributary_agents" / "serve" / "static"
SERVED = "/served/"
"""Below it are files as they are served, else as they are written."""

BLANK = '<!doctype html><html lang="en"><script type="importmap">{"imports": {"page/": "/js/"}}</script>'


@contextmanager
def blank_page(browser: Browser) -> Iterator[Page]:
    """Open a page with nothing on it, which can import the modules."""
    page = browser.new_page(timezone_id="Europe/Vienna")
    page.route("http://page.test/**", _answer)
    page.goto("http://page.test/")
    yield page
    page.close()


def _answer(route: Route) -> None:
    path = urlsplit(route.request.url).path
    if path == "/":
        route.fulfill(body=BLANK, content_type="text/html")
    elif path.startswith(SERVED):
        name = path.removeprefix(SERVED)
        route.fulfill(body=as_served(name, (STATIC / name).read_text()), content_type="text/javascript")
    else:
        route.fulfill(body=(STATIC / path[1:]).read_text(), content_type="text/javascript")


def run(page: Page, module: str, body: str, given: Any = None) -> Any:
    """Return what a function body returns that sees the module as `m` and `given`."""
    return page.evaluate(
        f'async (given) => {{ const m = await import("page/{module}"); {body} }}', json.loads(json.dumps(given))
    )
