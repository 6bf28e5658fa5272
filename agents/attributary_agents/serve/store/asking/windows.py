"""Puts the events of an explainer between two moments together into points."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..orders import order, ranks, shares
from ..packing import LARGEST, unpack, unpack_figures, unpack_quality
from ..rows import SCALARS, Window
from .lists import Lists

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_AT_ONCE = 4096  # rows in memory at a time
_ROW = "t, observation, n, list, scale, numbers, quality_list, quality, known, figures"
_FIRST, _LAST = -(2**62), 2**62


@dataclass(frozen=True)
class Extent:
    """Says which rows of the events a window has, `where` with `values`, and what it reaches from and to."""

    where: str
    values: tuple[int, ...]
    n_rows: int
    n_events: int
    low: int
    high: int


def find_extent(
    db: sqlite3.Connection, model_id: str, explainer: str, start: int | None, end: int | None, by: str
) -> Extent | None:
    """Return what a window has: of the latest removal and loss that have an event in it, None where none has.

    By observation it is of the latest count of them that has one: a model that begins anew counts from 1 again.
    """
    first, last = _FIRST if start is None else start, _LAST if end is None else end
    for (series,) in db.execute(
        "select id from series where model_id = ? and explainer = ? and n_events > 0 order by taken desc",
        (model_id, explainer),
    ).fetchall():
        if by == "time":
            where, values = "series = ? and t between ? and ?", (series, first, last)
            found = db.execute(f"select count(*), sum(n), min(t), max(t) from events where {where}", values).fetchone()
            if found[0]:
                return Extent(where, values, *found)
        else:
            where = "series = ? and observation between ? and ?"
            found = db.execute(
                f"select run, count(*), sum(n), min(observation), max(observation) from events where {where} "
                "group by run order by run desc limit 1",
                (series, first, last),
            ).fetchone()
            if found is not None:
                return Extent(f"{where} and run = ?", (series, first, last, found[0]), *found[1:])
    return None


def window(
    db: sqlite3.Connection,
    lists: Lists,
    extent: Extent,
    *,
    by: str,
    points: int,
    top: int,
    features: Collection[str],
) -> Window:
    """Return the window; see `Store.window`. Where it has no more events than points, each is one."""
    axis = 0 if by == "time" else 1
    ordered = "t, observation" if by == "time" else "observation, t"
    backwards = "t desc, observation desc" if by == "time" else "observation desc, t desc"
    last = db.execute(
        f"select {_ROW} from events where {extent.where} order by {backwards} limit 1", extent.values
    ).fetchone()
    names = lists.names(db, last[3])
    last_importance, last_half_width = (row[0] for row in unpack([(last[4], last[5])], len(names)))
    by_rank = order(last_importance).tolist()
    wanted = list(dict.fromkeys([*(names[at] for at in by_rank[: max(top, 0)]), *features]))

    is_each = extent.n_rows <= points
    n_points = extent.n_rows if is_each else points
    sums = _Sums(n_points, wanted)
    n_read = 0
    # SQLite has them in the order of time; where each is a point, they come in the order of the points.
    sort = f" order by {ordered}" if is_each and axis else ""
    for rows in _chunks(db.execute(f"select {_ROW} from events where {extent.where}{sort}", extent.values)):
        x = np.fromiter((row[axis] for row in rows), np.int64, len(rows))
        if is_each:
            place = np.arange(n_read, n_read + len(rows))
        else:
            place = (x - extent.low) * points // (extent.high - extent.low + 1)
            if (axis and (place[1:] < place[:-1]).any()) or (axis and (x[1:] < x[:-1]).any()):
                by_x = np.lexsort((np.fromiter((row[0] for row in rows), np.int64, len(rows)), x))
                rows, place = [rows[at] for at in by_x.tolist()], place[by_x]
        n_read += len(rows)
        sums.add(db, lists, rows, place, axis)
    return sums.window(db, lists, extent.n_events, names, by_rank, last_importance, last_half_width)


def _chunks(found: sqlite3.Cursor) -> Iterator[list[Any]]:
    while rows := found.fetchmany(_AT_ONCE):
        yield rows


class _Sums:
    """Adds rows up by point."""

    def __init__(self, n_points: int, wanted: list[str]) -> None:
        self._wanted = {name: at for at, name in enumerate(wanted)}
        shape = n_points, len(wanted)
        self._importance = _Mean(shape)
        self._low, self._high = np.full(shape, np.nan), np.full(shape, np.nan)
        self._scalars = _Mean((n_points, len(SCALARS)))
        self._quality: dict[str, _Mean] = {}
        self._last: list[Any] = [None] * n_points
        self._lists: dict[int, None] = {}

    def add(self, db: sqlite3.Connection, lists: Lists, rows: list[Any], place: Integers, axis: int) -> None:
        """Add rows whose points do not go back."""
        weight = np.fromiter((row[2] for row in rows), np.float64, len(rows))
        ends = np.flatnonzero(np.r_[place[1:] != place[:-1], True])
        for at in ends.tolist():
            row, before = rows[at], self._last[place[at]]
            if before is None or (row[axis], row[1 - axis]) >= (before[axis], before[1 - axis]):
                self._last[place[at]] = row
        self._scalars.add(unpack_figures([row[8:] for row in rows], len(SCALARS)), weight, place)
        for list_id, some in _by(rows, 3).items():
            self._lists[list_id] = None
            names = lists.names(db, list_id)
            both = [(column, self._wanted[name]) for column, name in enumerate(names) if name in self._wanted]
            if not both:
                continue
            source = np.array([column for column, _ in both])
            target = np.array([column for _, column in both])
            importance, half_width = unpack([(rows[i][4], rows[i][5]) for i in some.tolist()], len(names), source)
            self._importance.add(importance, weight[some], place[some], target)
            cut, where = _cuts(place[some])
            with np.errstate(over="ignore"):
                low, high = importance - half_width, importance + half_width
            for kept, new, smaller in ((self._low, low, np.fmin), (self._high, high, np.fmax)):
                part = np.ix_(where, target)
                kept[part] = smaller(kept[part], smaller.reduceat(np.clip(new, -LARGEST, LARGEST), cut, axis=0))
        for list_id, some in _by(rows, 6).items():
            if list_id is None:
                continue
            names = lists.names(db, list_id)
            pairs = unpack_quality([rows[i][7] for i in some.tolist()], len(names))
            for n, name in enumerate(names):
                if name not in self._quality:
                    self._quality[name] = _Mean((len(self._last), 2))
                self._quality[name].add(pairs[:, n], weight[some], place[some])

    def window(
        self,
        db: sqlite3.Connection,
        lists: Lists,
        n_events: int,
        names: tuple[str, ...],
        by_rank: list[int],
        last_importance: Floats,
        last_half_width: Floats,
    ) -> Window:
        """Return the points that have rows."""
        filled = np.array([at for at, row in enumerate(self._last) if row is not None], np.int64)
        last = [self._last[at] for at in filled.tolist()]
        ranked = [names[at] for at in by_rank]
        earlier = {name for one in self._lists for name in lists.names(db, one)}.difference(ranked)
        features = (*ranked, *sorted(earlier))
        positions = {name: at for at, name in enumerate(features)}
        columns = np.array([at for name, at in self._wanted.items() if name in positions], np.int64)
        shown = np.array([positions[name] for name in self._wanted if name in positions], np.int64)
        share = np.full((len(last), len(columns)), np.nan)
        rank = np.zeros((len(last), len(columns)), np.int64)
        shown_names = [features[at] for at in shown.tolist()]
        for list_id, some in _by(last, 3).items():
            of_list = lists.names(db, list_id)
            importance, _ = unpack([(last[i][4], last[i][5]) for i in some.tolist()], len(of_list))
            at = {name: column for column, name in enumerate(of_list)}
            target = np.array([i for i, name in enumerate(shown_names) if name in at], np.int64)
            source = np.array([at[name] for name in shown_names if name in at], np.int64)
            share[np.ix_(some, target)] = shares(importance)[:, source]
            rank[np.ix_(some, target)] = ranks(importance)[:, source]
        rest = np.full(len(features) - len(names), np.nan)
        scalars = self._scalars.mean()[filled]
        quality = {name: mean.mean()[filled] for name, mean in sorted(self._quality.items())}
        part = np.ix_(filled, columns)
        return Window(
            n_events=n_events,
            time_ms=np.array([row[0] for row in last], np.int64),
            observation=np.array([row[1] for row in last], np.int64),
            features=features,
            shown=shown,
            importance=self._importance.mean()[part],
            low=self._low[part],
            high=self._high[part],
            share=share,
            rank=rank,
            last_importance=np.r_[last_importance[by_rank], rest],
            last_half_width=np.r_[last_half_width[by_rank], rest],
            last_share=np.r_[shares(last_importance)[by_rank], rest],
            scalars={name: scalars[:, at] for at, name in enumerate(SCALARS)},
            quality={name: mean[:, 0] for name, mean in quality.items()},
            quality_reference={name: mean[:, 1] for name, mean in quality.items()},
        )


class _Mean:
    """Adds up weighted means by point; NaN does not count."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._mean = np.zeros(shape)
        self._weight = np.zeros(shape)

    def add(self, values: Floats, weight: Floats, place: Integers, columns: Integers | None = None) -> None:
        """Add rows, (n_rows, n_columns), whose points do not go back."""
        if not len(values):
            return
        cut, where = _cuts(place)
        weights = np.where(np.isnan(values), 0.0, weight[:, None])
        of_cut = np.add.reduceat(weights, cut, axis=0)
        # Each divided before they are added up: the sum of large numbers is no float.
        share = weights / np.maximum(np.repeat(of_cut, np.diff(np.r_[cut, len(values)]), axis=0), 1.0)
        mean = np.add.reduceat(np.where(np.isnan(values), 0.0, values) * share, cut, axis=0)
        part = np.ix_(where, np.arange(self._mean.shape[1]) if columns is None else columns)
        total = self._weight[part] + of_cut
        new = of_cut / np.maximum(total, 1.0)
        self._mean[part] = self._mean[part] * (1.0 - new) + mean * new
        self._weight[part] = total

    def mean(self) -> Floats:
        """Return the means, NaN where there is nothing."""
        return np.where(self._weight > 0.0, self._mean, np.nan)


def _cuts(place: Integers) -> tuple[Integers, Integers]:
    """Return where rows of another point begin, and of which points they are."""
    cut = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    return cut, place[cut]


def _by(rows: list[Any], column: int) -> dict[Any, Integers]:
    """Return the positions of rows by what they have in a column."""
    found: dict[Any, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        found[row[column]].append(at)
    return {key: np.array(some, np.int64) for key, some in found.items()}
