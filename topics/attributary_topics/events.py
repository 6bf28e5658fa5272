"""Defines the events of importance, and what all events share.

Plain data, the same bytes for the same input, without clock or random id. Value, threshold and n always stand together,
and a number that is not known yet is null.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """Names the observation that an event follows from by its record's topic, partition and offset."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class OnsetEstimate:
    """Says since which observation something holds, with a 95 % interval; `low` is null where that is not known."""

    observation: int
    low: int | None
    high: int


@dataclass(frozen=True, slots=True)
class FeatureImportance:
    """Holds one feature's importance in the unit of the loss, with its uncertainty, share in [0, 1] and rank from 1.

    The 95 % interval is the importance plus or minus `half_width`, which is the t quantile times `std_error`.
    """

    importance: float
    std_error: float | None
    half_width: float | None
    share: float
    rank: int


@dataclass(frozen=True, slots=True)
class QualityFigure:
    """Holds a metric of a model's predictions: smoothed, and over the reference; null where it is not known."""

    value: float | None
    reference: float | None


@dataclass(frozen=True, slots=True)
class ImportanceEvent:
    """Says what a model relies on at one observation.

    Attributes
    ----------
    removal
        Where removed features take their values: `interventional`, `product`, `observational` or
        `observational-trees`. Importances by different removals answer different questions.
    loss, loss_unit, loss_largest
        Name of the loss whose unit importances and losses have, that unit, and the largest value that the loss can
        have; null where there is none or it is not known.
    observation
        Number of the model's observation, from 1.
    n_observations
        Observations that the importance is made of, weighted by `alpha`.
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
    trigger: str
    stale: bool
    features: dict[str, FeatureImportance]
    source: Source
