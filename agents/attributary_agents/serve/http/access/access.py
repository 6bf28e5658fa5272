"""Lets those in who have the token, where one is configured; and keeps pages of other hosts out where none is."""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import time
from collections.abc import Callable
from hashlib import sha256
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ....config.serving import ServeConfig
from ....errors import ConfigError
from ..errors import problem

OPEN = ("/login", "/livez", "/readyz", "/static/")
"""Paths that need no token: they hold no data. One that ends with a slash stands for all below it."""

SHORTEST = 16
"""Characters of a token: fewer can be guessed."""

DAYS = 30
"""After which a browser asks for the token again."""

_LOCAL = re.compile(r"(?:.*\.)?localhost")


def configured_token(serve: ServeConfig) -> str | None:
    """Return the token that is asked for; None where none is configured.

    Raises
    ------
    ConfigError
        The variable is not set, or what it holds is too short.
    """
    if serve.token_env is None:
        return None
    token = os.environ.get(serve.token_env, "").strip()
    if not token:
        raise ConfigError(f"serve.token_env: {serve.token_env} is not set in the environment, or is empty")
    if len(token) < SHORTEST:
        raise ConfigError(
            f"serve.token_env: the token in {serve.token_env} has {len(token)} characters, and {SHORTEST} are needed: "
            "`openssl rand -hex 32` makes one"
        )
    return token


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on is reached from this machine alone."""
    if _LOCAL.fullmatch(host.lower()):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Token:
    """Knows who has the token, by the header of a program or by the cookie of a browser.

    The cookie does not hold the token: it holds until when it counts, and a signature that the token alone can make.

    Parameters
    ----------
    token
        The token.
    clock
        Seconds since the epoch.
    """

    def __init__(self, token: str, clock: Callable[[], float] = time.time) -> None:
        self._token, self._clock = token.encode(), clock
        self.cookie = f"attributary-{self._signed('name')[:8]}"
        """Its name: servers of one host have one each, whatever their ports."""

    def _signed(self, text: str) -> str:
        return hmac.new(self._token, f"attributary {text}".encode(), sha256).hexdigest()

    def is_right(self, given: str) -> bool:
        """Return whether what was given is the token, in a time that tells nothing of it."""
        return hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token)

    def made(self) -> str:
        """Return the value of a cookie."""
        until = str(int(self._clock()) + DAYS * 86400)
        return f"{until}.{self._signed(until)}"

    def lets_in(self, headers: Headers) -> bool:
        """Return whether a request has the token, or a cookie that was made with it."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.is_right(given)
        until, _, signature = self._value_of(headers).partition(".")
        is_ours = hmac.compare_digest(signature.encode("utf-8", "replace"), self._signed(until).encode())
        return is_ours and until.isdecimal() and int(until) > self._clock()

    def _value_of(self, headers: Headers) -> str:
        for line in headers.getlist("cookie"):
            try:
                found = SimpleCookie(line).get(self.cookie)
            except CookieError:
                continue
            if found is not None:
                return str(found.value)
        return ""


class Doors:
    """Hands on the requests of those who may ask, and answers the others.

    Parameters
    ----------
    app
        What answers.
    token
        What is asked for; None: nothing is.
    host
        The address that is listened on.
    """

    def __init__(self, app: ASGIApp, token: Token | None, host: str) -> None:
        self._app, self._token, self._host = app, token, host.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, path = Headers(scope=scope), scope["path"]
        if self._token is None and is_loopback(self._host) and not self._is_known(headers.get("host", "")):
            return problem(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server is for this machine alone, and was asked by a name that is not this machine's",
                f"ask for localhost or {self._host}; for other names set serve.token_env",
            )
        is_navigation = headers.get("sec-fetch-mode") == "navigate" and scope["method"] in ("GET", "HEAD")
        if headers.get("sec-fetch-site") == "cross-site" and not is_navigation and not path.startswith("/static/"):
            return problem(HTTPStatus.FORBIDDEN, "pages of other sites may not ask this server")
        if self._token is None or is_open(path) or self._token.lets_in(headers):
            return None
        if scope["method"] in ("GET", "HEAD") and "text/html" in headers.get("accept", ""):
            query = scope["query_string"].decode("latin-1")
            asked = (scope.get("raw_path") or path.encode()).decode("latin-1") + (f"?{query}" if query else "")
            return RedirectResponse(f"/login?next={quote(asked, safe='')}", 303, {"Cache-Control": "no-store"})
        return problem(
            HTTPStatus.UNAUTHORIZED,
            "this server asks for a token",
            "send it as `Authorization: Bearer TOKEN`; in a browser open /login",
            {"WWW-Authenticate": 'Bearer realm="Attributary"'},
        )

    def _is_known(self, asked: str) -> bool:
        """Return whether a Host header names this machine: a name that somebody else's DNS points here does not."""
        name = host_of(asked)
        if name == self._host or _LOCAL.fullmatch(name):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True  # an address: no DNS is asked for it


def host_of(header: str) -> str:
    """Return the host of a Host header, without its port and brackets."""
    found = re.fullmatch(r"\[([^\]]*)\](?::\d*)?|([^:]*)(?::\d*)?", header.strip().lower())
    return "" if found is None else found[1] or found[2] or ""


def is_open(path: str) -> bool:
    """Return whether a path needs no token."""
    return any(path.startswith(one) if one.endswith("/") else path == one for one in OPEN)
