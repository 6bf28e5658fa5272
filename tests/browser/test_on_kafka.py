"""The page of a real server on Apache Kafka: it shows what the topics have, at once, and heals by itself."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
import pytest
import yaml
from playwright.sync_api import Browser, Page, expect
from support.kafka import produce, read_all
from support.waiting import wait_for

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import BrokerMissingError, KafkaBroker
from attributary_agents.demo.local_broker import free_port
from attributary_agents.kafka.readers import topic_reader
from attributary_agents.worker.records import Outgoing
from attributary_explainers.wording import show_estimate
from tests.agents.monitoring.views import config_of, filled
from tests.integration.configs import created
from tests.integration.serve.process import ServeProcess
from tests.integration.test_demo import Demo

pytestmark = [pytest.mark.long, pytest.mark.browser, pytest.mark.kafka]

T = TypeVar("T")


_apart = ThreadPoolExecutor(1)


def apart(work: Callable[[], T]) -> T:
    """Do something in a thread that stays, for a child ends with the thread that started it.

    In this one Playwright has an event loop that runs.
    """
    return _apart.submit(work).result()


class Heard:
    """Follows the topic of incidents in a thread, inside the block: notes when each headline came."""

    def __init__(self, bootstrap: str) -> None:
        self.at: dict[str, float] = {}
        self._config = parse_config(
            {"kafka": {"brokers": [bootstrap]}, "models": {"any": {"factory": "any:one"}}}
        ).kafka
        self._loop = asyncio.new_event_loop()
        self._following = self._loop.create_task(self._follow())
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._following.cancel)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._following)

    async def _follow(self) -> None:
        async with topic_reader(self._config, self._config.topics.incidents) as reader:
            async for batch in reader.to_come():
                for record in batch:
                    self.at.setdefault(json.loads(record.value)["headline"], time.time())


def legend(page: Page) -> dict[str, list[str]]:
    """Return the rows of the table beside the chart of importances, by feature."""
    rows = page.locator("table.legend tbody tr").all()
    found = {}
    for row in rows:
        name = row.locator("button.name").get_attribute("title")
        found[name] = [cell.inner_text() for cell in row.locator("td").all()]
    return found


def plain(text: str) -> str:
    """Return a text of the page as the topic has it: without the spaces and the arrow of a typesetter."""
    return text.replace("\u202f", " ").replace("\xa0", " ").replace("→", "->")


def values(event: dict[str, Any]) -> dict[str, str]:
    """Return what the page has to show as the importance of each feature of an event."""
    return {
        name: show_estimate(feature["importance"], feature["half_width"]) for name, feature in event["features"].items()
    }


def shown_values(page: Page) -> dict[str, str]:
    return {name: plain(cells[1]) for name, cells in legend(page).items()}


def test_during_a_demo_an_incident_shows_at_once_and_at_its_end_page_and_api_have_what_the_topics_have(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = Demo(tmp_path, "--plain", "--broker", "kafka", limit="6000")
    try:
        demo.wait_until_it_says("page: ")
        address = re.search(r"page: (http://\S+?)/?\s", demo.text)[1]  # type: ignore[index]
        wait_for("the page answers", lambda: _answers(address), 120)
        page = browser.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(address)
        page.evaluate("window.isTheSame = true")
        demo.wait_until_it_says("broker at ")
        bootstrap = re.search(r"broker at (\S+?);", demo.text)[1]  # type: ignore[index]
        seen: dict[str, float] = {}
        with Heard(bootstrap) as heard:
            while "Ctrl-C ends the demo" not in demo.text and demo.process.poll() is None:
                text = plain(page.evaluate("document.body.textContent"))
                for headline in heard.at.keys() - seen.keys():
                    if headline in text:
                        seen[headline] = time.time()
                page.wait_for_timeout(50)
        assert demo.process.poll() is None, demo.text
        assert heard.at, "nothing has happened"
        assert seen.keys() == heard.at.keys()
        assert page.evaluate("window.isTheSame"), "it has been loaded again"
        late = {headline: seen[headline] - at for headline, at in heard.at.items()}
        with capsys.disabled():
            print(f"\nshown after its record was read by another consumer: {max(late.values()):.2f} s at most")

        prefix = "attributary"
        last = json.loads(apart(lambda: read_all(bootstrap, f"{prefix}.importances.v1"))[-1].value)
        model_id = last["model_id"]
        answer = httpx.get(
            f"{address}/api/v1/models/{quote(model_id, safe='')}/importances", params={"explainer": "pfi"}
        )
        series = answer.raise_for_status().json()
        assert series["observation"][-1] == last["observation"]
        assert {one["feature"]: one["latest"] for one in series["features"]} == {
            name: pytest.approx(feature["importance"], rel=1e-6) for name, feature in last["features"].items()
        }
        page.goto(f"{address}/models/{quote(model_id, safe='')}")
        expect(page.locator("table.legend tbody tr")).to_have_count(len(last["features"]))
        assert shown_values(page) == values(last)
        incidents = httpx.get(f"{address}/api/v1/incidents").raise_for_status().json()["incidents"]
        assert {one["headline"] for one in incidents} <= heard.at.keys()
        assert problems == []
        page.close()
    finally:
        demo.process.terminate()
        with suppress(Exception):
            demo.process.wait(60)
        demo.process.kill()


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/livez").status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that may be stopped."""
    broker = KafkaBroker(tmp_path_factory.mktemp("broker"))
    try:
        broker.start()
    except BrokerMissingError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    with broker:
        yield broker


def test_a_server_that_is_killed_and_brokers_that_are_away_are_told_and_heal_without_a_reload(
    own_broker: KafkaBroker, browser: Browser, tmp_path: Path
) -> None:
    raw, config = apart(lambda: created(own_broker, models=("m",)))
    sent: list[Outgoing] = []
    apart(lambda: filled(config_of("m", publish={"every": 50}), {0: ["m"]}, n=400, sent=sent))
    events = [one for one in sent if one.topic.endswith("importances.v1") and b'"pfi"' in (one.value or b"")]
    topic = config.kafka.topics.importances

    def write(some: list[Outgoing]) -> dict[str, str]:
        now = round(time.time() * 1000)
        records = [(one.key, one.value, _headers(one, now + n)) for n, one in enumerate(some)]
        apart(lambda: produce(own_broker.bootstrap, topic, records))
        return values(json.loads(some[-1].value or b""))

    port = free_port()
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    server = ServeProcess(path, tmp_path, port)
    expected = write(events[:3])
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(f"{error} {error.stack}"))

    def shows(wanted: dict[str, str]) -> None:
        wait_for("the latest numbers", lambda: _drawn(page) == wanted, 120, every_s=0.2)
        assert page.evaluate("window.isTheSame"), "it has been loaded again"

    try:
        server.wait_until_it_answers()
        page.goto(f"{server.address}/models/m")
        page.evaluate("window.isTheSame = true")
        shows(expected)
        expect(page.locator("body > header")).to_contain_text("live")

        server.kill()
        expect(page.locator("body > header")).to_contain_text("reconnecting", timeout=30_000)
        assert _drawn(page) == expected, "what was read stays"
        expected = write(events[3:5])
        server = ServeProcess(path, tmp_path, port)
        shows(expected)
        expect(page.locator("body > header")).to_contain_text("live", timeout=30_000)

        apart(own_broker.stop)
        strip = page.get_by_text("Kafka has not answered since")
        expect(strip).to_be_visible(timeout=60_000)
        assert _drawn(page) == expected
        apart(own_broker.start)
        expect(strip).to_have_count(0, timeout=60_000)
        shows(write(events[5:7]))
        assert errors == []
    finally:
        page.close()
        server.kill()


def _drawn(page: Page) -> dict[str, str]:
    page.wait_for_timeout(50)
    return shown_values(page)


def _headers(one: Outgoing, time_ms: int) -> list[tuple[str, bytes]]:
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_ms / 1000)) + f".{time_ms % 1000:03d}Z"
    return [(name, at.encode() if name == "ce_time" else value or b"") for name, value in one.headers]
