"""Keeps what the output topics have said in one SQLite file, and answers from it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import orjson

from .asking import incidents, latest, moments, windows
from .asking.lists import Lists
from .bounding.dropping import drop_old, drop_oldest
from .bounding.thinning import series_to_thin, thin
from .file.errors import StoreFullError
from .file.schema import EMPTIED
from .file.store_file import DamagedError, StoreFile
from .rows import (
    Arrived,
    Kind,
    Live,
    Snapshot,
    StoredIncident,
    StoredModel,
    StoredReason,
    StoredVersion,
    Window,
)
from .taking import feed
from .taking.payloads import gone_payload
from .taking.writer import Writer

T = TypeVar("T")

__all__ = ["DamagedError", "Store", "StoreFullError"]

_TRIES = 8
_LIVE_SHARE = 20  # of the bytes that the file may have, one in so many are for the feed of live events


class Store:
    """Keeps events, one packed row each; one thread at a time writes, any number read meanwhile.

    Parameters
    ----------
    path
        The file, made if it is not there; None keeps everything in a temporary file that goes with the object.
    max_bytes
        Largest size of the file; the oldest events go first.
    max_age_s
        How long events are kept, by their own times.

    Raises
    ------
    StoreError
        The file cannot be opened, or another server has it open.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        max_bytes: int = 2 * 10**9,
        max_age_s: float = 30 * 86400.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = StoreFile(path, max_bytes)
        self._max_bytes = max_bytes
        self._max_age_ms = int(max_age_s * 1000)
        self._writer = Writer(max_bytes // _LIVE_SHARE, clock)
        self._lists = Lists()
        self._models: dict[str, StoredModel] = {}
        self._remembering = threading.Lock()
        self._n_writes = self._all_written = 0
        self._written: dict[str, int] = {}
        self._generation = 0
        self._untold: list[Live] = []

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def generation(self) -> int:
        """Grows each time that all has been dropped: by `forget`, or because the file was damaged."""
        return self._generation + self._file.generation

    @property
    def n_refused(self) -> int:
        """How many records were no events and have been passed over, since the store was opened."""
        return self._writer.n_refused

    # What is written.

    def take(
        self, records: Sequence[Arrived], positions: Mapping[tuple[str, int], int] = {}, *, live: bool = True
    ) -> list[Live]:
        """Take records, and where their topics are read to, in one transaction; return what is new of them for pages.

        A record that it has already changes nothing. `positions` is topic and partition to the next offset.

        Parameters
        ----------
        live
            Whether pages are told of each; behind a long past they are told once to ask again, see `reload`.

        Raises
        ------
        StoreFullError
            The disk is full: nothing of them is taken, and they can be given again.
        DamagedError
            The file was damaged and is empty now: all is to be read again.
        """
        taken = self._write(lambda db: self._writer.take(db, records, positions, live=live))
        told, self._untold = self._untold + taken, []
        return told

    @property
    def has_untold(self) -> bool:
        """Whether `take` has something to return, though it is given nothing."""
        return bool(self._untold) or self._writer.has_counts

    def reload(self) -> list[Live]:
        """Tell pages that what they show is to be asked for again; return the live event."""
        return self._write(lambda db: self._writer.feed(db).add(db, [("reload", "", b"{}")]))

    def _write(self, write: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with self._file.writing() as db:
                written = write(db)
        except BaseException:
            self._writer.forget()
            self._forget_models(None)
            raise
        self._forget_models(self._writer.touched)
        self._writer.touched = set()
        return written

    def _ask(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        """Return what is found; in an empty store, where the file is found to be damaged."""
        try:
            with self._file.reading() as db:
                return ask(db)
        except DamagedError:
            self._writer.forget()
            self._forget_models(None)
        with self._file.reading() as db:
            return ask(db)

    def _forget_models(self, model_ids: Collection[str] | None) -> None:
        """Let what is remembered of models, of all for None, be read again."""
        with self._remembering:
            self._n_writes += 1
            if model_ids is None:
                self._all_written = self._n_writes
                self._models, self._written = {}, {}
                self._lists.forget()
                return
            for model_id in model_ids:
                self._written[model_id] = self._n_writes
                self._models.pop(model_id, None)

    def positions(self) -> dict[tuple[str, int], int]:
        """Return where each partition of each topic is read to."""
        found = self._ask(lambda db: db.execute("select topic, part, next from positions").fetchall())
        return {(topic, part): next_ for topic, part, next_ in found}

    def topics(self) -> dict[str, str]:
        """Return Kafka's ids of the topics that were read."""
        return dict(self._ask(lambda db: db.execute("select name, topic_id from topics").fetchall()))

    def note_topics(self, ids: Mapping[str, str]) -> None:
        """Note Kafka's ids of the topics that are read from now on."""
        self._write(lambda db: db.executemany("insert or replace into topics values (?, ?)", list(ids.items())))

    def forget(self) -> None:
        """Drop everything: the topics have been made anew. Pages are told to ask again."""

        def drop(db: sqlite3.Connection) -> None:
            for table in EMPTIED:
                db.execute(f"delete from {table}")
            self._writer.forget()
            self._writer.feed(db).add(db, [("reload", "", b"{}")])

        self._write(drop)
        self._forget_models(None)
        self._generation += 1

    def trim(self, now_ms: int) -> None:
        """Thin and drop what is too old or too much; models of which nothing is left are told of by the next `take`."""
        before = self._ask(latest.model_ids)
        for series, upto_ms in self._ask(lambda db: series_to_thin(db, now_ms)):
            while self._change(lambda db, series=series, upto_ms=upto_ms: thin(db, series, upto_ms)):  # type: ignore[misc]
                pass
        self._change(lambda db: drop_old(db, now_ms, self._max_age_ms))
        for _ in range(_TRIES):
            if (excess := self._file.excess()) <= 0:
                break
            if not self._change(lambda db, excess=excess: drop_oldest(db, excess)):  # type: ignore[misc]
                break
        self._file.shrink()
        if gone := sorted(set(before) - set(self._ask(latest.model_ids))):
            told = [("gone", model_id, gone_payload(model_id)) for model_id in gone]
            self._untold += self._write(lambda db: self._writer.feed(db).add(db, told))

    def _change(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Change what was taken before, in a transaction of its own, and remember nothing of it."""
        changed = self._write(change)
        self._writer.refresh()
        self._forget_models(None)
        return changed

    # What is read.

    def models(self) -> list[StoredModel]:
        """Return all models, by their ids."""
        now = self._n_writes  # before the moment that is read
        found = self._ask(lambda db: [self._model(db, model_id, now) for model_id in latest.model_ids(db)])
        return [model for model in found if model is not None]

    def model(self, model_id: str) -> StoredModel | None:
        """Return a model; None where no topic has said anything of it."""
        now = self._n_writes
        return self._ask(lambda db: self._model(db, model_id, now))

    def _model(self, db: sqlite3.Connection, model_id: str, now: int) -> StoredModel | None:
        if (known := self._models.get(model_id)) is not None:
            return known
        model = latest.find_model(db, self._lists, model_id)
        # What has been written since then may not be in what was read: then it is read again the next time.
        with self._remembering:
            if model is not None and max(self._written.get(model_id, 0), self._all_written) <= now:
                self._models[model_id] = model
        return model

    def window(
        self,
        model_id: str,
        explainer: str,
        *,
        start: int | None = None,
        end: int | None = None,
        by: str = "time",
        points: int = 600,
        top: int = 10,
        features: Collection[str] = (),
    ) -> Window | None:
        """Return a window of an explainer's events, bounds included; None where there is no event in it.

        It is of the latest removal and loss that have an event in it, since others are no comparable numbers. By
        observation it is of the latest count of observations that has one, where a model has begun anew.

        Parameters
        ----------
        start, end
            Milliseconds since the epoch, or observations; None: from the first, to the last.
        by
            `time` or `observation`: what start, end and the equal widths of points count.
        points
            How many there are at most; where there are no more events than that, each is one.
        top
            How many features are shown, the most important of the last event, and those of `features` in any case.
        """

        def find(db: sqlite3.Connection) -> Window | None:
            extent = windows.find_extent(db, model_id, explainer, start, end, by)
            if extent is None:
                return None
            return windows.window(db, self._lists, extent, by=by, points=max(points, 1), top=top, features=features)

        return self._ask(find)

    def recent(
        self, model_id: str, explainer: str, scalar: str, *, start: int | None, points: int
    ) -> list[float | None]:
        """Return one of `SCALARS` from a moment on, put together into at most so many values."""
        return self._ask(lambda db: moments.find_recent(db, model_id, explainer, scalar, start, max(points, 1)))

    def snapshot(
        self, model_id: str, explainer: str, *, time_ms: int | None = None, observation: int | None = None
    ) -> Snapshot | None:
        """Return the last event at or before a moment, or of all where none is given; the first where all are later."""
        return self._ask(lambda db: moments.find_snapshot(db, self._lists, model_id, explainer, time_ms, observation))

    def nearest(self, model_id: str, explainer: str, value: int, by: str) -> tuple[int | None, int] | None:
        """Return time and observation of the event that is nearest to a moment."""
        return self._ask(lambda db: moments.find_nearest(db, model_id, explainer, value, by))

    def versions(self, model_id: str) -> list[StoredVersion]:
        """Return the versions of a model, the newest first."""
        return self._ask(lambda db: moments.find_versions(db, model_id))

    def incidents(
        self,
        model_id: str | None = None,
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        is_open: bool | None = None,
        last: int | None = None,
    ) -> list[StoredIncident]:
        """Return the newest revision of each incident of a time, those first that began last.

        One is of a time in which it began, went on, or was told of last.
        """
        return self._ask(lambda db: incidents.find_incidents(db, model_id, start_ms, end_ms, is_open, last))

    def n_incidents(
        self,
        model_id: str | None = None,
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        is_open: bool | None = None,
    ) -> int:
        """Return how many there are."""
        return self._ask(lambda db: incidents.count_incidents(db, model_id, start_ms, end_ms, is_open))

    def incident(self, incident_id: str) -> StoredIncident | None:
        """Return an incident by its id, as its newest revision says."""
        return self._ask(lambda db: incidents.find_incident(db, incident_id))

    def dead_letters(
        self, model_id: str | None = None, *, start_ms: int | None = None, end_ms: int | None = None
    ) -> list[StoredReason]:
        """Count dead letters by model, reason and stage, by the hour that they are of."""
        return self._ask(lambda db: moments.count_letters(db, model_id, start_ms, end_ms))

    def dependences(self, model_id: str) -> list[Mapping[str, object]]:
        """Return the latest partial dependence event of each feature."""
        asked = "select value, t from dependences where model_id = ? order by feature, explainer, label"
        found = self._ask(lambda db: db.execute(asked, (model_id,)).fetchall())
        return [orjson.loads(value) | {"time_ms": t} for value, t in found]

    def live(self, after: int, *, last: int = 10_000) -> list[Live] | None:
        """Return live events behind an id; None where the first of them is not kept any more."""
        return self._ask(lambda db: feed.live(db, after, last))

    @property
    def position(self) -> int:
        """Id of the latest live event; 0 before there is one."""
        return self._ask(lambda db: feed.position(db))

    @property
    def seen_ms(self) -> int | None:
        """When the last importance event was taken, by the clock of whoever took it; None before there is one."""
        (found,) = self._ask(lambda db: db.execute("select max(seen_ms) from series").fetchone())
        return found or None

    def size(self) -> int:
        """Return the bytes that the file takes."""
        return self._file.size()

    def n_records(self, kind: Kind) -> int:
        """Return how many events of a kind are kept, or are in the means that are."""
        counted = {
            "importance": "select coalesce(sum(n_events), 0) from series",
            "incident": "select count(*) from incidents",
            "dead_letter": "select coalesce(sum(n), 0) from letters",
            "status": "select count(*) from statuses",
        }
        return int(self._ask(lambda db: db.execute(counted[kind]).fetchone()[0]))

    def close(self) -> None:
        """Write what is written and close the file."""
        self._file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
