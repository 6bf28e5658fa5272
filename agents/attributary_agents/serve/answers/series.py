"""Answers on importances: series, comparisons, partial dependences."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..store.rows import Standing
from .base import Answer, Axis, Loss, Milliseconds

Values = list[float | None]


class FeatureSeries(Answer):
    """Holds the importance of one feature over a window; each list has one entry per point."""

    feature: str
    importance: Values = Field(
        description="Mean over the events that a point stands for; of more than 20 000 events, over a part of them."
    )
    low: Values = Field(description="Least lower bound of the 95 % interval; null where it is not known.")
    high: Values = Field(description="Largest upper bound.")
    share: Values
    rank: list[int | None]
    latest: float | None = Field(description="Importance of the last event of the window.")
    latest_half_width: float | None
    latest_share: float | None
    latest_rank: int
    moved: float | None = Field(description="Last minus first importance of the window.")


class Others(Answer):
    """Counts the features that are not shown."""

    n: int
    share: float | None = Field(description="Their share together, at the end of the window.")


class Figures(Answer):
    """Holds what events say beside importances, with one entry per point."""

    model_loss: Values
    baseline_loss: Values
    present_loss: Values
    discrepancy: Values
    shift: Values
    n_waiting: Values
    n_expired: Values
    label_delay_median_s: Values
    fidelity: Values
    quality: dict[str, Values]
    quality_reference: dict[str, Values]


class Mark(Answer):
    """Marks on the axis from when to when an incident went, or where a version begins."""

    kind: Literal["incident", "version"]
    time_ms: Milliseconds | None
    observation: int
    end_ms: Milliseconds | None = Field(None, description="When it was over; null while it is open, and of a version.")
    end_observation: int | None = None
    text: str
    standing: Standing | None = Field(None, description="As of `IncidentRow`; null of a version.")
    incident_id: str | None = Field(None, description="By which /incidents/{id} finds it; null of a version.")


class Series(Answer):
    """Shows the importances of one explainer of a model over a window, with at most `points` points."""

    model_id: str
    explainer: str
    removal: str
    loss: Loss
    by: Axis
    n_events: int = Field(description="Events in the window, of which points are made.")
    time_ms: list[Milliseconds]
    observation: list[int]
    features: list[FeatureSeries] = Field(description="The most important first, as of the end of the window.")
    others: Others
    figures: Figures
    marks: list[Mark]
    low: float | None = Field(description="Robust range of the bands: from the 1 % quantile of lower bounds …")
    high: float | None = Field(description="… to the 99 % quantile of upper bounds.")
    nearest_ms: Milliseconds | None = Field(description="Where the window has no event: time of the nearest one.")
    nearest_observation: int | None


class Side(Answer):
    """Names one side of a comparison: the last event of an explainer at or before a moment."""

    model_id: str
    model_version: str
    explainer: str
    removal: str
    loss: Loss
    time_ms: Milliseconds | None
    observation: int
    model_loss: float | None
    baseline_loss: float | None


class ComparedFeature(Answer):
    """Compares one feature; a side that does not know it is null."""

    feature: str
    a: float | None
    a_half_width: float | None
    b: float | None
    b_half_width: float | None
    delta: float | None = Field(description="b - a; null where the losses differ, or a side does not know it.")
    delta_half_width: float | None = Field(description="Of the difference, the two taken as independent.")
    a_share: float | None
    b_share: float | None
    a_rank: int | None
    b_rank: int | None


class Comparison(Answer):
    """Compares two moments of a model, or of two models; features in the order of how much they changed."""

    a: Side
    b: Side
    is_same_loss: bool
    note: str | None = Field(description="What may not be compared, in a sentence.")
    shift: float | None
    ndcg: float | None
    features: list[ComparedFeature]


class Dependence(Answer):
    """Shows how the mean prediction depends on one feature."""

    model_id: str
    model_version: str
    feature: str
    kind: Literal["number", "category"]
    label: str | None = Field(description="Of which label the prediction is the probability; null of numbers.")
    values: list[float | str] = Field(description="Points of the feature's axis, or its categories.")
    mean: Values
    half_width: Values
    time_ms: Milliseconds | None
    observation: int


class DependenceList(Answer):
    """Lists partial dependences of a model."""

    model_id: str
    dependences: list[Dependence]
