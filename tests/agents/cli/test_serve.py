"""`attributary serve` where it cannot begin: one line that says what to do, and nothing is left behind."""

from __future__ import annotations

import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from attributary_agents.cli import serve as command
from attributary_agents.cli.main import cli
from attributary_agents.errors import AttributaryError, ConfigError, PreflightError
from attributary_agents.serve.server import address_of, default_store
from tests.agents.serve.http.sites import configured

CONFIG = "models: {bank: {factory: tests.agents.stand_ins:counting_classifier}}\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "attributary.yaml").write_text(CONFIG)
    return tmp_path / "attributary.yaml"


def refused(path: Path, *options: str) -> AttributaryError:
    result = CliRunner().invoke(cli, ["serve", "--config", str(path), *options])
    assert isinstance(result.exception, AttributaryError), result.output
    assert "\n" not in str(result.exception)
    assert result.output == ""
    return result.exception


def test_a_port_that_is_taken_is_named_with_what_helps(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = refused(path, "--port", str(port))
    assert isinstance(error, PreflightError)
    assert str(error).startswith(f"cannot listen on 127.0.0.1:{port} (Address already in use")
    assert str(error).endswith("): give --port, or set serve.port, to another one, or 0 for any")


def test_an_address_that_is_not_of_this_machine_is_named(path: Path) -> None:
    for host in ("192.0.2.1", "no.such.invalid"):
        said = str(refused(path, "--host", host))
        assert said.startswith(f"cannot listen on {host}:6080 (")
        assert said.endswith("give --host, or set serve.host, to an address of this machine")


def test_without_the_extra_one_line_says_how_to_get_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "uvicorn" else find_spec(name))
    error = refused(path)
    assert isinstance(error, ConfigError)
    assert str(error) == "the page needs uvicorn, which is not installed: pip install 'attributary[serve]'"


def test_a_token_that_is_not_set_is_asked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAGE_TOKEN", raising=False)
    path.write_text(f"{CONFIG}serve: {{token_env: PAGE_TOKEN}}\n")
    assert "serve.token_env: PAGE_TOKEN is not set" in str(refused(path))


def test_a_folder_that_cannot_be_made_is_named(path: Path) -> None:
    (path.parent / "file").write_text("")
    at = path.parent / "file" / "below" / "page.sqlite"
    assert str(refused(path, "--store", str(at))).startswith(f"serve.store: cannot make {at.parent} (")


def test_each_group_of_each_cluster_has_a_store_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def of(**kafka: object) -> Path:
        return default_store(configured().model_copy(update={"kafka": configured().kafka.model_copy(update=kafka)}))

    stores = {of(), of(group="other"), of(group="a/../b"), of(group="a_.._b"), of(brokers=["kafka:9092"])}
    assert len(stores) == 5
    assert {one.parent for one in stores} == {tmp_path / "attributary"}
    assert of(brokers=["a:1", "b:1"]) == of(brokers=["b:1", "a:1"])
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert of().parent == Path.home() / ".cache" / "attributary"


def test_the_address_is_one_that_a_browser_here_finds() -> None:
    assert [address_of(host, 1) for host in ("127.0.0.1", "0.0.0.0", "::", "::1", "page.example.org")] == [
        *("http://127.0.0.1:1/", "http://localhost:1/", "http://localhost:1/", "http://[::1]:1/"),
        "http://page.example.org:1/",
    ]


def test_other_commands_import_nothing_that_serves() -> None:
    script = "import sys, attributary_agents.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"fastapi", "starlette", "uvicorn", "httpx", "sqlite3"} & set(done.stdout.split())
