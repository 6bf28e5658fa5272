"""Records as expressions see them: a value, and the record's own names.

The record's own names are `$key`, `$headers` and others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(slots=True)
class RecordView:
    """A record as expressions see it; its own fields are read on demand.

    Attributes
    ----------
    value
        What the record's value was decoded to, or the part of it that the roles read.
    """

    value: Any
    topic: str = ""
    partition: int = 0
    offset: int = 0
    timestamp_ms: int = 0
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    _read: dict[str, Any] | None = None

    def own(self, name: str) -> Any:
        """Return the record's own field of this name, `$` included."""
        if self._read is None:  # most records are never asked
            self._read = {}
        if name not in self._read:
            self._read[name] = _OWN[name](self)
        return self._read[name]

    def of(self, value: Any) -> RecordView:
        """Return the same record with another value to read."""
        return RecordView(
            value, self.topic, self.partition, self.offset, self.timestamp_ms, self.key, self.headers, self._read
        )


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None


def _key(view: RecordView) -> Any:
    text = _text(view.key)
    if text is None or not text.startswith("{"):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


_OWN: dict[str, Callable[[RecordView], Any]] = {
    "$key": _key,
    "$headers": lambda view: {name: _text(raw) for name, raw in view.headers},
    "$timestamp": lambda view: view.timestamp_ms,
    "$topic": lambda view: view.topic,
    "$partition": lambda view: view.partition,
    "$offset": lambda view: view.offset,
}

OWN_NAMES = tuple(_OWN)
"""What a record has beside its value: its key (text, or an object where it is one in JSON), its headers by name (text;
null where they are no UTF-8), Kafka's timestamp in milliseconds, its topic, partition and offset."""
