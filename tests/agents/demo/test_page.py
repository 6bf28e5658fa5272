"""The page of the demo: an address that is known and kept before there is a server, and what is said without one."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

from attributary_agents.demo import page as page_module
from attributary_agents.demo.demo import run_demo
from attributary_agents.demo.local_broker import BrokerError, free_port
from attributary_agents.demo.page import Page


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.fixture
def default_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """Another one in place of the page's own, which may be in use on this machine."""
    port = free_port()
    monkeypatch.setattr(page_module, "DEFAULT_PORT", port)
    return port


def test_the_default_port_is_kept_until_the_page_is_closed(default_port: int) -> None:
    with closing(Page()) as page:
        assert page.address == f"http://127.0.0.1:{default_port}/"
        assert not is_free(default_port), "nobody takes it before the server has it"
    assert is_free(default_port)


def test_where_somebody_listens_it_takes_a_free_port(default_port: int) -> None:
    with socket.create_server(("127.0.0.1", default_port)), closing(Page()) as page:
        assert page.port != default_port
        assert is_free(page.port)


def test_what_the_server_keeps_goes_with_the_demo_s_folder(default_port: int, tmp_path: Path) -> None:
    with closing(Page()) as page:
        settings = page.settings(tmp_path)
    assert (settings["host"], settings["port"]) == ("127.0.0.1", default_port)
    assert Path(str(settings["store"])).parent == tmp_path


@pytest.mark.usefixtures("default_port")
def test_a_server_that_ends_by_itself_is_told_once_with_the_end_of_its_log(tmp_path: Path) -> None:
    with closing(Page()) as page:
        assert page.ended() is None, "it has not been started"
        page.start(tmp_path / "absent.yaml")
        assert page._server is not None
        page._server.wait(60)
        assert page.is_served
        told = page.ended()
        assert told is not None
        assert told.startswith("the page's server ended by itself with status 2; the end of its log:\n")
        assert "attributary: cannot read" in told
        assert page.ended() is None
        assert not page.is_served


@pytest.mark.parametrize(
    ("with_page", "missing", "first"),
    [
        (True, (), "page: http://127.0.0.1:{port}/"),
        (True, ("fastapi",), "no page: it needs the extra `serve`: pip install 'attributary[serve]'"),
        (True, ("uvicorn",), "no page: it needs the extra `serve`: pip install 'attributary[serve]'"),
        (False, (), "Agrawal's credit data: "),
    ],
)
def test_the_address_is_said_before_all_else(
    with_page: bool,
    missing: tuple[str, ...],
    first: str,
    default_port: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = page_module.find_spec
    monkeypatch.setattr(page_module, "find_spec", lambda name: None if name in missing else found(name))
    with pytest.raises(BrokerError):
        run_demo(
            source=None,
            model_id="credit",
            limit=10,
            broker_spec="none",
            port=0,
            plain=True,
            exit_at_end=True,
            with_page=with_page,
        )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(first.format(port=default_port))
    assert lines[-1].startswith("Agrawal's credit data: "), "and the demo goes on, to what is wrong"
    assert is_free(default_port)
