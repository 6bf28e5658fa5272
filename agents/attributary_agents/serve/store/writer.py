"""Writer of records into the store, which returns the new live events.

All records of a call are written in a single transaction.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from attributary_explainers.ranking import shares
from attributary_topics import (
    MAX_MODEL_ID_BYTES,
    DependenceEvent,
    IncidentEvent,
    InvalidRecordError,
    ModelGuard,
    read_time,
)

from .rows import SCALARS, Arrived, Live, StoredIncident, incident_row, rounded

logger = logging.getLogger(__name__)

MOST_FEATURES = 20_000
"""Features of an event beyond which it is passed over."""

MOST_TOLD = 50
"""Features of an importance that pages are told of, the most important first."""

COUNTS_EVERY_S = 1.0
"""Least time between two live events with the numbers of new dead letters."""

KEPT = 10_000
"""Live events that are kept for pages that come back."""

KEPT_LETTER_IDS = 200_000
"""Dead letters by whose ids one that comes twice is known."""

_HOUR_MS = 3_600_000
_LEFT_OUT = ("ndcg", "label_delay_median_s")  # of what pages are told
_STATUS = ("state", "n_observations", "observations_per_second", "n_waiting", "n_expired", "n_refused", "guard")
_EVENT = f"insert or ignore into importances values (null{', ?' * (12 + len(SCALARS))})"
_VERSION = """insert into versions values (?, ?, ?, ?, ?, ?, ?) on conflict do update set taken = excluded.taken,
    first_ms = min(first_ms, excluded.first_ms), last_ms = max(last_ms, excluded.last_ms),
    first_observation = min(first_observation, excluded.first_observation),
    last_observation = max(last_observation, excluded.last_observation)"""
_REVISED = ("revision", "t", "begun", "since", "observation", "is_open", "brief", "value")
_INCIDENTS = f"""insert into incidents (id, model_id, {", ".join(_REVISED)}) values (?, ?{", ?" * len(_REVISED)})
    on conflict (id) do update set {", ".join(f"{name} = excluded.{name}" for name in _REVISED)}
    where excluded.revision > incidents.revision"""
_LETTERS = """insert into letters values (?, ?, ?, ?, 1, ?, ?) on conflict do update set n = n + 1,
    first_ms = min(first_ms, excluded.first_ms), last_ms = max(last_ms, excluded.last_ms)"""
_DEPENDENCES = """insert into dependences values (?, ?, ?, ?, ?, ?, ?) on conflict do update set
    t = excluded.t, observation = excluded.observation, value = excluded.value
    where (coalesce(excluded.t, 0), excluded.observation) > (coalesce(t, 0), observation)"""

_MOST_TEXT, _LARGEST = 2_000, 2**53
Text = Annotated[str, Field(max_length=_MOST_TEXT)]
Count = Annotated[int, Field(gt=-_LARGEST, lt=_LARGEST)]
M = TypeVar("M", bound=BaseModel)


class _Part(BaseModel):
    """Strict model of the parts of a record that the store needs."""

    model_config = ConfigDict(strict=True)


class _Feature(_Part):
    importance: float | None = None
    half_width: float | None = None


class _Figure(_Part):
    value: float | None = None
    reference: float | None = None


class _Importance(_Part):
    model_version: Text
    explainer: Text
    removal: Text
    loss: Text
    loss_unit: Text
    loss_largest: float | None = None
    alpha: float | None = None
    observation: Count
    n_observations: Count
    features: dict[str, _Feature] = Field(max_length=MOST_FEATURES)
    quality: dict[str, _Figure] = {}


class _Status(_Part):
    state: Text
    partition: Count


class _Letter(_Part):
    reason: Text
    stage: Text


_SCALARS = TypeAdapter(dict[str, float | None])
_GUARD = TypeAdapter(ModelGuard | None)
_INCIDENT = TypeAdapter(IncidentEvent)
_DEPENDENCE = TypeAdapter(DependenceEvent)


class Writer:
    """Writer of records for a single thread at a time."""

    def __init__(self, max_age_ms: int, clock: Callable[[], float] = time.time) -> None:
        self._max_age_ms, self._clock = max_age_ms, clock
        self._counted = -COUNTS_EVERY_S
        self._letters: Counter[str] = Counter()  # new ones by model, of which no page was told
        self.n_refused = 0
        """Records that were no events, and were passed over."""
        self.touched: set[str] = set()
        """Models of which something new has been written since this was emptied."""

    def forget(self) -> None:
        """Forget the counts of a failed transaction."""
        self._letters.clear()

    @property
    def has_counts(self) -> bool:
        """Whether pages are to be told of new dead letters now."""
        return bool(self._letters) and not 0 <= self._clock() - self._counted < COUNTS_EVERY_S

    def take(
        self,
        db: sqlite3.Connection,
        records: Sequence[Arrived],
        positions: Mapping[tuple[str, int], int],
        *,
        live: bool,
    ) -> list[Live]:
        """Write records; return the live events, none where `live` is False."""
        told: list[tuple[str, str, bytes]] = []
        for record in records:
            try:
                payload = self._take(db, record, live=live)
            except (ValidationError, InvalidRecordError) as error:
                self._refuse(record, error)
                continue
            if payload is not None:
                self.touched.add(record.model_id)
            if payload and live:
                told.append((record.kind, record.model_id, orjson.dumps(payload)))
        if not live:
            self._letters.clear()
        if self.has_counts:
            told.append(("dead_letter_counts", "", orjson.dumps(dict(self._letters))))
            self._counted = self._clock()
            self._letters.clear()
        places = [(*place, next_) for place, next_ in positions.items()]
        db.executemany("insert or replace into positions values (?, ?, ?)", places)
        return tell(db, told)

    def _take(self, db: sqlite3.Connection, record: Arrived, *, live: bool) -> Mapping[str, Any] | None:
        """Write a record; return its news for pages, or None if it is not new.

        The news are empty where pages have nothing to be told.
        """
        if record.kind == "dead_letter":
            if _take_letter(db, record):
                self._letters[record.model_id] += 1
            return None
        if not 0 < len(record.model_id.encode("utf-8", "replace")) <= MAX_MODEL_ID_BYTES:
            raise InvalidRecordError("wrong_type", "key", "a model id", record.model_id[:80])
        if record.kind == "status":
            return _take_status(db, record)
        if record.kind == "incident":
            incident = _take_incident(db, record)
            return None if incident is None else incident_row(incident)
        if record.event.get("event") == "dependence":
            return _take_dependence(db, record)
        return self._take_importance(db, record, live=live)

    def _take_importance(self, db: sqlite3.Connection, record: Arrived, *, live: bool) -> Mapping[str, Any] | None:
        """Write an event, unless the store has it already or it is too old."""
        said, mode, now_ms = _Importance.model_validate(record.event), record.event.get("mode"), self._clock() * 1000
        scalars = _SCALARS.validate_python({name: record.event.get(name) for name in SCALARS}, strict=True)
        features, at = _by_rank(said.features), said.observation
        quality = {name: (one.value, one.reference) for name, one in sorted(said.quality.items())}
        key = record.model_id, said.explainer, said.removal, said.loss
        series, run, last_ms, last = db.execute(
            "select id, run, last_ms, last_observation from series "
            "where model_id = ? and explainer = ? and removal = ? and loss = ?",
            key,
        ).fetchone() or (None, 0, record.time_ms or 0, 0)
        t = last_ms if record.time_ms is None else record.time_ms
        if t < min(last_ms, now_ms) - self._max_age_ms:
            return None
        if series is None:
            made = db.execute("insert into series values (null, ?, ?, ?, ?, 0, 0, 0, 0, 0)", key)
            series = made.lastrowid
        # A model counts anew where time goes on and its observations do not. What only comes late is earlier than the
        # last one, and not by half of all observations.
        begins_again = at < last and (t > last_ms or 2 * at <= last)
        run += begins_again
        row = (
            *(series, t, at, run, said.n_observations, said.model_version, said.loss_unit, said.loss_largest),
            *(said.alpha or 0.0, mode if mode in ("unlabelled", "mirror", "anomaly") else None, *scalars.values()),
            *(orjson.dumps(one).decode() for one in (quality, features)),
        )
        written = db.execute(_EVENT, row)
        if written.rowcount < 1:
            return None
        event_id = written.lastrowid
        db.execute(
            "update series set run = ?, taken = ?, seen_ms = ?, last_ms = ?, last_observation = ? where id = ?",
            (run, event_id, int(now_ms), max(t, last_ms), at if begins_again else max(at, last), series),
        )
        db.execute(_VERSION, (record.model_id, said.model_version, event_id, t, t, at, at))
        if not live:
            return {}
        share = shares({name: 0.0 if math.isnan(one) else one for name, (one, _) in features.items()})
        top = enumerate(list(features.items())[:MOST_TOLD], start=1)
        return {
            "model_id": record.model_id,
            "explainer": said.explainer,
            "time_ms": t,
            "observation": at,
            "version": said.model_version,
            "n_features": len(features),
            "n_observations": said.n_observations,
            **{name: _short(value) for name, value in scalars.items() if name not in _LEFT_OUT},
            "features": {name: [*pair, _short(share[name]), rank] for rank, (name, pair) in top},
        }

    def _refuse(self, record: Arrived, error: ValidationError | InvalidRecordError) -> None:
        if self.n_refused == 0:
            if isinstance(error, ValidationError):
                first = error.errors(include_url=False)[0]
                place = ".".join(map(str, first["loc"])) or "value"
                error = InvalidRecordError("wrong_type", place, first["msg"], None)
            logger.warning(
                "%s topic, partition %d, offset %d: passed over, since it is not what workers write (%s); further ones "
                "are counted",
                *(record.kind, record.partition, record.offset, error),
            )
        self.n_refused += 1


def tell(db: sqlite3.Connection, events: Sequence[tuple[str, str, bytes]]) -> list[Live]:
    """Write live events - kind, model id, data - and return them."""
    if not events:
        return []
    # The first of a new file is of the time, so that no id comes twice.
    last = live_position(db) or int(time.time() * 1000)
    made = [(last + n, *event) for n, event in enumerate(events, start=1)]
    db.executemany("insert into live values (?, ?, ?, ?)", made)
    db.execute("delete from live where id <= ?", (last + len(made) - KEPT,))
    return [Live(*one) for one in made]


def live_position(db: sqlite3.Connection) -> int:
    """Return the id of the latest live event; 0 before there is any."""
    found = db.execute("select seq from sqlite_sequence where name = 'live'").fetchone()
    return int(found[0]) if found else 0


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _by_rank(features: Mapping[str, _Feature]) -> dict[str, list[float]]:
    """Return importance and half width of features by rank, ties by name.

    NaN stands for a number that is not known, which JSON has as null.
    """
    names = sorted(features)
    given = np.array([(features[name].importance, features[name].half_width) for name in names], np.float64)
    pairs = rounded(given.reshape(-1, 2))
    order, numbers = np.argsort(-pairs[:, 0], kind="stable").tolist(), pairs.tolist()  # NaN comes last
    return {names[at]: numbers[at] for at in order}


def _take_incident(db: sqlite3.Connection, record: Arrived) -> StoredIncident | None:
    """Write a revision; return it, or None if it is known or outdated."""
    value, model_id, t = orjson.dumps(record.event), record.model_id, record.time_ms
    event = _INCIDENT.validate_json(value, strict=True)
    _check_bounds(event.id, event.revision, event.observation, event.since.observation)
    begun = t
    if t is not None and event.since.time is not None:  # without times, as events of a replay are, nothing has one
        try:
            begun = max(read_time(event.since.time), 0)
        except ValueError:
            raise InvalidRecordError("wrong_type", "since.time", "a time or null", None) from None
    owner = db.execute("select model_id from incidents where id = ?", (event.id,)).fetchone()
    if owner is not None and owner[0] != model_id:
        return None
    explanation = record.event["explanation"] and {"threshold": record.event["explanation"]["threshold"]}
    features = dict.fromkeys(record.event["features"])
    brief = {**record.event, "features": features, "effects": [], "evidence": [], "explanation": explanation}
    is_open = event.life in ("suspected", "confirmed")
    row = event.revision, t, begun, event.since.observation, event.observation, is_open
    texts = orjson.dumps(brief).decode(), value.decode()
    if db.execute(_INCIDENTS, (event.id, model_id, *row, *texts)).rowcount < 1:
        return None
    return StoredIncident(event.id, model_id, t, begun, event.observation, is_open, brief)


def _take_status(db: sqlite3.Connection, record: Arrived) -> Mapping[str, Any] | None:
    """Write a status; return its news.

    A status without a value removes all statuses of the model.
    """
    event, t = record.event, record.time_ms
    payload = {"model_id": record.model_id, "version": event.get("model_version")}
    payload |= {name: event.get(name) for name in _STATUS}
    if not event:
        gone = db.execute("delete from statuses where model_id = ?", (record.model_id,)).rowcount
        return payload if gone else None
    _GUARD.validate_python(event.get("guard"))
    key = record.model_id, _Status.model_validate(event).partition
    found = db.execute("select t, value from statuses where model_id = ? and part = ?", key).fetchone()
    if found is not None and found[0] is not None and t is not None and t < found[0]:
        return None
    value = orjson.dumps(event).decode()
    db.execute("insert or replace into statuses values (?, ?, ?, ?)", (*key, t, value))
    return payload if found is None or found[1] != value else None


def _take_dependence(db: sqlite3.Connection, record: Arrived) -> Mapping[str, Any] | None:
    """Write a partial dependence where it is the latest of its feature."""
    value = orjson.dumps(record.event)
    event = _DEPENDENCE.validate_json(value, strict=True)
    _check_bounds(event.explainer, event.feature, event.observation)
    if not len(event.values) == len(event.mean) == len(event.half_width):
        raise InvalidRecordError("wrong_type", "mean", "a mean and a half width for each value", None)
    key = record.model_id, event.explainer, event.feature, orjson.dumps(event.label).decode()
    row = record.time_ms, event.observation, value.decode()
    return {} if db.execute(_DEPENDENCES, (*key, *row)).rowcount > 0 else None


def _check_bounds(*values: str | int) -> None:
    """Raise InvalidRecordError for a text or an integer too large to store."""
    for value in values:
        if len(value) > _MOST_TEXT if isinstance(value, str) else abs(value) >= _LARGEST:
            expected = f"texts of at most {_MOST_TEXT} characters, and integers within ±2**53"
            raise InvalidRecordError("wrong_type", "value", expected, str(value)[:80])


def _take_letter(db: sqlite3.Connection, record: Arrived) -> bool:
    """Count a dead letter by the hour; return whether it is new."""
    said, t = _Letter.model_validate(record.event), record.time_ms or 0
    kept = db.execute("insert or ignore into letter_ids values (null, ?)", (record.id[:2_000],))
    if kept.rowcount < 1:
        return False
    db.execute("delete from letter_ids where number <= ?", ((kept.lastrowid or 0) - KEPT_LETTER_IDS,))
    db.execute(_LETTERS, (record.model_id[:2_000], said.reason, said.stage, t // _HOUR_MS, t, t))
    return True
