"""Views of incidents: lists, groups that began together, marks of charts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attributary_explainers.incidents.words import DID_TOGETHER
from attributary_explainers.wording import show_count

from ...config.settings import Config
from ..answers import (
    Axis,
    IncidentLine,
    IncidentList,
    IncidentRow,
    IncidentView,
    Mark,
    PairOfMoments,
    Standing,
    VersionRow,
)
from ..store.rows import StoredIncident, incident_row, standing_of
from ..store.store import Store
from .compare import around
from .selection import model_of
from .words import NotFoundError, dated, name

MOST_INCIDENTS = 500
"""Incidents of a list at most."""

TOGETHER_MS = 600_000
TOGETHER = 1_000
"""Within how much time incidents began together, or within how many observations where they have no times."""

MOST_TOGETHER = 50
"""Incidents of a line that are listed."""

STANDINGS: tuple[Standing, ...] = ("bad", "suspected", "open", "over")
"""In the order of attention."""

_SEVERITIES = ("critical", "warning", "info")


def row_of(incident: StoredIncident) -> IncidentRow:
    """Return the row of an incident."""
    return IncidentRow(**incident_row(incident))


def incidents(
    store: Store,
    config: Config,
    model_id: str | None = None,
    *,
    start_ms: int | None = None,
    end_ms: int | None = None,
    is_open: bool | None = None,
    last: int = 100,
) -> IncidentList:
    """Return the incidents of a model, or of all models, newest first.

    The order is that of their beginnings.

    Parameters
    ----------
    start_ms, end_ms
        Of which time; None: from the first, to the last.
    is_open
        Whether those that are open are listed, or those that are over; None: all.
    last
        How many are listed at most.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows the model.
    """
    if model_id is not None:
        model_of(store, config, model_id)
    last = min(max(last, 0), MOST_INCIDENTS)
    found = store.incidents(model_id, start_ms=start_ms, end_ms=end_ms, is_open=is_open, last=last)
    n = store.n_incidents(model_id, start_ms=start_ms, end_ms=end_ms, is_open=is_open)
    return IncidentList(incidents=[row_of(one) for one in found], n=n)


def incident(store: Store, incident_id: str) -> IncidentView:
    """Return a single incident.

    Raises
    ------
    NotFoundError
        There is none of this id.
    """
    found = store.incident(incident_id)
    if found is None:
        raise NotFoundError(
            "No such incident",
            f"No incident '{name(incident_id)}'. It may be older than what is kept (serve.max_age), or not read yet.",
        )
    until, compared = _until(store, found), around(found)
    others = [one for one in store.incidents(found.model_id, is_open=True, last=2) if one.id != found.id]
    return IncidentView(
        row=row_of(found),
        event=dict(found.event),
        until=until,
        compare=None if compared is None else PairOfMoments(a=str(compared[0]), b=str(compared[1])),
        other=row_of(others[0]) if others else None,
    )


def _until(store: Store, found: StoredIncident) -> int:
    model = store.model(found.model_id) if found.is_open else None
    if model is None:
        return found.observation
    told = model.status.get("n_observations")
    latest = [one.last_observation for one in model.explainers] + [told if isinstance(told, int) else 0]
    return max(found.observation, *latest)


def urgency(row: IncidentRow) -> tuple[int, int, int]:
    """Return a key by which incidents are in the order of attention."""
    severity = _SEVERITIES.index(row.severity) if row.severity in _SEVERITIES else len(_SEVERITIES)
    is_over = row.standing == "over"
    return STANDINGS.index(row.standing), 0 if is_over else severity, -(row.since.time_ms or row.since.observation)


def lines_of(rows: Iterable[IncidentRow], templates: Mapping[str, str | None]) -> list[IncidentLine]:
    """Return incidents as lines, in the order of attention.

    Incidents of several models that began together share a line.

    They have the same `what` and the same first feature, and began within one window of the first of them.

    Parameters
    ----------
    templates
        Model id to the template that it follows from.
    """
    groups: list[list[IncidentRow]] = []
    latest: dict[tuple[str, str | None], list[IncidentRow]] = {}
    for row in sorted(rows, key=lambda one: (one.since.time_ms or 0, one.since.observation, one.model_id)):
        key = row.what, next(iter(row.features), None)
        group = latest.get(key)
        if group is None or not _is_together(group, row):
            group = latest[key] = []
            groups.append(group)
        group.append(row)
    lines = [(min(map(urgency, group)), _line(group, templates)) for group in groups]
    return [line for _, line in sorted(lines, key=lambda one: one[0])]


def _is_together(group: Sequence[IncidentRow], row: IncidentRow) -> bool:
    first = group[0].since
    if (first.time_ms is None) != (row.since.time_ms is None) or any(one.model_id == row.model_id for one in group):
        return False
    if first.time_ms is None or row.since.time_ms is None:
        return row.since.observation - first.observation <= TOGETHER
    return row.since.time_ms - first.time_ms <= TOGETHER_MS


def _line(group: Sequence[IncidentRow], templates: Mapping[str, str | None]) -> IncidentLine:
    first, n = group[0], len(group)
    who = _kind_of({templates.get(one.model_id) for one in group})
    did = DID_TOGETHER.get(first.what, "changed")
    return IncidentLine(
        headline=first.headline if n == 1 else f"{show_count(n)} {who} {did} together",
        feature=None if n == 1 else next(iter(first.features), None),
        standing=min((one.standing for one in group), key=STANDINGS.index),
        n=n,
        incidents=list(group[:MOST_TOGETHER]),
    )


def _kind_of(templates: set[str | None]) -> str:
    """Return the common name of models: 'stores' if all are of `store-*`."""
    (template, *others) = templates
    found = None if template is None or others else re.match(r"([^\W\d_]+)[-_./:]?\*$", template)
    return "models" if found is None else f"{found[1]}s"


MOST_MARKS = 200
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


def marks_of(incidents: Iterable[StoredIncident], versions: Sequence[VersionRow], span: Span) -> list[Mark]:
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
    return found[-MOST_MARKS:]


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


MOST_ANNOTATIONS = 1_000
"""Annotations at most."""

Annotation = dict[str, Any]


def annotation_list(
    store: Store,
    config: Config,
    *,
    start_ms: int | None = None,
    end_ms: int | None = None,
    model_id: str | None = None,
    last: int = 200,
) -> list[Annotation]:
    """Return the annotations of incidents for Grafana, newest first.

    Each has time, timeEnd, title, text and tags; their order is that of the incidents' beginnings.

    An incident is a region from its beginning to its end; while it is open it ends with the window. Those without a
    time, and those that were withdrawn, are left out.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows the model.
    """
    if model_id is not None:
        model_of(store, config, model_id)
    found = store.incidents(model_id, start_ms=start_ms, end_ms=end_ms, last=min(max(last, 0), MOST_ANNOTATIONS))
    return [
        _annotation(one, one.begun_ms, end_ms)
        for one in found
        if one.begun_ms is not None and one.event["life"] != "withdrawn"
    ]


def _annotation(incident: StoredIncident, begun_ms: int, end_ms: int | None) -> Annotation:
    event = incident.event
    until = end_ms if incident.is_open else incident.time_ms
    return {
        "id": incident.id,
        "time": begun_ms,
        "timeEnd": begun_ms if until is None else max(until, begun_ms),
        "title": event["headline"],
        "text": event["sentence"],
        "tags": [incident.model_id, *(event[key] for key in ("what", "life", "severity"))],
    }
