"""The form that asks a person for the token: no script, one field."""

from __future__ import annotations

import asyncio
from html import escape
from http import HTTPStatus
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import APIRouter, Request
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ..errors import ProblemError
from .access import DAYS, Token, host_of

MOST_BYTES = 8192
WITHIN_S = 10.0

_FORM = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Attributary: token</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{base}/css/tokens.css">
<link rel="stylesheet" href="{base}/css/login.css">
</head>
<body>
<main>
<h1>Attributary</h1>
{said}
<form method="post" action="/login">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<input name="next" type="hidden" value="{next}">
<button>Open</button>
</form>
<p>It is in the environment of the server, in the variable that <code>serve.token_env</code> names.</p>
</main>
</body>
</html>
"""


def login_router(token: Token | None, base: str, policy: str) -> APIRouter:
    """Return the routes of the form.

    Parameters
    ----------
    token
        What is asked for; None: the form sends everybody on.
    base
        Where the page's files are.
    policy
        The Content-Security-Policy of the form.
    """
    router = APIRouter(include_in_schema=False)

    def form(to: str, said: str = "", status: int = 200) -> HTMLResponse:
        text = _FORM.format(base=escape(base), said=said, next=escape(to))
        return HTMLResponse(text, status, {"Cache-Control": "no-store", "Content-Security-Policy": policy})

    @router.get("/login")
    async def ask(request: Request) -> Response:
        to = local(request.query_params.get("next", "/"))
        if token is None or token.lets_in(request.headers):
            return RedirectResponse(to, 303)
        return form(to)

    @router.post("/login")
    async def take(request: Request) -> Response:
        _refuse_others(request.headers)
        body = await _body(request)
        try:
            given = parse_qs(body, max_num_fields=10)
        except ValueError:
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "that is not the form of this page") from None
        to = local(given.get("next", ["/"])[0])
        if token is None:
            return RedirectResponse(to, 303)
        if not token.is_right(given.get("token", [""])[0]):
            return form(to, '<p role="alert">That is not the token.</p>', HTTPStatus.FORBIDDEN)
        response = RedirectResponse(to, 303, {"Cache-Control": "no-store"})
        response.set_cookie(
            token.cookie,
            token.made(),
            max_age=DAYS * 86400,
            path="/",
            httponly=True,
            samesite="strict",
            secure=is_https(request),
        )
        return response

    @router.post("/logout")
    async def leave(request: Request) -> Response:
        _refuse_others(request.headers)
        response = RedirectResponse("/login", 303, {"Cache-Control": "no-store"})
        if token is not None:
            response.delete_cookie(token.cookie, path="/", httponly=True, samesite="strict", secure=is_https(request))
        return response

    return router


def local(path: str) -> str:
    """Return a path of this server; `/` in place of what may lead to another."""
    try:
        parts = urlsplit(path.replace("\\", "/"))
    except ValueError:
        return "/"
    is_short = len(path) <= MOST_BYTES and path.isprintable()
    is_ours = not parts.scheme and not parts.netloc and parts.path.startswith("/") and not parts.path.startswith("//")
    if not (is_short and is_ours):
        return "/"
    return quote(parts.path, safe=_PATH) + (f"?{quote(parts.query, safe=_QUERY)}" if parts.query else "")


_PATH = "/%:@!$&'()*+,;=~"
_QUERY = _PATH + "?"


def is_https(request: Request) -> bool:
    """Return whether the browser speaks https, to this server or to a proxy that says so."""
    forwarded = request.headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
    return request.url.scheme == "https" or forwarded == "https"


def _refuse_others(headers: Headers) -> None:
    """Raise ProblemError where the form of another host sends this: a browser names that."""
    origin = headers.get("origin", "")
    if origin and origin != "null" and host_of(urlsplit(origin).netloc) != host_of(headers.get("host", "")):
        raise ProblemError(HTTPStatus.FORBIDDEN, "the form of another site may not be sent to this server")


async def _body(request: Request) -> str:
    body = b""
    try:
        async with asyncio.timeout(WITHIN_S):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is more than a token")
    except TimeoutError:
        raise ProblemError(HTTPStatus.REQUEST_TIMEOUT, "the form did not come whole") from None
    return body.decode("utf-8", "replace")
