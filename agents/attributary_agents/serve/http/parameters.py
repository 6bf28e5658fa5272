"""Parameters that several routes share, and ids in paths."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated
from urllib.parse import unquote

from fastapi import Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BeforeValidator, WithJsonSchema
from starlette.types import ASGIApp, Receive, Scope, Send

from attributary_explainers.wording import did_you_mean

from ...config.section import seconds_of
from .errors import ProblemError, cut

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


LATEST = 2**53 - 1
"""Largest time and largest observation: what a number of JSON holds exactly."""

_LONGEST_WINDOW_S = 10 * 366 * 86400.0
_REPEATED = ("features",)


async def only_known(request: Request) -> None:
    """Raise ProblemError for an unknown or repeated parameter of a request."""
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = [one.alias for one in route.dependant.query_params]
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in known:
            remedy = did_you_mean(name, known).removeprefix(": ")
            there = f"there are {', '.join(known)}" if known else "it takes none"
            detail = f"{cut(name)!r} is no parameter of {route.path}"
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, detail, remedy or there)
        if name not in _REPEATED and names.count(name) > 1:
            detail = f"{name} is given {names.count(name)} times"
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, detail, "give it once")


def window_ms(text: str) -> int | None:
    """Return the milliseconds of a window; None for all.

    Raises
    ------
    ValueError
        It is none.
    """
    if text == "all":
        return None
    try:
        seconds = float(seconds_of(text))
    except ValueError:
        seconds = 0.0
    if not 1.0 <= seconds <= _LONGEST_WINDOW_S:
        raise ValueError("expected all, or a duration from 1s to 3660d, such as 1h, 24h or 7d")
    return round(1000.0 * seconds)


def _checked(text: str) -> str:
    window_ms(text)
    return text


Window = Annotated[
    str,
    Query(description="How far back to look: 1h, 24h, 7d, or all."),
    AfterValidator(_checked),
    WithJsonSchema({"type": "string", "pattern": r"^([1-9][0-9]{0,2}(s|m|h|d)|all)$"}),
]
"""A duration, see `window_ms`."""

From = Annotated[
    int | None,
    Query(alias="from", ge=0, le=LATEST, description="First moment: milliseconds since the epoch."),
]
To = Annotated[int | None, Query(alias="to", ge=0, le=LATEST, description="Last moment: milliseconds since the epoch.")]
AxisFrom = Annotated[
    int | None,
    Query(alias="from", ge=0, le=LATEST, description="First moment: milliseconds since the epoch, or observation."),
]
AxisTo = Annotated[
    int | None,
    Query(alias="to", ge=0, le=LATEST, description="Last moment: milliseconds since the epoch, or observation."),
]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most, the newest.")]
Offset = Annotated[int, Query(ge=0, le=10**6, description="How many to leave out.")]
Explainer = Annotated[
    str | None, Query(min_length=1, max_length=100, description="Name of the explainer. [default: the first]")
]
Name = Annotated[str, Query(min_length=1, max_length=1000)]
Model = Annotated[str | None, Query(min_length=1, max_length=LONGEST_ID, description="Of this model alone.")]
