"""Puts events that are older than a day together: the mean of ten takes their place."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..packing import pack, pack_figures, pack_quality, unpack, unpack_figures, unpack_quality
from ..rows import SCALARS

DAY_MS = 86_400_000
TOGETHER = 10
"""Events that become one."""

AT_ONCE = 2000
"""Rows that are read in one transaction."""

_COLUMNS = (
    "t, observation, run, n, n_observations, version, list, scale, numbers, quality_list, quality, known, figures"
)
_KIND = (2, 5, 6, 9)  # run, version and lists: only what has all of them in common is put together
_INSERT = f"insert into events values ({', '.join('?' * 14)})"


def series_to_thin(db: sqlite3.Connection, now_ms: int) -> list[tuple[int, int]]:
    """Return the series that have events to be thinned, and up to which time each."""
    found = db.execute(
        "select id, min(last_ms, ?) - ? as upto from series where n_events > 0 and first_ms <= min(last_ms, ?) - ? "
        "and (floor_ms is null or floor_ms < min(last_ms, ?) - ?)",
        (now_ms, DAY_MS) * 3,
    )
    return [(series, upto) for series, upto in found]


def thin(db: sqlite3.Connection, series: int, upto_ms: int) -> bool:
    """Thin some events of a series up to a time, in the transaction that is open; return whether there may be more."""
    (t, observation) = db.execute("select floor_ms, floor_observation from series where id = ?", (series,)).fetchone()
    rows = db.execute(
        f"select {_COLUMNS} from events "
        "where series = ? and (t, observation) > (?, ?) and t <= ? order by t, observation limit ?",
        (series, -(2**62) if t is None else t, observation or 0, upto_ms, AT_ONCE),
    ).fetchall()
    is_whole = len(rows) < AT_ONCE
    done = None
    for group in _groups(rows, is_whole):
        done = group[-1]
        if len(group) > 1:
            _put_together(db, series, group)
    if done is None:
        return False
    db.execute("update series set floor_ms = ?, floor_observation = ? where id = ?", (done[0], done[1], series))
    return not is_whole


def _groups(rows: list[Any], is_whole: bool) -> Iterator[list[Any]]:
    """Yield rows to be put together; the last ones are left out where others may join them."""
    runs = [list(run) for _, run in groupby(rows, lambda row: [row[at] for at in _KIND])]
    for number, run in enumerate(runs):
        is_last = number == len(runs) - 1
        for at in range(0, len(run), TOGETHER):
            group = run[at : at + TOGETHER]
            if len(group) < TOGETHER and is_last:
                return
            yield group


def _put_together(db: sqlite3.Connection, series: int, group: list[Any]) -> None:
    """Replace rows by one with their means, and with time and observation of the last."""
    last = group[-1]
    weight = np.array([row[3] for row in group], np.float64)
    (text,) = db.execute("select json_array_length(names) from lists where id = ?", (last[6],)).fetchone()
    numbers = unpack([(row[7], row[8]) for row in group], int(text))
    scale, packed = pack(*(_mean(one, weight) for one in numbers))
    figures = _mean(unpack_figures([row[11:] for row in group], len(SCALARS)), weight)
    quality = None
    if last[9] is not None:
        n_metrics = len(last[10]) // 16
        pairs = unpack_quality([row[10] for row in group], n_metrics)
        quality = pack_quality(_mean(pairs.reshape(len(group), -1), weight).reshape(-1, 2))
    db.executemany(
        "delete from events where series = ? and t = ? and observation = ?", [(series, row[0], row[1]) for row in group]
    )
    db.execute(
        _INSERT,
        (
            *(series, last[0], last[1], last[2], int(weight.sum()), last[4], last[5], last[6], scale, packed),
            *pack_figures(figures.tolist()),
            *(last[9], quality),
        ),
    )
    for used in (last[6], last[9]):
        if used is not None:
            db.execute("update lists set n = n - ? where id = ?", (len(group) - 1, used))


def _mean(values: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted mean of each column, of what is known of it; NaN where nothing is."""
    weights = np.where(np.isnan(values), 0.0, weight[:, None])
    total = weights.sum(axis=0)
    # Divided before they are added up: the sum of large numbers is no float.
    mean = (np.where(np.isnan(values), 0.0, values) * (weights / np.maximum(total, 1.0))).sum(axis=0)
    return np.where(total > 0.0, mean, np.nan)
