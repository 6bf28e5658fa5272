"""Model adapters: turn any model into the function explainers call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from river import base

from .. import fast_paths  # noqa: F401 - its import fills the registry
from ..errors import ModelError
from ..evaluation.function import FastFunction, say
from ..evaluation.registry import has_factory
from ..losses.losses import AnyLoss, Loss, as_loss
from ..predictions import Kind, as_output
from ..typing import Features, ModelFunction, Output, Prediction
from .batch import BatchFunction, BatchModel, DetectorFunction
from .cost import is_cheap
from .river import final_step, river_has_probabilities, river_kind, river_predict, river_refusal
from .sklearn import (
    CompatFunction,
    SklearnModel,
    estimator_has_probabilities,
    estimator_kind,
    estimator_refusal,
    is_compat,
    is_estimator,
    sklearn_function,
)
from .trained import BoosterModel, TrainedModel, is_booster, is_module

_OUTPUTS: dict[Kind, tuple[Output, ...]] = {
    "classifier": ("probabilities", "label"),
    "regressor": ("number",),
    "anomaly_detector": ("number",),
}
_LOSSES: dict[Kind, str] = {
    "classifier": "brier, cross_entropy, expected_zero_one or zero_one",
    "regressor": "absolute or squared",
    "anomaly_detector": "score or neg_score",
}


def model_function(model: Any, output: Output) -> ModelFunction:
    """Return the function `x -> prediction` for the output a loss reads.

    Parameters
    ----------
    model
        A River classifier, regressor or anomaly detector, or a pipeline or wrapper of one; a scikit-learn
        classifier, regressor, outlier detector or density estimator, or a pipeline or search of one (see
        `SklearnModel`, which also names its features), or one in its manner, as XGBoost, LightGBM and CatBoost have
        them; a booster of these (see `BoosterModel`); an `OnnxModel` or a `TorchModel`; any callable
        `x -> prediction`; or a callable of many rows, marked by `as_batch`; or any other object with
        `predict_proba_one` (a classifier) or `score_one` (an anomaly detector; with `score_many(X)`, which takes a
        data frame, many rows are scored in one call). A callable may return a dict of probabilities, a label (for
        output `"label"`) or a number. What is given is referred to, not copied: the function follows the model as it
        learns.
    output
        `"probabilities"`, `"label"`, `"number"`, or `"any"` for the model's own: probabilities or else the label of
        a classifier, the number of the others, what a callable returns. A label is returned as `{label: 1.0}`.

    Returns
    -------
    ModelFunction
        `predict_rows` evaluates it on many rows. Returns None while the model has nothing to predict: River's empty
        dict or None, an estimator that is not fitted. Any other exception of the model passes through.

    Raises
    ------
    ModelError
        The model has no such output, for example a regressor with a loss on probabilities, or cannot be explained;
        the message says what would do. From the function: a prediction is not what the output asks for.
    """
    if is_booster(model):
        model = BoosterModel(model)
    kind = model_kind(model)
    if isinstance(model, BatchModel) and kind is None:
        return BatchFunction(model.predict_many, output)
    if kind is None:
        if not _is_callable(model):
            raise _refusal(model)
        return _row_by_row(model, output)
    if output == "any":
        output = _own_output(model, kind)
    if output not in _OUTPUTS[kind]:
        article = "an" if kind == "anomaly_detector" else "a"
        name = kind.replace("_", " ")
        raise ModelError(
            f"{_name(model)} is {article} {name}: use the loss {_LOSSES[kind]} (the key `loss`), or leave it out"
        )
    if output == "probabilities" and not _has_probabilities(model):
        raise ModelError(
            f"{_name(model)} predicts labels without probabilities: use the loss expected_zero_one or zero_one (the "
            "key `loss`), or leave it out"
        )
    if isinstance(model, BatchModel):
        return BatchFunction(model.predict_many, output)
    if isinstance(model, TrainedModel):
        return BatchFunction(partial(model.predict_many, output=output), output, model.see)
    if is_estimator(model):
        return sklearn_function(model, output)
    predict = river_predict(model, output)
    if is_compat(model):
        return CompatFunction(model, predict, output)
    function = _row_by_row(predict, output)
    if kind == "anomaly_detector":
        score_many = getattr(model, "score_many", None)
        return DetectorFunction(predict, score_many) if callable(score_many) else function
    if not has_factory(model):
        if not is_cheap(model):
            say(model, f"there is no fast path for {type(model).__module__}.{type(model).__qualname__}")
        return function
    return FastFunction(model, output, function)


def model_kind(model: Any) -> Kind | None:
    """Return the kind of a model; None for a callable or an unknown model.

    Kinds are `"classifier"`, `"regressor"` and `"anomaly_detector"`. A callable of many rows with `classes` is a
    classifier.
    """
    if isinstance(model, BatchModel):
        return model.kind
    if is_booster(model):
        model = BoosterModel(model)
    if isinstance(model, TrainedModel):
        return model.kind
    return estimator_kind(model) if is_estimator(model) else river_kind(model)


def resolve_loss(model: Any, loss: AnyLoss | None) -> Loss:
    """Return the loss to explain `model` with.

    None stands for the loss that fits the kind of model: brier for a classifier, expected_zero_one for one without
    probabilities, squared for a regressor, score for an anomaly or outlier detector. A bare callable reads a
    classifier's probabilities, or else its label, and any other model's prediction as it is.

    Raises
    ------
    ModelError
        `loss` is None and the model is a plain callable: only the caller knows what it predicts. Or the model cannot
        be explained at all.
    """
    kind = model_kind(model)
    if loss is not None:
        return as_loss(loss, output="any" if kind is None else _own_output(model, kind))
    if kind is None:
        if not (_is_callable(model) or isinstance(model, BatchModel)):
            raise _refusal(model)
        raise ModelError(
            f"cannot tell what {_name(model)} predicts, a number or a class: name a loss, as `loss: squared` in a "
            'configuration or loss="squared" in Python. Numbers: squared or absolute; a dict of probabilities: brier '
            "or cross_entropy; labels: expected_zero_one or zero_one; a score without a target: score"
        )
    if kind == "classifier":
        return as_loss("brier" if _has_probabilities(model) else "expected_zero_one")
    return as_loss("squared" if kind == "regressor" else "score")


def is_classifier(model: Any) -> bool:
    """Return whether a model is a classifier, or ends in a classifier."""
    return model_kind(model) == "classifier"


def _row_by_row(predict: Callable[[Any], Any], output: Output) -> ModelFunction:
    return partial(_predicted, predict, as_output(output))


def _predicted(predict: Callable[[Any], Any], convert: Callable[[Any], Prediction], x: Features, /) -> Prediction:
    # No closure: a deep copy of an explainer asks its own copy of the model, by every path.
    return convert(predict(x))


def _own_output(model: Any, kind: Kind) -> Output:
    return "label" if kind == "classifier" and not _has_probabilities(model) else _OUTPUTS[kind][0]


def _has_probabilities(classifier: Any) -> bool:
    if isinstance(classifier, BatchModel):
        return classifier.classes is not None
    if is_booster(classifier):
        classifier = BoosterModel(classifier)
    if isinstance(classifier, TrainedModel):
        return classifier.has_probabilities
    if is_estimator(classifier):
        return estimator_has_probabilities(classifier)
    return river_has_probabilities(classifier)


def _is_callable(model: Any) -> bool:
    # A class is callable too, but never meant: an instance was forgotten. An estimator or River model that got here
    # is of a kind that cannot be explained.
    return callable(model) and not isinstance(final_step(model), (type, base.Base)) and not is_module(model)


def _refusal(model: Any) -> ModelError:
    if isinstance(model, type):
        return ModelError(f"cannot explain {model.__name__}: it is a class, give an instance of it")
    if is_module(model):
        return ModelError(
            f"cannot explain {_name(model)} as it is: name its columns, and the classes of a classifier, "
            "TorchModel(module, features=[...], classes=[...])"
        )
    reason = estimator_refusal(model) if is_estimator(model) else river_refusal(model)
    expected = (
        "expected a River classifier, regressor or anomaly detector, a scikit-learn estimator, a callable "
        "x -> prediction, or an object with predict_proba_one or score_one"
    )
    return ModelError(f"cannot explain {_name(model)}: {reason or expected}")


def _name(model: Any) -> str:
    if isinstance(model, TrainedModel):
        return model.title
    if isinstance(model, SklearnModel):
        model = model.estimator
    elif isinstance(model, BatchModel):
        model = model.function
    return str(getattr(model, "__name__", type(model).__name__))
