"""Holds what is answered of changes: a row of a list, and one change with all that belongs to it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from .base import Answer, Milliseconds, PairOfMoments


class ChangeRow(Answer):
    """Says in a line what the topic of changes has said once."""

    id: str = Field(description="`ce_id` of the event, by which /changes/{id} finds it.")
    event: str = Field(description="alarm, explanation, not_confirmed, importance_shift, loss_shift, recovered, …")
    model_id: str
    model_version: str
    model_version_before: str | None
    route: str | None = Field(description="What raised it: detector, discrepancy, version, check, importance, loss.")
    verdict: str | None = Field(description="followed, harder, matured, degraded, …; of a shift of the loss its kind.")
    feature: str | None = Field(description="Of a shift of importance: whose.")
    time_ms: Milliseconds | None
    observation: int = Field(description="Number of the model's observation at which it was told.")
    sentence: str
    is_open: bool = Field(description="Whether nothing has closed it yet: an alarm, a shift.")
    mode: str | None = Field(description="unlabelled, mirror or anomaly; null where observations have labels.")


class ChangeList(Answer):
    """Lists changes, the newest first."""

    changes: list[ChangeRow]
    n: int = Field(description="How many there are between the two moments, listed or not.")


class ChangeView(Answer):
    """Shows one change: what was told first, what came of it, and the event itself as the topic has it."""

    row: ChangeRow
    event: dict[str, Any] = Field(description="The event as docs/contracts/change.schema.json describes it.")
    chain: list[ChangeRow] = Field(description="All that belongs to it in the order of time, this one among them.")
    events: list[dict[str, Any]] = Field(
        default_factory=list,
        description="The events of `chain`, one each: what became of an alarm, the features of a shift of the loss.",
    )
    compare: PairOfMoments | None = Field(None, description="Before and after it; null where there is no before.")
