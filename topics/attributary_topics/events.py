"""Events of importance and dependence, and the parts that events share.

Plain data, the same bytes for the same input, without clock or random id. Value, threshold and n always stand together,
and a number that is not known yet is null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from .codec import MODES, Values, absent


@dataclass(frozen=True, slots=True)
class SourceOrigin:
    """Names a record of a topic that is not ours."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Source:
    """Observation that an event follows from: topic, partition and offset.

    Where its label came later, that is the record of the later of the two.

    Attributes
    ----------
    origin
        Where that record was mapped from; absent where its producer wrote it to our topic.
    event_time
        Its time as it says itself, RFC 3339; absent where it says none.
    """

    topic: str
    partition: int
    offset: int
    origin: SourceOrigin | None = absent()
    event_time: str | None = absent()


@dataclass(frozen=True, slots=True)
class Unsourced:
    """Observation that is no record: version of the model, number and time.

    A service that holds its model has such observations.

    The number alone would name two: a service that is killed goes on from its last snapshot, or begins at 1.

    Attributes
    ----------
    observation
        Number of the model's observation, from 1; that of the last one before, of what precedes the first.
    time_ms
        Its time, in milliseconds since 1970.
    """

    version: str
    observation: int
    time_ms: int


Place = Source | Unsourced
"""Names the observation that an event follows from; only a `Source` goes over the wire."""


def source_of(place: Place) -> Source | None:
    """Return the record that an event follows from; None where there is none."""
    return place if isinstance(place, Source) else None


@dataclass(frozen=True, slots=True)
class OnsetEstimate:
    """Observation since which something holds, with a 95 % interval.

    `low` is null where that is not known."""

    observation: int
    low: int | None
    high: int


@dataclass(frozen=True, slots=True)
class FeatureImportance:
    """Importance of a feature, in the unit of the loss.

    With its uncertainty, share in [0, 1] and rank from 1.

    The 95 % interval is the importance plus or minus `half_width`, which is the t quantile times `std_error`.
    """

    importance: float
    std_error: float | None
    half_width: float | None
    share: float
    rank: int


@dataclass(frozen=True, slots=True)
class QualityFigure:
    """Metric of a model's predictions: smoothed, and over the reference.

    null where it is not known."""

    value: float | None
    reference: float | None


@dataclass(frozen=True, slots=True)
class ImportanceEvent:
    """Importances of the features of a model at an observation.

    Attributes
    ----------
    removal
        Where removed features take their values: `interventional`, `product`, `observational` or
        `observational-trees`; `none` where none is removed, of the explainer mdi. Importances by different removals
        answer different questions.
    loss, loss_unit, loss_largest
        Name of the loss whose unit importances and losses have, that unit, and the largest value that the loss can
        have; null where there is none or it is not known.
    observation
        Number of the model's observation, from 1.
    n_observations
        Observations that the importance is made of, weighted by `alpha`; with an alpha of 0, of mdi, all alike.
    model_loss, baseline_loss
        Smoothed loss of the model, and of its smoothed mean prediction, which knows no feature.
    quality
        Metrics of the model's predictions by name, beside the loss: smoothed by the model's alpha, and over the
        reference of the version. Empty where the configuration wants none.
    shift, ndcg, reference_id
        How far the importance has moved since the reference, which is named by its observation; null before
        there is one.
    trigger
        `interval` or `material_change`.
    stale
        Whether no figure has been updated since the last event of the explainer: nothing was explained meanwhile.
    mode
        `unlabelled`: the losses are of the model's own predictions in place of labels. `mirror`: the model learns the
        logged predictions of another one. `anomaly`: the model is an anomaly detector; `model_loss` is the mean of its
        score, there is no baseline, and under the loss `neg_score` an importance is what the values of the feature add
        to the score. Absent where observations have labels.
    fidelity
        Of a mirror: the share of the logged predictions' loss that it explains, 1 - model_loss / baseline_loss.
    present_loss
        Where labels come later: smoothed loss of the model as it is now; `model_loss` is of what it predicted when the
        observation came.
    n_waiting, n_expired
        Where labels come later: observations that wait for theirs, and those so far whose label did not come in time.
    label_delay_median_s
        Median of the last 101 delays between observation and label, in seconds of the stream's time.
    """

    model_id: str
    model_version: str
    explainer: str
    removal: str
    loss: str
    loss_unit: str
    loss_largest: float | None
    alpha: float
    observation: int
    n_observations: int
    model_loss: float | None
    baseline_loss: float | None
    quality: dict[str, QualityFigure]
    discrepancy: float | None
    shift: float | None
    ndcg: float | None
    reference_id: str | None
    trigger: Annotated[str, Values(("interval", "material_change"))]
    stale: bool
    features: dict[str, FeatureImportance]
    source: Source | None = absent()
    mode: Annotated[str, MODES] | None = absent()
    fidelity: float | None = absent()
    present_loss: float | None = absent()
    n_waiting: int | None = absent()
    n_expired: int | None = absent()
    label_delay_median_s: float | None = absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class DependenceEvent:
    """Partial dependence of the mean prediction on a feature.

    It is on the topic of importances, told apart by `event`.

    Attributes
    ----------
    explainer
        Name of the explainer, as of `ImportanceEvent`.
    kind
        `number`: the points of a curve, in the order of the feature's values. `category`: its categories.
    label
        The label whose probability the prediction is; null where the model predicts numbers.
    values
        Values of the feature: numbers, or the names of categories.
    mean, half_width
        Mean prediction at each of these values, and half of its 95 % interval; null where that is not known.
    observation
        Number of the model's observation, from 1.
    n_observations
        Observations that the means are made of.
    mode
        As of `ImportanceEvent`.
    """

    event: str = "dependence"
    model_id: str
    model_version: str
    explainer: str
    feature: str
    kind: Annotated[str, Values(("number", "category"))]
    label: str | int | float | bool | None
    values: list[float | str]
    mean: list[float | None]
    half_width: list[float | None]
    observation: int
    n_observations: int
    source: Source
    mode: Annotated[str, MODES] | None = absent()
