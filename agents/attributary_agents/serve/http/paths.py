"""Routing by raw paths, so that ids may hold percent-encoded slashes."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import Path
from pydantic import BeforeValidator
from starlette.types import ASGIApp, Receive, Scope, Send

API = "/api/"
LONGEST_ID = 2048
"""Characters of a model's or an incident's id."""


class RawPaths:
    """Layer that gives the REST interface paths as they were sent.

    Other requests pass unchanged.

    Parameters
    ----------
    app
        What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            raw = scope.get("raw_path") or b""
            if raw.startswith(API.encode()):
                scope = {**scope, "path": raw.decode("latin-1")}
        await self._app(scope, receive, send)


def _decoded(raw: object) -> str:
    try:
        return unquote(str(raw), errors="strict")
    except UnicodeDecodeError:
        raise ValueError("expected percent-encoded UTF-8") from None


Id = Annotated[
    str,
    Path(
        min_length=1,
        max_length=LONGEST_ID,
        description="Percent-encoded, a slash too.",
    ),
    BeforeValidator(_decoded),
]
