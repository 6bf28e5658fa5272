"""Store of the output topics' records in a single SQLite file."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from attributary_explainers.ranking import shares

from ..answers import VersionRow
from .file import DamagedError, StoreFile, StoreFullError
from .rows import (
    SCALARS,
    Arrived,
    Floats,
    Live,
    Pairs,
    Snapshot,
    StoredExplainer,
    StoredIncident,
    StoredModel,
    StoredReason,
    Window,
)
from .writer import Writer, live_position, tell

__all__ = ["DamagedError", "Store", "StoreFullError"]

T = TypeVar("T")

MOST_READ = 20_000
"""Events of a window that are read; of more it is every second one, or every third and so on, and the last."""

_DROPPED_AT_ONCE = 100
_LIVE_SHARE = 20  # of the bytes that the file may have, one in so many are for the feed of live events
_FRESH_MS = 600_000  # how much older the status of one shard may be than that of another
_SUMMED = ("n_observations", "n_refused", "observations_per_second", "n_waiting", "n_expired")
_WORST = ("refused", "changed", "explained", "learning")
_LARGEST = float(np.finfo(np.float64).max)
_UNKNOWN = (None, None)
_INCIDENT = "incidents.id, model_id, t, begun, observation, is_open"
_OF_INCIDENTS = ("model_id = ?", "(is_open or t >= ?)", "begun <= ?", "is_open = ?")
_EVENT = (
    "model_id, explainer, removal, loss, loss_unit, loss_largest, alpha, mode, version, t, observation, n_observations"
)
_MODELS = """select model_id from series where exists (select 1 from importances where series = series.id)
    union select model_id from statuses union select model_id from incidents order by 1"""
_EXTENT = """select (select count(*) from importances where series = :id),
    (select nullif(min(t), 0) from importances where series = :id),
    (select nullif(max(t), 0) from importances where series = :id),
    (select min(observation) from importances where series = :id and run = :run),
    (select max(observation) from importances where series = :id and run = :run)"""
# Events are of their own times, and too old where they are so much older than the latest of their series, or than now:
# data of another century, played today, are not. A series goes where nothing has come of it for so long.
_OLD = (
    "delete from importances where series in (select id from series where max(last_ms, seen_ms) < :oldest)",
    "delete from series where max(last_ms, seen_ms) < :oldest",
    """delete from incidents where t < :oldest and t < :oldest - :now + min(:now, coalesce(
        (select max(last_ms) from series where series.model_id = incidents.model_id), :now))""",
    "delete from statuses where t < :oldest",
    "delete from letters where last_ms < :oldest",
    "delete from dependences where model_id not in (select model_id from series)",
    """delete from versions where not exists (select 1 from series join importances on importances.series = series.id
        where series.model_id = versions.model_id and t <= versions.last_ms)""",
    """delete from live where id <= (select max(id) from (
        select id, sum(length(data)) over (order by id desc) as size from live) where size > :live_bytes)""",
)
_OLDEST = """select t, 'importances', id from importances union all
    select t, 'incidents', id from incidents where t is not null order by 1 limit ?"""


_NAMED = [one.name for one in fields(Snapshot)][:12]


class _Part(NamedTuple):
    """SQL condition that selects events, with the ends of their axis.

    The last two of `values` are the bounds of the axis, and `low` and `high` its ends.
    """

    axis: str
    where: str
    values: tuple[int, ...]
    low: int
    high: int


class Store:
    """Store of events, with a single writer and any number of readers.

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
        self.path = self._file.path
        self._live_bytes, self._max_age_ms = max_bytes // _LIVE_SHARE, int(max_age_s * 1000)
        self._writer = Writer(self._max_age_ms, clock)
        self._models: dict[str, StoredModel] = {}
        self._remembering = threading.Lock()
        self._n_writes = self._generation = 0
        self._untold: list[Live] = []

    @property
    def generation(self) -> int:
        """Number of times that everything was dropped.

        By `forget`, or because the file was damaged.
        """
        return self._generation + self._file.generation

    @property
    def n_refused(self) -> int:
        """Number of refused records since the store was opened."""
        return self._writer.n_refused

    # What is written.

    def take(
        self, records: Sequence[Arrived], positions: Mapping[tuple[str, int], int] = {}, *, live: bool = True
    ) -> list[Live]:
        """Store records and read positions; return the new events for pages.

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
        taken = self._write(lambda db: self._writer.take(db, records, positions, live=live), self._writer.touched)
        told, self._untold = self._untold + taken, []
        return told

    @property
    def has_untold(self) -> bool:
        """Whether `take` has events to return even when given no records."""
        return bool(self._untold) or self._writer.has_counts

    def reload(self) -> list[Live]:
        """Return a live event that makes pages load their content again."""
        return self._write(lambda db: tell(db, [("reload", "", b"{}")]), set())

    def _write(self, write: Callable[[sqlite3.Connection], T], touched: set[str] | None = None) -> T:
        """Write, and forget the remembered models that are touched; all for None."""
        try:
            with self._file.writing() as db:
                return write(db)
        except BaseException:
            self._writer.forget()
            touched = None
            raise
        finally:
            with self._remembering:
                self._n_writes += 1
                for model_id in list(self._models) if touched is None else touched:
                    self._models.pop(model_id, None)
            self._writer.touched.clear()

    def _ask(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of a query; run it again on a file remade empty.

        A file that is found to be damaged is replaced by an empty file first.
        """
        try:
            with self._file.reading() as db:
                return ask(db)
        except DamagedError:
            with self._remembering:
                self._models.clear()
        with self._file.reading() as db:
            return ask(db)

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        return self._ask(lambda db: db.execute(sql, values).fetchall())

    def positions(self) -> dict[tuple[str, int], int]:
        """Return where each partition of each topic is read to."""
        return {(topic, part): next_ for topic, part, next_ in self._rows("select * from positions")}

    def topics(self) -> dict[str, str]:
        """Return Kafka's ids of the topics that were read."""
        return dict(self._rows("select * from topics"))

    def note_topics(self, ids: Mapping[str, str]) -> None:
        """Note Kafka's ids of the topics that are read from now on."""
        self._write(lambda db: db.executemany("insert or replace into topics values (?, ?)", list(ids.items())))

    def forget(self) -> None:
        """Drop everything because the topics were replaced; make pages reload."""

        def drop(db: sqlite3.Connection) -> None:
            tables = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
            for (table,) in db.execute(tables).fetchall():
                db.execute(f"delete from {table}")
            tell(db, [("reload", "", b"{}")])

        self._writer.forget()
        self._write(drop)
        self._generation += 1

    def trim(self, now_ms: int) -> None:
        """Drop events beyond the limits of age and size.

        The next `take` tells which models are gone.
        """
        before = self._rows(_MODELS)
        at = {"now": now_ms, "oldest": now_ms - self._max_age_ms, "live_bytes": self._live_bytes}

        def drop_old(db: sqlite3.Connection) -> None:
            firsts = db.execute("select id, min(last_ms, :now) - :now + :oldest from series", at).fetchall()
            db.executemany("delete from importances where series = ? and t < ?", firsts)
            for statement in _OLD:
                db.execute(statement, at)

        def drop_oldest(db: sqlite3.Connection) -> int:
            found = db.execute(_OLDEST, (_DROPPED_AT_ONCE,)).fetchall()
            for table in ("importances", "incidents"):
                db.executemany(f"delete from {table} where id = ?", [(one,) for _, kind, one in found if kind == table])
            return len(found)

        self._write(drop_old)
        if self._file.is_above(1.0):
            while self._file.is_above(0.9) and self._write(drop_oldest):
                pass
        self._file.shrink()
        after = set(self._rows(_MODELS))
        gone = [("gone", one, orjson.dumps({"model_id": one})) for (one,) in before if (one,) not in after]
        if gone:
            self._untold += self._write(lambda db: tell(db, gone))

    # What is read.

    def models(self) -> list[StoredModel]:
        """Return all models, by their ids."""
        found = (self._remembered(model_id) for (model_id,) in self._rows(_MODELS))
        return [model for model in found if model is not None]

    def model(self, model_id: str) -> StoredModel | None:
        """Return a model; None if no topic has any record of it."""
        return self._remembered(model_id)

    def _remembered(self, model_id: str) -> StoredModel | None:
        with self._remembering:
            now, known = self._n_writes, self._models.get(model_id)
        if known is not None:
            return known
        model = self._ask(lambda db: _model(db, model_id))
        with self._remembering:
            # What has been written since then may not be in what was read: then it is read again the next time.
            if model is not None and now == self._n_writes:
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
        """Return a window of an explainer's events; None if it has none.

        The window includes its bounds.

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
            part = _part(db, model_id, explainer, start, end, by)
            return None if part is None else _window(db, part, by, max(points, 1), max(top, 0), features)

        return self._ask(find)

    def recent(
        self, model_id: str, explainer: str, scalar: str, *, start: int | None, points: int
    ) -> list[float | None]:
        """Return recent values of a scalar of `SCALARS`, at equal widths.

        Each is that of the last event in its width.

        They are widths of time; of observations where all events are of one moment.
        """

        def find(db: sqlite3.Connection) -> list[float | None]:
            part = _part(db, model_id, explainer, start, None, "time")
            if part is not None and part.low == part.high:
                part = _part(db, model_id, explainer, None, None, "observation")
            return [] if part is None else [value for (value,) in _ends(db, part, scalar, points)]

        return self._ask(find)

    def first_known(self, model_id: str, explainer: str, features: Collection[str], *, points: int) -> int | None:
        """Return the first observation at which half widths of features are known.

        The last event of each of so many widths is looked at; it is the first of these where they are never known.
        """

        def find(db: sqlite3.Connection) -> int | None:
            part = _part(db, model_id, explainer, None, None, "observation")
            first = None
            for observation, event in () if part is None else _ends(db, part, "observation, features", points):
                first, known = first or int(observation), orjson.loads(event)
                if all(known.get(name, _UNKNOWN)[1] is not None for name in features):
                    return int(observation)
            return first

        return self._ask(find)

    def snapshot(
        self, model_id: str, explainer: str, *, time_ms: int | None = None, observation: int | None = None
    ) -> Snapshot | None:
        """Return the last event at or before a moment, or of all events.

        Where all events are later, the first is returned.
        """
        by, at = ("time", time_ms) if observation is None else ("observation", observation)

        def find(db: sqlite3.Connection) -> Snapshot | None:
            if (part := _part(db, model_id, explainer, None, at, by)) is not None:
                return _event(db, part, _order(by, " desc"))
            part = _part(db, model_id, explainer, None, None, by)
            return None if part is None else _event(db, part, _order(by))

        return self._ask(find)

    def nearest(self, model_id: str, explainer: str, value: int, by: str) -> tuple[int | None, int] | None:
        """Return time and observation of the event that is nearest to a moment."""

        def find(db: sqlite3.Connection) -> tuple[int | None, int] | None:
            found = []
            for start, end in ((None, value), (value, None)):
                if (part := _part(db, model_id, explainer, start, end, by)) is not None:
                    at = part.high if start is None else part.low
                    ask = f"select t, observation from importances where {part.where} limit 1"
                    found.append((abs(at - value), db.execute(ask, (*part.values[:-2], at, at)).fetchone()))
            return min(found, key=lambda one: one[0])[1] if found else None

        return self._ask(find)

    def versions(self, model_id: str) -> list[VersionRow]:
        """Return the versions of a model, the newest first."""
        asked = (
            "select version, nullif(first_ms, 0), nullif(last_ms, 0), first_observation, last_observation "
            "from versions where model_id = ? order by taken desc"
        )
        return [
            VersionRow(**dict(zip(VersionRow.model_fields, row, strict=True))) for row in self._rows(asked, model_id)
        ]

    def incidents(
        self,
        model_id: str | None = None,
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        is_open: bool | None = None,
        last: int | None = None,
    ) -> list[StoredIncident]:
        """Return the newest revision of each incident of a time, newest first.

        The order is that of their beginnings.

        One is of a time in which it began, went on, or was told of last.
        """
        where, values = _where(_OF_INCIDENTS, (model_id, start_ms, end_ms, is_open))
        # Of one model they come in their order; of several it is by chance which one is read first.
        order = "coalesce(begun, 0) desc, model_id, since desc, number desc"
        limit = -1 if last is None else max(last, 0)
        asked = f"select {_INCIDENT}, brief from incidents where {where} order by {order} limit ?"
        return [_incident(row) for row in self._rows(asked, *values, limit)]

    def n_incidents(self, model_id: str | None = None, **of: Any) -> int:
        """Return the number of incidents that `incidents` finds without `last`."""
        given = model_id, of.get("start_ms"), of.get("end_ms"), of.get("is_open")
        where, values = _where(_OF_INCIDENTS, given)
        return int(self._rows(f"select count(*) from incidents where {where}", *values)[0][0])

    def incident(self, incident_id: str) -> StoredIncident | None:
        """Return an incident by its id, as its newest revision says."""
        asked = f"select {_INCIDENT}, value from incidents where id = ?"
        found = self._rows(asked, incident_id)
        return _incident(found[0]) if found else None

    def dead_letters(
        self, model_id: str | None = None, *, start_ms: int | None = None, end_ms: int | None = None
    ) -> list[StoredReason]:
        """Count dead letters by model, reason and stage in a window.

        All hours are counted that the window touches.
        """
        where, values = _where(("model_id = ?", "last_ms >= ?", "first_ms <= ?"), (model_id, start_ms, end_ms))
        columns = "model_id", "reason", "stage", "n", "first_ms", "last_ms"
        sums = "model_id, reason, stage, sum(n), min(first_ms), max(last_ms)"
        asked = f"select {sums} from letters where {where} group by 1, 2, 3 order by 4 desc, 1, 2, 3"
        return [StoredReason(**dict(zip(columns, row, strict=True))) for row in self._rows(asked, *values)]

    def dependences(self, model_id: str) -> list[Mapping[str, object]]:
        """Return the latest partial dependence event of each feature."""
        asked = "select value, t from dependences where model_id = ? order by feature, explainer, label"
        return [orjson.loads(value) | {"time_ms": t} for value, t in self._rows(asked, model_id)]

    def live(self, after: int, *, last: int = 10_000) -> list[Live] | None:
        """Return the live events after an id; None if some are gone already."""

        def find(db: sqlite3.Connection) -> list[Live] | None:
            end, (first,) = live_position(db), db.execute("select min(id) from live").fetchone()
            if after == end:
                return []
            if first is None or not first - 1 <= after < end or end - after > last:
                return None
            return [Live(*row) for row in db.execute("select * from live where id > ? order by id", (after,))]

        return self._ask(find)

    @property
    def position(self) -> int:
        """Id of the latest live event; 0 before there is any."""
        return self._ask(live_position)

    @property
    def seen_ms(self) -> int | None:
        """Time at which the last importance event was taken.

        In milliseconds since the epoch, by the clock of the server that took it.
        """
        return self._rows("select max(seen_ms) from series")[0][0] or None

    def size(self) -> int:
        """Return the bytes that the file takes."""
        return self._file.size()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _order(by: str, way: str = "") -> str:
    first, second = ("t", "observation") if by == "time" else ("observation", "t")
    return f"{first}{way}, {second}{way}"


def _part(
    db: sqlite3.Connection, model_id: str, explainer: str, start: int | None, end: int | None, by: str
) -> _Part | None:
    """Return the events of a window, of the latest removal and loss.

    Only of a removal and loss with an event in the window; see `Store.window`.
    """
    bounds = -(2**62) if start is None else start, 2**62 if end is None else end
    found = "select id from series where model_id = ? and explainer = ? order by taken desc"
    axis = "t" if by == "time" else "observation"
    for (series,) in db.execute(found, (model_id, explainer)).fetchall():
        where, values = f"series = ? and {axis} between ? and ?", [series, *bounds]
        if by != "time":
            ask = f"select run from importances where {where} order by run desc limit 1"
            if (run := db.execute(ask, values).fetchone()) is None:
                continue
            where, values = f"series = ? and run = ? and {axis} between ? and ?", [series, run[0], *bounds]
        low, high = (
            db.execute(f"select {end}({axis}) from importances where {where}", values).fetchone()[0]
            for end in ("min", "max")
        )
        if low is not None:
            return _Part(axis, where, tuple(values), low, high)
    return None


def _ends(db: sqlite3.Connection, part: _Part, columns: str, points: int) -> Iterator[Any]:
    """Yield columns of the last event in each of so many equal widths.

    The time that this takes does not grow with the number of events.
    """
    ask = f"select {columns} from importances where {part.where} order by {part.axis} desc limit 1"
    bounds = [part.low + (part.high - part.low + 1) * at // points for at in range(points + 1)]
    for low, above in pairwise(bounds):
        if (row := db.execute(ask, (*part.values[:-2], low, above - 1)).fetchone()) is not None:
            yield row


def _event(db: sqlite3.Connection, part: _Part, order: str) -> Snapshot | None:
    """Return the first event of a part in an order."""
    row = db.execute(
        f"select {_EVENT}, quality, features, {', '.join(SCALARS)} from "
        f"(select * from importances where {part.where} order by {order} limit 1) one "
        "join series on series.id = one.series",
        part.values,
    ).fetchone()
    if row is None:
        return None
    features, scalars = orjson.loads(row[13]), zip(SCALARS, row[14:], strict=True)
    importance, half_width = np.array(list(features.values()), np.float64).reshape(-1, 2).T
    return Snapshot(
        **dict(zip(_NAMED, row[:12], strict=True)),
        features=tuple(features),
        importance=importance,
        half_width=half_width,
        scalars={name: value for name, value in scalars if value is not None},
        quality=tuple(orjson.loads(row[12])),
    )


def _model(db: sqlite3.Connection, model_id: str) -> StoredModel | None:
    """Return a model, with the latest removal and loss of each explainer."""
    explainers: dict[str, StoredExplainer] = {}
    asked = "select id, run, explainer from series where model_id = ? order by taken desc"
    for series, run, explainer in db.execute(asked, (model_id,)).fetchall():
        # With a plus, so that SQLite goes through the events by time, and not through all of the run.
        latest = _event(db, _Part("t", "series = ? and +run = ?", (series, run), 0, 0), _order("time", " desc"))
        if latest is not None and explainer not in explainers:
            extent = db.execute(_EXTENT, {"id": series, "run": run}).fetchone()
            explainers[explainer] = StoredExplainer(*(getattr(latest, one.name) for one in fields(latest)), *extent)
    status, status_ms = _status(db, model_id)
    told = db.execute("select max(coalesce(t, 0)) from incidents where model_id = ?", (model_id,)).fetchone()[0]
    if not (explainers or status or told is not None):
        return None
    times = [told or None, *(one.last_ms for one in explainers.values())]
    last_ms = max((time for time in times if time is not None), default=None)
    return StoredModel(model_id, tuple(explainers[one] for one in sorted(explainers)), status, status_ms, last_ms)


def _status(db: sqlite3.Connection, model_id: str) -> tuple[Mapping[str, Any], int | None]:
    """Return the status of a model and its time; merge shards' statuses."""
    found = db.execute("select t, value from statuses where model_id = ? order by t desc", (model_id,)).fetchall()
    if not found:
        return {}, None
    latest_ms = found[0][0]
    fresh = [orjson.loads(value) for t, value in found if latest_ms is None or (t or 0) >= latest_ms - _FRESH_MS]
    status = dict(fresh[0])
    if len(fresh) > 1:
        for name in _SUMMED:
            numbers = [one[name] for one in fresh if isinstance(one.get(name), (int, float))]
            if numbers:
                status[name] = sum(numbers)
        states = {one.get("state") for one in fresh}
        status["state"] = next((state for state in _WORST if state in states), status["state"])
    return status, latest_ms


def _where(texts: Sequence[str], wanted: Sequence[Any]) -> tuple[str, list[Any]]:
    given = [(text, value) for text, value in zip(texts, wanted, strict=True) if value is not None]
    return " and ".join(text for text, _ in given) or "1", [value for _, value in given]


def _incident(row: Any) -> StoredIncident:
    incident_id, model_id, t, begun, observation, is_open, event = row
    return StoredIncident(incident_id, model_id, t, begun, observation, bool(is_open), orjson.loads(event))


def _window(
    db: sqlite3.Connection, part: _Part, by: str, points: int, top: int, features: Collection[str]
) -> Window | None:
    """Return the events of a part, put together into points."""
    latest = _event(db, part, _order(by, " desc"))
    if latest is None:
        return None
    where, order = part.where, _order(by)
    (n,) = db.execute(f"select count(*) from importances where {where}", part.values).fetchone()
    if (stride := -(-n // MOST_READ)) > 1:
        numbered = f"select id, row_number() over (order by {order}) as place from importances where {where}"
        where = f"id in (select id from ({numbered}) where ({n} - place) % {stride} = 0)"
    wanted = dict.fromkeys([*latest.features[:top], *features])
    seen: set[str] = set()
    ends: list[tuple[int, int, Pairs]] = []  # the last event of each point
    cuts: list[int] = []  # where points begin
    # Numbers and texts alone are kept of each event: lists of lists would be looked through by the garbage collector.
    flat: list[float | None] = []
    scalars: list[float | None] = []
    quality: list[str] = []
    place = -1
    ask = f"select t, observation, quality, features, {', '.join(SCALARS)} from importances where {where}"
    for t, at, metrics, event, *figures in db.execute(f"{ask} order by {order}", part.values):
        before, x = place, t if by == "time" else at
        place = place + 1 if n <= points else (x - part.low) * points // (part.high - part.low + 1)
        known: Pairs = orjson.loads(event)
        if place != before:
            cuts.append(len(quality))
            ends.append((t, at, known))
        ends[-1] = t, at, known
        seen.update(known)
        for name in wanted:
            flat += known.get(name, _UNKNOWN)
        scalars += figures
        quality.append(metrics)
    shown = [at for at, name in enumerate(wanted) if name in seen]
    numbers = np.array(flat, np.float64).reshape(len(quality), -1, 2)[:, shown]
    importance, half_width = numbers[..., 0], numbers[..., 1]
    with np.errstate(over="ignore"):
        low, high = (np.clip(edge, -_LARGEST, _LARGEST) for edge in (importance - half_width, importance + half_width))
    metrics_seen = sorted({name for one in set(quality) for name in orjson.loads(one)})
    figures = [
        one for known in map(orjson.loads, quality) for name in metrics_seen for one in known.get(name, _UNKNOWN)
    ]
    quality_mean = _mean(np.array(figures, np.float64).reshape(len(quality), -1), cuts)
    scalar_mean = _mean(np.array(scalars, np.float64).reshape(len(quality), -1), cuts)
    names = (*latest.features, *sorted(seen.difference(latest.features)))
    rest = np.full(len(names) - len(latest.features), np.nan)
    standing = np.array([_standing(one, [name for name in wanted if name in seen]) for *_, one in ends], np.float64)
    standing = standing.reshape(len(ends), len(shown), 2)
    last_share = [share for share, _ in _standing(ends[-1][2], latest.features)]
    return Window(
        n_events=n,
        time_ms=np.array([t for t, *_ in ends], np.int64),
        observation=np.array([at for _, at, _ in ends], np.int64),
        features=names,
        shown=np.array([names.index(name) for name in wanted if name in seen], np.int64),
        importance=_mean(importance, cuts),
        low=np.fmin.reduceat(low, cuts, axis=0),
        high=np.fmax.reduceat(high, cuts, axis=0),
        share=standing[..., 0],
        rank=standing[..., 1].astype(np.int64),
        last_importance=np.r_[latest.importance, rest],
        last_half_width=np.r_[latest.half_width, rest],
        last_share=np.r_[last_share, rest],
        scalars={name: scalar_mean[:, at] for at, name in enumerate(SCALARS)},
        quality={name: quality_mean[:, 2 * at] for at, name in enumerate(metrics_seen)},
        quality_reference={name: quality_mean[:, 2 * at + 1] for at, name in enumerate(metrics_seen)},
    )


def _standing(event: Pairs, names: Collection[str]) -> list[tuple[float, int]]:
    """Return share and rank of features in an event; NaN and 0 if unknown.

    Shares and ranks are among all features of the event.
    """
    share = shares({name: one for name, (one, _) in event.items() if one is not None})
    rank = {name: at for at, name in enumerate(share, start=1)}
    return [(share.get(name, np.nan), rank.get(name, 0)) for name in names]


def _mean(values: Floats, cuts: Sequence[int]) -> NDArray[np.float64]:
    """Return the mean of known values by point and column; NaN if none."""
    is_known = ~np.isnan(values)
    n = np.add.reduceat(is_known, cuts, axis=0, dtype=np.int64)
    # Divided before they are added up: the sum of large numbers is no float.
    share = is_known / np.maximum(np.repeat(n, np.diff([*cuts, len(values)]), axis=0), 1)
    return np.where(n > 0, np.add.reduceat(np.where(is_known, values, 0.0) * share, cuts, axis=0), np.nan)
