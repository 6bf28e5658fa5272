"""Facts a model states about itself: its classes and features."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np

from .batch import BatchModel
from .sklearn import SklearnModel
from .trained.base import TrainedModel


def classes_of(model: Any) -> list[Any]:
    """Return the classes that a fitted estimator knows; none elsewhere.

    It may be wrapped, or at the end of a pipeline.
    """
    if steps := _steps_of(model):
        return classes_of(steps[-1])
    for name in ("classes_", "classes"):
        found = getattr(model, name, None)
        if isinstance(found, (list, tuple, np.ndarray)):
            known = found.tolist() if isinstance(found, np.ndarray) else list(found)
            return [one for one in known if isinstance(one, (str, Number, np.bool_))]
    inner = getattr(model, "estimator", None)
    return [] if inner is None or inner is model else classes_of(inner)


def features_of(model: Any) -> list[Any]:
    """Return the features that a model names, as it was fitted on a frame."""
    if isinstance(model, TrainedModel):
        return list(model.feature_kinds)
    names = model.features if isinstance(model, (BatchModel, SklearnModel)) else None
    estimator = model.estimator if isinstance(model, SklearnModel) else model
    return list(map(str, getattr(estimator, "feature_names_in_", ()) if names is None else names))


def features_met_by(model: Any) -> list[Any]:
    """Return the features that a model names, or that it has learnt.

    A linear model of River's has a weight for each, and a scaler before it a count.
    """
    first = (_steps_of(model) or [model])[0]
    learnt = next((getattr(first, name) for name in ("weights", "counts") if hasattr(first, name)), None)
    return features_of(model) or (list(learnt) if isinstance(learnt, Mapping) else [])


def _steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline of River's."""
    steps = getattr(model, "steps", None)
    return list(steps.values()) if isinstance(steps, dict) else []
