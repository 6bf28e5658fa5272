"""/metrics, /livez, /readyz and /changes over HTTP, exemplars included."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import PreflightError
from attributary_agents.kafka.brokers.watch import BrokerWatch
from attributary_agents.monitoring.catalogue import CATALOGUE
from attributary_agents.monitoring.web import WebServer
from attributary_agents.worker.activity import Step
from attributary_agents.worker.records import Outgoing
from attributary_agents.worker.view import WorkerView
from attributary_explainers.monitor.telling.changes import exemplar
from tests.agents.monitoring.views import config_of, filled
from tests.agents.stand_ins import FACTORY


def server(view: WorkerView, **web: object) -> WebServer:
    return WebServer(parse_config({"models": {"m": {"factory": FACTORY}}, "web": {"port": 0, **web}}), view)


@contextmanager
def serving(view: WorkerView, **web: object) -> Iterator[WebServer]:
    started = server(view, **web)
    started.start()
    try:
        yield started
    finally:
        started.stop()


def get(web: WebServer, path: str, accept: str = "*/*") -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", web.port, timeout=10)
    try:
        connection.request("GET", path, headers={"Accept": accept})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_metrics_are_those_of_the_worker_and_of_the_process() -> None:
    with serving(WorkerView({})) as web:
        status, text = get(web, "/metrics")
    families = {family.name for family in text_string_to_metric_families(text)}
    assert status == 200
    assert {f"attributary_{name}".removesuffix("_total") for name in CATALOGUE} <= families
    assert {"process_cpu_seconds", "python_info"} <= families


@pytest.mark.parametrize(("patience_s", "status", "said"), [(1e9, 200, "alive\n"), (1e-9, 503, "stuck")])
def test_alive_unless_the_loop_has_been_silent_for_too_long(patience_s: float, status: int, said: str) -> None:
    view = WorkerView({})
    with serving(view, stuck_after_s=patience_s) as web:
        assert get(web, "/livez") == (200, "alive\n"), "no loop runs yet: a start may wait for its brokers"
        view.activity.beat()
        found, text = get(web, "/livez")
    assert (found, text[: len(said)]) == (status, said)


def test_a_worker_whose_brokers_are_away_is_alive_and_not_ready() -> None:
    now = [0.0]
    view = WorkerView({}, brokers=BrokerWatch(lambda: now[0]))
    view.activity.ready = True
    with serving(view) as web, view.activity.doing(Step("checkpoint", ("t", 0), 5)):
        view.brokers.fail("kafka:9092", "refused")
        now[0] = 43.0
        assert get(web, "/readyz") == (503, "not ready: no broker answers (kafka:9092) for 43 s\n")
        assert get(web, "/livez") == (200, "alive\n")
        view.brokers.answer("kafka:9092")
        assert get(web, "/readyz") == (200, "ready\n")


def test_a_worker_whose_writes_are_not_acknowledged_is_alive_and_not_ready() -> None:
    now = [100.0]
    view = WorkerView({}, brokers=BrokerWatch(lambda: now[0]))
    view.activity.ready = True
    with serving(view) as web:
        view.brokers.answer("kafka:9092")
        view.brokers.writes.look({"credit.state[0]": 71.0})
        assert get(web, "/readyz") == (200, "ready\n")
        now[0] = 116.0
        status, text = get(web, "/readyz")
        assert status == 503
        assert text.startswith(
            "not ready: brokers have not acknowledged writes for 45 s (credit.state[0]): fewer replicas"
        )
        assert get(web, "/livez") == (200, "alive\n")
        view.brokers.writes.look({})
        assert get(web, "/readyz") == (200, "ready\n")


def test_ready_once_the_worker_says_so() -> None:
    view = WorkerView({})
    with serving(view) as web:
        status, text = get(web, "/readyz")
        assert (status, text.split(":")[0]) == (503, "not ready")
        assert get(web, "/livez") == (200, "alive\n")
        view.activity.ready = True
        assert get(web, "/readyz") == (200, "ready\n")
        view.activity.ready = False
        assert get(web, "/readyz")[0] == 503


def test_health_is_answered_while_a_step_holds_the_lock() -> None:
    view = WorkerView({})
    with serving(view, stuck_after_s=1e9) as web, view.lock:
        assert get(web, "/livez")[0] == 200
        assert get(web, "/readyz")[0] == 503
        assert get(web, "/metrics")[0] == 200


@pytest.mark.parametrize("path", ["/", "/metric", "/metrics/more", "/favicon.ico"])
def test_other_paths_are_not_found_and_say_what_there_is(path: str) -> None:
    with serving(WorkerView({})) as web:
        assert get(web, path) == (404, "/metrics, /livez, /readyz or /changes\n")


def test_a_port_in_use_is_told_before_the_start() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PreflightError, match=f"127.0.0.1:{port} .*set web.port"):
            server(WorkerView({}), port=port).start()


def test_an_address_that_is_not_ours_is_told() -> None:
    with pytest.raises(PreflightError, match=r"192\.0\.2\.1"):
        server(WorkerView({}), host="192.0.2.1").start()


def test_the_port_is_free_again_after_a_stop() -> None:
    with serving(WorkerView({})) as web:
        port = web.port
    with serving(WorkerView({}), port=port) as again:
        assert again.port == port
    again.stop()  # twice does no harm


def test_the_port_is_not_known_before_the_start() -> None:
    with pytest.raises(RuntimeError, match="not been started"):
        _ = server(WorkerView({})).port


@pytest.fixture(scope="module")
def changed() -> tuple[WorkerView, dict[str, Any]]:
    """A worker whose model has changed, and the last explanation of it."""
    config = config_of("m")
    sent: list[Outgoing] = []
    view = filled(config, {0: ["m"]}, n=200, flip_at=100, sent=sent)
    event = next(one for one in reversed(sent) if json.loads(one.value or b"{}").get("event") == "explanation")
    headers = {name: value.decode() for name, value in event.headers if value is not None}
    assert event.value is not None
    return view, {**json.loads(event.value), "id": headers["ce_id"], "time": headers["ce_time"]}


def test_the_last_change_of_a_model_is_that_of_its_event(changed: tuple[WorkerView, dict[str, Any]]) -> None:
    view, event = changed
    with serving(view) as web:
        status, text = get(web, "/changes/m")
        told = json.loads(text)
        assert status == 200
        assert {name: event[name] for name in told if name != "timestamp_ms"} == {
            name: value for name, value in told.items() if name != "timestamp_ms"
        }
        assert told["sentence"].startswith("m changed at")
        assert json.loads(get(web, "/changes")[1]) == {"m": told}
        with view.lock:
            assert get(web, "/changes/m")[0] == 503


def test_a_model_without_a_change_here_says_where_to_look() -> None:
    with serving(WorkerView({})) as web:
        assert get(web, "/changes") == (200, "{}")
        status, text = get(web, "/changes/m")
        assert status == 404
        assert "attributary.changes.v1" in text
        assert "attributary changes m" in text
        status, text = get(web, "/changes/%C3%BC%0A")
        assert status == 404
        assert "no model 'ü\\n' is configured, but m" in text


def test_an_exemplar_leads_from_the_count_of_changes_to_the_event(changed: tuple[WorkerView, dict[str, Any]]) -> None:
    view, event = changed
    with serving(view) as web:
        status, text = get(web, "/metrics", "application/openmetrics-text; version=1.0.0")
        plain = get(web, "/metrics")[1]
    assert status == 200
    (family,) = [f for f in openmetrics(text) if f.name == "attributary_model_changes"]
    found = {(sample.labels["route"], sample.labels["verdict"]): sample.exemplar for sample in family.samples}
    own = found.pop((event["route"], event["verdict"]))
    assert own.labels == {"event_id": event["id"]}
    assert float(own.timestamp) == 1_700_000_000.5
    assert set(found.values()) == {None}
    assert event["id"] not in plain, "only OpenMetrics has exemplars"


def test_the_exemplar_of_a_long_id_keeps_the_end_which_is_the_place(changed: tuple[WorkerView, dict[str, Any]]) -> None:
    view, event = changed
    state = view.partitions[0].partition.models["m"]
    state = replace(state, last_change={**(state.last_change or {}), "id": "ü" * 300 + ":0:17:1"})
    told = exemplar(state, event["route"], event["verdict"])
    assert told is not None
    assert sum(len(name) + len(value) for name, value in told.labels.items()) == 128
    assert told.labels["event_id"].endswith("ü:0:17:1")
    assert exemplar(state, event["route"], "degraded") is None
    assert exemplar(replace(state, last_change=None), event["route"], event["verdict"]) is None
    last = {**(state.last_change or {}), "route": "version", "verdict": None}
    assert exemplar(replace(state, last_change=last), "version", "none") is not None
