"""Holds what the hand-written loops share: their models, and the window in which they are measured.

Knows nothing of the product: what a user would write without it.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson
from river import compose, forest, linear_model, preprocessing

Step = Callable[[dict[str, float], Any], Any]
"""Takes one observation; returns what there is to publish, if anything."""


def settings() -> dict[str, Any]:
    """Return what the process was started with."""
    found: dict[str, Any] = json.loads(sys.argv[1])
    return found


class Window:
    """Says on stdout when the first and the last of the measured records were handled.

    Parameters
    ----------
    first, last
        Numbers of records, counted from 1; last 0 measures nothing.
    """

    def __init__(self, first: int, last: int) -> None:
        self.n = 0
        self._next = [first, last] if last else []

    def note(self, n: int = 1) -> None:
        """Count so many more records."""
        self.n += n
        while self._next and self.n >= self._next[0]:
            del self._next[0]
            cpu, at = time.process_time(), time.monotonic()
            line = json.dumps({"n": self.n, "cpu": cpu, "at": at})
            print(line, file=sys.__stdout__, flush=True)  # Faust takes sys.stdout for its log


def make_model(kind: str) -> Any:
    """Make a model of River: `logreg` or `arf10`."""
    if kind == "arf10":
        return forest.ARFClassifier(n_models=10, seed=1)
    return compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())


def make_step(kind: str, n_samples: int) -> Step:
    """Return the loop's body: predict and learn, explained by iXAI's incremental PFI where there are samples."""
    model = make_model(kind)
    if not n_samples:

        def learn(x: dict[str, float], y: Any) -> Any:
            y_pred = model.predict_proba_one(x)
            model.learn_one(x, y)
            return y_pred

        return learn
    from ixai.explainer import IncrementalPFI
    from ixai.storage import GeometricReservoirStorage

    explainers: list[Any] = []

    def explain(x: dict[str, float], y: Any) -> Any:
        if not explainers:  # it wants the names of the features
            explainers.append(
                IncrementalPFI(
                    model_function=model.predict_proba_one,
                    loss_function=lambda y, p: -math.log(max(p.get(y, 0.0), 1e-15)),
                    feature_names=list(x),
                    storage=GeometricReservoirStorage(size=100),
                    n_inner_samples=n_samples,
                    smoothing_alpha=0.001,
                    dynamic_setting=True,
                )
            )
        y_pred = model.predict_proba_one(x)
        found = explainers[0].explain_one(x, y)
        model.learn_one(x, y)
        return {"prediction": y_pred, "importance": found}

    return explain


class Steps:
    """Has one step for each model id, made at its first record."""

    def __init__(self, kind: str, n_samples: int) -> None:
        self._kind, self._n_samples = kind, n_samples
        self._steps: dict[bytes, Step] = {}

    def __call__(self, key: bytes, value: bytes) -> Any:
        """Take one record."""
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = make_step(self._kind, self._n_samples)
        observation = orjson.loads(value)
        return step(observation["x"], observation["y"])


def encode_event(offset: int, found: Any) -> bytes:
    """Return the value of an event, which names the record that it follows from."""
    plain = {} if not isinstance(found, dict) else {str(k): float(v) for k, v in found.get("importance", {}).items()}
    return orjson.dumps({"source": {"offset": offset}, "importance": plain})
