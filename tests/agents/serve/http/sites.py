"""Servers in this process: what they read is made by hand, and they are asked without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.serve.http.app import make_app
from attributary_agents.serve.http.feed import Feed
from attributary_agents.serve.http.page import Page
from attributary_agents.serve.http.site import Site
from attributary_agents.serve.reading.reading import ReadingState
from attributary_agents.serve.store.rows import Live
from attributary_agents.serve.store.store import Store
from tests.agents.stand_ins import FACTORY

TOKEN = "a-token-of-32-characters-for-tests"
NOW_MS = 1_764_000_000_000


READ = ReadingState("answers", NOW_MS - 1000, False, 1.0, NOW_MS - 500, (), None, 0)


class Remembered:
    """A store that has live events alone: the last so many."""

    def __init__(self, keeps: int = 10_000) -> None:
        self.events: list[Live] = []
        self.keeps = keeps

    @property
    def position(self) -> int:
        return self.events[-1].id if self.events else 0

    def live(self, after: int, *, last: int = 10_000) -> list[Live] | None:
        kept = self.events[-self.keeps :]
        if kept and after < kept[0].id - 1:
            return None
        return [event for event in kept if event.id > after]


def configured(**serve: Any) -> Config:
    return parse_config({"models": {"bank": {"factory": FACTORY}}, "serve": serve})


def site_with(store: Any = None, *, config: Config | None = None, feed: Feed | None = None, **given: Any) -> Site:
    return Site(
        config=config or configured(),
        store=Store() if store is None else store,
        reading=given.pop("reading", lambda: READ),
        build="0-test",
        feed=feed or Feed(),
        now_ms=lambda: NOW_MS,
        **given,
    )


def page_of(folder: Path, **files: str) -> Page:
    (folder / "index.html").write_text(
        '<!doctype html><html data-base="{{base}}"><script type="importmap">{"imports": {"page/": "{{base}}/js/"}}'
        '</script><script type="module" src="{{base}}/js/main.js"></script>'
    )
    (folder / "js").mkdir()
    (folder / "js" / "main.js").write_text("export const x = 1;\n" * 100)
    for name, text in files.items():
        (folder / name).write_text(text)
    return Page("1.2.3", folder)


def client(app: ASGIApp, host: str = "localhost:6080", **headers: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=f"http://{host}", headers=headers)


def asked(site: Site, page: Page, *paths: str, token: str | None = None, **headers: str) -> Sequence[httpx.Response]:
    """Answers of a server to GET of paths, one after the other."""
    import asyncio

    async def ask() -> list[httpx.Response]:
        async with client(make_app(site, page, token), **headers) as http:
            return [await http.get(path) for path in paths]

    return asyncio.run(ask())
