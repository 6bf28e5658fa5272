"""`attributary webhooks`: what is printed of addresses, and of an answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.errors import AttributaryError


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, dict(self.headers), content))  # type: ignore[attr-defined]
        self.send_response(404 if "gone" in self.path else 202)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    server.taken = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def config(folder: Path, port: int) -> str:
    model = {"model": {"class": "river.linear_model.LogisticRegression"}, "features": {"a": "number"}}
    hooks = {
        "ops": {"url": f"http://127.0.0.1:{port}/T0/hidden"},
        "chat": {"url": f"http://127.0.0.1:{port}/gone/hidden", "format": "text", "severity": "critical"},
    }
    path = folder / "attributary.yaml"
    path.write_text(yaml.safe_dump({"models": {"bank": model}, "serve": {"webhooks": hooks}}, sort_keys=False))
    return str(path)


def test_a_made_event_is_sent_once(receiver: HTTPServer, tmp_path: Path) -> None:
    path = config(tmp_path, receiver.server_port)
    result = CliRunner().invoke(cli, ["webhooks", "test", "ops", "--config", path])
    ((at, headers, content),) = receiver.taken  # type: ignore[attr-defined]
    told = json.loads(content)
    assert at == "/T0/hidden"
    assert headers["Content-Type"] == "application/cloudevents+json"
    assert told["type"] == "attributary.test.v1"
    assert result.output == f"webhook ops: http://127.0.0.1:{receiver.server_port}/… has taken {told['id']} (202)\n"


def test_a_refusal_is_one_line(receiver: HTTPServer, tmp_path: Path) -> None:
    path = config(tmp_path, receiver.server_port)
    result = CliRunner().invoke(cli, ["webhooks", "test", "chat", "--config", path])
    assert isinstance(result.exception, AttributaryError)
    assert str(result.exception) == f"webhook chat: http://127.0.0.1:{receiver.server_port}/…: it answers 404"


def test_a_name_that_is_none(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["webhooks", "test", "opps", "--config", config(tmp_path, 1)])
    assert str(result.exception) == "no webhook 'opps' is configured: did you mean 'ops'?"


def test_the_list_shows_no_secret(tmp_path: Path) -> None:
    path = config(tmp_path, 1)
    result = CliRunner().invoke(cli, ["webhooks", "list", "--config", path])
    assert result.output.splitlines() == [
        "ops\tinfo\tcloudevents\thttp://127.0.0.1:1/…",
        "chat\tcritical\ttext\thttp://127.0.0.1:1/…",
    ]
    shown = CliRunner().invoke(cli, ["config", "show", "--config", path])
    assert "hidden" not in shown.output
    assert "ops" in shown.output
