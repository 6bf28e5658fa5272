"""Defines the events of the topic of incidents: one story per change of a model, told anew at each revision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from .absent import MODES, Values, absent
from .changes import ChangeDetails
from .events import Source

WHATS = {
    "inputs": "values of a feature broke",
    "changed": "the data follow another rule, and the model that learns has adapted or is adapting",
    "worse": "the model makes more mistakes than it did, and stays so",
    "level": "the base rate, or the mean of the target, moved; the order of predictions is as good",
    "harder": "more is lost, no more than the model's own doubt says",
    "relies_differently": "importances moved lastingly, and the loss did not, or is not known",
    "version": "another version took over",
    "recovered": "the model failed on what came and went back to its last good state",
}
"""What can happen to a model."""
LIVES = ("suspected", "confirmed", "over", "withdrawn")
SEVERITIES = ("info", "warning", "critical")
ADVICE = ("look_at_inputs", "look_at_labels", "retrain", "shift_intercept", "roll_back", "nothing")
REASONS_OF_REVISIONS = ("suspected", "confirmed", "raised", "lasts", "returned", "settled", "replaced", "noise")


@dataclass(frozen=True, slots=True)
class IncidentOnset:
    """Says since which observation it is so, with a 95 % interval.

    `low` is null where that is not known; `time` is that of the observation, RFC 3339, null where it is not known any
    more.
    """

    observation: int
    low: int | None
    high: int
    time: str | None


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """Holds a mean, and half the width of its 95 % interval, 0 where that is not known."""

    value: float
    half_width: float


@dataclass(frozen=True, slots=True)
class IncidentEffect:
    """Holds a mean before the incident, in the window after it began, and in the latest window; null if unknown.

    `name` is `loss`, `error rate` (a share), `mean absolute error` (in the unit of the target), or `constant`: the
    error of a constant prediction, where the model's is worse. Where the level moved, it is also `share of` a label, or
    `mean target`.
    """

    name: str
    before: MeanEstimate | None
    after: MeanEstimate | None
    now: MeanEstimate | None


@dataclass(frozen=True, slots=True)
class ValueFigures:
    """Sums up values of a feature.

    `missing` is a share of the `n` values. `quantiles` of its numbers are those at 0, .02, .1, .25, .5, .75, .9, .98
    and 1, empty without a number. `words` has its most frequent words, each with its share of `n`; `n_words` counts
    the different ones.
    """

    n: int
    missing: float
    quantiles: list[float]
    words: dict[str, float]
    n_words: int


@dataclass(frozen=True, slots=True)
class IncidentFeature:
    """Says what a feature has to do with an incident.

    Attributes
    ----------
    before, after, delta, half_width
        Importance before and since, their difference with half its 95 % interval, in the unit of the loss; null where
        only values are known.
    significant
        Whether the importance moved beyond chance.
    suspect
        Whether the values of the feature moved.
    said
        What is wrong with its values, or how they moved, in words; empty where nothing is known.
    values_before, values_after
        Its values before the first revision, and the latest 50; null where values are not watched.
    """

    before: float | None
    after: float | None
    delta: float | None
    half_width: float | None
    significant: bool
    suspect: bool
    said: str
    values_before: ValueFigures | None
    values_after: ValueFigures | None


@dataclass(frozen=True, slots=True)
class IncidentEvidence:
    """Says what one watch found at an observation, and whether that is still open.

    `watch` is `change`, `loss`, `importance`, `inputs`, `constant`, `version` or `model`.
    """

    watch: str
    said: str
    observation: int
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEvent:
    """Says what is known of one incident of a model; a revision replaces all earlier ones of the same `id`.

    Attributes
    ----------
    id
        `ce_id` of the first revision.
    number, revision
        The model's incident, from 1, and which word about it this is, from 1.
    what, life, severity, advice
        What happened, how far it is, how bad it is, and what to do.
    reason
        Why this revision was made: `suspected`, `confirmed`, `raised`, `lasts`, `returned`, `settled`, `replaced` or
        `noise`.
    observation
        Number of the model's observation at which this revision was made.
    effects
        The loss and, where there is one, the measure beside it.
    loss, loss_unit
        As of `ImportanceEvent`: the unit of the loss and of importances.
    features
        At most ten, the most important first.
    intercept
        What to add to the logit (of numbers: to the prediction), where the advice is `shift_intercept`.
    again
        Changes that came while it was open.
    evidence
        What each watch found, in order; the last twenty.
    headline, action, sentence
        The verdict; what to do, and whether now or in the morning; and the whole in plain English, which begins with
        both.
    explanation
        The change explanation in full, with every feature and both models; null before there is one.
    """

    event: str = "incident"
    id: str
    number: int
    revision: int
    model_id: str
    model_version: str
    what: Annotated[str, Values(WHATS)]
    life: Annotated[str, Values(LIVES)]
    severity: Annotated[str, Values(SEVERITIES)]
    reason: Annotated[str, Values(REASONS_OF_REVISIONS)]
    observation: int
    since: IncidentOnset
    effects: list[IncidentEffect]
    loss: str
    loss_unit: str
    features: dict[str, IncidentFeature]
    advice: Annotated[str, Values(ADVICE)]
    intercept: float | None
    again: int
    evidence: list[IncidentEvidence]
    headline: str
    action: str
    sentence: str
    explanation: ChangeDetails | None
    source: Source | None = absent()
    mode: Annotated[str, MODES] | None = absent()
