"""Bodies of webhooks: CloudEvents or chat texts, with their signatures.

CloudEvents are in structured mode.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from urllib.parse import quote

from attributary_explainers.incidents.words import DID_TOGETHER
from attributary_explainers.wording import printable
from attributary_topics import encode_json

from .events import ToldEvent, rank

TYPES = {"cloudevents": "application/cloudevents+json", "text": "application/json"}
"""Format to the content type of its body."""

MOST_TEXT = 2000
"""Characters of a sentence that are sent as text: chat services take some thousand."""

_JOINER = "\u2060"  # has no width: what stands around it is no mention, no address and no link any more


_MARKS = {"info": "🔵", "warning": "🟠", "critical": "🔴"}
_ENDED = "⚪"

MOST_NAMES = 10
"""Models that are named where several changed together."""


def body(event: ToldEvent, format_: str, page: str | None, others: Sequence[ToldEvent] = ()) -> bytes:
    """Return the body for an event.

    Parameters
    ----------
    format_
        `cloudevents` or `text`.
    page
        Address of the page, for a link to the incident in a text; None for no link.
    others
        Events of other models with the same story, which a text tells with it.
    """
    if format_ == "text":
        return encode_json({"text": together([event, *others], page) if others else text(event, page)})
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
    """Return an event's headline, its remaining sentences and its link."""
    headline, rest = event.headline, event.sentence
    for end in (". ", ": "):  # a sentence begins with its headline
        rest = rest.removeprefix(headline + end)
    lines = [f"{_mark(event)}{_plain(headline)}", _plain(rest[:1].upper() + rest[1:]) if rest != headline else ""]
    link = "" if page is None else f"{page.rstrip('/')}/incidents/{quote(event.incident, safe=':')}"
    return "\n".join(filter(None, [*lines, link]))


def together(events: Sequence[ToldEvent], page: str | None) -> str:
    """Return a text on several models with the same story.

    It says how many they are, when, the feature, and their names.
    """
    what, life, feature = events[0].story
    times = sorted(time for event in events if (time := (event.data.get("since") or {}).get("time")))
    at = f" at {times[0][11:16]} UTC" if times else ""
    said = f"{len(events)} models {DID_TOGETHER.get(what, 'changed')} together{at}" + (
        f": {feature}" if feature else ""
    )
    names = ", ".join(event.subject for event in events[:MOST_NAMES])
    more = f" and {len(events) - MOST_NAMES} more" if len(events) > MOST_NAMES else ""
    worst = max(events, key=lambda event: rank(event.data.get("severity")))
    told = _mark(worst) + ("" if life == "confirmed" else f"{life}: ") + _plain(said)
    lines = [told, _plain(str(worst.data.get("action") or "")), _plain(names) + more]
    return "\n".join(filter(None, [*lines, "" if page is None else f"{page.rstrip('/')}/"]))


def _mark(event: ToldEvent) -> str:
    mark = _ENDED if event.data.get("life") in ("over", "withdrawn") else _MARKS.get(str(event.data.get("severity")))
    return "" if mark is None else f"{mark} "


def _plain(said: str) -> str:
    """Defuse markup, mentions and addresses in a text with outside names."""
    said = printable(said)
    said = said if len(said) <= MOST_TEXT else f"{said[:MOST_TEXT]} …"
    for mark in ("@", "](", "://", "www."):
        said = said.replace(mark, mark[0] + _JOINER + mark[1:])
    return said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def signature(secret: bytes, timestamp: int, content: bytes) -> str:
    """Return the value of X-Attributary-Signature, an HMAC-SHA256.

    It is that of the timestamp, a dot and the body.

    Parameters
    ----------
    timestamp
        Seconds since the epoch, as X-Attributary-Timestamp has them.
    """
    return "sha256=" + hmac.new(secret, b"%d." % timestamp + content, hashlib.sha256).hexdigest()
