"""Defines the published events: plain data, the same bytes for the same input, without clock or random id.

Value, threshold and n always stand together, and a number that is not known yet is null.
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
    shift, ndcg, reference_id
        How far the importance has moved since the reference, which is named by its observation; null before
        there is one.
    trigger
        `interval` or `material_change`.
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
    discrepancy: float | None
    shift: float | None
    ndcg: float | None
    reference_id: str | None
    trigger: str
    features: dict[str, FeatureImportance]
    source: Source


@dataclass(frozen=True, slots=True)
class DetectorSpec:
    """Describes what raised the alarm: the drift detector, its parameters, and the signal that it read."""

    name: str
    params: dict[str, float | int | str | bool]
    signal: str


@dataclass(frozen=True, slots=True)
class FeatureChange:
    """Holds one feature's importance before and after a change of the model, and the parts of the change.

    Attributes
    ----------
    before, crossed, after
        Importance to the reference model on its own data, to the reference model on the recent data, and to the
        model as it is now on the recent data.
    delta, model_part, data_part
        after - before, which is the sum of after - crossed, what the model has changed, and crossed - before, what
        the data has.
    before_rank, after_rank
        From 1 for the most important feature.
    p_value, significant
        How probable a delta as large is where nothing has changed, adjusted for there being several features (Holm);
        whether that is at most 5 %.
    """

    before: float | None
    crossed: float | None
    after: float | None
    delta: float
    model_part: float | None
    data_part: float | None
    before_std_error: float | None
    crossed_std_error: float | None
    after_std_error: float | None
    delta_std_error: float | None
    model_part_std_error: float | None
    data_part_std_error: float | None
    before_rank: int | None
    after_rank: int | None
    p_value: float | None
    significant: bool


@dataclass(frozen=True, slots=True)
class ImportanceComparison:
    """Compares old and new model by one kind of importance; features are in the order of how much they changed.

    Attributes
    ----------
    loss, loss_unit, loss_largest
        As of `ImportanceEvent`.
    shift, ndcg
        Share of importance that has moved, and NDCG of the new ranking against the old.
    before_loss, crossed_loss, after_loss
        Mean loss of the reference model on its data, of the reference model on the recent data, and of the model as
        it is now on the recent data.
    memorised
        How much larger the loss of the reference model was on observations that came next than on its own data, which
        it had learnt: parts of a change up to this size do not tell a cause. Null where it is not known.
    """

    loss: str
    loss_unit: str
    loss_largest: float | None
    shift: float | None
    ndcg: float | None
    before_loss: float | None
    crossed_loss: float | None
    after_loss: float | None
    memorised: float | None
    features: dict[str, FeatureChange]


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """Says that a model changed, by how much, and which features it relies on more or less than before.

    Attributes
    ----------
    model_version_before, model_version
        Version of the reference model, and of the model now; equal unless a new version has taken over.
    kind
        `model`: the model's function changed. `data`: it did not, but what it relies on did, with the data.
    route
        What raised it: `detector`, `discrepancy` (between reference and model, observed all the time) or `version`
        (a new version took over).
    observation, detected_at, reference_at
        Numbers of the model's observations, from 1: where it was explained, where the alarm was raised, where the
        reference had been taken. Of the route `version`: the first observation of the new version.
    detector
        The model's drift detector, whichever route it was; null without one.
    window
        Observations in each of the two data sets at most.
    discrepancy, threshold, n_discrepancy, distance
        Mean distance between reference and current model, what it is compared with, over how many observations, and
        what was compared.
    cause
        Which part of the change is significant: `model`, `data` or `both`; null where none is.
    importances
        `pfi` or `sage` to what changed by it; the sentence speaks of the first.
    sentence
        The same in plain English.
    """

    model_id: str
    model_version_before: str | None
    model_version: str
    kind: str
    route: str
    observation: int
    detected_at: int
    reference_at: int
    detector: DetectorSpec | None
    window: int
    discrepancy: float
    threshold: float
    n_discrepancy: int
    distance: str
    cause: str | None
    importances: dict[str, ImportanceComparison]
    sentence: str
    source: Source
