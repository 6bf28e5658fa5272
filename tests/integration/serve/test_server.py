"""`attributary serve` as a process: it says what the topics have, goes on after restarts, and ends when it is told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from support.kafka import produce, read_all
from support.waiting import wait_for

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.demo.local_broker import free_port
from attributary_agents.kafka.topics import create_topics
from tests.agents.serve.http.sites import Stream, importance
from tests.integration.configs import created, logistic_config

pytestmark = [pytest.mark.long, pytest.mark.kafka]


class Process:
    """`attributary serve`, its address and what it printed."""

    def __init__(self, folder: Path, raw: dict[str, Any], *options: str, **environment: str) -> None:
        path, self.log = folder / "attributary.yaml", folder / "serve.log"
        path.write_text(yaml.safe_dump(raw))
        argv = [sys.executable, "-m", "attributary_agents.cli", "serve", "--config", str(path)]
        argv += ["--store", str(folder / "page.sqlite"), *options]
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **environment}
            )
        assert self.child.stdout is not None
        self.first_line = self.child.stdout.readline()
        self.port = int(self.first_line.rpartition(":")[2].split("/")[0]) if self.first_line else 0

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", headers=headers, timeout=30)

    def json(self, path: str) -> Any:
        return self.get(f"/api/v1{path}").raise_for_status().json()

    def end(self, *signals: int) -> int:
        for number in signals or (signal.SIGTERM,):
            self.child.send_signal(number)
        self.child.communicate(timeout=60)
        return self.child.returncode

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.child.poll() is None:
            self.child.kill()
            self.child.communicate()


def write(broker: Broker, topic: str, *numbers: int, model_id: str = "credit") -> None:
    """Write importance events as a worker does."""
    records = []
    for one in (importance(model_id, number) for number in numbers):
        records.append((model_id.encode(), json.dumps(one.event).encode(), [("ce_id", one.id.encode())]))
    produce(broker.bootstrap, topic, records)


async def to_the_end(page: Stream) -> None:
    """Read a stream until it ends: that brokers are away may be told once more, as soon as that is tried."""
    while True:
        await page.event()


def listened(work: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(120):
            await work()

    asyncio.run(run())


async def written(*what: Any, **more: Any) -> None:
    await asyncio.to_thread(write, *what, **more)


def test_what_the_topic_has_is_answered_and_what_comes_is_told(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(kafka_broker, partitions=2)
    topic = config.kafka.topics.importances
    write(kafka_broker, topic, *range(1, 11))
    with Process(tmp_path, raw, "--port", "0") as server:
        assert server.first_line == f"the page is at http://127.0.0.1:{server.port}/\n"
        assert server.get("/livez").text == "alive\n"
        wait_for("all is read", lambda: server.get("/readyz").status_code == 200)

        async def work() -> None:
            page = await Stream.open(server.port)
            await page.event("hello")
            await written(kafka_broker, topic, 11)
            event = await page.event("importance")
            assert json.loads(event["data"])["observation"] == 1100
            page.close()
            await written(kafka_broker, topic, 12, 13)
            back = await Stream.open(server.port, **{"last-event-id": event["id"]})
            assert [json.loads((await back.event("importance"))["data"])["observation"] for _ in range(2)] == [
                1200,
                1300,
            ]

        listened(work)
        on_topic = [json.loads(record.value) for record in read_all(kafka_broker.bootstrap, topic)]
        series = server.json("/models/credit/importances?by=observation&points=100")
        assert series["observation"] == [event["observation"] for event in on_topic]
        for feature in series["features"]:
            told = [event["features"][feature["feature"]]["importance"] for event in on_topic]
            assert feature["importance"] == pytest.approx(told, rel=1e-6)
        assert server.end() == 0
    assert "Traceback" not in server.log.read_text()


def test_a_page_heals_over_a_restart_of_the_server_and_an_outage_of_the_broker(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    raw, config = created(kafka_broker, partitions=2)
    topic, port = config.kafka.topics.importances, str(free_port())
    with Process(tmp_path, raw, "--port", port) as server:
        wait_for("all is read", lambda: server.get("/readyz").status_code == 200)
        last: list[dict[str, str]] = []

        async def first() -> None:
            page = await Stream.open(server.port)
            await written(kafka_broker, topic, 1)
            last.append(await page.event("importance"))

        listened(first)
        assert server.end() == 0
    write(kafka_broker, topic, 2, 3)
    with Process(tmp_path, raw, "--port", port) as server:
        wait_for("all is read", lambda: server.get("/readyz").status_code == 200)

        async def outage() -> None:
            back = await Stream.open(server.port, **{"last-event-id": last[0]["id"]})
            seen = []
            while len(seen) < 2:
                event = await back.event("importance", "reload")
                assert event["event"] == "importance", "the store has what was missed"
                seen.append(json.loads(event["data"])["observation"])
            assert seen == [200, 300]
            kafka_broker.stop()
            try:
                assert json.loads((await back.event("broker"))["data"])["answers"] is False
                assert server.json("/health")["broker"] == "away"
                assert server.json("/models/credit")["row"]["model_id"] == "credit", "what was read is shown"
                assert server.get("/readyz").status_code == 200
            finally:
                kafka_broker.start()  # by this thread: with the one that starts it, it ends
            assert json.loads((await back.event("broker"))["data"])["answers"] is True
            await written(kafka_broker, topic, 4)
            assert json.loads((await back.event("importance"))["data"])["observation"] == 400

        listened(outage)
        assert server.end() == 0
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_exit_code_0_although_streams_are_open_and_brokers_are_away(tmp_path: Path, number: int) -> None:
    raw = logistic_config(f"127.0.0.1:{free_port()}")
    with Process(tmp_path, raw, "--port", "0") as server:

        async def work() -> None:
            pages = [await Stream.open(server.port) for _ in range(3)]
            for page in pages:
                assert json.loads((await page.event("broker"))["data"])["answers"] is False
            code = await asyncio.to_thread(server.end, number)
            assert code == 0
            for page in pages:
                with pytest.raises(EOFError):
                    await to_the_end(page)

        listened(work)
    assert "Traceback" not in server.log.read_text()


def test_topics_that_are_not_there_are_named_and_waited_for(kafka_broker: Broker, tmp_path: Path) -> None:
    raw = logistic_config(kafka_broker.bootstrap)
    config = parse_config(raw)
    topic = config.kafka.topics.importances
    with Process(tmp_path, raw, "--port", "0") as server:
        wait_for("the topic is missed", lambda: f"no topic {topic}" in server.get("/readyz").text)
        assert server.get("/").status_code == 200
        create_topics(config)
        write(kafka_broker, topic, 1)
        wait_for("the topic is found and read", lambda: server.get("/api/v1/models/credit/importances").is_success)
        wait_for("all is read", lambda: server.get("/readyz").status_code == 200)
        assert server.end() == 0
    (told,) = [line for line in server.log.read_text().splitlines() if f"no topic {topic}" in line]
    assert "`attributary topics create` makes it" in told
    assert "Traceback" not in server.log.read_text()


def test_two_servers_do_not_share_a_store(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, _ = created(kafka_broker)
    with Process(tmp_path, raw, "--port", "0") as first, Process(tmp_path, raw, "--port", "0") as second:
        assert second.child.wait(timeout=60) == 2
        assert second.first_line == ""
        assert first.get("/livez").status_code == 200
        assert first.end() == 0
    (told,) = [line for line in first.log.read_text().splitlines() if line.startswith("attributary: ")]
    assert "page.sqlite" in told


def test_a_token_is_asked_for_over_the_wire(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, _ = created(kafka_broker, serve={"token_env": "PAGE_TOKEN"})
    token = "0123456789abcdef"
    with Process(tmp_path, raw, "--port", "0", "--host", "0.0.0.0", PAGE_TOKEN=token) as server:
        assert server.first_line == f"the page is at http://localhost:{server.port}/, with the token in PAGE_TOKEN\n"
        assert server.get("/api/v1/health").status_code == 401
        assert server.get("/api/v1/health", authorization=f"Bearer {token}").status_code == 200
        assert server.end() == 0
    assert token not in server.log.read_text()


def test_an_address_that_others_reach_without_a_token_is_warned_of(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, _ = created(kafka_broker)
    with Process(tmp_path, raw, "--port", "0", "--host", "0.0.0.0") as server:
        assert server.end() == 0
    warned = [line for line in server.log.read_text().splitlines() if "WARNING" in line and "serve.token_env" in line]
    assert len(warned) == 1
