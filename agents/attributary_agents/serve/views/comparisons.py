"""Chooses what is worth comparing: the beginning of a model with its end, and before with after a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...config.models import ModelConfig
from ..answers.changes import ChangeRow
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


def linked(change: StoredChange) -> Iterator[Pair]:
    """Yield the pairs that the page links to from a change: from its reference, and from before its onset."""
    event, model_id = change.event, change.model_id
    onset: Mapping[str, Any] = event.get("onset") or {}
    if event.get("event") == "alarm":
        return
    told = Moment(model_id, observation=change.observation)
    if isinstance(reference := event.get("reference_at"), int) and reference >= 0:
        yield Moment(model_id, observation=reference), told
    if event.get("event") in ("explanation", "importance_shift", "loss_shift"):
        since = (onset.get("observation"), event.get("detected_at"), change.observation)
        first = next(value for value in since if isinstance(value, int))
        yield Moment(model_id, observation=max(first - 1, 1)), told


def since_change(change: ChangeRow) -> Pair:
    """Return the moment before a change was told, and now, as the page links to them from the model."""
    return Moment(change.model_id, observation=max(change.observation - 1, 0)), Moment(change.model_id)


def _first_mature(store: Store, explainer: StoredExplainer) -> int:
    window = store.window(explainer.model_id, explainer.explainer, by="observation", points=_POINTS, top=_TOP)
    if window is None:
        return explainer.first_observation
    is_mature = np.isfinite(window.low).all(axis=1)
    return int(window.observation[int(is_mature.argmax()) if is_mature.any() else 0])
