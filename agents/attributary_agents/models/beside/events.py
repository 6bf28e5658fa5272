"""Makes the events of mean decrease in impurity and of partial dependence."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from attributary_explainers.monitor.events import feature_importances, finite, in_mode, of_late_labels
from attributary_explainers.monitor.quality import quality_figures
from attributary_topics import DependenceEvent, ImportanceEvent, Source

from ..model_state import ModelState
from .dependence import FoundCurve

NO_REMOVAL = "none"
"""Stands for where removed features take their values, where none is removed."""

MOST_TEXT = 200
"""Characters of the name of a category, and of a label, beyond which it is cut: an event has many of them."""


def leading_importance(state: ModelState) -> dict[Any, float]:
    """Return the importance by the first explainer that has observations.

    Only explainers by removal count; empty before the first observation.
    """
    return next((one.importance for one in state.explainers.values() if one.n_observations), {})


def events_beside(
    state: ModelState, x: dict[str, Any], y_pred: Any, source: Source
) -> list[ImportanceEvent | DependenceEvent]:
    """Return the events that are due after the last observation of the state.

    Parameters
    ----------
    x, y_pred
        The observation, and the prediction whose loss counts; None where there is none.
    source
        Its record.
    """
    events: list[ImportanceEvent | DependenceEvent] = []
    mdi, pdp, observation = state.mdi, state.pdp, state.n_observations
    if mdi is not None and (trigger := mdi.note(observation)) is not None:
        events.append(_impurity_event(state, trigger, source))
    if pdp is not None and (curves := pdp.due(x, y_pred, observation, partial(leading_importance, state))):
        events += [_dependence_event(state, curve, source) for curve in curves]
    return in_mode(events, state.config.mode) if events else events


def _impurity_event(state: ModelState, trigger: str, source: Source) -> ImportanceEvent:
    """Return the event of the mean decrease in impurity.

    Its loss is the loss that corresponds to the impurity.
    """
    mdi = state.mdi
    assert mdi is not None
    loss, is_same = mdi.loss, mdi.loss.name == state.loss.name
    moved, gain = mdi.publication.movement(mdi.importance)
    return ImportanceEvent(
        model_id=state.model_id,
        model_version=state.version,
        explainer=mdi.name,
        removal=NO_REMOVAL,
        loss=loss.name,
        loss_unit=loss.unit,
        loss_largest=finite(loss.largest),
        alpha=0.0,
        observation=state.n_observations,
        n_observations=mdi.n_observations,
        model_loss=finite(state.model_loss.value) if is_same else None,
        baseline_loss=finite(state.baseline_loss.value) if is_same else None,
        quality=quality_figures(state.quality),
        discrepancy=finite(state.change.discrepancy) if state.change else None,
        shift=moved,
        ndcg=gain,
        reference_id=mdi.publication.reference_id,
        trigger=trigger,
        stale=mdi.publication.published_stale,
        features=feature_importances(mdi),
        source=source,
        **of_late_labels(state),
        fidelity=finite(state.fidelity),
    )


def _dependence_event(state: ModelState, curve: FoundCurve, source: Source) -> DependenceEvent:
    pdp = state.pdp
    assert pdp is not None
    assert pdp.explainer is not None
    label = pdp.explainer.chosen_label
    return DependenceEvent(
        model_id=state.model_id,
        model_version=state.version,
        explainer=pdp.name,
        feature=str(curve.feature),
        kind="number" if curve.is_numeric else "category",
        label=label if label is None or isinstance(label, bool | int | float) else _text(label),
        values=[value if curve.is_numeric else _text(value) for value in curve.values],
        mean=[mean if math.isfinite(mean) else None for mean in curve.means],
        half_width=[None] * len(curve.means),
        observation=state.n_observations,
        n_observations=pdp.explainer.n_observations,
        source=source,
    )


def _text(value: Any) -> str:
    """Return the name of a category or of a label, booleans as JSON has them."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"
