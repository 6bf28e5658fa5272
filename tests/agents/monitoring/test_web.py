"""/metrics, /livez and /readyz over HTTP."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import PreflightError
from attributary_agents.kafka.brokers import BrokerWatch
from attributary_agents.monitoring.metrics import CATALOGUE
from attributary_agents.monitoring.web import WebServer
from attributary_agents.worker.activity import Step
from attributary_agents.worker.view import WorkerView
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
        assert get(web, path) == (404, "/metrics, /livez or /readyz\n")


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
