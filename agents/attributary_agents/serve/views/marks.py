"""Marks on a chart's axis what was told of a model, and where its versions begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..answers.base import Axis
from ..answers.series import Mark
from ..store.rows import StoredChange, StoredVersion
from ..store.store import Store
from .numbers import dated, known
from .words import name, named_features

MOST = 200
"""Marks of a chart at most, the newest."""

NAMED = 5
"""Features that marks name and a chart shows for that, at most."""

_LOOKED_AT = 2_000

Kind = Literal["alarm", "change", "not_confirmed", "shift", "released", "loss", "recovered", "version"]

_KINDS: dict[str, Kind] = {
    "alarm": "alarm",
    "explanation": "change",
    "not_confirmed": "not_confirmed",
    "importance_shift": "shift",
    "importance_shift_released": "released",
    "loss_shift": "loss",
    "loss_shift_released": "released",
    "recovered": "recovered",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A part of an axis, bounds included; None: from the first, to the last."""

    by: Axis
    start: int | None
    end: int | None

    def holds(self, time_ms: int | None, observation: int) -> bool:
        """Return whether a moment is in it; one without a time is in every span of time."""
        value = observation if self.by == "observation" else time_ms
        if value is None:
            return True
        return (self.start is None or value >= self.start) and (self.end is None or value <= self.end)


def changes_in(store: Store, model_id: str, span: Span) -> list[StoredChange]:
    """Return the changes of a model within a part of an axis, the newest first."""
    if span.by == "time":
        return store.changes(model_id, start_ms=span.start, end_ms=span.end, last=_LOOKED_AT)
    found = store.changes(model_id, last=_LOOKED_AT)
    return [change for change in found if span.holds(change.time_ms, change.observation)]


def marks_of(changes: Iterable[StoredChange], versions: Sequence[StoredVersion], span: Span) -> list[Mark]:
    """Return the marks of changes and versions, the first first.

    An alarm is marked while nothing has come of it, and a shift of the loss where it was told first. A model that has
    learnt more on the same data is marked as what was not confirmed: it is no change.
    """
    found = [mark for change in changes if (mark := _of_change(change)) is not None]
    older = versions[:-1]  # the newest first: where the oldest begins is no event
    found += [
        Mark(
            kind="version",
            time_ms=dated(version.first_ms),
            observation=version.first_observation,
            text=f"version {name(version.version)}",
            change_id=None,
        )
        for version in older
        if span.holds(version.first_ms, version.first_observation)
    ]
    found.sort(
        key=lambda mark: (
            (mark.observation, mark.time_ms or 0) if span.by == "observation" else (mark.time_ms or 0, mark.observation)
        )
    )
    return found[-MOST:]


def _of_change(change: StoredChange) -> Mark | None:
    kind = _KINDS.get(str(change.event.get("event")))
    if kind is None or (kind == "alarm" and not change.is_open):
        return None
    if change.event.get("verdict") == "matured":
        kind = "not_confirmed"
    discrepancy = change.event.get("discrepancy")
    return Mark(
        kind=kind,
        time_ms=change.time_ms,
        observation=change.observation,
        text=str(change.event.get("sentence") or kind),
        change_id=change.id,
        since=_since(change.event),
        discrepancy=known(discrepancy) if isinstance(discrepancy, int | float) else None,
    )


def _since(event: Mapping[str, Any]) -> int | None:
    onset = event.get("onset")
    since = onset.get("observation") if isinstance(onset, Mapping) else event.get("detected_at")
    return since if isinstance(since, int) else None


def named_by(changes: Iterable[StoredChange], explainer: str, most: int = NAMED) -> list[str]:
    """Return the features that changes name, those of the newest first.

    A feature that has lost its importance is among them, though it is not among the most important any more.
    """
    names: dict[str, None] = {}
    for change in changes:
        event = change.event
        if event.get("event") == "importance_shift" and event.get("explainer") != explainer:
            continue
        if event.get("event") in ("explanation", "importance_shift", "loss_shift_explained"):
            names |= dict.fromkeys(named_features(event))
        if len(names) >= most:
            break
    return list(names)[:most]
