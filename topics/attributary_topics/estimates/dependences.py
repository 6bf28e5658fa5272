"""Defines the event of partial dependence: how a model's mean prediction depends on one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..absent import MODES, Values, absent
from ..events import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class DependenceEvent:
    """Says how the mean prediction of a model depends on one feature; on the topic of importances, told by `event`.

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
