"""River models: their kinds, and the methods that predict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from river import active, base, compose

from ..errors import ModelError
from ..predictions import Kind
from ..typing import Output

_CHANGING = (compose.Renamer, compose.FuncTransformer)


def _is(model: Any, *classes: Any) -> bool:
    # River's own isinstance asks the steps of pipelines, too, and takes many times as long.
    kind: Any = type(model)
    return _is_subclass(kind, classes)


@lru_cache(maxsize=4096)
def _is_subclass(kind: Any, classes: Any) -> bool:
    return issubclass(kind, classes)


def final_step(model: Any) -> Any:
    """Return the last step within pipelines and active learners, or itself."""
    while True:
        if _is(model, compose.Pipeline) and model.steps:
            model = next(reversed(model.steps.values()))
        elif _is_active(model):
            model = model.classifier
        else:
            return model


def river_kind(model: Any) -> Kind | None:
    """Return the kind of a River model; None if it cannot be explained.

    Wrappers (bagging, imbalance, target scaling, model selection, retraining) are of the kind that they wrap, and say
    so themselves.
    """
    final = final_step(model)
    if _is(final, base.MultiTargetRegressor):
        return None  # some are regressors, too
    if _is(final, base.Classifier):
        return "classifier"
    if _is(final, base.Regressor):
        return "regressor"
    if _is(final, base.AnomalyFilter):
        return river_kind(final.anomaly_detector)
    if _is(final, base.AnomalyDetector):
        return "anomaly_detector"
    if isinstance(final, (type, base.Base)) or callable(final):
        return None
    # Not River's, but written in its manner. Of predict_one alone nobody knows whether it is a label or a number.
    if callable(getattr(final, "predict_proba_one", None)):
        return "classifier"
    return "anomaly_detector" if callable(getattr(final, "score_one", None)) else None


def river_has_probabilities(classifier: Any) -> bool:
    """Return whether a classifier, or its wrapped model, gives probabilities."""
    final = final_step(classifier)
    if getattr(type(final), "predict_proba_one", None) is base.Classifier.predict_proba_one:
        return False
    return not _is(final, base.Wrapper) or river_has_probabilities(final._wrapped_model)


def river_predict(model: Any, output: Output) -> Callable[[Any], Any]:
    """Return the function that predicts or scores a row.

    It is the bound `predict_proba_one`, `predict_one` or `score_one`, and is given a copy of the row where a step of
    the model may change it (`compose.Renamer` does).

    Raises
    ------
    ModelError
        The model ends in an active learner, which predicts pairs and draws random numbers to do so.
    """
    # An active learner's own prediction says whether it wants the label, too; the model is what it wraps.
    while _is_active(model):
        model = model.classifier
    step = model
    while _is(step, compose.Pipeline) and step.steps:
        step = next(reversed(step.steps.values()))
    if _is_active(step):
        raise ModelError(
            f"{type(step).__name__} is the last step of a pipeline: wrap the pipeline in it, not the model alone"
        )
    if river_kind(model) == "anomaly_detector":
        found = model.score_one
    else:
        found = model.predict_proba_one if output == "probabilities" else model.predict_one
    method: Callable[[Any], Any] = found
    return (lambda x: method(dict(x))) if any(_is(step, *_CHANGING) for step in _parts(model)) else method


def _is_active(model: Any) -> bool:
    return _is(model, active.base.ActiveLearningClassifier)


def _parts(model: Any) -> Iterator[Any]:
    # The model and what is in it, as far as River's containers show it.
    yield model
    inner: list[Any] = []
    if _is(model, compose.Pipeline):
        inner = list(model.steps.values())
    elif _is(model, compose.TransformerUnion):
        inner = list(model.transformers.values())
    elif _is(model, base.Wrapper):
        inner = [model._wrapped_model]
    for part in inner:
        yield from _parts(part)


def river_refusal(model: Any) -> str | None:
    """Return why a River model cannot be explained and the remedy, or None."""
    final = final_step(model)
    if isinstance(final, base.AnomalyFilter):
        final = final_step(final.anomaly_detector)
    if isinstance(final, base.SupervisedAnomalyDetector):
        return "its score depends on the target too: put the target among the features and give a callable"
    if isinstance(final, (base.MultiLabelClassifier, base.MultiTargetRegressor)):
        return "it predicts several targets: give a callable that returns one of them"
    if isinstance(final, base.Clusterer):
        return "no loss says how good a cluster is: give a callable that returns a number, such as a distance"
    if isinstance(final, base.Transformer):
        return "it transforms features and predicts nothing: put a classifier or a regressor behind it"
    if not isinstance(final, (type, base.Base)) and callable(getattr(final, "predict_one", None)):
        return (
            "nothing says whether its predict_one gives a label or a number: derive its class from "
            "river.base.Classifier or river.base.Regressor, or explain its `predict_one` itself, with a loss"
        )
    return None
