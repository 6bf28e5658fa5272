"""The shipped rules in a Prometheus that scrapes the web servers of two workers: an incident, and a move."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.monitoring import Prometheus, every_second
from support.waiting import wait_for

from attributary_agents.config.settings import Config
from attributary_agents.monitoring.web import WebServer
from attributary_agents.worker.records import Outgoing
from attributary_agents.worker.view import WorkerView
from tests.agents.monitoring.views import config_of, filled

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/rules/attributary.rules.yml"
pytestmark = [pytest.mark.long, pytest.mark.prometheus]


@pytest.fixture
def config() -> Config:
    made = config_of("m", explain={"budget": 0.5})
    return made.model_copy(update={"web": made.web.model_copy(update={"port": 0})})


ELSEWHERE = ("labels_", "fidelity", "mismatch", "_expired", "_unlabelled", "source_lag", "endpoint_")
"""Parts of the names of series of what is not configured here: late labels, mirrors, endpoints and sources."""


@pytest.fixture
def views(config: Config) -> tuple[WorkerView, WorkerView]:
    """A worker whose model has not changed yet, and one without partitions."""
    view = filled(config, {0: ["m"]}, n=60, flip_at=1000)
    assert view.partitions[0].partition.models["m"].counts.incidents.total() == 0
    return view, WorkerView({})


@pytest.fixture
def prometheus(tmp_path: Path, config: Config, views: tuple[WorkerView, WorkerView]) -> Iterator[Prometheus]:
    """Scrapes the two workers each second."""
    with ExitStack() as stack:
        targets = []
        for view in views:
            web = WebServer(config, view)
            web.start()
            stack.callback(web.stop)
            targets.append(f"127.0.0.1:{web.port}")
        yield stack.enter_context(Prometheus(tmp_path, every_second(RULES, *targets)))


def test_an_incident_is_told_once_and_a_move_changes_nothing(
    config: Config, prometheus: Prometheus, views: tuple[WorkerView, WorkerView]
) -> None:
    here, there = views
    names = set(re.findall(r"record: (\S+)", RULES.read_text()))
    # Not before there is an incident.
    conditional = {f"model:attributary_incident_{name}:max" for name in ("open", "info", "since_timestamp_seconds")}
    conditional |= {name for name in names if any(one in name for one in ELSEWHERE)}
    assert len(names - conditional) > 10

    def there_are() -> bool:
        found = {series.labels["__name__"] for series in prometheus.query('{__name__=~".+:.+"}')}
        print("absent:", names - found)
        return names - conditional <= found

    wait_for("the recorded series", there_are, 60)
    assert {rule["health"] for rule in prometheus.rules()} == {"ok"}
    assert fired(prometheus) == []

    told: list[Outgoing] = []
    sent = filled(config, {0: ["m"]}, n=100, sent=told)  # what the model has been through since
    with here.lock:
        here.partitions[0] = sent.partitions[0]
    last = [json.loads(one.value or b"{}") for one in told if one.topic == config.kafka.topics.incidents][-1]
    assert last["life"] == "confirmed"

    def one_alert() -> list[dict[str, Any]]:
        return [alert for alert in fired(prometheus) if alert["labels"]["alertname"] == "AttributaryModelIncident"]

    (alert,) = wait_for("the alert", one_alert, 60)
    assert (alert["labels"]["model_id"], alert["labels"]["severity"]) == ("m", last["severity"])
    assert alert["annotations"]["summary"] == f"{last['headline']}. {last['action']}"
    assert last["sentence"].startswith(alert["annotations"]["summary"])
    assert alert["annotations"]["description"].startswith("Began ")
    assert alert["annotations"]["page_url"] == f"http://localhost:6080/incidents/{quote(last['id'], safe='')}"

    open_ones = "count(attributary_incident_open)"
    with there.lock:
        there.partitions[0] = here.partitions[0]  # for a moment both show it
    wait_for("both", lambda: value(prometheus, open_ones) == 2, 60)
    assert value(prometheus, "sum(model:attributary_incident_open:max)") == 1
    with here.lock:
        del here.partitions[0]
    wait_for("the move", lambda: value(prometheus, open_ones) == 1, 60)
    wait_for("the recorded series again", there_are, 60)
    (still,) = one_alert()
    assert (still["labels"], still["activeAt"]) == (alert["labels"], alert["activeAt"])
    later = filled(config, {0: ["m"]}, n=200)  # the model has adapted
    with there.lock:
        there.partitions[0] = later.partitions[0]
    wait_for("the end", lambda: not one_alert(), 60)
    assert {rule["health"] for rule in prometheus.rules()} == {"ok"}


def fired(prometheus: Prometheus) -> list[dict[str, Any]]:
    return [alert for alert in prometheus.alerts() if alert["state"] == "firing"]


def value(prometheus: Prometheus, expression: str) -> float | None:
    found = prometheus.query(expression)
    return found[0].value if found else None
