"""Makes what is sent: a CloudEvent in structured mode, or a text as chat services take it; and its signature."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import quote

from attributary_explainers.wording import printable
from attributary_topics import encode_json

from .events import ToldEvent

TYPES = {"cloudevents": "application/cloudevents+json", "text": "application/json"}
"""Format to the content type of its body."""

MOST_TEXT = 2000
"""Characters of a sentence that are sent as text: chat services take some thousand."""

_JOINER = "\u2060"  # has no width: what stands around it is no mention, no address and no link any more


def body(event: ToldEvent, format_: str, page: str | None) -> bytes:
    """Return the body for an event.

    Parameters
    ----------
    format_
        `cloudevents` or `text`.
    page
        Address of the page, for a link to the change in a text; None for no link.
    """
    if format_ == "text":
        return encode_json({"text": text(event, page)})
    attributes = {
        "specversion": "1.0",
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "subject": event.subject,
        "time": event.time,
        "datacontenttype": "application/json",
    }
    return encode_json({name: value for name, value in attributes.items() if value} | {"data": event.data})


def text(event: ToldEvent, page: str | None) -> str:
    """Return the sentence of an event, in which names from outside are neither markup nor mention nor address."""
    said = printable(event.sentence)
    said = said if len(said) <= MOST_TEXT else f"{said[:MOST_TEXT]} …"
    for mark in ("@", "](", "://", "www."):
        said = said.replace(mark, mark[0] + _JOINER + mark[1:])
    said = said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return said if page is None else f"{said} {page.rstrip('/')}/changes/{quote(event.id, safe=':')}"


def signature(secret: bytes, timestamp: int, content: bytes) -> str:
    """Return the value of X-Attributary-Signature: HMAC-SHA256 of the timestamp, a dot and the body.

    Parameters
    ----------
    timestamp
        Seconds since the epoch, as X-Attributary-Timestamp has them.
    """
    return "sha256=" + hmac.new(secret, b"%d." % timestamp + content, hashlib.sha256).hexdigest()
