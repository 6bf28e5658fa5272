"""Says of a configured model, before it is made, whether it is an anomaly detector of River's, which has no labels."""

from __future__ import annotations

from typing import Any

_DETECTORS = "river.anomaly."
_OF_A_TARGET = ("GaussianScorer", "PredictiveAnomalyDetection", "StandardAbsoluteDeviation")
"""River's detectors whose score depends on a target, too."""


def is_detector(model: Any) -> bool:
    """Return whether what stands under `model` ends in a class of `river.anomaly` that learns without labels.

    Of a factory, a file and a class of the user's own nothing is known: there the mode is written.
    """
    if isinstance(model, list) and model:
        model = model[-1]
    path = model.get("class") if isinstance(model, dict) else None
    return isinstance(path, str) and path.startswith(_DETECTORS) and not path.endswith(_OF_A_TARGET)
