"""Writes importance events: one packed row each, in the series of their explainer, removal and loss."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from dataclasses import dataclass

import orjson

from ..packing import pack, pack_figures, pack_quality
from .parsing import Importance

_COLUMNS = ", ".join("?" * 14)
_INSERT = f"insert or ignore into events values ({_COLUMNS})"
_KEPT_LISTS = 20_000


@dataclass(slots=True)
class Series:
    """Holds what is known of a series while it is written; `floor_ms`: what is not behind it is not taken any more."""

    id: int
    run: int
    taken: int
    n_events: int
    first_ms: int
    last_ms: int
    first_observation: int
    last_observation: int
    floor_ms: int | None
    floor_observation: int | None
    loss_unit: str = ""
    loss_largest: float | None = None
    alpha: float = 0.0
    mode: str | None = None


@dataclass(slots=True)
class Version:
    """Holds from where to where a version has importances."""

    id: int
    taken: int
    first_ms: int
    last_ms: int
    first_observation: int
    last_observation: int


class Importances:
    """Writes importance events in the transaction that is open; `flush` writes what is told of many at once."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget what is known of the file: it has changed, or a transaction has failed."""
        self._series: dict[tuple[str, str, str, str], Series] = {}
        self._versions: dict[tuple[str, str], Version] = {}
        self._lists: dict[tuple[str, ...], int] = {}
        self._used: dict[int, int] = defaultdict(int)
        self._changed: dict[int, Series] = {}
        self._seen_versions: dict[int, Version] = {}
        self._taken: int | None = None

    def take(self, db: sqlite3.Connection, event: Importance, time_ms: int | None) -> int | None:
        """Write an event; return its time, or None where the store has it, or has had it, already."""
        series = self._series_of(db, event)
        t = max(series.last_ms, 0) if time_ms is None else time_ms
        if series.floor_ms is not None and (t, event.observation) <= (series.floor_ms, series.floor_observation or 0):
            return None
        n_before = series.n_events
        begins_again = n_before > 0 and _begins_again(series, t, event.observation)
        run = series.run + begins_again
        version = self._version_of(db, event, t)
        names = self._list_of(db, event.names)
        scale, numbers = pack(event.importance, event.half_width)
        metrics = self._list_of(db, event.quality_names) if event.quality_names else None
        quality = pack_quality(event.quality) if event.quality_names else None
        written = db.execute(
            _INSERT,
            (
                *(series.id, t, event.observation, run, 1, event.n_observations, version.id, names, scale, numbers),
                *pack_figures(event.scalars),
                *(metrics, quality),
            ),
        )
        if written.rowcount < 1:
            return None
        self._used[names] += 1
        if metrics is not None:
            self._used[metrics] += 1
        self._note(series, event, t, run)
        self._note_version(version, event, t)
        return t

    def _note(self, series: Series, event: Importance, t: int, run: int) -> None:
        assert self._taken is not None
        self._taken += 1
        n, at = series.n_events, event.observation
        series.first_ms = min(series.first_ms, t) if n else t
        series.last_ms = max(series.last_ms, t) if n else t
        is_first = n == 0 or run != series.run
        series.first_observation = at if is_first else min(series.first_observation, at)
        series.last_observation = at if is_first else max(series.last_observation, at)
        series.run, series.taken, series.n_events = run, self._taken, n + 1
        if at == series.last_observation:
            series.loss_unit, series.loss_largest = event.loss_unit, event.loss_largest
            series.alpha, series.mode = event.alpha, event.mode
        self._changed[series.id] = series

    def _note_version(self, version: Version, event: Importance, t: int) -> None:
        assert self._taken is not None
        at = event.observation
        version.first_ms, version.last_ms = min(version.first_ms, t), max(version.last_ms, t)
        version.first_observation = min(version.first_observation, at)
        version.last_observation, version.taken = max(version.last_observation, at), self._taken
        self._seen_versions[version.id] = version

    def _series_of(self, db: sqlite3.Connection, event: Importance) -> Series:
        key = event.model_id, event.explainer, event.removal, event.loss
        if (known := self._series.get(key)) is not None:
            return known
        if self._taken is None:
            (self._taken,) = db.execute("select coalesce(max(taken), 0) from series").fetchone()
        found = db.execute(
            "select id, run, taken, n_events, first_ms, last_ms, first_observation, last_observation, floor_ms, "
            "floor_observation, loss_unit, loss_largest, alpha, mode from series "
            "where model_id = ? and explainer = ? and removal = ? and loss = ?",
            key,
        ).fetchone()
        if found is None:
            made = db.execute(
                "insert into series (model_id, explainer, removal, loss, loss_unit, loss_largest, alpha, mode, run, "
                "taken, n_events, first_ms, last_ms, first_observation, last_observation) "
                "values (?, ?, ?, ?, '', null, 0.0, null, 0, 0, 0, 0, 0, 0, 0)",
                key,
            )
            found = made.lastrowid, 0, 0, 0, 0, 0, 0, 0, None, None
        self._series[key] = series = Series(*found)
        return series

    def _version_of(self, db: sqlite3.Connection, event: Importance, t: int) -> Version:
        key = event.model_id, event.version
        if (known := self._versions.get(key)) is not None:
            return known
        found = db.execute(
            "select id, taken, first_ms, last_ms, first_observation, last_observation from versions "
            "where model_id = ? and version = ?",
            key,
        ).fetchone()
        if found is None:
            at = event.observation
            made = db.execute(
                "insert into versions (model_id, version, taken, first_ms, last_ms, first_observation, "
                "last_observation) values (?, ?, 0, ?, ?, ?, ?)",
                (*key, t, t, at, at),
            )
            found = made.lastrowid, 0, t, t, at, at
        self._versions[key] = version = Version(*found)
        return version

    def _list_of(self, db: sqlite3.Connection, names: tuple[str, ...]) -> int:
        if (known := self._lists.get(names)) is not None:
            return known
        text = orjson.dumps(names)
        digest = hashlib.blake2b(text, digest_size=16).digest()
        found = db.execute("select id from lists where digest = ?", (digest,)).fetchone()
        if found is None:
            found = (db.execute("insert into lists (digest, names, n) values (?, ?, 0)", (digest, text)).lastrowid,)
        if len(self._lists) >= _KEPT_LISTS:
            self._lists.clear()
        self._lists[names] = int(found[0])
        return int(found[0])

    def flush(self, db: sqlite3.Connection, now_ms: int) -> None:
        """Write what many events have changed at once."""
        db.executemany(
            "update series set run = ?, taken = ?, n_events = ?, first_ms = ?, last_ms = ?, first_observation = ?, "
            "last_observation = ?, loss_unit = ?, loss_largest = ?, alpha = ?, mode = ?, seen_ms = ? where id = ?",
            [
                (
                    *(one.run, one.taken, one.n_events, one.first_ms, one.last_ms, one.first_observation),
                    *(one.last_observation, one.loss_unit, one.loss_largest, one.alpha, one.mode, now_ms, one.id),
                )
                for one in self._changed.values()
            ],
        )
        db.executemany(
            "update versions set taken = ?, first_ms = ?, last_ms = ?, first_observation = ?, last_observation = ? "
            "where id = ?",
            [
                (one.taken, one.first_ms, one.last_ms, one.first_observation, one.last_observation, one.id)
                for one in self._seen_versions.values()
            ],
        )
        db.executemany("update lists set n = n + ? where id = ?", [(n, one) for one, n in self._used.items()])
        self._changed.clear()
        self._seen_versions.clear()
        self._used.clear()


def _begins_again(series: Series, t: int, observation: int) -> bool:
    """Return whether a model counts its observations anew: time goes on, and they do not.

    An event that only comes late is earlier than the last one, and not by half of all observations.
    """
    return observation < series.last_observation and (t > series.last_ms or 2 * observation <= series.last_observation)
