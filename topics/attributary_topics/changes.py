"""Defines how a change of a model is explained in full: both models, their losses, and every feature's importance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from .absent import Values
from .events import OnsetEstimate


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
class ChangeDetails:
    """Holds the change explanation of the paper, whole: what changed between a reference model and the model now.

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
