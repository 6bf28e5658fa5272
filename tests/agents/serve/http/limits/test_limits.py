"""What strangers and busy clients cannot do: hold up others, wait for ever, or take all connections."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import httpx
import pytest

from attributary_agents.serve.http.app import make_app
from attributary_agents.serve.http.errors import ProblemError
from attributary_agents.serve.http.limits import connections
from attributary_agents.serve.http.limits.gate import Gate
from attributary_agents.serve.store.store import Store
from tests.agents.serve.http.sites import Remembered, Stream, client, page_of, served, site_with


def test_so_many_work_at_once_and_the_others_wait_for_a_while() -> None:
    async def run() -> None:
        gate = Gate(at_once=2, waiting=1, wait_s=0.05)
        free = asyncio.Event()

        async def work() -> None:
            async with gate.passed():
                await free.wait()

        tasks = [asyncio.create_task(work()) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(ProblemError) as refused:
            await work()  # one waits already
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "1"})
        with pytest.raises(ProblemError):
            await tasks[2]  # it has waited too long
        third = asyncio.create_task(work())
        await asyncio.sleep(0)
        free.set()
        await asyncio.gather(tasks[0], tasks[1], third)
        await work()

    asyncio.run(run())


def test_one_who_goes_away_while_waiting_leaves_the_place_to_others() -> None:
    async def run() -> None:
        gate = Gate(at_once=1, waiting=5, wait_s=5)
        async with gate.passed():
            waiting = asyncio.create_task(gate.passed().__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        async with gate.passed():
            pass

    asyncio.run(run())


def test_a_store_that_takes_long_holds_up_neither_the_stream_nor_what_needs_no_store(tmp_path: Path) -> None:
    release = threading.Event()

    class Slow(Store):
        def models(self):  # type: ignore[no-untyped-def]
            release.wait(30)
            return super().models()

    async def run() -> None:
        with Slow() as store:
            site = site_with(store, gate=Gate(at_once=2, waiting=2, wait_s=30))
            async with (
                served(site, page_of(tmp_path)) as (_, port),
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http,
            ):
                slow = [asyncio.create_task(http.get("/api/v1/models")) for _ in range(4)]
                while site.gate.n_waiting < 2:
                    await asyncio.sleep(0.01)
                refused = await http.get("/api/v1/models")
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
                assert refused.headers["content-type"] == "application/problem+json"
                stream = await Stream.open(port)
                assert (await stream.event())["event"] == "hello"
                assert (await http.get("/livez")).status_code == 200
                assert (await http.get("/")).status_code == 200
                release.set()
                assert [one.status_code for one in await asyncio.gather(*slow)] == [200] * 4

    asyncio.run(run())


async def connected(port: int, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    return reader, writer


HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "begun", [b"", b"G", HEAD, HEAD + b"\r\n" + HEAD], ids=["nothing", "a byte", "a head", "a second head"]
)
def test_who_does_not_end_a_request_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(connections, "READ_WITHIN_S", 0.1)

    async def run() -> None:
        async with served(site_with(Remembered()), page_of(tmp_path)) as (_, port):
            reader, _ = await connected(port, begun)
            async with asyncio.timeout(20):
                answered = await read_all(reader)
            assert answered.count(b"200 OK") == begun.count(b"\r\n\r\n")

    asyncio.run(run())


async def read_all(reader: asyncio.StreamReader) -> bytes:
    found = b""
    try:
        while part := await reader.read(10_000):
            found += part
    except ConnectionError:
        pass
    return found


def test_a_new_connection_takes_the_place_of_one_that_asks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)

    async def run() -> None:
        site = site_with(Remembered())
        async with asyncio.timeout(60), served(site, page_of(tmp_path)) as (_, port):
            stream = await Stream.open(port)
            await stream.event("hello")
            idle = [await connected(port) for _ in range(10)]
            async with httpx.AsyncClient() as http:
                assert (await http.get(f"http://127.0.0.1:{port}/livez")).status_code == 200
            cut = [await asyncio.wait_for(read_all(reader), 20) for reader, _ in idle[:8]]
            assert cut == [b""] * 8
            site.feed.tell_broker(True, 1)
            assert (await stream.event())["event"] == "broker", "who listens is left alone"

    asyncio.run(run())


@pytest.mark.parametrize("n", [70_000, 200_000, 3_000_000])
def test_a_head_that_is_too_long_is_refused(tmp_path: Path, n: int) -> None:
    async def run() -> None:
        async with served(site_with(Remembered()), page_of(tmp_path)) as (_, port):
            head = b"GET /" + b"x" * n + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            reader, _ = await connected(port, head)
            answered = await read_all(reader)
            assert answered.startswith((b"HTTP/1.1 414", b"HTTP/1.1 400")) or not answered

    asyncio.run(run())


def test_a_form_that_drips_in_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attributary_agents.serve.http.access import login

    monkeypatch.setattr(login, "WITHIN_S", 0.1)

    async def run() -> None:
        async with served(site_with(Remembered()), page_of(tmp_path), "x" * 20) as (_, port):
            head = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nConnection: close\r\n\r\ntoken="
            reader, _ = await connected(port, head)
            assert b" 408 " in await asyncio.wait_for(read_all(reader), 20)

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
