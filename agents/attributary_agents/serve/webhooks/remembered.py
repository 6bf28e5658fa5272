"""Memory of the events taken from a partition, kept across restarts.

It is kept in the note beside a committed offset.

After a crash of a worker the topic has some events twice, with the same ids. The note has no room for ids: it holds 48
bits of a hash of each of the last ones, so one of a hundred billion new events is taken for a known one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping

_BYTES = 6  # base64 makes eight characters of them

NOTED = 300
"""Last events of a partition that are known after a restart: 2400 of the note's bytes."""

KNOWN = 10_000
"""Last events of a partition that are known within a process."""

_MOST_OPEN = 1200  # characters of the note for events under way


class Remembered:
    """Memory of the last events of a partition.

    Parameters
    ----------
    note
        What `note` has returned to this process or to another one; what is not like that is taken as empty.

    Attributes
    ----------
    owner
        Which process has written the note; empty where none is known.
    open
        Name of a webhook to events that its writer had taken and not told of yet.
    """

    def __init__(self, note: str = "") -> None:
        self._known: dict[bytes, None] = {}
        self.owner = ""
        self.open: Counter[str] = Counter()
        try:
            told = json.loads(note) if note else {}
            self.owner = str(told.get("by", ""))
            self.open.update({str(name): int(n) for name, n in told.get("open", {}).items() if int(n) > 0})
            hashes = base64.b64decode(told.get("ids", ""), validate=True)
        except (ValueError, TypeError, AttributeError, OverflowError):
            return
        for at in range(0, len(hashes) - len(hashes) % _BYTES, _BYTES):
            self._known[hashes[at : at + _BYTES]] = None

    def take(self, event_id: str) -> bool:
        """Remember an event; return whether it was not known."""
        found = _hash(event_id)
        if found in self._known:
            return False
        self._add(found)
        return True

    def forget(self, event_ids: Iterable[str]) -> None:
        """Forget events: they have not been taken after all."""
        for event_id in event_ids:
            self._known.pop(_hash(event_id), None)

    def learn(self, other: Remembered) -> None:
        """Add the events that another memory holds, as the latest."""
        for found in list(other._known):
            self._known.pop(found, None)
            self._add(found)

    def _add(self, found: bytes) -> None:
        self._known[found] = None
        while len(self._known) > KNOWN:
            del self._known[next(iter(self._known))]

    def note(self, owner: str, under_way: Mapping[str, int]) -> str:
        """Return the note for the next process: ASCII, under 4000 characters.

        Parameters
        ----------
        under_way
            Name of a webhook to events that are taken and not told of yet.
        """
        ids = base64.b64encode(b"".join(list(self._known)[-NOTED:])).decode()
        open_ = {name: n for name, n in sorted(under_way.items()) if n}
        while len(json.dumps(open_)) > _MOST_OPEN:
            open_.popitem()
        return json.dumps({"by": owner, "open": open_, "ids": ids}, separators=(",", ":"))


def _hash(event_id: str) -> bytes:
    return hashlib.sha256(event_id.encode("utf-8", "surrogatepass")).digest()[:_BYTES]
