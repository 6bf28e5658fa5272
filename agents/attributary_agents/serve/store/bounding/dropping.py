"""Drops events that are too old, and the oldest where the file is too large."""

from __future__ import annotations

import heapq
import sqlite3

from ..taking.others import HOUR_MS

AT_ONCE = 500
"""Events of a series that are dropped at a time where the file is too large."""

_ROW_BYTES = 120  # of an event beside its numbers, about
_INCIDENTS = 0  # stands for the incidents among the ids of series, which begin with 1
_ALL = 2**53  # beyond all observations


def drop_old(db: sqlite3.Connection, now_ms: int, max_age_ms: int) -> None:
    """Drop what is too old, in the transaction that is open.

    Events are of their own times, and too old where they are so much older than the latest of their series, or than
    now: data of another century, played today, are not. A series goes where nothing has come of it for so long.
    """
    oldest = now_ms - max_age_ms
    for (series,) in db.execute("select id from series where last_ms < ? and seen_ms < ?", (oldest,) * 2).fetchall():
        _delete(db, "series = ?", (series,))
        db.execute("delete from series where id = ?", (series,))
    for series, upto in db.execute(
        "select id, min(last_ms, ?) - ? from series where n_events > 0 and first_ms < min(last_ms, ?) - ?",
        (now_ms, max_age_ms) * 2,
    ).fetchall():
        _begin_at(db, series, upto - 1, _delete(db, "series = ? and t < ?", (series, upto)))
    for model_id, upto in db.execute(
        "select model_id, min(?, coalesce((select max(last_ms) from series "
        "where series.model_id = incidents.model_id), ?)) - ? from incidents group by model_id having min(t) < ?",
        (now_ms, now_ms, max_age_ms, oldest),
    ).fetchall():
        db.execute("delete from incidents where model_id = ? and t < ?", (model_id, upto))
    db.execute("delete from statuses where t < ?", (oldest,))
    db.execute("delete from letters where hour < ?", (oldest // HOUR_MS,))
    db.execute("delete from dependences where model_id not in (select model_id from series)")
    tidy(db)


def drop_oldest(db: sqlite3.Connection, n_bytes: int) -> int:
    """Drop the oldest events and incidents of all, until about so many bytes are free; return how many are."""
    waiting = [(first, series) for series, first in db.execute("select id, first_ms from series where n_events > 0")]
    (told,) = db.execute("select min(t) from incidents").fetchone()
    if told is not None:
        waiting.append((told, _INCIDENTS))
    heapq.heapify(waiting)
    freed = 0
    while waiting and freed < n_bytes:
        _, series = heapq.heappop(waiting)
        upto = waiting[0][0] + HOUR_MS if waiting else 2**62
        size = _drop_incidents(db, upto) if series == _INCIDENTS else _drop_events(db, series, upto)
        freed += size
        if series == _INCIDENTS:
            (first,) = db.execute("select min(t) from incidents").fetchone()
        else:
            (first,) = db.execute("select min(t) from events where series = ?", (series,)).fetchone()
        if first is not None and size:
            heapq.heappush(waiting, (first, series))
    tidy(db)
    return freed


def _drop_events(db: sqlite3.Connection, series: int, upto: int) -> int:
    rows = db.execute(
        "select t, observation, length(numbers) + coalesce(length(quality), 0) from events "
        "where series = ? and t <= ? order by t, observation limit ?",
        (series, upto, AT_ONCE),
    ).fetchall()
    if rows:
        n = _delete(db, "series = ? and (t, observation) <= (?, ?)", (series, *rows[-1][:2]))
        _begin_at(db, series, rows[-1][0], n)
    return sum(size + _ROW_BYTES for _, _, size in rows)


def _drop_incidents(db: sqlite3.Connection, upto: int) -> int:
    rows = db.execute(
        "select seq, length(value) + length(brief) from incidents where t <= ? order by t limit ?", (upto, AT_ONCE)
    ).fetchall()
    db.executemany("delete from incidents where seq = ?", [(seq,) for seq, _ in rows])
    return sum(size + _ROW_BYTES for _, size in rows)


def _delete(db: sqlite3.Connection, where: str, values: tuple[int, ...]) -> int:
    """Delete events; return how many they are made of."""
    total = 0
    for names, metrics, n_rows, n in db.execute(
        f"select list, quality_list, count(*), sum(n) from events where {where} group by 1, 2", values
    ).fetchall():
        db.executemany("update lists set n = n - ? where id = ?", [(n_rows, names), (n_rows, metrics)])
        total += n
    db.execute(f"delete from events where {where}", values)
    return total


def _begin_at(db: sqlite3.Connection, series: int, dropped_ms: int, n: int) -> None:
    """Note what is left of a series, and that nothing of the time that was dropped is taken any more."""
    db.execute(
        "update series set n_events = n_events - ?, floor_ms = max(coalesce(floor_ms, ?), ?), "
        "floor_observation = case when coalesce(floor_ms, ?) <= ? then ? else floor_observation end where id = ?",
        (n, dropped_ms, dropped_ms, dropped_ms, dropped_ms, _ALL, series),
    )
    first = db.execute(
        "select t, observation from events where series = ? order by t, observation limit 1", (series,)
    ).fetchone()
    at = db.execute(
        "select observation from events where series = ? and run = (select run from series where id = ?) "
        "order by t, observation limit 1",
        (series, series),
    ).fetchone()
    if first is not None:
        db.execute("update series set first_ms = ? where id = ?", (first[0], series))
    if at is not None:
        db.execute("update series set first_observation = ? where id = ?", (at[0], series))


def tidy(db: sqlite3.Connection) -> None:
    """Drop lists that no event uses, and versions of which there is no event."""
    db.execute("delete from lists where n <= 0")
    db.execute(
        "delete from versions where not exists (select 1 from series where series.model_id = versions.model_id "
        "and series.n_events > 0 and series.first_ms <= versions.last_ms)"
    )
