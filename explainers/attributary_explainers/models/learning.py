"""Teaches a model an observation: which method, which arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from river import base

from ..errors import ModelError
from ..typing import Features
from .river import river_kind
from .sklearn import SklearnModel, estimator_kind, is_estimator

Learn = Callable[[Features, Any], None]
"""`(x, y) -> None`: teaches a model one observation."""

_BY_POSITION = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


def learn_function(model: Any) -> Learn:
    """Return the function that teaches the model an observation.

    A River model learns by `learn_one(x, y)`, an anomaly detector by `learn_one(x)`, alone or in a filter, and so does
    any other object with `learn_one`. An anomaly detector that is not River's is given the label where its `learn_one`
    has a second argument: one without a default, or called y, label or target.

    Raises
    ------
    ModelError
        The model has no `learn_one`; the message says how it could learn, or that it need not.

    Examples
    --------
    >>> from river import anomaly
    >>> detector = anomaly.HalfSpaceTrees(seed=1)
    >>> learn_function(detector)({"a": 0.5}, None)
    """
    learn_one = None if isinstance(model, type) else getattr(model, "learn_one", None)
    if not callable(learn_one):
        raise ModelError(_refusal(model))
    if river_kind(model) == "anomaly_detector" and (
        isinstance(model, (base.AnomalyDetector, base.AnomalyFilter)) or not _takes_label(model, learn_one)
    ):
        return partial(_without_label, learn_one)
    found: Learn = learn_one
    return found


def _without_label(learn_one: Callable[[Features], None], x: Features, _y: Any) -> None:
    learn_one(x)


def _takes_label(model: Any, learn_one: Callable[..., Any]) -> bool:
    """Return whether `learn_one`'s second argument is the label.

    For River's own models and pipelines it always is. An argument with a default may be anything, such as a weight: it
    is the label where its name says so.
    """
    if isinstance(model, base.Base):
        return True
    try:
        parameters = inspect.signature(learn_one).parameters.values()
    except ValueError:  # of a compiled method nothing is known
        return True
    places = [one for one in parameters if one.kind in _BY_POSITION]
    if places and places[-1].kind is inspect.Parameter.VAR_POSITIONAL and len(places) <= 2:
        return True
    if len(places) < 2:
        return False
    return places[1].default is inspect.Parameter.empty or places[1].name.strip("_") in ("y", "label", "target")


def _refusal(model: Any) -> str:
    stays = "set `learn: false` where it is to stay as it is"
    if not is_estimator(model):
        return f"{type(model).__name__} cannot learn, because it has no method learn_one(x, y): {stays}"
    estimator = model.estimator if isinstance(model, SklearnModel) else model
    name, kind = type(estimator).__name__, estimator_kind(estimator)
    if not hasattr(estimator, "partial_fit") or kind not in ("classifier", "regressor"):
        fit = (
            ""
            if _is_fitted(estimator)
            else "it is not fitted either: fit it in the function that `factory` names, and "
        )
        return f"{name} cannot learn one observation at a time, as it is scikit-learn's: {fit}{stays}"
    # Its default, the hinge loss, has no probabilities.
    given = ", params: {loss: log_loss}" if name == "SGDClassifier" and not hasattr(estimator, "predict_proba") else ""
    wrapper, classes = ("SKL2RiverRegressor", "") if kind == "regressor" else ("SKL2RiverClassifier", ", classes: […]")
    return (
        f"{name} is scikit-learn's and has no learn_one(x, y): wrap it in River's own wrapper, {{class: "
        f"river.compat.{wrapper}, params: {{estimator: {{class: {type(estimator).__module__.split('.')[0]}.….{name}"
        f"{given}}}{classes}}}}}; or {stays}"
    )


def _is_fitted(estimator: Any) -> bool:
    try:
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted
    except ImportError:  # an estimator in the manner of scikit-learn needs none
        return True
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    except TypeError:  # in the manner of scikit-learn, and not its own
        return True
    return True
