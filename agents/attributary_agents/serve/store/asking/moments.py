"""Finds single events, and figures over time."""

from __future__ import annotations

import math
import sqlite3
from itertools import pairwise

import numpy as np

from ..orders import order
from ..packing import known, unpack, unpack_figures
from ..rows import SCALARS, Snapshot, StoredReason, StoredVersion
from .latest import figures_by_name
from .lists import Lists
from .windows import Extent, find_extent


def find_snapshot(
    db: sqlite3.Connection, lists: Lists, model_id: str, explainer: str, time_ms: int | None, observation: int | None
) -> Snapshot | None:
    """Return the last event at or before a moment; see `Store.snapshot`."""
    by, at = ("observation", observation) if observation is not None else ("time", time_ms)
    axis = "t, observation" if by == "time" else "observation, t"
    extent = find_extent(db, model_id, explainer, None, at, by)
    backwards = True
    if extent is None:  # all are later
        extent, backwards = find_extent(db, model_id, explainer, None, None, by), False
    if extent is None:
        return None
    ordered = ", ".join(f"{name} desc" for name in axis.split(", ")) if backwards else axis
    row = db.execute(
        "select removal, loss, loss_unit, loss_largest, versions.version, one.t, one.observation, one.list, one.scale, "
        "one.numbers, one.known, one.figures from "
        f"(select * from events where {extent.where} order by {ordered} limit 1) one "
        "join series on series.id = one.series join versions on versions.id = one.version",
        extent.values,
    ).fetchone()
    names = lists.names(db, row[7])
    importance, half_width = (one[0] for one in unpack([(row[8], row[9])], len(names)))
    by_rank = order(importance)
    return Snapshot(
        model_id=model_id,
        explainer=explainer,
        removal=row[0],
        loss=row[1],
        loss_unit=row[2],
        loss_largest=row[3],
        version=row[4],
        time_ms=row[5],
        observation=row[6],
        features=tuple(names[at] for at in by_rank.tolist()),
        importance=importance[by_rank],
        half_width=half_width[by_rank],
        scalars=figures_by_name(row[10], row[11]),
    )


def find_nearest(
    db: sqlite3.Connection, model_id: str, explainer: str, value: int, by: str
) -> tuple[int | None, int] | None:
    """Return time and observation of the event that is nearest to a moment."""
    column = "t" if by == "time" else "observation"
    found = []
    for start, end in ((None, value), (value, None)):
        extent = find_extent(db, model_id, explainer, start, end, by)
        if extent is not None:
            at = extent.high if start is None else extent.low
            row = db.execute(
                f"select t, observation from events where {extent.where} and {column} = ? limit 1", (*extent.values, at)
            ).fetchone()
            found.append((abs(at - value), row))
    if not found:
        return None
    t, observation = min(found, key=lambda one: one[0])[1]
    return t, observation


def find_recent(
    db: sqlite3.Connection, model_id: str, explainer: str, scalar: str, start: int | None, points: int
) -> list[float | None]:
    """Return one of `SCALARS` from a moment on, by equal widths of time; none where none is.

    Of few events it is the mean of each width. Of many it is the last event of each, which takes no longer however many
    there are: a fleet asks this of each of its models.
    """
    sampled = _sampled(db, model_id, explainer, start, points)
    if sampled is not None:
        values = unpack_figures(sampled, len(SCALARS))[:, SCALARS.index(scalar)].tolist()
        return [known(value) for value in values]
    extent = find_extent(db, model_id, explainer, start, None, "time")
    if extent is None:
        return []
    rows = db.execute(
        f"select {_place(extent, points)}, n, known, figures from events where {extent.where}", extent.values
    ).fetchall()
    values = unpack_figures([row[2:] for row in rows], len(SCALARS))[:, SCALARS.index(scalar)].tolist()
    sums: dict[int, tuple[float, float]] = {}
    for (place, n, *_), value in zip(rows, values, strict=True):
        total, weight = sums.get(place, (0.0, 0.0))
        sums[place] = (total, weight) if math.isnan(value) else (total + value * n, weight + n)
    return [known(np.divide(*sums[at])) if sums[at][1] else None for at in sorted(sums)]


_FEW = 4
"""Events of each width, of which the mean is made rather than the last one taken."""


def _sampled(
    db: sqlite3.Connection, model_id: str, explainer: str, start: int | None, points: int
) -> list[tuple[int, bytes]] | None:
    """Return the figures of the last event of each width; None where there are few, or all are of one moment."""
    for series, first_ms, last_ms in db.execute(
        "select id, first_ms, last_ms from series where model_id = ? and explainer = ? and n_events > 0 "
        "order by taken desc",
        (model_id, explainer),
    ).fetchall():
        within = "from events where series = ? and t between ? and ?"
        low = first_ms if start is None else max(start, first_ms)
        beyond_few = f"select t {within} order by t limit 1 offset ?"
        if low < last_ms and db.execute(beyond_few, (series, low, last_ms, _FEW * points)).fetchone():
            bounds = [low + (last_ms - low + 1) * place // points for place in range(points + 1)]
            found = (
                db.execute(
                    f"select known, figures {within} order by t desc, observation desc limit 1",
                    (series, begin, end - 1),
                ).fetchone()
                for begin, end in pairwise(bounds)
            )
            return [row for row in found if row is not None]
        if low <= last_ms:
            return None
    return None


def _place(extent: Extent, points: int) -> str:
    if extent.n_rows <= points or extent.low == extent.high:  # those without times are all at 0: by their number
        return f"(row_number() over (order by t, observation) - 1) * {min(points, extent.n_rows)} / {extent.n_rows}"
    return f"(t - {extent.low}) * {points} / {extent.high - extent.low + 1}"


def find_versions(db: sqlite3.Connection, model_id: str) -> list[StoredVersion]:
    """Return the versions of a model, the newest first."""
    found = db.execute(
        "select version, nullif(first_ms, 0), nullif(last_ms, 0), first_observation, last_observation from versions "
        "where model_id = ? order by taken desc",
        (model_id,),
    )
    return [StoredVersion(*row) for row in found]


def count_letters(
    db: sqlite3.Connection, model_id: str | None, start_ms: int | None, end_ms: int | None
) -> list[StoredReason]:
    """Count dead letters by model, reason and stage, of the hours that a window touches; the most frequent first."""
    where, values = ["1"], []
    for text, value in (("model_id = ?", model_id), ("last_ms >= ?", start_ms), ("first_ms <= ?", end_ms)):
        if value is not None:
            where.append(text)
            values.append(value)
    found = db.execute(
        "select model_id, reason, stage, sum(n), min(first_ms), max(last_ms) from letters "
        f"where {' and '.join(where)} group by 1, 2, 3 order by 4 desc, 1, 2, 3",
        values,
    )
    return [StoredReason(*row) for row in found]
