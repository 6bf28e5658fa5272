"""`attributary serve` tells webhooks: its store may go, its counts are shown, and it ends in time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import metrics_at

from attributary_agents.demo.brokers import Broker
from attributary_agents.demo.local_broker import free_port
from tests.agents.serve.webhooks.made import incident
from tests.integration.configs import created
from tests.integration.serve.receiver import Receiver
from tests.integration.serve.telling_server import TellingServer

pytestmark = [pytest.mark.long, pytest.mark.kafka]


def test_a_server_tells_each_event_once_also_when_its_store_is_deleted(kafka_broker: Broker, tmp_path: Path) -> None:
    with Receiver() as receiver:
        store, port = tmp_path / "page.sqlite", free_port()
        secret_url = f"{receiver.url}hooks/hidden-part"
        hooks = {"ops": {"url": secret_url}}
        raw, config = created(kafka_broker, partitions=2, serve={"webhooks": hooks, "store": str(store)})
        path = tmp_path / "attributary.yaml"
        path.write_text(yaml.safe_dump(raw))
        topic = config.kafka.topics.incidents

        def write(event_id: str) -> None:
            value = json.dumps(incident(event_id, "credit")).encode()
            produce(kafka_broker.bootstrap, topic, [(b"credit", value, [("ce_id", event_id.encode())])])

        write("past")
        server = TellingServer(path, port)
        try:
            n = 0

            def is_told() -> bool:  # a new group begins at the end: what comes before it has begun is not told
                nonlocal n
                write(f"probe-{n}")
                n += 1
                return bool(receiver.taken)

            wait_for("the first event", is_told)
            write("a")
            wait_for("the event", lambda: "a" in receiver.taken)
            (count,) = server.health()["webhooks"]
            assert (count["sent"], count["failed"]) == (len(receiver.taken), 0)
            samples = metrics_at(port)["attributary_serve_webhooks_total"]
            assert samples[(("name", "ops"), ("outcome", "sent"))] == len(receiver.taken)
        finally:
            assert server.stop() == 0
        for file in tmp_path.glob("page.sqlite*"):
            file.unlink()
        server = TellingServer(path, port)
        try:
            wait_for("all is read again", lambda: server.health().get("is_reading_past") is False)
            write("b")
            wait_for("the next event", lambda: "b" in receiver.taken)
        finally:
            assert server.stop() == 0
        assert len(set(receiver.came)) == len(receiver.came), "each once"
        assert "past" not in receiver.came
        log = path.with_suffix(".log").read_text()
        assert "hidden-part" not in log
        assert "Traceback" not in log
