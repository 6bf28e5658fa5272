"""Problem responses as in RFC 9457: `application/problem+json`.

They have a remedy where there is one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ...errors import AttributaryError, without_text
from ..answers import Problem
from ..views.words import NotFoundError, ViewError

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_MOST = 200  # characters of what was sent that are said again


class ProblemError(Exception):
    """Error that ends a request with a problem response.

    Parameters
    ----------
    status
        Of HTTP.
    detail
        What is wrong with this request.
    suggestion
        What helps; empty where nothing is known.
    """

    def __init__(
        self, status: HTTPStatus, detail: str, suggestion: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.suggestion, self.headers = status, detail, suggestion, headers or {}

    def response(self) -> Response:
        """Return the answer."""
        return problem(self.status, self.detail, self.suggestion, self.headers)


def problem(
    status: int, detail: str, suggestion: str = "", headers: Mapping[str, str] | None = None, title: str = ""
) -> Response:
    """Return a problem response.

    Without a title, the title is the meaning of the status.
    """
    said = Problem(
        type="about:blank",
        title=title or HTTPStatus(status).phrase,
        status=int(status),
        detail=detail,
        suggestion=suggestion or None,
    )
    return Response(
        said.model_dump_json(), int(status), {"Cache-Control": "no-store", **(headers or {})}, media_type=MEDIA_TYPE
    )


def cut(text: object) -> str:
    """Return a text from a request, shortened to a readable length."""
    said = str(text)
    return said if len(said) <= _MOST else f"{said[:_MOST]}…"


def handle_errors(app: FastAPI) -> None:
    """Install handlers that answer every error with a problem."""
    app.add_exception_handler(ProblemError, _known)
    app.add_exception_handler(RequestValidationError, _wrong_parameter)
    app.add_exception_handler(HTTPException, _by_status)
    app.add_exception_handler(ViewError, _of_view)
    app.add_exception_handler(AttributaryError, _of_server)
    app.add_exception_handler(Exception, _of_ours)


async def _known(_: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return error.response()


async def _wrong_parameter(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "; ".join(_said(one) for one in error.errors()[:5]),
        "the parameters and their bounds are in /api/openapi.json",
    )


def _said(error: Mapping[str, Any]) -> str:
    where = str(error["loc"][1]) if len(error["loc"]) > 1 else str(error["loc"][-1])
    text = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "missing":
        return f"{where}: it has to be given"
    given = "" if ", got " in text else f", got {cut(error.get('input', ''))!r}"
    return f"{where}: {text}{given}"


async def _by_status(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    if status == HTTPStatus.NOT_FOUND:
        text = f"there is nothing at {cut(request.url.path)!r}"
        return problem(status, text, "what there is stands in /api/openapi.json")
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "GET")
        text = f"{request.method} {cut(request.url.path)} is not possible: this interface only reads"
        return problem(status, text, f"use {allowed}", {"Allow": allowed})
    return problem(status, cut(error.detail), headers=error.headers)


async def _of_view(_: Request, error: Exception) -> Response:
    assert isinstance(error, ViewError)
    status = HTTPStatus.NOT_FOUND if isinstance(error, NotFoundError) else HTTPStatus.UNPROCESSABLE_ENTITY
    return problem(status, error.detail, error.suggestion, title=error.title)


async def _of_server(_: Request, error: Exception) -> Response:
    """Report a fault of the server, such as its disk, to client and log."""
    logger.error("%s", error)
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers={"Retry-After": "10"})


async def _of_ours(_: Request, __: Exception) -> Response:
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "the server could not answer this",
        "its log says where it failed; please report that",
    )


class Faults:
    """Layer that logs failures of an application, without values.

    An answer that had begun is cut off.

    Parameters
    ----------
    app
        What answers; it has answered with a problem where it could.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - uvicorn would log its stack, and its text
            logger.error("a request could not be answered: %s", without_text(error))
