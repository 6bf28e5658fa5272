"""Types of the REST interface's answers.

The page, its single file and the views share them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from attributary_topics import ModelGuard

Milliseconds = Annotated[int, Field(description="Milliseconds since the epoch, UTC.")]
Axis = Literal["time", "observation"]
"""What the horizontal axis counts."""

Standing = Literal["bad", "suspected", "open", "over"]
"""How an incident stands: open and bad, being confirmed, open and not bad, over or withdrawn."""


class Answer(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Loss(Answer):
    """Names the loss whose unit importances and losses have; see `attributary_topics.events.ImportanceEvent`."""

    name: str
    unit: str
    largest: float | None
    text: str = Field(description="The same in words: 'cross-entropy, in nats'.")


class PairOfMoments(Answer):
    """Names two moments that are worth comparing, as /compare takes them: MODEL@#OBSERVATION."""

    a: str
    b: str


class Problem(Answer):
    """Says what is wrong with a request, as RFC 9457 has it."""

    type: str
    title: str = Field(description="What the status means.")
    status: int
    detail: str = Field(description="What is wrong with this request.")
    suggestion: str | None = Field(description="What helps, where that is known.")


class WebhookCount(Answer):
    """Counts what became of the events for one webhook since the server began."""

    name: str
    sent: int
    failed: int
    last_failure: str | None = Field(description="The last event that was lost, and why.")


class Health(Answer):
    """Says whether the page can be believed to be alive."""

    build: str = Field(description="Version of Attributary, and of the page.")
    position: int = Field(description="Id of the latest live event.")
    broker: Literal["answers", "away", "none"] = Field(description="none: a file, which reads no Kafka.")
    broker_since_ms: Milliseconds | None
    is_reading_past: bool = Field(description="Whether it still reads what the topics had when it began.")
    read_share: float | None = Field(description="How far it has read that, in [0, 1].")
    last_event_ms: Milliseconds | None = Field(description="When it read the last event, by its own clock.")
    importances_topic: str
    webhooks: list[WebhookCount]
    fault: str | None = Field(None, description="Why nothing new is taken, in a sentence; null where all is well.")


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


class Annotation(Answer):
    """Marks a moment, or a region where it ends later; named as Grafana has it."""

    id: str
    time: Milliseconds
    timeEnd: Milliseconds  # noqa: N815 - Grafana's name
    title: str
    text: str
    tags: list[str] = Field(description="Model id, what happened, how far it is, how bad it is.")


class Annotations(RootModel[list[Annotation]]):
    """Lists annotations, the newest first."""
