"""Chooses what is worth comparing: the beginning of a model with its end, and before with after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...config.models import ModelConfig
from ..store.rows import StoredChange, StoredExplainer, StoredModel
from ..store.store import Store
from .choosing import explainer_of
from .moments import Moment

Pair = tuple[Moment, Moment]

_POINTS = 500
_TOP = 5
_AROUND = ("explanation", "importance_shift", "loss_shift", "loss_shift_explained")


def first_with_last(store: Store, model: StoredModel, settings: ModelConfig | None) -> Pair | None:
    """Return the first moment at which all intervals were known, and the last; None where it is the same event."""
    explainer = explainer_of(model, settings)
    if explainer is None:
        return None
    before, after = _first_mature(store, explainer), explainer.last_observation
    if before >= after:
        return None
    return Moment(model.model_id, observation=before), Moment(model.model_id, observation=after)


def around(chain: Sequence[StoredChange]) -> Pair | None:
    """Return a moment before a change, since when it holds or was noticed at all, and that at which it was told.

    None where it is of no kind that has a before.
    """
    told = [one for one in chain if one.event.get("event") in _AROUND]
    if not told:
        return None
    onsets: list[Mapping[str, Any]] = [one.event.get("onset") or {} for one in told]
    values = [value for onset in onsets for value in (onset.get("low"), onset.get("observation"))]
    values += [one.event.get("detected_at") for one in told]
    known = [value for value in values if isinstance(value, int)]
    before, after = (max(min(known) - 1, 0) if known else 0), max(one.observation for one in told)
    if not 0 < before < after:
        return None
    model_id = told[0].model_id
    return Moment(model_id, observation=before), Moment(model_id, observation=after)


def _first_mature(store: Store, explainer: StoredExplainer) -> int:
    window = store.window(explainer.model_id, explainer.explainer, by="observation", points=_POINTS, top=_TOP)
    if window is None:
        return explainer.first_observation
    is_mature = np.isfinite(window.low).all(axis=1)
    return int(window.observation[int(is_mature.argmax()) if is_mature.any() else 0])
