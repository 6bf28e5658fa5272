"""View of partial dependences: mean predictions by feature value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ...config.settings import Config
from ..answers.series import Dependence, DependenceList
from ..store.store import Store
from .choosing import model_of
from .numbers import dated
from .numbers import points as shown


def dependences(store: Store, config: Config, model_id: str, feature: str | None = None) -> DependenceList:
    """Return the latest partial dependences of a model's features.

    Of all features, or of `feature` alone.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows the model.
    """
    model_of(store, config, model_id)
    found = store.dependences(model_id)
    return DependenceList(
        model_id=model_id,
        dependences=[_dependence(model_id, event) for event in found if feature in (None, event.get("feature"))],
    )


def _dependence(model_id: str, event: Mapping[str, Any]) -> Dependence:
    values: list[Any] = list(event.get("values") or ())
    n = len(values)
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    kind: Literal["number", "category"] = (
        "number" if event.get("kind", "number") == "number" and is_number else "category"
    )
    label, time_ms = event.get("label"), event.get("time_ms")
    return Dependence(
        model_id=model_id,
        model_version=str(event.get("model_version") or ""),
        feature=str(event.get("feature") or ""),
        kind=kind,
        label=None if label is None else str(label),
        values=[float(value) if kind == "number" else str(value) for value in values],
        mean=_numbers(event.get("mean"), n),
        half_width=_numbers(event.get("half_width"), n),
        time_ms=dated(time_ms) if isinstance(time_ms, int) else None,
        observation=int(event.get("observation") or 0),
    )


def _numbers(values: Sequence[Any] | None, n: int) -> list[float | None]:
    """Return exactly as many numbers as the axis has points; None if unknown."""
    given = [*(values or ()), *([None] * n)][:n]
    known = [value if isinstance(value, int | float) and not isinstance(value, bool) else None for value in given]
    return shown(np.array(known, dtype=np.float64))
