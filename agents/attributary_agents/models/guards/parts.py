"""Test, by type, of the classes that a deployed model may be made of.

A record of the models topic may build only these. A package also holds what reads files, opens connections or runs a
whole evaluation: data sets, streams, functions.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from river import bandit, base, datasets, metrics, optim, proba, stats, tree, utils
from river.neighbors.base import BaseNN
from river.tree import split_criterion, splitter

PARTS: tuple[type, ...] = (
    base.Estimator,
    base.Transformer,
    base.DriftDetector,
    base.BinaryDriftDetector,
    optim.base.Optimizer,
    optim.base.Initializer,
    optim.base.Scheduler,
    optim.base.Loss,
    metrics.base.Metric,
    metrics.base.ClusteringMetric,
    stats.base.Statistic,
    proba.base.Distribution,
    bandit.base.Policy,
    BaseNN,
    splitter.Splitter,
    split_criterion.base.SplitCriterion,
    tree.losses.Loss,
    utils.Rolling,
    utils.TimeRolling,
)
"""Types of River's that a model is made of."""

NEVER: tuple[type, ...] = (datasets.base.Dataset,)
"""Types that are none, whatever else they are."""

METHODS = (
    "predict_one",
    "predict_proba_one",
    "score_one",
    "transform_one",
    "learn_one",
    "predict",
    "predict_proba",
    "transform",
)
"""A class of the user's own is a part of a model when it has one of these."""

_LIBRARIES = ("river", "sklearn")
"""Packages whose classes have types to go by; in them a method alone is not enough."""

_READS_FILES = {"memory": None, "input": "content", "cache_dir": None}
"""Arguments of scikit-learn's that name a file or folder, or let features name one, to the value that does not."""


def is_part(found: Any) -> bool:
    """Return whether an object is a class of which models are made."""
    if not isinstance(found, type) or issubclass(found, NEVER):
        return False
    if issubclass(found, PARTS):
        return True
    sklearn = sys.modules.get("sklearn.base")
    if sklearn is not None and issubclass(found, sklearn.BaseEstimator):
        return True
    is_library = found.__module__.split(".")[0] in _LIBRARIES
    return not is_library and any(callable(getattr(found, method, None)) for method in METHODS)


def is_named(path: str, allowed: Sequence[str]) -> bool:
    """Return whether `control.allowed` names this class or function itself.

    A package around it does not count.
    """
    return path in allowed


def argument_for_files(found: Any, params: dict[str, Any]) -> str | None:
    """Return an argument that makes scikit-learn use files, or None."""
    if getattr(found, "__module__", "").split(".")[0] != "sklearn":
        return None
    return next((name for name, value in params.items() if value != _READS_FILES.get(name, value)), None)
