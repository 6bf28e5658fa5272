"""Takes records of all kinds in one transaction, and returns what is new of them for pages."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence

from attributary_topics import InvalidRecordError

from ..rows import Arrived, Live
from .feed import Feed
from .importances import Importances
from .others import Letters, take_dependence, take_incident, take_status
from .parsing import Parser, model_id_of
from .payloads import counts_payload, importance_payload, incident_payload, status_payload

logger = logging.getLogger(__name__)

COUNTS_EVERY_S = 1.0
"""Least time between two live events with the numbers of new dead letters."""


class Writer:
    """Writes what records say; one thread at a time.

    Parameters
    ----------
    live_bytes
        As `max_bytes` of `Feed`.
    """

    def __init__(self, live_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._live_bytes = live_bytes
        self._clock = clock
        self._parser = Parser()
        self._importances = Importances()
        self._letters = Letters()
        self._feed: Feed | None = None
        self._counted = -COUNTS_EVERY_S
        self.n_refused = 0
        """Records that were no events, and were passed over."""
        self.touched: set[str] = set()
        """Models of which something new has been written since this was emptied."""

    def forget(self) -> None:
        """Forget what is known of the file: it has changed otherwise, or a transaction has failed."""
        self._importances.forget()
        self._letters.forget()
        self._feed = None

    def refresh(self) -> None:
        """Read again what is known of series: they have been thinned, or dropped."""
        self._importances.forget()

    @property
    def has_counts(self) -> bool:
        """Whether pages are to be told of new dead letters now."""
        return bool(self._letters.n_new) and not 0 <= self._clock() - self._counted < COUNTS_EVERY_S

    def feed(self, db: sqlite3.Connection) -> Feed:
        """Return the feed of live events."""
        if self._feed is None:
            self._feed = Feed(db, self._live_bytes)
        return self._feed

    def take(
        self,
        db: sqlite3.Connection,
        records: Sequence[Arrived],
        positions: Mapping[tuple[str, int], int],
        *,
        live: bool,
    ) -> list[Live]:
        """Write records in the transaction that is open; return the live events, none where `live` is False."""
        told: list[tuple[str, str, bytes]] = []
        for record in records:
            try:
                told += self._take(db, record, live=live)
            except InvalidRecordError as error:
                self._refuse(record, error)
        self._importances.flush(db, int(self._clock() * 1000))
        self._letters.flush(db)
        told += self._counts(live=live)
        db.executemany(
            "insert or replace into positions values (?, ?, ?)", [(*place, next_) for place, next_ in positions.items()]
        )
        return self.feed(db).add(db, told)

    def _take(self, db: sqlite3.Connection, record: Arrived, *, live: bool) -> list[tuple[str, str, bytes]]:
        if record.kind == "dead_letter":
            self._letters.take(db, record)
            return []
        model_id = model_id_of(record.model_id)
        if record.kind == "status":
            is_new = take_status(db, record)
            data = status_payload(model_id, record.event) if is_new and live else b""
        elif record.kind == "incident":
            incident = take_incident(db, record)
            is_new = incident is not None
            data = incident_payload(incident) if incident is not None and live else b""
        elif record.event.get("event") == "dependence":
            is_new, data = take_dependence(db, record), b""
        else:
            event = self._parser.importance(model_id, record.event)
            t = self._importances.take(db, event, record.time_ms)
            is_new = t is not None
            data = importance_payload(event, t) if is_new and live else b""
        if is_new:
            self.touched.add(model_id)
        return [(record.kind, model_id, data)] if data else []

    def _counts(self, *, live: bool) -> list[tuple[str, str, bytes]]:
        """Return the numbers of new dead letters, at most once a second; those between come with the next."""
        if not live:
            self._letters.n_new.clear()
        if not self.has_counts:
            return []
        self._counted = self._clock()
        data = counts_payload(self._letters.n_new)
        self._letters.n_new.clear()
        return [("dead_letter_counts", "", data)]

    def _refuse(self, record: Arrived, error: InvalidRecordError) -> None:
        if self.n_refused == 0:
            logger.warning(
                "%s topic, partition %d, offset %d: passed over, since it is not what workers write (%s); further ones "
                "are counted",
                *(record.kind, record.partition, record.offset, error),
            )
        self.n_refused += 1
