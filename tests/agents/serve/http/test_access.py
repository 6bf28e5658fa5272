"""Who may ask: who gives the token, and names of this machine alone where there is none."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from attributary_agents.config.serving import ServeConfig
from attributary_agents.errors import ConfigError
from attributary_agents.serve.http.access import configured_token, is_loopback
from attributary_agents.serve.http.app import make_app
from tests.agents.serve.http.sites import TOKEN, client, configured, page_of, site_with


def answered(
    tmp_path: Path, asks: Callable[[httpx.AsyncClient], Awaitable[None]], *, token: str | None = TOKEN, host: str = ""
) -> None:
    async def run() -> None:
        app = make_app(site_with(), page_of(tmp_path), token)
        async with client(app, host or "page.example.org") as http:
            await asks(http)

    asyncio.run(run())


def basic(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "path", ["/", "/api/v1/health", "/api/v1/models", "/api/openapi.json", "/metrics", "/api/v1/stream"]
)
def test_data_need_the_token(tmp_path: Path, path: str) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        refused = await http.get(path)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert refused.json()["suggestion"].startswith("send it as `Authorization: Bearer TOKEN`; in a browser")
        for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", "é", TOKEN.upper()):
            header = {"authorization": f"Bearer {wrong}".encode()}
            assert (await http.get(path, headers=header)).status_code == 401, wrong
        for wrong in (TOKEN, "=", "é", b64encode(TOKEN.encode()).decode(), basic("x"), basic(f"{TOKEN}:")):
            header = {"authorization": f"Basic {wrong}".encode()}
            assert (await http.get(path, headers=header)).status_code == 401, wrong
        if path != "/api/v1/stream":
            for right in (
                f"bearer {TOKEN}",
                f"Basic {basic(f'ada@example.org:{TOKEN}')}",
                f"basic {basic(f':{TOKEN}')}",
            ):
                assert (await http.get(path, headers={"authorization": right})).status_code == 200

    answered(tmp_path, asks)


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_what_holds_no_data_needs_none(tmp_path: Path, path: str) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        assert (await http.get(path)).status_code == 200

    answered(tmp_path, asks)


def test_a_path_that_only_looks_open_needs_the_token(tmp_path: Path) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        for path in ("/livez/../api/v1/models", "/livez/", "/static", "//livez", "/static%2F..%2Fapi/v1/models"):
            assert (await http.get(path)).status_code == 401, path

    answered(tmp_path, asks)


def test_another_site_cannot_ask(tmp_path: Path) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        token = {"authorization": f"Bearer {TOKEN}"}
        cross = {"sec-fetch-site": "cross-site"}
        assert (await http.get("/api/v1/health", headers={**token, **cross})).status_code == 403
        link = {**token, **cross, "sec-fetch-mode": "navigate"}
        assert (await http.get("/models/bank", headers=link)).status_code == 200, "a link is followed"

    answered(tmp_path, asks)


@pytest.mark.parametrize(
    ("asked", "is_answered"),
    [
        ("localhost:6080", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("127.0.0.1:6080", True),
        ("[::1]:6080", True),
        ("192.168.0.7", False),
        ("attributary.localhost:6080", True),
        ("evil.example", False),
        ("localhost.evil.example:6080", False),
        ("127.0.0.1.evil.example", False),
        ("evil.example:127", False),
    ],
)
def test_without_a_token_only_names_of_this_machine_are_answered(tmp_path: Path, asked: str, is_answered: bool) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        response = await http.get("/api/v1/health", headers={"host": asked})
        assert response.status_code == (200 if is_answered else 400)

    answered(tmp_path, asks, token=None, host="localhost")


def test_a_configured_name_and_an_open_address_are_answered(tmp_path: Path) -> None:
    async def run(host: str, asked: str) -> int:
        app = make_app(site_with(config=configured(host=host)), page, None)
        async with client(app, asked) as http:
            return (await http.get("/api/v1/health")).status_code

    page = page_of(tmp_path)
    assert asyncio.run(run("0.0.0.0", "attributary:6080")) == 200
    assert asyncio.run(run("localhost", "attributary:6080")) == 400
    assert asyncio.run(run("127.0.0.2", "127.0.0.2:6080")) == 200


def test_the_token_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured_token(ServeConfig()) is None
    serve = ServeConfig(token_env="PAGE_TOKEN")
    monkeypatch.delenv("PAGE_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="PAGE_TOKEN is not set"):
        configured_token(serve)
    monkeypatch.setenv("PAGE_TOKEN", "short")
    with pytest.raises(ConfigError, match=r"has 5 characters, and 16 are needed: `openssl rand -hex 32`") as told:
        configured_token(serve)
    assert "short" not in str(told.value)
    monkeypatch.setenv("PAGE_TOKEN", f"{TOKEN}\n")
    assert configured_token(serve) == TOKEN


def test_addresses_that_are_of_this_machine_alone() -> None:
    assert [is_loopback(text) for text in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "x.localhost")] == [True] * 5
    assert [is_loopback(text) for text in ("0.0.0.0", "::", "10.0.0.1", "example.org", "")] == [False] * 5
