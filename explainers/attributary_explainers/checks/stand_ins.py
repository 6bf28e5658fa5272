"""Default model and stream of the checks, and a switch to break models."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from river import base

_METHODS = (
    "predict_one",
    "predict_proba_one",
    "score_one",
    "predict",
    "predict_proba",
    "score_samples",
    "predict_many",
)


class AnyClassifier(base.Classifier):
    """A softmax regression that takes any name, any value and any label.

    Numbers count as they are, cut at 10 on both sides; every other value is a category; None, NaN and what has no hash
    count as absent. It has no prediction before it has learnt. It is deterministic and small, not good.
    """

    def __init__(self, rate: float = 0.1) -> None:
        self.rate = rate
        self.weights: dict[Any, dict[Any, float]] = {}

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each label that has been learnt."""
        terms = list(_terms(x))
        scores = {
            label: math.fsum(value * weights.get(key, 0.0) for key, value in terms)
            for label, weights in self.weights.items()
        }
        top = max(scores.values(), default=0.0)
        powers = {label: math.exp(score - top) for label, score in scores.items()}
        total = sum(powers.values())
        return {label: power / total for label, power in powers.items()}

    def learn_one(self, x: dict[Any, Any], y: Any, **_: Any) -> None:
        """Take a gradient step that lowers the cross-entropy."""
        self.weights.setdefault(y, {})
        for label, p in self.predict_proba_one(x).items():
            weights, step = self.weights[label], self.rate * (float(label == y) - p)
            for key, value in _terms(x):
                weights[key] = weights.get(key, 0.0) + step * value


def _terms(x: dict[Any, Any]) -> Any:
    yield "intercept of the model", 1.0
    for name, value in x.items():
        if _is_number(value):
            try:
                number = float(value)
            except OverflowError:
                number = 10.0
            if not math.isnan(number):
                yield (name, "number"), min(max(number, -10.0), 10.0)
        elif value is not None and isinstance(value, Hashable):
            yield (name, value), 1.0


def ordinary_stream(n: int = 240) -> list[tuple[dict[Any, Any], Any]]:
    """Return rows of two strong features, a noise feature, a weak category."""
    draw = random.Random(20230901)
    stream: list[tuple[dict[Any, Any], Any]] = []
    for _ in range(n):
        a, b, noise = (round(draw.gauss(0.0, 1.0), 6) for _ in range(3))
        kind = draw.choice(("red", "green", "blue"))
        stream.append(
            ({"a": a, "b": b, "noise": noise, "kind": kind}, "yes" if 2.0 * a - b + (kind == "red") > 0.3 else "no")
        )
    return stream


class Switch:
    """Switch that makes a model's predictions fail while `mode` says so.

    Parameters
    ----------
    model
        Its methods are replaced on the instance, so that it stays of its exact type. A function is wrapped instead:
        `self.model` is what to explain.
    """

    def __init__(self, model: Any) -> None:
        self.mode = "works"
        """What the model does: `works`, `nothing` (None), `nan`, `infinite` or `raises`."""
        self.every = 1
        """Only each `every`-th call fails."""
        self.n_calls = 0
        names = [name for name in _METHODS if hasattr(model, name)]
        for name in names:
            setattr(model, name, self._guarded(getattr(model, name)))
        self.model = model if names or not callable(model) else self._guarded(model)

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            self.n_calls += 1
            prediction = function(*args, **kwargs)
            if self.mode == "works" or self.n_calls % self.every:
                return prediction
            if self.mode == "raises":
                raise ZeroDivisionError("the check made the model raise")
            return _broken(prediction, {"nan": math.nan, "infinite": math.inf}.get(self.mode))

        return guarded


def _broken(prediction: Any, value: float | None) -> Any:
    if isinstance(prediction, dict):
        return None if value is None else dict.fromkeys(prediction, value)
    if isinstance(prediction, list):
        return [_broken(part, value) for part in prediction]
    if isinstance(prediction, np.ndarray) and prediction.ndim:
        return [None] * len(prediction) if value is None else prediction * value
    return value if _is_number(prediction) else None


def _is_number(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real)


def ask(model: Any, x: Mapping[Any, Any]) -> None:
    """Let a River model or a function predict, and drop the prediction."""
    method = next((getattr(model, name) for name in _METHODS[:3] if hasattr(model, name)), model)
    if callable(method):
        method(dict(x))
