"""Defines the events of the topic of changes: an alarm, what came of it, lasting shifts, and a model that
went back.

Each has a `ce_id` of its own. One that closes another one names it in `change_id`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .absent import absent
from .events import OnsetEstimate, Source
from .loss_shifts import LossShiftEvent, LossShiftExplainedEvent, LossShiftReleasedEvent


@dataclass(frozen=True, slots=True)
class DetectorSpec:
    """Describes a drift detector: its name, its parameters, and the signal that it reads.

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
    """Holds a mean loss with the bounds of its 95 % interval, and the number of observations that it is of."""

    loss: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class LossDifference:
    """Holds the difference of two mean losses with the bounds of its 95 % interval."""

    loss: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ChangeLosses:
    """Holds the losses that a verdict rests on, all of observations that had not been learnt.

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
    """Holds one feature's importance before and after a change.

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
    """Compares two models by one kind of importance; features are in the order of how much they changed.

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
class AlarmEvent:
    """Says that a model may have changed and is being examined, or that a new version has taken over.

    Attributes
    ----------
    model_version_before, model_version
        Version of the reference model, and of the model now; equal unless a new version has taken over.
    route
        What raised it: `detector`, `discrepancy` or `version`.
    observation, reference_at, due_at
        Numbers of the model's observations, from 1: of the alarm (of a version: the first that it predicts), after
        which the reference was taken, and at which the verdict is expected.
    detector
        The model's drift detector, whichever route it was; null without one.
    discrepancy, threshold, n_discrepancy, distance, scale
        Discrepancy between reference and model, above which value the model counts as another one, of how many
        observations it is the mean, what was compared, and whether it is `relative` or `absolute`.
    sentence
        The same in plain English.
    """

    event: str = "alarm"
    model_id: str
    model_version_before: str | None
    model_version: str
    route: str
    observation: int
    reference_at: int
    due_at: int
    detector: DetectorSpec | None
    discrepancy: float | None
    threshold: float
    n_discrepancy: int
    distance: str
    scale: str
    sentence: str
    source: Source | None = absent()
    mode: str | None = absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationEvent:
    """Says what happened to a model, and which features it relies on more or less than before.

    Attributes
    ----------
    change_id
        `ce_id` of the alarm that it closes; null where there was none.
    verdict
        `followed`, `harder`, `matured` or `degraded`; null with the route `version`.
    route
        As of `AlarmEvent`, or `check`: the model was looked at without an alarm.
    observation, detected_at, reference_at
        Where the explanation was ready, where the alarm was raised or the check made, where the reference was taken.
    onset
        Since when; null for `matured` and for versions.
    pattern
        `trend` or `recurring`, where the change follows others; null for a single one.
    window
        Observations on which a verdict rests (K).
    losses
        What the verdict rests on.
    importances
        `pfi` or `sage` to what changed by it; the sentence speaks of the first.

    The others are those of `AlarmEvent`.
    """

    event: str = "explanation"
    change_id: str | None
    model_id: str
    model_version_before: str | None
    model_version: str
    verdict: str | None
    route: str
    observation: int
    detected_at: int
    reference_at: int
    onset: OnsetEstimate | None
    pattern: str | None
    detector: DetectorSpec | None
    window: int
    discrepancy: float | None
    threshold: float
    n_discrepancy: int
    distance: str
    scale: str
    losses: ChangeLosses | None
    importances: dict[str, ImportanceComparison]
    sentence: str
    source: Source | None = absent()
    mode: str | None = absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotConfirmedEvent:
    """Says that an alarm turned out to be nothing that is worth telling; the fields are those of `ExplanationEvent`.

    Attributes
    ----------
    verdict
        What was found: `equal`, `easier`, `matured`, `degraded`, `harder`, `followed` or `replaced`; null where models
        or losses could not be compared.
    """

    event: str = "not_confirmed"
    change_id: str | None
    model_id: str
    model_version_before: str | None
    model_version: str
    verdict: str | None
    route: str
    observation: int
    detected_at: int
    reference_at: int
    detector: DetectorSpec | None
    window: int
    discrepancy: float | None
    threshold: float
    n_discrepancy: int
    distance: str
    scale: str
    losses: ChangeLosses | None
    sentence: str
    source: Source | None = absent()
    mode: str | None = absent()


@dataclass(frozen=True, slots=True)
class ShiftSize:
    """Says by how much an importance has moved, with the bounds of a 95 % interval."""

    importance: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _ImportanceShift:
    """Holds what is said of a lasting shift when it begins, and again when it ends.

    Attributes
    ----------
    explainer, feature
        Whose importance; `feature` may be a group.
    direction
        `rose` or `fell`.
    observation, detected_at, onset, reference_at
        Where it is told, where it was noticed, since when, and where the reference of the importance ended.
    before, after, size
        Importance of the reference, importance since the onset, and their difference, in the unit of the loss.
    least
        Least change of that feature that can be told, in the same unit.
    """

    event: str = ""
    model_id: str
    model_version: str
    route: str = "importance"
    explainer: str
    feature: str
    direction: str
    observation: int
    detected_at: int
    onset: OnsetEstimate
    reference_at: int
    before: float | None
    after: float | None
    size: ShiftSize
    least: float | None
    loss: str
    loss_unit: str
    loss_largest: float | None
    sentence: str
    source: Source | None = absent()
    mode: str | None = absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceShiftEvent(_ImportanceShift):
    """Says that the importance of a feature or group has moved lastingly; the fields are those of its base class."""

    event: str = "importance_shift"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceShiftReleasedEvent(_ImportanceShift):
    """Says that a shift of importance is over; the fields are those of the shift, and two more.

    Attributes
    ----------
    change_id
        `ce_id` of the shift that it closes.
    reason
        `returned`: the importance is where it was; `settled`: the new one is the reference from now on; `replaced`:
        another version has taken over before that.
    """

    event: str = "importance_shift_released"
    change_id: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredEvent:
    """Says that a model, which failed on whatever came, has gone back to its last good state.

    Attributes
    ----------
    observation
        Observations of the model before it went back; the next one has the number after it.
    back_to
        Observation after which the state was taken that it has gone back to.
    n_forgotten
        Observations that it had learnt since, and no longer knows: observation - back_to.
    n_failed
        Observations in a row on which it failed: those before the one at `source` are dead letters.
    stage, error
        Where it failed last, and the type of what it raised.
    """

    event: str = "recovered"
    model_id: str
    model_version: str
    observation: int
    back_to: int
    n_forgotten: int
    n_failed: int
    stage: str
    error: str
    sentence: str
    source: Source | None = absent()
    mode: str | None = absent()


ChangeEvent: TypeAlias = (
    AlarmEvent
    | ExplanationEvent
    | NotConfirmedEvent
    | ImportanceShiftEvent
    | ImportanceShiftReleasedEvent
    | LossShiftEvent
    | LossShiftExplainedEvent
    | LossShiftReleasedEvent
    | RecoveredEvent
)
"""What is published to the topic of changes; `isinstance` takes it."""
