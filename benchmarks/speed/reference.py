"""iXAI, the papers' own implementation, as its documentation uses it; nothing in it is changed.

It is not needed: `pip install --group benchmark` brings it. It draws from the global generators, which are seeded here.
The user of iXAI predicts and then explains: it does not hand its prediction out.
"""

from __future__ import annotations

import importlib
import math
import random
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from benchmarks.speed.kinds import Kind
from benchmarks.speed.subjects import Observation

Loss = Callable[[Any, dict[Any, float]], float]

ALPHA = 0.001


def installed() -> str | None:
    """Its version; None where it is not installed."""
    try:
        importlib.import_module("ixai.explainer")
    except ImportError:
        return None
    try:
        return version("ixai")
    except PackageNotFoundError:  # unpacked, not installed
        return str(importlib.import_module("ixai").__version__)


def cross_entropy(y: Any, prediction: dict[Any, float]) -> float:
    """As ours: probabilities are clipped at 1e-15."""
    return -math.log(max(prediction.get(y, 0.0), 1e-15))


def squared(y: Any, prediction: dict[Any, float]) -> float:
    """iXAI names a number `output`."""
    return float((y - prediction["output"]) ** 2)


LOSSES: dict[str, Loss] = {"cross_entropy": cross_entropy, "squared": squared}


class Reference:
    """iXAI's explainers of a model; the reservoirs are filled with `stored`.

    Parameters
    ----------
    static
        Plain means, and what is stored remains: for a model and a stream that do not change.
    categories
        Removal is observational, by a tree for each feature, and these are categories; None: it is interventional.
    """

    def __init__(
        self,
        predict: Callable[[dict[str, Any]], Any],
        loss: str,
        kind: Kind,
        stored: Sequence[Observation],
        *,
        static: bool = False,
        categories: Sequence[str] | None = None,
        seed: int = 1,
    ) -> None:
        explainer = importlib.import_module("ixai.explainer")
        random.seed(seed)
        np.random.seed(seed)
        self._updates_storage = not static
        self.explainers: list[Any] = []
        for make, n in [(explainer.IncrementalPFI, kind.pfi), (explainer.IncrementalSage, kind.sage)] * kind.copies:
            if not n:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it says that torch is not there
                made = make(
                    model_function=predict,
                    loss_function=LOSSES[loss],
                    feature_names=list(stored[0][0]),
                    **_removal(predict, kind.stored, list(stored[0][0]), categories),
                    n_inner_samples=n,
                    smoothing_alpha=ALPHA,
                    dynamic_setting=not static,
                )
            for x, y in stored:
                made.update_storage(x, y)
            made.seen_samples = len(stored)  # without an observation seen, the first is not explained
            self.explainers.append(made)

    def step(self, x: dict[str, Any], y: Any) -> None:
        """Explain one observation."""
        for explainer in self.explainers:
            explainer.explain_one(x, y, update_storage=self._updates_storage)

    @property
    def importance(self) -> list[dict[str, float]]:
        """Of each explainer."""
        return [{str(name): float(value) for name, value in one.importance_values.items()} for one in self.explainers]


def _removal(
    predict: Callable[[dict[str, Any]], Any], size: int, names: list[str], categories: Sequence[str] | None
) -> dict[str, Any]:
    """What is stored, and for observational removal who imputes from it."""
    storage = importlib.import_module("ixai.storage")
    if categories is None:
        return {"storage": storage.GeometricReservoirStorage(size=size)}
    trees = storage.TreeStorage(
        cat_feature_names=[name for name in names if name in categories],
        num_feature_names=[name for name in names if name not in categories],
    )
    imputer = importlib.import_module("ixai.imputer").TreeImputer(predict, storage_object=trees, use_storage=True)
    return {"storage": trees, "imputer": imputer}
