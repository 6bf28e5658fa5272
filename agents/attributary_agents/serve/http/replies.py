"""JSON replies with an ETag, compressed where the client allows it."""

from __future__ import annotations

import gzip
from hashlib import blake2b

from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.responses import Response

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
