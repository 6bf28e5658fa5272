"""Access control: the configured token, and no pages of other sites."""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
from base64 import b64decode
from contextlib import suppress
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ...config.serving import ServeConfig
from ...errors import ConfigError
from .errors import problem

OPEN = ("/livez", "/readyz")
"""Paths that need no token: they hold no data."""

SHORTEST = 16
"""Characters of a token: fewer can be guessed."""

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
    """Return whether only this machine can reach an address to listen on."""
    if _LOCAL.fullmatch(host.lower()):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guarded(app: ASGIApp, token: str | None, host: str) -> ASGIApp:
    """Return an application that refuses requests without the right to ask.

    Without a token, on this machine alone, a name that somebody else's DNS points here is refused.

    Parameters
    ----------
    token
        What is asked for; None: nothing is.
    host
        The address that is listened on.
    """
    doors = Doors(app, token)
    if token is not None or not is_loopback(host):
        return doors
    own = f"[{host}]" if ":" in host else host
    return TrustedHostMiddleware(doors, ["localhost", "*.localhost", "127.0.0.1", "[::1]", own], www_redirect=False)


class Doors:
    """Gate that passes on permitted requests and refuses all others.

    Parameters
    ----------
    app
        What answers.
    token
        What is asked for; None: nothing is.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        is_navigation = headers.get("sec-fetch-mode") == "navigate" and scope["method"] in ("GET", "HEAD")
        if headers.get("sec-fetch-site") == "cross-site" and not is_navigation:
            return problem(HTTPStatus.FORBIDDEN, "pages of other sites may not ask this server")
        if self._token is None or scope["path"] in OPEN or hmac.compare_digest(given(headers), self._token):
            return None
        return problem(
            HTTPStatus.UNAUTHORIZED,
            "this server asks for a token",
            "send it as `Authorization: Bearer TOKEN`; in a browser give it as the password, with any name",
            {"WWW-Authenticate": 'Bearer realm="Attributary", Basic realm="Attributary", charset="UTF-8"'},
        )


def given(headers: Headers) -> bytes:
    """Return the token of a request; empty without a token.

    It is a program's bearer token, or the password of a browser or a proxy.
    """
    scheme, _, said = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return said.strip().encode("utf-8", "replace")
    if scheme.lower() == "basic":
        with suppress(ValueError):
            return b64decode(said.strip(), validate=True).partition(b":")[2]
    return b""
