"""A browser, the stand-in server, and pages that fail a test where they complain."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.browser.looks import WITHIN_MS, until
from tests.browser.stand_in import StandIn

CI = bool(os.environ.get("CI"))
expect.set_options(timeout=WITHIN_MS)


def chromium() -> str:
    """Return where Chromium is; without it a test is skipped, and fails under CI, which installs it."""
    usual = Path("/usr/bin/chromium")
    found = str(usual) if usual.exists() else shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        (pytest.fail if CI else pytest.skip)("there is no Chromium here: install it (Debian: chromium)")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser per file: Playwright keeps an event loop in the thread, which later tests want for their own."""
    path = chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    """A stand-in with all its models, one that is hostile among them; no test changes it."""
    stand_in = StandIn(hostile=True)
    yield stand_in
    stand_in.stop()


@pytest.fixture
def own_server() -> Iterator[Callable[..., StandIn]]:
    """Makes stand-ins that a test may change and stop."""
    made: list[StandIn] = []

    def make(**kwargs: Any) -> StandIn:
        made.append(StandIn(**kwargs))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@dataclass
class Visits:
    """Opens pages, and keeps what they complain of."""

    browser: Browser
    problems: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)
    tolerated: tuple[str, ...] = ()

    def open(
        self, server: StandIn, path: str = "/", *, width: int = 1440, height: int = 900, scheme: str = "light",
        at_start: bool = False, **kwargs: Any,
    ) -> Page:  # fmt: skip
        """Open a path of a server in a context of its own.

        `at_start` holds the page's clock at the moment from which the server's events are counted back.
        """
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", **kwargs
        )
        context.set_default_timeout(WITHIN_MS)
        self.contexts.append(context)
        page = context.new_page()
        if at_start:
            page.clock.set_fixed_time(server.answers.now_ms / 1000.0)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self._complain(f"error: {error}"))
        page.on("requestfailed", self._on_failed)
        page.on("request", lambda request: self._on_request(request, server))
        page.goto(server.url + path)
        shown(page)
        return page

    def tolerate(self, *texts: str) -> None:
        """Let pass what holds one of the texts: a test that takes the server away sees that requests fail."""
        self.tolerated += texts

    def _complain(self, text: str) -> None:
        self.problems.append(text)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._complain(f"console: {message.text}")

    def _on_failed(self, request: Request) -> None:
        # What a page no longer wants is aborted by itself.
        if request.failure != "net::ERR_ABORTED":
            self._complain(f"failed: {request.url} {request.failure}")

    def _on_request(self, request: Request, server: StandIn) -> None:
        if not request.url.startswith((server.url + "/", "data:", "blob:")):
            self._complain(f"foreign: {request.url}")

    def left(self) -> list[str]:
        """Return what is no fault of the test's own."""
        return [one for one in self.problems if not any(text in one for text in self.tolerated)]


def shown(page: Page) -> None:
    """Wait until a view is drawn: it has a heading, and nothing is being fetched for it."""
    page.wait_for_selector("#view h1")
    until(page, "!document.getElementById('view').hasAttribute('aria-busy')")


@pytest.fixture
def visits(browser: Browser) -> Iterator[Visits]:
    """Pages of this test; it fails where one writes an error, asks a foreign host, or is refused something."""
    made = Visits(browser)
    yield made
    for context in made.contexts:
        context.close()
    assert made.left() == []
