"""Events out. Plain data, the same bytes for the same input: no clock and no random id is in them.

Value, threshold and n always stand together, and a number that is not known yet is null.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """The observation that an event follows from: its record's topic, partition and offset."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class FeatureImportance:
    """One feature's importance in the unit of the loss, its standard error, share in [0, 1] and rank from 1."""

    importance: float
    std_error: float | None
    share: float
    rank: int


@dataclass(frozen=True, slots=True)
class ImportanceEvent:
    """What a model relies on at one observation.

    Attributes
    ----------
    removal
        Where removed features take their values: `interventional`, `product` or `observational`. Importances by
        different removals answer different questions.
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
    """What raised the alarm: the drift detector, its parameters, and the signal that it read."""

    name: str
    params: dict[str, float | int | str | bool]
    signal: str


@dataclass(frozen=True, slots=True)
class FeatureChange:
    """One feature's importance before and after a model change, with standard errors and ranks."""

    before: float | None
    after: float | None
    delta: float
    before_std_error: float | None
    after_std_error: float | None
    delta_std_error: float | None
    before_rank: int | None
    after_rank: int | None
    significant: bool


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """A model changed, by how much, and which features it relies on more or less than before.

    Attributes
    ----------
    observation, detected_at, reference_at
        Numbers of the model's observations, from 1: where it was explained, where the detector raised its
        alarm, where the reference had been taken.
    window
        Observations in each of the two data sets.
    discrepancy, threshold, n_discrepancy, distance
        Mean distance between reference and current model, what it exceeded, over how many observations, and
        what was compared.
    sentence
        The same in plain English.
    """

    model_id: str
    model_version: str
    observation: int
    detected_at: int
    reference_at: int
    detector: DetectorSpec
    window: int
    discrepancy: float
    threshold: float
    n_discrepancy: int
    distance: str
    loss: str
    features: dict[str, FeatureChange]
    sentence: str
    source: Source
