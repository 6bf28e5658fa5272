"""Servers in this process: what they read is made by hand, and they are asked without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.serve.http.app import make_app
from attributary_agents.serve.http.site import Feed, Site
from attributary_agents.serve.page import Page
from attributary_agents.serve.reading import ReadingState
from attributary_agents.serve.server import HttpService
from attributary_agents.serve.store.rows import Arrived, Live
from attributary_agents.serve.store.store import Store
from attributary_agents.sockets import listen
from tests.agents.serve.incidents import incident_event
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


def importance(
    model_id: str, n: int, *, time_ms: int | None = None, features: int = 3, explainer: str = "pfi"
) -> Arrived:
    """The n-th importance event of a model, one each minute."""
    values = {f"f{i}": {"importance": 0.1 * (features - i), "half_width": 0.01} for i in range(features)}
    event = {
        "model_id": model_id,
        "model_version": "1",
        "explainer": explainer,
        "removal": "interventional",
        "loss": "brier",
        "loss_unit": "squared probability",
        "loss_largest": 2.0,
        "alpha": 0.002,
        "observation": 100 * n,
        "n_observations": 100 * n,
        "model_loss": 0.3,
        "baseline_loss": 0.7,
        "features": values,
    }
    at = NOW_MS - 60_000 * (100 - n) if time_ms is None else time_ms
    return Arrived("importance", 0, n, f"{model_id}:{explainer}:{n}", model_id, at, event)


def incident(model_id: str, incident_id: str, time_ms: int = NOW_MS - 30_000) -> Arrived:
    event = incident_event(incident_id, model_id=model_id, observation=9_000)
    return Arrived("incident", 0, 1, incident_id, model_id, time_ms, event)


def dead_letter(model_id: str, n: int) -> Arrived:
    event = {"reason": "wrong_type", "stage": "decode"}
    return Arrived("dead_letter", 0, n, f"t:0:{n}", model_id, NOW_MS - 60_000, event)


def filled(*models: str, n: int = 20, features: int = 3) -> Store:
    """A store with importances, an incident and a dead letter of each model."""
    store = Store()
    for number, name in enumerate(models):
        store.take([importance(name, i, features=features) for i in range(1, n + 1)])
        store.take([incident(name, f"{name}:c"), dead_letter(name, number)])
    return store


def configured(**serve: Any) -> Config:
    return parse_config({"models": {"bank": {"factory": FACTORY}}, "serve": serve})


def site_with(store: Any = None, *, config: Config | None = None, feed: Feed | None = None, **given: Any) -> Site:
    return Site(
        config=config or configured(),
        store=Store() if store is None else store,
        reading=given.pop("reading", lambda: READ),
        build="0-test",
        feed=Feed() if feed is None else feed,
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


_APPS: dict[tuple[int, int, str | None], tuple[Site, Page, ASGIApp]] = {}
"""Made applications, which takes a while, and what each is of."""


def asked(site: Site, page: Page, *paths: str, token: str | None = None, **headers: str) -> Sequence[httpx.Response]:
    """Answers of a server to GET of paths, one after the other."""
    key = id(site), id(page), token
    if key not in _APPS:
        _APPS[key] = site, page, make_app(site, page, token)

    async def ask() -> list[httpx.Response]:
        async with client(_APPS[key][2], **headers) as http:
            return [await http.get(path) for path in paths]

    return asyncio.run(ask())


@asynccontextmanager
async def served(site: Site, page: Page, token: str | None = None) -> AsyncIterator[tuple[HttpService, int]]:
    """A server on a port of this machine, in this event loop; ended behind the block, whoever still listens."""
    service = HttpService(make_app(site, page, token))
    with listen("127.0.0.1", 0, "set {}") as listener:
        task = asyncio.create_task(service.run_on(listener))
        try:
            while not service.started:
                await asyncio.sleep(0.01)
            yield service, listener.getsockname()[1]
        finally:
            site.feed.end()
            service.end()
            await task


class Stream:
    """A page that listens: what it was told, read by the rules of server-sent events."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status = 0
        self.headers: dict[str, str] = {}

    @classmethod
    async def open(cls, port: int, path: str = "/api/v1/stream", **headers: str) -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        sent = {"host": "localhost", "connection": "close", **headers}
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        one = cls(reader, writer)
        one.status = int((await reader.readline()).split()[1])
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            one.headers[name.strip().lower()] = value.strip()
        return one

    async def block(self) -> dict[str, str]:
        """The fields of the next event; `comment` of a comment. EOFError at the end."""
        found: dict[str, str] = {}
        while True:
            async with asyncio.timeout(20):
                line = (await self._reader.readline()).decode()
            if not line:
                raise EOFError
            line = line.rstrip("\r\n")
            if not line and found:
                return found
            name, _, value = line.partition(":")
            # Chunks of HTTP/1.1 have lines of their own: their lengths, and ends.
            if name in ("id", "event", "data", "retry"):
                found[name] = value.removeprefix(" ")
            elif line.startswith(":"):
                found["comment"] = value.strip()

    async def event(self, *kinds: str) -> dict[str, str]:
        """The next event, of these kinds alone where some are given."""
        while True:
            found = await self.block()
            if "event" in found and (not kinds or found["event"] in kinds):
                return found

    def close(self) -> None:
        self._writer.close()
