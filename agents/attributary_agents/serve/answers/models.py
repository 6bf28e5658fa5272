"""Answers on models: the fleet, a row of it, and a single model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from attributary_topics import ModelGuard

from .base import Answer, Loss, Milliseconds, PairOfMoments
from .incidents import IncidentLine, IncidentRow

State = Literal["refused", "incident", "suspected", "learning", "explained", "silent"]
"""How a model is doing.

`incident`: one is open and bad; `suspected`: one is being confirmed; `silent`: no worker has told of it lately.
"""

Mode = Literal["labelled", "unlabelled", "mirror", "anomaly"]


class TopFeature(Answer):
    """Holds the latest importance of a feature."""

    feature: str
    importance: float | None
    half_width: float | None = Field(description="Half of the 95 % interval; null where it is not known yet.")
    share: float | None
    rank: int


class ModelRow(Answer):
    """Says in a row how a model is doing."""

    model_id: str
    template: str | None = Field(description="The template it follows from; null of a model with an entry of its own.")
    state: State
    mode: Mode
    version: str | None
    n_observations: int | None
    observations_per_second: float | None
    loss: Loss | None
    model_loss: float | None
    baseline_loss: float | None
    present_loss: float | None
    fidelity: float | None
    is_unfaithful: bool = Field(description="Whether a mirror's fidelity is below its configured limit.")
    shift: float | None = Field(description="Share of importance that has moved since the reference.")
    shifts: list[float | None] = Field(description="The same over the window, at most 24 values.")
    incident: IncidentRow | None = Field(description="The one that is open, otherwise the last that was not withdrawn.")
    n_waiting: int | None = Field(description="Observations that wait for labels; null where labels come with them.")
    waiting_limit: int | None = Field(description="How many may wait.")
    n_expired: int | None
    n_refused: int | None = Field(description="Observations that the model was not given, or failed on.")
    n_dead_letters: int = Field(description="In the window.")
    last_event_ms: Milliseconds | None
    explainer: str | None = Field(description="Whose importances `top` has.")
    top: list[TopFeature] = Field(description="The five most important features.")
    n_features: int
    is_failing: bool = Field(False, description="Whether it fails on what comes: of late nothing but dead letters.")


class ConfiguredModel(Answer):
    """Names a model, or template, that is configured and of which no topic has said anything yet."""

    model_id: str
    every: int = Field(description="Observations between two importance events: publish.every.")


class TemplateRow(Answer):
    """Counts the models that follow from a template."""

    template: str
    n_models: int
    n_incidents: int
    n_refused: int
    n_silent: int
    n_waiting: int
    n_dead_letters: int


class Fleet(Answer):
    """Shows all models in the order of attention.

    Refused or failing; an incident that is open and bad, the worst and newest first; one that is being confirmed; a
    mirror that is not to be believed; silent; learning; then the others by how much importance has moved.
    """

    now_ms: Milliseconds
    window_ms: int | None = Field(description="How far back it looks; null for all.")
    sentence: str = Field(description="Whether anything is wrong, in one sentence.")
    is_wrong: bool = Field(description="Whether a model is refused or fails, or has an incident that is open and bad.")
    n_models: int
    n_incidents: int = Field(description="Models with an incident that is open and bad.")
    n_waiting: int = Field(description="Models with observations that wait for labels.")
    n_refused: int
    n_dead_letters: int
    models: list[ModelRow]
    configured: list[ConfiguredModel]
    incidents: list[IncidentLine] = Field(
        description="In the order of attention: all that are open, at most fifty lines, and some that are over."
    )
    offset: int
    n_found: int = Field(
        description="How many models the search finds; `models` has a page of these. Without a search five of each "
        "template count: those that need attention most."
    )
    templates: list[TemplateRow] = Field(default_factory=list, description="Templates that have models.")


class ExplainerRow(Answer):
    """Says what there is of one explainer of a model."""

    name: str
    removal: str
    loss: Loss
    alpha: float
    n_features: int
    n_events: int
    first_ms: Milliseconds | None
    last_ms: Milliseconds | None
    first_observation: int
    last_observation: int
    n_observations: int = Field(description="Observations that the latest importance is made of.")


class VersionRow(Answer):
    """Says from where to where a version of a model was explained."""

    version: str
    first_ms: Milliseconds | None
    last_ms: Milliseconds | None
    first_observation: int
    last_observation: int


class ReasonCount(Answer):
    """Counts dead letters of one reason; no value of a record is kept."""

    reason: str
    stage: str
    n: int
    first_ms: Milliseconds
    last_ms: Milliseconds


class DeadLetters(Answer):
    """Counts the dead letters of a model, the most frequent reason first."""

    model_id: str
    n: int
    reasons: list[ReasonCount]


class ModelView(Answer):
    """Shows a model: its row, explainers, versions, dead letters, and what else there is to draw."""

    row: ModelRow
    explainers: list[ExplainerRow] = Field(description="The configured order; then any others that events have.")
    versions: list[VersionRow] = Field(description="The newest first.")
    dead_letters: list[ReasonCount]
    quality: list[str] = Field(description="Names of the metrics of quality that events have.")
    threshold: float | None = Field(description="Discrepancy above which it counts as another model.")
    label_delay_median_s: float | None
    dependences: list[str] = Field(description="Features of which there is a partial dependence.")
    notes: list[str] = Field(
        default_factory=list, description="What to know before the numbers are believed, a sentence each."
    )
    compare: PairOfMoments | None = Field(None, description="The first moment at which all was known, and the last.")
    guard: ModelGuard | None = Field(None, description="As its status has it; null where its loss is not watched.")
