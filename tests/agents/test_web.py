"""/metrics, /livez and /readyz over HTTP."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.config import parse_config
from attributary_agents.errors import PreflightError
from attributary_agents.metrics import CATALOGUE
from attributary_agents.metrics_view import WorkerView
from attributary_agents.web import WebServer
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


def get(web: WebServer, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", web.port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_metrics_are_those_of_the_worker_and_of_the_process() -> None:
    with serving(WorkerView()) as web:
        status, text = get(web, "/metrics")
    families = {family.name for family in text_string_to_metric_families(text)}
    assert status == 200
    assert {f"attributary_{name}".removesuffix("_total") for name in CATALOGUE} <= families
    assert {"process_cpu_seconds", "python_info"} <= families


def test_alive_while_the_loop_gives_signs_of_life() -> None:
    with serving(WorkerView(), stuck_after_s=1e9) as web:
        assert get(web, "/livez") == (200, "alive\n")


def test_not_alive_when_it_has_been_silent_for_too_long() -> None:
    with serving(WorkerView(), stuck_after_s=1e-9) as web:
        status, text = get(web, "/livez")
    assert status == 503
    assert text.startswith("stuck")


def test_ready_once_the_worker_says_so() -> None:
    view = WorkerView()
    with serving(view) as web:
        status, text = get(web, "/readyz")
        assert (status, text.split(":")[0]) == (503, "not ready")
        view.ready = True
        assert get(web, "/readyz") == (200, "ready\n")
        view.ready = False
        assert get(web, "/readyz")[0] == 503


def test_health_is_answered_while_a_step_holds_the_lock() -> None:
    view = WorkerView()
    with serving(view, stuck_after_s=1e9) as web, view.lock:
        assert get(web, "/livez")[0] == 200
        assert get(web, "/readyz")[0] == 503
        assert get(web, "/metrics")[0] == 200


@pytest.mark.parametrize("path", ["/", "/metric", "/metrics/more", "/favicon.ico"])
def test_other_paths_are_not_found_and_say_what_there_is(path: str) -> None:
    with serving(WorkerView()) as web:
        assert get(web, path) == (404, "/metrics, /livez or /readyz\n")


def test_a_port_in_use_is_told_before_the_start() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PreflightError, match=f"127.0.0.1:{port} .*set web.port"):
            server(WorkerView(), port=port).start()


def test_an_address_that_is_not_ours_is_told() -> None:
    with pytest.raises(PreflightError, match=r"192\.0\.2\.1"):
        server(WorkerView(), host="192.0.2.1").start()


def test_the_port_is_free_again_after_a_stop() -> None:
    with serving(WorkerView()) as web:
        port = web.port
    with serving(WorkerView(), port=port) as again:
        assert again.port == port
    again.stop()  # twice does no harm


def test_the_port_is_not_known_before_the_start() -> None:
    with pytest.raises(RuntimeError, match="not been started"):
        _ = server(WorkerView()).port
