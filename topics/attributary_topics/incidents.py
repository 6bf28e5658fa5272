"""Events of incidents, with the details of a change of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from .codec import MODES, Values, absent
from .events import OnsetEstimate, Source


@dataclass(frozen=True, slots=True)
class DetectorSpec:
    """Drift detector: its name, its parameters, and the signal it reads.

    Attributes
    ----------
    signal
        `zero_one`, the 0/1 error; `loss`; or `score`, where the model is an anomaly detector with labels.
    """

    name: str
    params: dict[str, float | int | str | bool]
    signal: str


@dataclass(frozen=True, slots=True)
class LossEstimate:
    """Mean loss with the bounds of its 95 % interval and its observations."""

    loss: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class LossDifference:
    """Difference of two mean losses with the bounds of its 95 % interval."""

    loss: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ChangeLosses:
    """Losses that a verdict rests on, all of observations not yet learnt.

    Attributes
    ----------
    loss, loss_unit, loss_largest
        As of `ImportanceEvent`.
    reference_then, reference_now, model_now
        Of the reference just after it was taken (where little is known of that, of the model just before), of the
        reference now, and of the model now. Of versions the last two are those of the old version and of the new one,
        and `reference_then` is null.
    worsened
        How much worse the reference has become: reference_now - reference_then; null for versions.
    gain
        How much better the model is than the reference on the same observations.
    """

    loss: str
    loss_unit: str
    loss_largest: float | None
    reference_then: LossEstimate | None
    reference_now: LossEstimate
    model_now: LossEstimate
    worsened: LossDifference | None
    gain: LossDifference


@dataclass(frozen=True, slots=True)
class FeatureChange:
    """Importance of a feature before and after a change.

    Attributes
    ----------
    before, after
        Importance to the reference model and to the model as it is now, on observations that they have not learnt.
    delta
        after - before.
    before_rank, after_rank
        From 1 for the most important feature; null where a side does not know the feature.
    p_value, significant
        How probable a delta as large is where nothing has changed, adjusted for there being several features (Holm);
        whether that is at most 5 %.
    """

    before: float | None
    after: float | None
    delta: float
    before_std_error: float | None
    after_std_error: float | None
    delta_std_error: float | None
    before_rank: int | None
    after_rank: int | None
    p_value: float | None
    significant: bool


@dataclass(frozen=True, slots=True)
class ImportanceComparison:
    """Comparison of two models by importance, most changed features first.

    Attributes
    ----------
    loss, loss_unit, loss_largest
        As of `ImportanceEvent`.
    n
        Observations that each of the two is of.
    shift, ndcg
        Share of importance that has moved, and NDCG of the new ranking against the old.
    before_loss, after_loss
        Mean loss of the two; of an anomaly detector under `neg_score` minus its mean score.
    """

    loss: str
    loss_unit: str
    loss_largest: float | None
    n: int
    shift: float | None
    ndcg: float | None
    before_loss: float | None
    after_loss: float | None
    features: dict[str, FeatureChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDetails:
    """Change explanation of the paper: a reference model and the model now.

    Attributes
    ----------
    model_version_before, model_version
        Version of the reference model, and of the model now; equal unless a new version has taken over.
    verdict
        `followed`, `harder` or `degraded`; null with the route `version`, and without labels.
    route
        What raised the alarm: `detector`, `discrepancy` or `version`.
    observation, detected_at, reference_at
        Numbers of the model's observations, from 1: where the explanation was ready, where the alarm was raised, after
        which the reference was taken.
    onset
        Since when; null for versions.
    pattern
        `trend` or `recurring`, where the change follows others; null for a single one.
    detector
        The model's drift detector, whichever route it was; null without one.
    window
        Observations on which a verdict rests (K).
    discrepancy, threshold, n_discrepancy, distance, scale
        Discrepancy between reference and model, above which value the model counts as another one, of how many
        observations it is the mean, what was compared, and whether it is `relative` or `absolute`.
    losses
        What the verdict rests on.
    importances
        `pfi` or `sage` to what changed by it.
    """

    model_version_before: str | None
    model_version: str
    verdict: Annotated[str, Values(("followed", "harder", "degraded"))] | None
    route: Annotated[str, Values(("detector", "discrepancy", "version"))]
    observation: int
    detected_at: int
    reference_at: int
    onset: OnsetEstimate | None
    pattern: Annotated[str, Values(("trend", "recurring"))] | None
    detector: DetectorSpec | None
    window: int
    discrepancy: float | None
    threshold: float
    n_discrepancy: int
    distance: str
    scale: Annotated[str, Values(("relative", "absolute"))]
    losses: ChangeLosses | None
    importances: dict[str, ImportanceComparison]


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
    """Mean, and half the width of its 95 % interval; 0 if not known."""

    value: float
    half_width: float


@dataclass(frozen=True, slots=True)
class IncidentEffect:
    """Mean before the incident, just after it began, and now; null if unknown.

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
    """Part of a feature in an incident.

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
    """Finding of a watch at an observation, and whether it is still open.

    `watch` is `change`, `loss`, `importance`, `inputs`, `constant`, `version` or `model`.
    """

    watch: str
    said: str
    observation: int
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEvent:
    """Incident of a model; a revision replaces earlier ones of the same `id`.

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
