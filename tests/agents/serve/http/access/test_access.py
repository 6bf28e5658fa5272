"""Who may ask: the token by header and by cookie, and names of this machine alone where there is no token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from attributary_agents.config.serving import ServeConfig
from attributary_agents.errors import ConfigError
from attributary_agents.serve.http.access.access import DAYS, Token, configured_token, host_of, is_loopback
from attributary_agents.serve.http.access.login import local
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


@pytest.mark.parametrize(
    "path", ["/api/v1/health", "/api/v1/models", "/api/openapi.json", "/metrics", "/api/v1/stream"]
)
def test_data_need_the_token(tmp_path: Path, path: str) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        refused = await http.get(path)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert refused.json()["suggestion"] == "send it as `Authorization: Bearer TOKEN`; in a browser open /login"
        for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", "é", TOKEN.upper()):
            header = {"authorization": f"Bearer {wrong}".encode()}
            assert (await http.get(path, headers=header)).status_code == 401, wrong
        assert (await http.get(path, headers={"authorization": f"Basic {TOKEN}"})).status_code == 401
        if path != "/api/v1/stream":
            assert (await http.get(path, headers={"authorization": f"bearer {TOKEN}"})).status_code == 200

    answered(tmp_path, asks)


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/login"])
def test_what_holds_no_data_needs_none(tmp_path: Path, path: str) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        assert (await http.get(path)).status_code == 200

    answered(tmp_path, asks)


def test_a_path_that_only_looks_open_needs_the_token(tmp_path: Path) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        for path in ("/login/../api/v1/models", "/livez/", "/static", "//livez"):
            assert (await http.get(path)).status_code == 401, path
        assert (await http.get("/static%2F..%2Fapi/v1/models")).status_code == 404
        assert (await http.get("/static/../api/v1/models")).status_code in (401, 404)

    answered(tmp_path, asks)


def test_a_person_is_sent_to_the_form_and_comes_back_with_a_cookie(tmp_path: Path) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        sent = await http.get("/models/a%2Fb?window=7d", headers={"accept": "text/html"})
        assert sent.status_code == 303
        form = await http.get(sent.headers["location"])
        assert 'value="/models/a%2Fb?window=7d"' in form.text
        assert "<script" not in form.text
        assert form.headers["cache-control"] == "no-store"

        wrong = await http.post("/login", data={"token": "guessed", "next": "/models/a%2Fb?window=7d"})
        assert wrong.status_code == 403
        assert "That is not the token." in wrong.text
        assert "guessed" not in wrong.text
        assert "set-cookie" not in wrong.headers

        right = await http.post("/login", data={"token": TOKEN, "next": "/models/a%2Fb?window=7d"})
        assert (right.status_code, right.headers["location"]) == (303, "/models/a%2Fb?window=7d")
        parts = {part.strip().split("=")[0].lower() for part in right.headers["set-cookie"].split(";")}
        assert {"httponly", "samesite", "path", "max-age"} < parts
        assert "secure" not in parts
        assert "samesite=strict" in right.headers["set-cookie"].lower()
        assert TOKEN not in right.headers["set-cookie"]

        assert (await http.get("/api/v1/health")).status_code == 200, "the client has kept the cookie"
        left = await http.post("/logout")
        assert left.headers["location"] == "/login"
        assert (await http.get("/api/v1/health")).status_code == 401

    answered(tmp_path, asks)


def test_behind_https_the_cookie_is_sent_by_https_alone(tmp_path: Path) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        made = await http.post("/login", data={"token": TOKEN}, headers={"x-forwarded-proto": "https"})
        assert "secure" in made.headers["set-cookie"].lower()

    answered(tmp_path, asks)


def test_another_site_can_neither_ask_nor_log_in(tmp_path: Path) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        token = {"authorization": f"Bearer {TOKEN}"}
        cross = {"sec-fetch-site": "cross-site"}
        assert (await http.get("/api/v1/health", headers={**token, **cross})).status_code == 403
        link = {**token, **cross, "sec-fetch-mode": "navigate"}
        assert (await http.get("/models/bank", headers=link)).status_code == 200, "a link is followed"
        form = {"token": TOKEN}
        for headers in ({"origin": "https://evil.example"}, {**cross, "sec-fetch-mode": "navigate"}):
            assert (await http.post("/login", data=form, headers=headers)).status_code == 403
        assert (await http.post("/login", data=form, headers={"origin": "http://page.example.org"})).status_code == 303

    answered(tmp_path, asks)


def test_a_form_that_is_too_long_or_no_form_is_refused(tmp_path: Path) -> None:
    async def asks(http: httpx.AsyncClient) -> None:
        assert (await http.post("/login", content=b"token=" + b"x" * 10_000)).status_code == 413
        assert (await http.post("/login", content=b"&" * 8000)).status_code == 422
        assert (await http.post("/login", content=b"token=%ff%fe\x00")).status_code == 403
        assert (await http.post("/login", content="&".join(f"a{n}=1" for n in range(100)))).status_code == 422

    answered(tmp_path, asks)


def test_cookies_end_and_cannot_be_made_without_the_token() -> None:
    now = [1_000_000.0]
    token = Token(TOKEN, lambda: now[0])

    def lets_in(value: str) -> bool:
        return token.lets_in(httpx_headers(f"other=1; {token.cookie}={value}"))

    made = token.made()
    assert lets_in(made)
    until, _, signature = made.partition(".")
    for forged in (
        "",
        ".",
        f"{until}.",
        f"{int(until) + 1}.{signature}",
        f"{until}.{signature[:-1]}",
        f"x.{signature}",
    ):
        assert not lets_in(forged), forged
    assert not Token("another-token-of-the-same-length!!", lambda: now[0]).lets_in(
        httpx_headers(f"{token.cookie}={made}")
    )
    now[0] += DAYS * 86400 - 1
    assert lets_in(made)
    now[0] += 1
    assert not lets_in(made)


def httpx_headers(cookie: str):  # type: ignore[no-untyped-def]
    from starlette.datastructures import Headers

    return Headers({"cookie": cookie})


@pytest.mark.parametrize(
    ("asked", "is_answered"),
    [
        ("localhost:6080", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("127.0.0.1:6080", True),
        ("[::1]:6080", True),
        ("192.168.0.7", True),
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
        assert response.status_code == (200 if is_answered else 421)
        if not is_answered:
            assert "serve.token_env" in response.json()["suggestion"]

    answered(tmp_path, asks, token=None, host="localhost")


def test_a_configured_name_and_an_open_address_are_answered(tmp_path: Path) -> None:
    async def run(host: str, asked: str) -> int:
        app = make_app(site_with(config=configured(host=host)), page, None)
        async with client(app, asked) as http:
            return (await http.get("/api/v1/health")).status_code

    page = page_of(tmp_path)
    assert asyncio.run(run("0.0.0.0", "attributary:6080")) == 200
    assert asyncio.run(run("localhost", "attributary:6080")) == 421


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/", "/"),
        ("/models/a%2Fb?window=7d&by=time", "/models/a%2Fb?window=7d&by=time"),
        ("/models/%C3%BC", "/models/%C3%BC"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("\\\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("evil.example", "/"),
        ("/\r\nset-cookie: a=b", "/"),
        ("/ /evil", "/%20/evil"),
        ("http:/evil.example", "/"),
        ("///evil.example", "/evil.example"),
        ("http://[", "/"),
        ("////evil.example", "/"),
        ("/" + "x" * 10_000, "/"),
        ("", "/"),
    ],
)
def test_after_the_form_one_stays_on_this_server(path: str, to: str) -> None:
    assert local(path) == to


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


def test_hosts() -> None:
    assert [host_of(text) for text in ("a:1", "A", "[::1]:80", "[::1]", "", "a:b:c")] == [
        "a",
        "a",
        "::1",
        "::1",
        "",
        "",
    ]
    assert [is_loopback(text) for text in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "x.localhost")] == [True] * 5
    assert [is_loopback(text) for text in ("0.0.0.0", "::", "10.0.0.1", "example.org", "")] == [False] * 5
