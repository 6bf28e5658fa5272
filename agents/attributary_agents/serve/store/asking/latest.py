"""Says what the store has of a model by its latest events."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping
from typing import Any

import orjson

from ..orders import order
from ..packing import unpack, unpack_figures
from ..rows import SCALARS, StoredExplainer, StoredModel
from .lists import Lists

_FRESH_MS = 600_000  # how much older the status of one shard may be than that of another
_SUMMED = ("n_observations", "n_refused", "observations_per_second", "n_waiting", "n_expired")
_WORST = ("refused", "changed", "explained", "learning")
_SERIES = (
    "id, explainer, removal, loss, loss_unit, loss_largest, alpha, mode, n_events, "
    # Events without a time are at 0.
    "nullif(first_ms, 0), nullif(last_ms, 0), first_observation, last_observation, run"
)


def model_ids(db: sqlite3.Connection) -> list[str]:
    """Return the ids of all models that something is known of, in their order."""
    found = db.execute(
        "select distinct model_id from series where n_events > 0 union select distinct model_id from statuses "
        "union select distinct model_id from incidents order by 1"
    )
    return [model_id for (model_id,) in found]


def find_model(db: sqlite3.Connection, lists: Lists, model_id: str) -> StoredModel | None:
    """Return what there is of a model; None where there is nothing."""
    explainers: dict[str, StoredExplainer] = {}
    for row in db.execute(
        f"select {_SERIES} from series where model_id = ? and n_events > 0 order by taken desc", (model_id,)
    ).fetchall():
        if row[1] not in explainers:  # the latest removal and loss of each
            explainers[row[1]] = _explainer(db, lists, model_id, row)
    status, status_ms = _status(db, model_id)
    told_ms, n_incidents = db.execute(
        "select max(t), count(*) from incidents where model_id = ?", (model_id,)
    ).fetchone()
    if not (explainers or status or n_incidents):
        return None
    times = [one.last_ms for one in explainers.values()] + [told_ms]
    return StoredModel(
        model_id,
        tuple(explainers[name] for name in sorted(explainers)),
        status,
        status_ms,
        max((time for time in times if time is not None), default=None),
    )


def _explainer(db: sqlite3.Connection, lists: Lists, model_id: str, row: Any) -> StoredExplainer:
    series, explainer, removal, loss, unit, largest, alpha, mode, n_events, first, last, first_at, last_at, run = row
    found = db.execute(
        "select events.list, scale, numbers, events.n_observations, versions.version, quality_list, "
        "known, figures from events join versions on versions.id = events.version "
        "where series = ? and run = ? order by t desc, observation desc limit 1",
        (series, run),
    ).fetchone()
    list_id, scale, numbers, n_observations, version, quality = found[:6]
    names = lists.names(db, list_id)
    importance, half_width = (one[0] for one in unpack([(scale, numbers)], len(names)))
    by_rank = order(importance)
    return StoredExplainer(
        model_id=model_id,
        explainer=explainer,
        removal=removal,
        loss=loss,
        loss_unit=unit,
        loss_largest=largest,
        alpha=alpha,
        mode=mode,
        version=version,
        n_events=n_events,
        first_ms=first,
        last_ms=last,
        first_observation=first_at,
        last_observation=last_at,
        n_observations=n_observations,
        features=tuple(names[at] for at in by_rank.tolist()),
        importance=importance[by_rank],
        half_width=half_width[by_rank],
        scalars=figures_by_name(found[6], found[7]),
        quality=() if quality is None else lists.names(db, quality),
    )


def figures_by_name(known: int, figures: bytes) -> dict[str, float | None]:
    """Return the figures of an event that it has, by their names."""
    (row,) = unpack_figures([(known, figures)], len(SCALARS)).tolist()
    return {name: value for name, value in zip(SCALARS, row, strict=True) if not math.isnan(value)}


def _status(db: sqlite3.Connection, model_id: str) -> tuple[Mapping[str, Any], int | None]:
    """Return the status of a model and its time; of a sharded model, what its shards say together."""
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
