"""Lets a new version of a model take over from the present one, between two observations."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from attributary_explainers import (
    ChangeExplainer,
    ChangeExplanation,
    ExplainerError,
    RemovalExplainer,
    resolve_loss,
)
from attributary_topics import ChangeEvent, Source

from .events import change_event
from .explainers import new_change_explainer, new_explainer
from .model_state import RULES, Kept, ModelState, new_state
from .versions import Version

logger = logging.getLogger(__name__)


def swap(state: ModelState, new: Version, source: Source, timestamp_ms: int) -> tuple[ModelState, list[ChangeEvent]]:
    """Return the state with the new version in place of the present one, and the event that explains the change.

    The change is explained on the recent observations. Importances, losses and the mean prediction start afresh, for
    they are of the present version. What is stored to draw replacements from, unless one of the two raised on it, the
    counts, and what was published stay.

    Where the two versions cannot be compared, because one of them raises or predicts nothing on those observations, or
    they are of different kinds, the new one takes over all the same, because that is what has been deployed: without
    an event, with a warning, counted as unexplained.

    Parameters
    ----------
    state
        The present state. It is whole until the new one is returned, and not to be used afterwards.
    source, timestamp_ms
        Place and time of the record that the new version predicts first.

    Raises
    ------
    ExplainerError
        The new version cannot be explained as configured: the state is as it was.
    """
    swapped = state.with_version(
        replace(new, deployed=max(state.current.deployed, new.deployed)),
        explainers={name: _explainer(state, name, new.model) for name in state.explainers},
        change=state.change,
    )
    swapped.change, explanation, why = _change(state, new)
    if isinstance(why, Exception):
        # What is stored to draw from is what has just made one of them raise, the new one most likely.
        swapped.explainers = {
            name: new_explainer(state.model_id, state.config, name, new.model) for name in swapped.explainers
        }
    observation = state.n_observations + 1
    for publication in swapped.publications.values():
        publication.restart_reference(observation)
    if explanation is None:
        swapped.counts.versions["unexplained"] += 1
        logger.warning(
            "model %s: version %s takes over from %s at observation %d; the change is not explained: %s",
            state.model_id,
            new.name,
            state.version,
            observation,
            f"{type(why).__name__}: {why}" if isinstance(why, Exception) else why,
        )
        return swapped, []
    swapped.counts.versions["explained"] += 1
    swapped.add_change(explanation, timestamp_ms)
    return swapped, [change_event(swapped, explanation, observation, source)]


def begin_with(state: ModelState, new: Version) -> ModelState:
    """Return the state of a model without observations, begun with the new version: there is nothing to take over."""
    begun = new_state(state.model_id, state.config, replace(new, deployed=max(state.current.deployed, new.deployed)))
    place = {name: getattr(state, name) for name, rule in RULES.items() if rule.kept is Kept.ALWAYS}
    return replace(begun, stored_deployed=state.stored_deployed, **place)


def _explainer(state: ModelState, name: str, model: Any) -> RemovalExplainer:
    explainer = state.explainers[name]
    if resolve_loss(model, state.config.loss).name == explainer.loss.name:
        return explainer.for_model(model)  # draws from the same stored observations
    return new_explainer(state.model_id, state.config, name, model)


_NOTHING_TO_COMPARE = "there are too few observations, or one of the two versions predicts nothing for some"


def _change(
    state: ModelState, new: Version
) -> tuple[ChangeExplainer | None, ChangeExplanation | None, str | Exception]:
    """Return the change explainer from now on, the explanation, and why there is no explanation where there is none."""
    change = state.change
    if change is None:
        return None, None, "the configuration says `change: null`"
    try:
        return change, change.new_version(new.model, new.name), _NOTHING_TO_COMPARE
    except Exception as error:  # noqa: BLE001 - whatever the user's models raise, the new one is what is deployed
        try:
            change.new_version(new.model, new.name, explain=False)
        except ExplainerError:  # of another kind: nothing of the old change explainer is of use to it
            change = new_change_explainer(state.model_id, state.config, new.model, new.name)
        return change, None, error
