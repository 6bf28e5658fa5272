"""Incident revisions from their topic, and choice of revisions to tell.

Somebody is told of the chosen revisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from attributary_topics import SEVERITIES, InvalidRecordError, decode_json

_KNOWN = 10_000
"""Open incidents of which it is known what was said last."""


@dataclass(frozen=True)
class ToldEvent:
    """Revision of an incident, with the attributes of its headers.

    Attributes
    ----------
    id, source, type, subject, time
        As CloudEvents defines them; time is None where the event has none.
    data
        The event.
    """

    id: str
    source: str
    type: str
    subject: str
    time: str | None
    data: dict[str, Any]

    @property
    def incident(self) -> str:
        """Id of the incident: of its first revision."""
        return str(self.data.get("id") or self.id)

    @property
    def headline(self) -> str:
        """Headline of the incident: the verdict alone."""
        return str(self.data.get("headline") or f"{self.subject}: {self.data.get('what')}")

    @property
    def sentence(self) -> str:
        """Sentence that tells people of the incident."""
        return str(self.data.get("sentence") or self.headline)

    @property
    def story(self) -> tuple[Any, ...]:
        """Kind, progress and leading feature of the incident, for grouping.

        They are equal where models changed in the same way.
        """
        return self.data.get("what"), self.data.get("life"), next(iter(self.data.get("features") or ()), None)


def rank(severity: Any) -> int:
    """Return the rank of a severity; unknown severities rank highest."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES) - 1


class Noteworthy:
    """Filter that chooses the incident revisions to tell.

    For this it remembers the last revision of each open incident.

    Told are those that confirm an incident or end it, the suspicion of one that is critical with what became of it, and
    that one has become critical. That an incident lasts wakes nobody. Of an incident whose last revision it does not
    know, as after a restart, it says that somebody knew.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int]] = {}

    def take(self, event: ToldEvent) -> int | None:
        """Take in a revision; return its rank if it is to be told, else None."""
        life, reason, now = event.data.get("life"), event.data.get("reason"), rank(event.data.get("severity"))
        before, worst = self._known.pop(event.incident, (None, -1))
        critical = rank("critical")
        if life in ("suspected", "confirmed"):
            self._known[event.incident] = life, max(now, worst)
            while len(self._known) > _KNOWN:
                del self._known[next(iter(self._known))]
        if life == "suspected":
            return now if now == critical else None
        if life == "confirmed":
            has_risen = reason == "raised" and now == critical > worst
            return now if reason == "confirmed" or has_risen else None
        if life == "over":
            return max(now, worst) if before != "suspected" or worst == critical else None
        return now if now == critical else None

    def forget(self, events: Iterable[ToldEvent]) -> None:
        """Forget the last revisions of these events' incidents; they come again."""
        for event in events:
            self._known.pop(event.incident, None)


def read_event(record: Any) -> ToldEvent | None:
    """Return the event of a record; None if it is no incident of ours."""
    headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    try:
        data = decode_json(record.value or b"")
    except InvalidRecordError:
        return None
    if not isinstance(data, dict) or data.get("event") != "incident":
        return None
    key = (record.key or b"").decode(errors="replace")
    return ToldEvent(
        headers.get("ce_id") or f"{record.topic}:{record.partition}:{record.offset}",
        headers.get("ce_source") or f"/attributary/{record.topic}",
        headers.get("ce_type") or "attributary.incident.v1",
        headers.get("ce_subject") or str(data.get("model_id") or key),
        headers.get("ce_time"),
        data,
    )
