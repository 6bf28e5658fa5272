"""Made-up observations for a rehearsal without data, by known features."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from attributary_explainers import Loss, TrainedModel
from attributary_explainers.models.known import features_of
from attributary_explainers.typing import Prediction

from ..config.models import ModelConfig
from ..models.guards.ranges import ALL_OTHERS

N_ROWS = 40
"""Rows of a rehearsal, where nothing else is said."""


def known_features(config: ModelConfig, model: Any) -> dict[str, str]:
    """Return the types of declared or named features; empty if unknown.

    Features are declared in the configuration, or named by the model.
    """
    if config.features is not None:
        return config.features
    if isinstance(model, TrainedModel):
        return dict(model.feature_kinds)
    return {str(name): "number" for name in features_of(model)}


def made_up_rows(
    features: Mapping[str, str], config: ModelConfig, loss: Loss, prediction: Prediction
) -> list[dict[str, Any]]:
    """Make the values of records with these features, the same each time.

    Parameters
    ----------
    loss
        Of the model: whether its targets are numbers.
    prediction
        What the model predicts before it has learnt: its classes, where it knows some, are the labels.
    """
    rng = random.Random(1)
    labels = [False, True]
    if isinstance(prediction, dict) and len(prediction) > 1:
        labels = list(prediction)
    rows = []
    for _ in range(N_ROWS):
        x = {
            name: _value(rng, kind, config.bounds.get(name) or config.bounds.get(ALL_OTHERS))
            for name, kind in features.items()
        }
        y = rng.random() if loss.output in ("number", "any") else rng.choice(labels)
        rows.append({"x": x, "y": y})
    return rows


def _value(rng: random.Random, kind: str, bounds: tuple[float | None, float | None] | None) -> Any:
    if kind == "category":
        return rng.choice(["a", "b", "c"])
    if kind == "boolean":
        return rng.random() < 0.5
    low, high = bounds or (None, None)
    least = low if low is not None else (0.0 if high is None else high - 1.0)
    return rng.uniform(least, high if high is not None else least + 1.0)
