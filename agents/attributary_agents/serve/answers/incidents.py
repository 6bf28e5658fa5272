"""Answers on incidents: rows, lines of several together, single views."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ..store.rows import Standing
from .base import Answer, Milliseconds, PairOfMoments


class Since(Answer):
    """Says since when an incident is so, with its 95 % interval."""

    observation: int
    low: int | None
    high: int
    time_ms: Milliseconds | None


class IncidentRow(Answer):
    """Says in a line what the newest revision of an incident has."""

    id: str = Field(description="By which /incidents/{id} finds it.")
    model_id: str
    model_version: str
    number: int
    revision: int
    what: str = Field(description="As docs/contracts/incident.schema.json has it, as the next three.")
    life: str
    severity: str
    reason: str
    standing: Standing = Field(
        description="bad: open, and confirmed as warning or critical, or critical at all; suspected: being confirmed; "
        "open: confirmed, and not bad; over: over or withdrawn."
    )
    since: Since
    observation: int = Field(description="Number of the model's observation at which this revision was made.")
    time_ms: Milliseconds | None = Field(description="When it was made.")
    headline: str
    sentence: str
    features: list[str] = Field(description="The most important first.")
    mode: str | None = Field(description="unlabelled, mirror or anomaly; null where observations have labels.")


class IncidentList(Answer):
    """Lists incidents, those first that began last."""

    incidents: list[IncidentRow]
    n: int = Field(description="How many there are of that time, listed or not.")


class IncidentLine(Answer):
    """Says in a line what happened to a model, or in the same way to several within one window."""

    headline: str = Field(description="Of several models without the feature: '8 stores changed together'.")
    feature: str | None = Field(description="Of several models: the feature that they have in common.")
    standing: Standing = Field(description="That of the worst of them.")
    n: int = Field(description="Incidents, each of another model.")
    incidents: list[IncidentRow] = Field(description="The first fifty, in the order in which they began.")


class IncidentView(Answer):
    """Shows one incident: its row, and its newest revision as the topic has it."""

    row: IncidentRow
    event: dict[str, Any] = Field(description="The event as docs/contracts/incident.schema.json describes it.")
    until: int = Field(description="The observation at which it was over; while it is open the model's latest.")
    compare: PairOfMoments | None = Field(None, description="Before and after it; null where there is no before.")
    other: IncidentRow | None = Field(None, description="Another incident of the model that is open; null without one.")
