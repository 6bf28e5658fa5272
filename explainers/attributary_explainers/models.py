"""Model adapters: from whatever the user has to the one function that an explainer calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from river import base

from .errors import ModelError
from .losses import Loss, as_loss
from .typing import Features, ModelFunction, Output, Prediction


def model_function(model: Any, output: Output) -> ModelFunction:
    """Return `x -> prediction` for the output that a loss reads.

    Parameters
    ----------
    model
        A River classifier, regressor or anomaly detector, a River pipeline that ends in one, or any
        callable `x -> prediction`. A callable may return a dict of probabilities, a label (for output
        `"label"`) or a number.
    output
        `"probabilities"`, `"label"` or `"number"`. A label is returned as `{label: 1.0}`.

    Returns
    -------
    ModelFunction
        Returns None while the model has nothing to predict (River's empty dict or None).

    Raises
    ------
    ModelError
        The model has no such output, for example a regressor with a loss on probabilities.
    """
    final = _final_step(model)
    if isinstance(final, base.Classifier):
        if output == "probabilities":
            return _probabilities(model.predict_proba_one)
        if output == "label":
            return _label(model.predict_one)
        raise _wrong_output(model, "a classifier", "zero_one, cross_entropy or brier")
    if isinstance(final, base.Regressor):
        if output == "number":
            return _number(model.predict_one)
        raise _wrong_output(model, "a regressor", "absolute or squared")
    if isinstance(final, base.AnomalyDetector):
        if output == "number":
            return _number(model.score_one)
        raise _wrong_output(model, "an anomaly detector", "score")
    if isinstance(final, base.Base) or not callable(model):
        raise ModelError(
            f"cannot explain {type(model).__name__}: expected a River classifier, regressor or anomaly "
            "detector, or a callable x -> prediction"
        )
    adapters = {"probabilities": _probabilities, "label": _label, "number": _number, "any": _any}
    return adapters[output](model)


def resolve_loss(model: Any, loss: str | Loss | Callable[[Any, Any], float] | None) -> Loss:
    """The loss to explain `model` with.

    None stands for the loss that fits the kind of model: cross_entropy for a classifier, squared for a
    regressor, score for an anomaly detector. A bare callable reads a classifier's probabilities and any
    other model's prediction as it is.

    Raises
    ------
    ModelError
        `loss` is None and the model is a plain callable: only the caller knows what it predicts.
    """
    final = _final_step(model)
    numeric = isinstance(final, (base.Regressor, base.AnomalyDetector))
    if loss is not None:
        classifier = isinstance(final, base.Classifier)
        return as_loss(loss, output="number" if numeric else "probabilities" if classifier else "any")
    if isinstance(final, base.Classifier):
        return as_loss("cross_entropy")
    if not numeric:
        raise ModelError(f"cannot tell what {type(model).__name__} predicts: name a loss")
    return as_loss("squared" if isinstance(final, base.Regressor) else "score")


def is_classifier(model: Any) -> bool:
    """Whether `model` is a River classifier or a pipeline that ends in one."""
    return isinstance(_final_step(model), base.Classifier)


def _final_step(model: Any) -> Any:
    # River's pipelines and wrappers know their last step; a pipeline in a pipeline is unwrapped in turn.
    while hasattr(model, "steps") and model.steps:
        model = list(model.steps.values())[-1]
    return model


def _wrong_output(model: Any, kind: str, losses: str) -> ModelError:
    return ModelError(f"{type(model).__name__} is {kind}: use the loss {losses}")


def _probabilities(predict: Callable[[Any], Any]) -> ModelFunction:
    def function(x: Features) -> Prediction:
        prediction = predict(x)
        if prediction is not None and not isinstance(prediction, dict):
            raise ModelError(f"expected the model to predict a dict of probabilities, got {prediction!r}")
        return prediction or None

    return function


def _any(predict: Callable[[Any], Any]) -> ModelFunction:
    def function(x: Features) -> Prediction:
        prediction = predict(x)
        return prediction if prediction is None or isinstance(prediction, dict) else _as_number(prediction)

    return function


def _label(predict: Callable[[Any], Any]) -> ModelFunction:
    def function(x: Features) -> Prediction:
        label = predict(x)
        return None if label is None else {label: 1.0}

    return function


def _number(predict: Callable[[Any], Any]) -> ModelFunction:
    def function(x: Features) -> Prediction:
        prediction = predict(x)
        return None if prediction is None else _as_number(prediction)

    return function


def _as_number(prediction: Any) -> float:
    try:
        return float(prediction)
    except (TypeError, ValueError):
        raise ModelError(f"expected the model to predict a number, got {prediction!r}") from None


def is_usable(prediction: Prediction) -> bool:
    """Whether a prediction can enter a loss: there is one, and it is finite."""
    if prediction is None:
        return False
    if isinstance(prediction, dict):
        return bool(prediction) and all(map(math.isfinite, prediction.values()))
    return math.isfinite(prediction)
