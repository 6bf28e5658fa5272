"""What strangers and busy clients cannot do: hold up others, wait for ever, or take all connections."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import httpx
import pytest

from attributary_agents.serve import server as service
from attributary_agents.serve.http.app import make_app
from attributary_agents.serve.store.store import Store
from tests.agents.serve.http.sites import Remembered, Stream, client, page_of, served, site_with


def test_a_store_that_takes_long_holds_up_neither_the_stream_nor_what_needs_no_store(tmp_path: Path) -> None:
    release = threading.Event()

    at_once, most = 0, 0
    lock = threading.Lock()

    class Slow(Store):
        def models(self):  # type: ignore[no-untyped-def]
            nonlocal at_once, most
            with lock:
                at_once += 1
                most = max(most, at_once)
            release.wait(30)
            with lock:
                at_once -= 1
            return super().models()

    async def run() -> None:
        with Slow() as store:
            async with (
                served(site_with(store), page_of(tmp_path)) as (_, port),
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http,
            ):
                slow = [asyncio.create_task(http.get("/api/v1/models")) for _ in range(20)]
                while at_once < service.AT_ONCE:
                    await asyncio.sleep(0.01)
                stream = await Stream.open(port)
                assert (await stream.event())["event"] == "hello"
                assert (await http.get("/livez")).status_code == 200
                assert (await http.get("/")).status_code == 200
                release.set()
                assert [one.status_code for one in await asyncio.gather(*slow)] == [200] * 20
        assert most == service.AT_ONCE

    asyncio.run(run())


async def connected(port: int, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    return reader, writer


async def read_all(reader: asyncio.StreamReader) -> bytes:
    found = b""
    try:
        while part := await reader.read(10_000):
            found += part
    except ConnectionError:
        pass
    return found


def test_connections_that_ask_nothing_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_CONNECTIONS", 8)

    async def run() -> None:
        site = site_with(Remembered())
        async with asyncio.timeout(60), served(site, page_of(tmp_path)) as (_, port):
            stream = await Stream.open(port)
            await stream.event("hello")
            idle = [await connected(port, b"G" * (n % 2)) for n in range(30)]
            cut = [await asyncio.wait_for(read_all(reader), 20) for reader, _ in idle[:25]]
            assert cut == [b""] * 25
            async with httpx.AsyncClient() as http:
                assert (await http.get(f"http://127.0.0.1:{port}/livez")).status_code == 200
            site.feed.tell_broker(True, 1)
            assert (await stream.event())["event"] == "broker", "who listens is left alone"

    asyncio.run(run())


def test_requests_beyond_the_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_CONNECTIONS", 4)

    async def run() -> None:
        async with asyncio.timeout(60), served(site_with(Remembered()), page_of(tmp_path)) as (_, port):
            streams = [await Stream.open(port) for _ in range(5)]
            assert [one.status for one in streams] == [200, 200, 200, 503, 503]

    asyncio.run(run())


@pytest.mark.parametrize("n", [70_000, 200_000, 3_000_000])
def test_a_head_that_is_too_long_is_refused(tmp_path: Path, n: int) -> None:
    async def run() -> None:
        async with served(site_with(Remembered()), page_of(tmp_path)) as (_, port):
            head = b"GET /" + b"x" * n + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            reader, _ = await connected(port, head)
            answered = await read_all(reader)
            assert answered.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400")) or not answered

    asyncio.run(run())


def test_the_interface_describes_itself_without_being_asked_for_data(tmp_path: Path) -> None:
    async def run() -> None:
        async with client(make_app(site_with(Remembered()), page_of(tmp_path))) as http:
            document = (await http.get("/api/openapi.json")).json()
            assert set(document["paths"]) >= {
                "/api/v1/models",
                "/api/v1/stream",
                "/api/v1/models/{model_id}/importances",
            }
            for path in ("/docs", "/redoc", "/openapi.json"):
                assert (await http.get(path)).status_code == 404

    asyncio.run(run())
