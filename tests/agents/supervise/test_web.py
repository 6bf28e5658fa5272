"""The pages of several workers at one address, where some are slow, have ended, or do not answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import Request
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.monitoring.metrics import OF_MACHINE
from attributary_agents.monitoring.web import HttpThread, Page, WebServer, listen_at_path, text_page
from attributary_agents.supervise import Workers, WorkersWeb
from attributary_agents.supervise import web as pages
from tests.agents.monitoring.views import config_of, filled

Pages = dict[str, Page]


class Machine:
    """Workers that answer with given pages, at sockets of a folder, and the pages of all."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.sockets: list[Path] = []
        self.now = 0.0

    def path(self) -> Path:
        self.sockets.append(self._folder / str(len(self.sockets)))
        return self.sockets[-1]

    def answering(self, answers: Pages) -> None:
        async def answer(request: Request) -> Page:
            return answers[request.path]

        server = HttpThread(listen_at_path(self.path()), answer)
        self._stack.callback(server.stop)

    def gone(self) -> None:
        self.path()

    def hanging(self, again: int | None = None) -> None:
        """One that is there and never answers; `again` in the place of another one."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path() if again is None else self.sockets[again]))
        listener.listen()
        self._stack.callback(listener.close)

    def web(self, stuck_after_s: float = 120.0) -> WorkersWeb:
        workers = Workers(self.sockets, lambda: self.now)
        return WorkersWeb(workers, lambda number: 10 + number, stuck_after_s)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    for name in ("METRICS_WITHIN_S", "HEALTH_WITHIN_S"):
        monkeypatch.setattr(pages, name, 0.5)
    # A socket's path is at most 100 characters long, which pytest's own folders are not.
    with TemporaryDirectory() as folder, ExitStack() as stack:
        yield Machine(Path(folder), stack)


def ask(web: WorkersWeb, path: str, **headers: str) -> tuple[int, str]:
    response = asyncio.run(web.answer(make_mocked_request("GET", path, headers=headers)))
    return response.status.value, response.body.decode()


def exported(text: str) -> Page:
    return Page(HTTPStatus.OK, text.encode(), {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def up(text: str) -> dict[str, float]:
    return {
        one.labels["worker"]: one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name == "attributary_worker_up"
    }


def test_a_scrape_of_workers_that_answer_end_and_hang_is_answered_with_what_there_is(machine: Machine) -> None:
    machine.answering({"/metrics": exported("# HELP x y\n# TYPE x gauge\nx 1.0\n")})
    machine.gone()
    machine.hanging()
    machine.answering({"/metrics": text_page(HTTPStatus.INTERNAL_SERVER_ERROR, "no")})
    status, text = ask(machine.web(), "/metrics")
    assert status == 200
    assert 'x{worker="0"} 1.0' in text.splitlines()
    assert up(text) == {"0": 1.0, "1": 0.0, "2": 0.0, "3": 0.0}
    assert 'attributary_worker_restarts_total{worker="2"} 12.0' in text.splitlines()


def test_metrics_of_the_machine_are_those_of_the_catalogue(machine: Machine) -> None:
    machine.gone()
    families = text_string_to_metric_families(ask(machine.web(), "/metrics")[1])
    found = {family.name: family for family in families}
    assert set(found) == {f"attributary_{name}".removesuffix("_total") for name in OF_MACHINE}
    for name, (text, labels) in OF_MACHINE.items():
        family = found[f"attributary_{name}".removesuffix("_total")]
        assert family.documentation == text
        assert {tuple(one.labels) for one in family.samples} == {labels}


def test_real_pages_of_two_workers_in_each_format(machine: Machine) -> None:
    config = config_of("m", "n")
    with ExitStack() as stack:
        for number, model_id in enumerate(("m", "n")):
            server = WebServer(config, filled(config, {number: [model_id]}))
            server.start(machine.path())
            stack.callback(server.stop)
        web = machine.web()
        for accept, read in (
            ("*/*", text_string_to_metric_families),
            ("application/openmetrics-text;version=1.0.0", openmetrics),
            ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8", openmetrics),
            ("text/plain;version=nonsense;q=,;", text_string_to_metric_families),
        ):
            found = [one for family in read(ask(web, "/metrics", accept=accept)[1]) for one in family.samples]
            models = [one.labels["model_id"] for one in found if one.name == "attributary_model_loss"]
            assert sorted(models) == ["m", "n"], accept
            steps = [one.labels for one in found if one.name == "attributary_worker_step_seconds"]
            assert steps == [{"worker": "0"}, {"worker": "1"}], accept
        packed = asyncio.run(web.answer(make_mocked_request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})))
        assert packed.headers["Content-Encoding"] == "gzip"


def health(path: str, status: HTTPStatus, text: str) -> Pages:
    return {path: text_page(status, text)}


OK, AWAY = HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE


def test_ready_when_all_are_and_otherwise_why_not(machine: Machine) -> None:
    machine.answering(health("/readyz", OK, "ready"))
    assert ask(machine.web(), "/readyz") == (200, "ready\n")
    machine.answering(health("/readyz", AWAY, "not ready: joining the group or recovering"))
    machine.gone()
    machine.hanging()
    assert ask(machine.web(), "/readyz") == (
        503,
        "not ready: worker 1: joining the group or recovering; worker 2: it starts, or is started again in a moment; "
        "worker 3: it does not answer\n",
    )


def test_alive_but_for_those_that_say_that_they_are_stuck(machine: Machine) -> None:
    machine.answering(health("/livez", OK, "alive"))
    machine.gone()
    assert ask(machine.web(), "/livez") == (200, "alive\n"), "what has ended is started again: nobody need do anything"
    machine.answering(health("/livez", AWAY, "stuck: no sign of life for 130 s"))
    assert ask(machine.web(), "/livez") == (503, "worker 2: stuck: no sign of life for 130 s\n")


def test_one_that_does_not_answer_is_stuck_after_as_long_as_any_other(machine: Machine) -> None:
    machine.hanging()
    web = machine.web(stuck_after_s=120.0)
    assert ask(web, "/livez") == (200, "alive\n")
    machine.now = 119.0
    ask(web, "/metrics")
    assert ask(web, "/livez")[0] == 200
    machine.now = 121.0
    assert ask(web, "/livez") == (503, "worker 0: stuck: it has not answered for 121 s\n")


def test_one_that_was_started_again_in_between_has_not_been_silent(machine: Machine) -> None:
    machine.hanging()
    web = machine.web(stuck_after_s=120.0)
    ask(web, "/livez")
    machine.now = 100.0
    machine.sockets[0].unlink()
    ask(web, "/livez")
    machine.hanging(again=0)
    machine.now = 130.0
    assert ask(web, "/livez") == (200, "alive\n")


def test_other_pages_are_named(machine: Machine) -> None:
    machine.gone()
    assert ask(machine.web(), "/") == (404, "/metrics, /livez or /readyz\n")
