"""Assembly of the application: routes, files and the layers around them."""

from __future__ import annotations

from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..http import routes, stream
from ..page import Page
from .access import guarded
from .errors import Faults, ProblemError, handle_errors
from .monitoring import watching_router
from .parameters import RawPaths
from .routes import packed, takes_gzip
from .site import Site

_TEXT = (
    "Reads what explainers of models have published. All requests only read; answers have an `ETag`. What is wrong "
    "with a request is said as RFC 9457 has it, with a `suggestion`. Unknown parameters are refused. Where the server "
    "asks for a token, send it as `Authorization: Bearer TOKEN`, or as the password of any name."
)


def describe(api: FastAPI) -> None:
    """Make an application serve this document in place of FastAPI's own."""

    def document() -> dict[str, Any]:
        if api.openapi_schema is None:
            api.openapi_schema = made(api)
        return api.openapi_schema

    api.openapi = document  # type: ignore[method-assign]


def made(api: FastAPI) -> dict[str, Any]:
    """Return the document of an application."""
    found = get_openapi(title="Attributary", version=version("attributary"), description=_TEXT, routes=api.routes)
    for path in found["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _of_parameter(parameter["schema"])
            operation["security"] = [{}, {"token": []}]
            for answer in operation["responses"].values():
                if "application/problem+json" in answer.get("content", {}):
                    answer["content"].pop("application/json", None)
                    answer["content"]["application/problem+json"] = {"schema": _ref("Problem")}
    components = found["components"]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return found


def _of_parameter(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter, without null.

    A parameter that is not given is left out, and is never null.
    """
    kinds = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    said = {name: part for name, part in schema.items() if name not in ("title", "description")}
    if len(kinds) != 1:
        return said
    return {**{name: part for name, part in said.items() if name != "anyOf"}, **kinds[0]}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


PAGES = ("/", "/models/{rest:path}", "/incidents/{rest:path}", "/compare")
_FOREVER = "public, max-age=31536000, immutable"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NOTHING = "default-src 'none'; frame-ancestors 'none'"


def make_app(site: Site, page: Page, token: str | None = None) -> ASGIApp:
    """Return the application that answers all requests.

    Parameters
    ----------
    token
        What is asked for; None: nothing is.
    """
    api = make_api(site)
    api.include_router(watching_router(site))
    _add_page(api, page)  # the last: what nobody else answers is its
    return _Outermost(RawPaths(Faults(guarded(api, token, site.config.serve.host))), site)


def make_api(site: Site | None = None) -> FastAPI:
    """Return the REST interface alone.

    Without a site it can be described, and not be asked.
    """
    api = FastAPI(
        title="Attributary",
        openapi_url="/api/openapi.json",
        docs_url=None,  # these would load their scripts from other hosts
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    api.state.site = site
    api.router.redirect_slashes = False
    api.include_router(routes.router, prefix="/api/v1")
    api.include_router(stream.router, prefix="/api/v1")
    handle_errors(api)
    describe(api)
    return api


def _add_page(api: FastAPI, page: Page) -> None:
    async def index(request: Request) -> Response:
        return _html(request, page)

    for path in PAGES:
        api.add_api_route(path, index, include_in_schema=False)

    @api.get(page.base + "/{path:path}", include_in_schema=False)
    async def static(request: Request, path: str) -> Response:
        file = page.file(path)
        if file is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, "the page has no such file")
        headers = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding"}
        if file.packed is not None and takes_gzip(request.headers):
            return Response(file.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media_type)
        return Response(file.body, headers=headers, media_type=file.media_type)

    @api.get("/{path:path}", include_in_schema=False)
    async def nothing(request: Request) -> Response:
        """Answer a wrong path: a person with the page, a program with a problem."""
        if "text/html" in request.headers.get("accept", ""):
            return _html(request, page, HTTPStatus.NOT_FOUND)
        raise HTTPException(HTTPStatus.NOT_FOUND)


def _html(request: Request, page: Page, status: int = 200) -> Response:
    response = packed(request.headers, page.index, "text/html; charset=utf-8", status=status)
    response.headers["Content-Security-Policy"] = page.policy
    return response


class _Outermost:
    """Outermost layer: counts requests, answers HEAD, adds common headers.

    HEAD is answered as GET without a body.
    """

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kind = kind_of(scope["path"])
        is_head = scope["method"] == "HEAD" and kind != "stream"

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._site.requests[kind, message["status"]] += 1
                headers = MutableHeaders(raw=message["headers"])
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", _NOTHING)
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"} if is_head else scope, receive, sending)


def kind_of(path: str) -> str:
    """Return the class of a path, from a small set."""
    if path.startswith("/api/"):
        return "stream" if path == "/api/v1/stream" else "api"
    if path.startswith("/static/"):
        return "static"
    return "own" if path in ("/livez", "/readyz", "/metrics") else "page"
