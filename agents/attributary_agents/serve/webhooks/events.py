"""Reads the events of the topic of changes, and says which of the words of a webhook's `events` each falls under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from attributary_topics import InvalidRecordError, decode_json

Word = Literal["alarm", "change", "shift"]

WORDS: dict[str, Word] = {
    "alarm": "alarm",
    "not_confirmed": "alarm",
    "explanation": "change",
    "loss_shift": "change",
    "loss_shift_explained": "change",
    "loss_shift_released": "change",
    "recovered": "change",
    "importance_shift": "shift",
    "importance_shift_released": "shift",
}
"""Kind of event to the word that it falls under. What is not confirmed is told to those who have heard the alarm."""


@dataclass(frozen=True)
class ToldEvent:
    """Holds an event of the topic of changes with the attributes of its headers.

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
    def word(self) -> Word:
        """The word of a webhook's `events` that it falls under; a kind that a later release has added is a change."""
        return WORDS.get(self.kind, "change")

    @property
    def kind(self) -> str:
        """The field `event`."""
        return str(self.data.get("event", ""))

    @property
    def sentence(self) -> str:
        """What it says to people."""
        return str(self.data.get("sentence") or f"{self.subject}: {self.kind}")


def read_event(record: Any) -> ToldEvent | None:
    """Return the event of a record; None where it is none, which somebody else has written."""
    headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    try:
        data = decode_json(record.value or b"")
    except InvalidRecordError:
        return None
    if not isinstance(data, dict) or not isinstance(data.get("event"), str):
        return None
    key = (record.key or b"").decode(errors="replace")
    return ToldEvent(
        headers.get("ce_id") or f"{record.topic}:{record.partition}:{record.offset}",
        headers.get("ce_source") or f"/attributary/{record.topic}",
        headers.get("ce_type") or "attributary.change.v1",
        headers.get("ce_subject") or str(data.get("model_id") or key),
        headers.get("ce_time"),
        data,
    )
