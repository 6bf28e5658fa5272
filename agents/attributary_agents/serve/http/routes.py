"""Routes of the REST interface: each answers with a view of the store."""

from __future__ import annotations

import gzip
from hashlib import blake2b
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.responses import Response

from ..answers import (
    Annotation,
    Annotations,
    Axis,
    Comparison,
    DeadLetters,
    DependenceList,
    Fleet,
    Health,
    IncidentList,
    IncidentView,
    ModelView,
    Problem,
    Series,
)
from ..views.compare import compare, read_moment
from ..views.fleet import fleet as fleet_view
from ..views.incidents import annotation_list, incident, incidents
from ..views.model import dead_letters, dependences, model_view
from ..views.series import series
from .errors import MEDIA_TYPE, ProblemError
from .parameters import (
    LONGEST_ID,
    AxisFrom,
    AxisTo,
    Explainer,
    From,
    Id,
    Limit,
    Model,
    Name,
    Offset,
    To,
    Window,
    only_known,
    window_ms,
)
from .site import site_of

_PACKED_FROM = 1000  # bytes: less than that is one packet anyway
_LEVEL = 5
_OWN = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Authorization"}


def replied(asked: Headers, answer: BaseModel) -> Response:
    """Return an answer as JSON, or 304 to a client that has the same already."""
    return packed(asked, answer.model_dump_json().encode(), "application/json")


def packed(asked: Headers, body: bytes, media_type: str, *, status: int = 200) -> Response:
    """Return a body with an ETag, or 304 to a client that has it already.

    A client checks for a change each time.
    """
    tag = f'W/"{blake2b(body, digest_size=12).hexdigest()}"'
    headers = {**_OWN, "ETag": tag}
    if status == 200 and has_already(asked, tag):
        return Response(None, 304, headers)
    if len(body) >= _PACKED_FROM and takes_gzip(asked):
        body, headers = gzip.compress(body, _LEVEL), {**headers, "Content-Encoding": "gzip"}
    return Response(body, status, headers, media_type=media_type)


def has_already(asked: Headers, tag: str) -> bool:
    """Return whether `If-None-Match` names a tag; weakly, as RFC 9110 has it."""
    named = [one.strip().removeprefix("W/") for one in asked.get("if-none-match", "").split(",")]
    return "*" in named or tag.removeprefix("W/") in named


def takes_gzip(asked: Headers) -> bool:
    """Return whether `Accept-Encoding` allows gzip."""
    for one in asked.get("accept-encoding", "").lower().split(","):
        name, _, weight = one.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


MOST_VALUES = 20_000
"""Points times features of one answer: 50 features of 2000 points would be 3 MB."""

MOST_FEATURES = 50

_MOMENT = "MODEL@now, MODEL@2026-11-01T10:00 or MODEL@#OBSERVATION."


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "model": Problem, "content": {MEDIA_TYPE: {}}}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: _problem("A token is asked for, and this is none of it."),
    404: _problem("There is no such thing."),
    422: _problem("A parameter is unknown or out of its bounds."),
    503: _problem("The server fails, as where its disk is full; or, in plain text, too many ask."),
}

router = APIRouter(dependencies=[Depends(only_known)])


_ALWAYS: dict[int | str, dict[str, Any]] = {number: PROBLEMS[number] for number in (401, 422, 503)}
_OF_ONE: dict[int | str, dict[str, Any]] = {number: PROBLEMS[number] for number in (401, 404, 422, 503)}
Open = Annotated[bool | None, Query(alias="open", description="Only those that are open, or only those that are over.")]


@router.get("/models", response_model=Fleet, responses=_ALWAYS)
def fleet(
    request: Request,
    window: Window = "24h",
    q: Annotated[str, Query(max_length=200, description="Part of a model's id, or with * and ? a glob of it.")] = "",
    offset: Offset = 0,
    limit: Limit = 50,
) -> Response:
    """Show all models, in the order of attention, and whether anything is wrong, in a sentence."""
    site = site_of(request)
    answer = fleet_view(
        site.store,
        site.config,
        now_ms=site.now_ms(),
        window_ms=window_ms(window),
        query=q,
        offset=offset,
        limit=limit,
    )
    return replied(request.headers, answer)


@router.get("/models/{model_id}", response_model=ModelView, responses=_OF_ONE)
def model(request: Request, model_id: Id, window: Window = "24h") -> Response:
    """Show a model: its row, explainers, versions, dead letters."""
    site = site_of(request)
    answer = model_view(site.store, site.config, model_id, now_ms=site.now_ms(), window_ms=window_ms(window))
    return replied(request.headers, answer)


@router.get("/models/{model_id}/importances", response_model=Series, responses=_OF_ONE)
def importances(
    request: Request,
    model_id: Id,
    explainer: Explainer = None,
    start: AxisFrom = None,
    end: AxisTo = None,
    window: Annotated[Window | None, Query(description="In place of from: how far back from now.")] = None,
    by: Annotated[Axis, Query(description="What from and to count, and points are of equal width by.")] = "time",
    points: Annotated[int | None, Query(ge=2, le=2000, description="How many at most. [default: 600]")] = None,
    top: Annotated[int, Query(ge=1, le=MOST_FEATURES, description="How many of the most important features.")] = 10,
    features: Annotated[list[Name], Query(max_length=MOST_FEATURES, description="Features to show in any case.")] = [],  # noqa: B006 - as FastAPI has it
) -> Response:
    """Show importances over a window in at most so many points; points × features are at most 20 000."""
    site = site_of(request)
    n_features = min(top + len(features), MOST_FEATURES)
    most = MOST_VALUES // n_features
    if points is not None and points > most:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"{points} points of {n_features} features are more than {MOST_VALUES} values",
            f"ask for {most} points, or for fewer features",
        )
    if window is not None and start is None and by == "time" and (back := window_ms(window)) is not None:
        start = max(0, (site.now_ms() if end is None else end) - back)
    answer = series(
        site.store,
        site.config,
        model_id,
        explainer,
        start=start,
        end=end,
        by=by,
        points=min(600, most) if points is None else points,
        top=top,
        features=features,
    )
    return replied(request.headers, answer)


@router.get("/models/{model_id}/incidents", response_model=IncidentList, responses=_OF_ONE)
def incidents_of_model(
    request: Request,
    model_id: Id,
    start: From = None,
    end: To = None,
    is_open: Open = None,
    limit: Limit = 100,
) -> Response:
    """List the incidents of a model, those first that began last."""
    site = site_of(request)
    answer = incidents(site.store, site.config, model_id, start_ms=start, end_ms=end, is_open=is_open, last=limit)
    return replied(request.headers, answer)


@router.get("/models/{model_id}/dead-letters", response_model=DeadLetters, responses=_OF_ONE)
def dead_letters_of_model(request: Request, model_id: Id, start: From = None, end: To = None) -> Response:
    """Count the dead letters of a model by reason; no value of a record is kept."""
    site = site_of(request)
    return replied(request.headers, dead_letters(site.store, site.config, model_id, start_ms=start, end_ms=end))


@router.get("/models/{model_id}/dependences", response_model=DependenceList, responses=_OF_ONE)
def dependences_of_model(
    request: Request,
    model_id: Id,
    feature: Annotated[str | None, Query(min_length=1, max_length=1000, description="Of this feature alone.")] = None,
) -> Response:
    """List partial dependences of a model."""
    site = site_of(request)
    return replied(request.headers, dependences(site.store, site.config, model_id, feature))


@router.get("/incidents", response_model=IncidentList, responses=_OF_ONE)
def incidents_of_all(
    request: Request,
    model: Model = None,
    start: From = None,
    end: To = None,
    is_open: Open = None,
    limit: Limit = 100,
) -> Response:
    """List the incidents of all models, those first that began last."""
    site = site_of(request)
    answer = incidents(site.store, site.config, model, start_ms=start, end_ms=end, is_open=is_open, last=limit)
    return replied(request.headers, answer)


@router.get("/incidents/{incident_id}", response_model=IncidentView, responses=_OF_ONE)
def one_incident(request: Request, incident_id: Id) -> Response:
    """Show an incident, as its newest revision says."""
    return replied(request.headers, incident(site_of(request).store, incident_id))


@router.get("/compare", response_model=Comparison, responses=_OF_ONE)
def comparison(
    request: Request,
    a: Annotated[str, Query(min_length=1, max_length=LONGEST_ID + 40, description=_MOMENT)],
    b: Annotated[str, Query(min_length=1, max_length=LONGEST_ID + 40, description=_MOMENT)],
    explainer: Explainer = None,
) -> Response:
    """Compare two moments of a model, or of two models."""
    site = site_of(request)
    return replied(request.headers, compare(site.store, site.config, read_moment(a), read_moment(b), explainer))


@router.get("/annotations", response_model=Annotations, responses=_OF_ONE)
def marked(
    request: Request,
    start: From = None,
    end: To = None,
    model: Model = None,
    limit: Limit = 200,
) -> Response:
    """List what a dashboard of Grafana is to mark."""
    site = site_of(request)
    found = annotation_list(site.store, site.config, start_ms=start, end_ms=end, model_id=model, last=limit)
    return replied(request.headers, Annotations([Annotation(**one) for one in found]))


@router.get("/health", response_model=Health, responses=_ALWAYS)
def health(request: Request) -> Response:
    """Say whether the page can be believed to be alive, and how far the topics are read."""
    return replied(request.headers, site_of(request).health())
