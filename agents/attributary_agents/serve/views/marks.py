"""Marks on a chart's axis: spans of incidents, starts of versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..answers.base import Axis
from ..answers.series import Mark
from ..store.rows import StoredIncident, StoredVersion, standing_of
from ..store.store import Store
from .numbers import dated
from .words import name

MOST = 200
"""Marks of a chart at most, the newest."""

NAMED = 5
"""Features that incidents name and a chart shows for that, at most."""

_LOOKED_AT = 2_000


@dataclass(frozen=True, slots=True)
class Span:
    """A part of an axis, bounds included; None: from the first, to the last."""

    by: Axis
    start: int | None
    end: int | None

    def holds(self, time_ms: int | None, observation: int) -> bool:
        """Return whether a moment is in the span.

        A moment without a time is in every span of time.
        """
        value = observation if self.by == "observation" else time_ms
        if value is None:
            return True
        return (self.start is None or value >= self.start) and (self.end is None or value <= self.end)


def incidents_in(store: Store, model_id: str, span: Span) -> list[StoredIncident]:
    """Return a model's incidents within a part of an axis, newest first.

    Incidents count that began or went on there; the order is that of their beginnings.
    """
    if span.by == "time":
        return store.incidents(model_id, start_ms=span.start, end_ms=span.end, last=_LOOKED_AT)
    return [
        one
        for one in store.incidents(model_id, last=_LOOKED_AT)
        if (span.start is None or one.is_open or one.observation >= span.start)
        and (span.end is None or one.event["since"]["observation"] <= span.end)
    ]


def marks_of(incidents: Iterable[StoredIncident], versions: Sequence[StoredVersion], span: Span) -> list[Mark]:
    """Return the marks of incidents and versions, in order along the axis.

    Incidents that were withdrawn have no mark.
    """
    found = [_of_incident(one) for one in incidents if one.event["life"] != "withdrawn"]
    older = versions[:-1]  # the newest first: where the oldest begins is no event
    found += [
        Mark(
            kind="version",
            time_ms=dated(version.first_ms),
            observation=version.first_observation,
            text=f"version {name(version.version)}",
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


def _of_incident(incident: StoredIncident) -> Mark:
    return Mark(
        kind="incident",
        time_ms=incident.begun_ms,
        observation=incident.event["since"]["observation"],
        end_ms=None if incident.is_open else incident.time_ms,
        end_observation=None if incident.is_open else incident.observation,
        text=incident.event["headline"],
        standing=standing_of(incident.event),
        incident_id=incident.id,
    )


def named_by(incidents: Iterable[StoredIncident], most: int = NAMED) -> list[str]:
    """Return the features that incidents name, newest incidents first.

    A feature that has lost its importance is among them, though it is not among the most important any more.
    """
    names: dict[str, None] = {}
    for incident in incidents:
        if incident.event["life"] != "withdrawn":
            names |= dict.fromkeys(incident.event["features"])
        if len(names) >= most:
            break
    return list(names)[:most]
