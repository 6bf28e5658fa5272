"""Outbox of a partition's events and dead letters.

Remembers which of them brokers have not acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..activity import Activity
from ..records import Outgoing

MAX_SENT_BYTES = 16_000_000
"""Values of events and dead letters in memory before they are awaited: a dead letter is as large as its record."""


class Sent(NamedTuple):
    """Event or dead letter on its way, with the size of its value.

    `ends` ends when the broker has it.
    """

    ends: Awaitable[Any]
    n_bytes: int


class Outbox:
    """Outbox of the results of a partition's observations.

    Parameters
    ----------
    send
        Queues one record to be sent, and returns what ends when the broker has it.
    """

    def __init__(self, send: Callable[[Outgoing], Awaitable[Any]], activity: Activity) -> None:
        self._send = send
        self._activity = activity
        self._sent: list[Sent] = []
        self.n_bytes = 0
        """Bytes of the values that have no acknowledgement."""

    @property
    def sent(self) -> list[Sent]:
        """Sends that have not been waited for."""
        return list(self._sent)

    @property
    def is_full(self) -> bool:
        """Whether sends must be waited for before more is sent."""
        return self.n_bytes > MAX_SENT_BYTES

    def send(self, outgoing: Iterable[Outgoing]) -> None:
        """Send records, in this order."""
        for record in outgoing:
            self._sent.append(Sent(self._send(record), size_of(record)))
            self.n_bytes += self._sent[-1].n_bytes

    async def send_apart(self, record: Outgoing) -> None:
        """Send a record and wait until brokers have it.

        It is not counted among the others.
        """
        await self._send(record)

    async def wait_for(self, sent: Sequence[Sent]) -> None:
        """Wait until brokers have these records.

        Records that are sent meanwhile stay to be waited for.
        """
        if not sent:
            return
        awaited = [one.ends for one in sent]
        # Shielded: a step that is given up leaves what has been sent on its way.
        await self._activity.wait_for_kafka(asyncio.shield(asyncio.gather(*awaited)))
        # The handling of records and a slice may wait at the same time, for some of the same.
        known = set(map(id, awaited))
        self._sent = [one for one in self._sent if id(one.ends) not in known]
        self.n_bytes = sum(one.n_bytes for one in self._sent)


def size_of(record: Outgoing) -> int:
    """Return the bytes of a record's value."""
    return len(record.value or b"")
