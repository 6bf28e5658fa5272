"""The live stream, over a connection: what a page is told, what is repeated to it, and how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from attributary_agents.serve.http import stream
from attributary_agents.serve.http.site import Feed, Site
from attributary_agents.serve.reading import ReadingState
from attributary_agents.serve.store.rows import Live
from attributary_agents.serve.store.store import Store
from tests.agents.serve.http.sites import NOW_MS, READ, Remembered, Stream, importance, page_of, served, site_with

Asks = Callable[[Site, int], Awaitable[None]]


def listened(tmp_path: Path, site: Site, asks: Asks) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), served(site, page_of(tmp_path)) as (_, port):
            await asks(site, port)

    asyncio.run(run())


def live(number: int, model_id: str = "bank", event: str = "importance", data: bytes = b"{}") -> Live:
    return Live(number, event, model_id, data)


def remembered(n: int, keeps: int = 10_000, first: int = 1) -> Remembered:
    store = Remembered(keeps)
    store.events = [live(number) for number in range(first, first + n)]
    return store


async def told(site: Site, *events: Live) -> None:
    """What happens when the store has taken something."""
    assert isinstance(site.store, Remembered)
    site.store.events += [event for event in events if event.id]
    site.feed.publish(events)


def test_a_page_is_greeted_and_told_what_comes(tmp_path: Path) -> None:
    async def asks(site: Site, port: int) -> None:
        page = await Stream.open(port)
        assert page.status == 200
        assert page.headers["content-type"].startswith("text/event-stream")
        assert page.headers["cache-control"] == "no-store"
        assert "content-encoding" not in page.headers
        assert await page.block() == {"retry": "1000"}
        hello = await page.event()
        assert (hello["event"], hello["id"]) == ("hello", "7")
        assert json.loads(hello["data"]) == {"build": "0-test", "position": 7}
        await told(site, live(8, data=b'{"a": 1}'), live(9, event="incident"), live(10, "", "dead_letter_counts"))
        assert [await page.event() for _ in range(3)] == [
            {"id": "8", "event": "importance", "data": '{"a": 1}'},
            {"id": "9", "event": "incident", "data": "{}"},
            {"id": "10", "event": "dead_letter_counts", "data": "{}"},
        ]
        page.close()
        while len(site.feed):
            await asyncio.sleep(0.01)

    listened(tmp_path, site_with(remembered(7)), asks)


def test_a_page_of_one_model_is_told_of_that_and_of_what_is_of_none(tmp_path: Path) -> None:
    async def asks(site: Site, port: int) -> None:
        page = await Stream.open(port, "/api/v1/stream?model=b%2F%20ank")
        await page.event("hello")
        await told(site, live(1, "other"), live(2, "b/ ank"), live(3, "", "dead_letter_counts"), live(4, "b"))
        site.feed.tell_broker(False, NOW_MS)
        assert [(await page.event()).get("id") for _ in range(3)] == ["2", "3", None]
        again = await Stream.open(port, "/api/v1/stream?model=b%2F%20ank", **{"last-event-id": "0"})
        await again.event("hello")
        assert [(await again.event())["id"] for _ in range(2)] == ["2", "3"]

    listened(tmp_path, site_with(Remembered()), asks)


def test_what_was_missed_is_repeated_once_and_in_order(tmp_path: Path) -> None:
    async def asks(site: Site, port: int) -> None:
        back = await Stream.open(port, **{"last-event-id": "15"})
        hello = await back.event()
        assert (hello["event"], "id" in hello) == ("hello", False), "an id here would hide what comes behind it"
        await told(site, live(21), live(22))
        assert [(await back.event())["id"] for _ in range(7)] == [str(number) for number in range(16, 23)]
        current = await Stream.open(port, **{"last-event-id": "22"})
        await current.event("hello")
        await told(site, live(23))
        assert (await current.event())["id"] == "23"

    listened(tmp_path, site_with(remembered(20)), asks)


@pytest.mark.parametrize("last", ["3", "99999", "-1", "x", "", "１", "1e3", "9" * 90])
def test_a_page_whose_past_is_not_known_is_told_to_load_anew(tmp_path: Path, last: str) -> None:
    async def asks(site: Site, port: int) -> None:
        back = await Stream.open(port, **{"last-event-id": last})
        reload = await back.event("reload", "importance")
        assert reload == {"id": "20", "event": "reload", "data": "{}"}
        await told(site, live(21))
        assert (await back.event())["id"] == "21"

    listened(tmp_path, site_with(remembered(20, keeps=10)), asks)


def test_a_page_that_has_missed_more_than_a_queue_holds_loads_anew(tmp_path: Path) -> None:
    async def asks(site: Site, port: int) -> None:
        short = await Stream.open(port, **{"last-event-id": "10"})
        assert (await short.event("reload", "importance"))["event"] == "importance"
        long = await Stream.open(port, **{"last-event-id": "9"})
        assert (await long.event("reload", "importance"))["event"] == "reload"

    listened(tmp_path, site_with(remembered(20), feed=Feed(longest=10)), asks)


def test_a_page_is_told_to_load_anew_where_too_much_comes_at_once(tmp_path: Path) -> None:
    async def asks(site: Site, port: int) -> None:
        page = await Stream.open(port)
        await page.event("hello")
        await told(site, *[live(number) for number in range(1, 100)])
        assert await page.event() == {"id": "99", "event": "reload", "data": "{}"}
        await told(site, *[live(number) for number in range(100, 110)])
        assert [(await page.event())["id"] for _ in range(10)] == [str(number) for number in range(100, 110)]

    listened(tmp_path, site_with(Remembered(), feed=Feed(longest=10)), asks)


def test_one_that_does_not_read_is_let_go_and_holds_up_nobody(tmp_path: Path) -> None:
    async def asks(site: Site, port: int) -> None:
        slow, quick = await Stream.open(port), await Stream.open(port)
        await slow.event("hello")
        await quick.event("hello")
        number, large = 0, b'"' + b"x" * 50_000 + b'"'
        while len(site.feed) == 2:  # until the system's buffers and the queue are full
            number += 1
            await told(site, live(number, data=large))
            assert (await quick.event())["id"] == str(number)
            assert number < 2000
        assert number > 50
        await told(site, live(number + 1))
        assert (await quick.event())["id"] == str(number + 1)
        last = "0"
        with suppress(EOFError, ConnectionError, asyncio.IncompleteReadError):
            while True:
                last = (await slow.event())["id"]
        assert int(last) < number, "it has lost the connection before it was told all"
        back = await Stream.open(port, **{"last-event-id": last})
        assert (await back.event("reload", "importance"))["event"] == "reload"

    listened(tmp_path, site_with(Remembered(), feed=Feed(longest=50)), asks)


def test_more_pages_than_may_be_open_are_asked_to_wait(tmp_path: Path) -> None:
    async def asks(site: Site, port: int) -> None:
        first, second = await Stream.open(port), await Stream.open(port)
        third = await Stream.open(port)
        assert (third.status, third.headers["retry-after"]) == (503, "10")
        assert third.headers["content-type"] == "application/problem+json"
        first.close()
        while len(site.feed) == 2:
            await asyncio.sleep(0.01)
        assert (await Stream.open(port)).status == 200
        assert second.status == 200

    listened(tmp_path, site_with(Remembered(), feed=Feed(most=2)), asks)


def test_a_quiet_stream_says_that_it_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "QUIET_S", 0.05)

    async def asks(site: Site, port: int) -> None:
        page = await Stream.open(port)
        await page.event("hello")
        assert await page.block() == {"comment": "still here"}
        await told(site, live(1))
        assert (await page.event())["id"] == "1"

    listened(tmp_path, site_with(Remembered()), asks)


def test_a_page_is_told_whether_brokers_answer(tmp_path: Path) -> None:
    away = ReadingState("away", NOW_MS, False, 1.0, None, (), None, 0)
    states = [away]

    async def asks(site: Site, port: int) -> None:
        page = await Stream.open(port)
        await page.event("hello")
        broker = await page.event()
        assert (broker["event"], json.loads(broker["data"])) == ("broker", {"answers": False, "since_ms": NOW_MS})
        states[0] = READ
        site.feed.tell_broker(True, NOW_MS + 1)
        back = await page.event()
        assert ("id" in back, json.loads(back["data"])) == (False, {"answers": True, "since_ms": NOW_MS + 1})

    listened(tmp_path, site_with(Remembered(), reading=lambda: states[0]), asks)


def test_the_store_s_own_events_go_through(tmp_path: Path) -> None:
    async def asks(site: Site, port: int) -> None:
        page = await Stream.open(port)
        at = int((await page.event("hello"))["id"] or 0)
        site.feed.publish(site.store.take([importance("bank", 1)]))
        event = await page.event()
        assert (event["event"], int(event["id"])) == ("importance", at + 1)
        assert json.loads(event["data"])["model_id"] == "bank"
        site.feed.publish(site.store.take([importance("bank", 2)]))
        back = await Stream.open(port, **{"last-event-id": event["id"]})
        await back.event("hello")
        assert json.loads((await back.event())["data"])["observation"] == 200

    with Store() as store:
        store.take([importance("first", 1)])
        listened(tmp_path, site_with(store), asks)


def test_streams_end_with_the_server(tmp_path: Path) -> None:
    async def run() -> None:
        site = site_with(Remembered())
        async with asyncio.timeout(60), served(site, page_of(tmp_path)) as (service, port):
            pages = [await Stream.open(port) for _ in range(5)]
            for page in pages:
                await page.event("hello")
            site.feed.end()
            service.end()
            for page in pages:
                with pytest.raises(EOFError):
                    await page.event()

    asyncio.run(run())
