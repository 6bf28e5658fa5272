"""Lets a new version of a model take over from the present one, between two observations."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from attributary_explainers.monitor.explainers import begin_comparison, explainer_of_version, new_change_explainer
from attributary_explainers.monitor.telling.changes import change_events
from attributary_explainers.monitor.telling.events import in_mode
from attributary_explainers.monitor.telling.following import Event
from attributary_explainers.monitor.telling.incidents import version_incidents
from attributary_explainers.monitor.telling.losses import loss_shift_replaced
from attributary_explainers.monitor.telling.shifts import shifts_replaced
from attributary_topics import Source

from .beside.rules import refusals
from .keeping.rules import Kept
from .model_state import RULES, ModelState, new_state
from .versions import Version

logger = logging.getLogger(__name__)


def swap(state: ModelState, new: Version, source: Source, timestamp_ms: int) -> tuple[ModelState, list[Event]]:
    """Return the state with the new version in place of the present one, and the events that say so.

    Both are compared on the observations that come next, which neither has learnt: an alarm says that the new version
    has taken over, and its explanation comes `change.window` observations later. An open alarm of the old version is
    closed, and so are open shifts of its importances and of its loss. Importances, losses and the mean prediction start
    afresh, for they are of the present version. What is stored to draw replacements from, unless the new version raises
    on it, the counts, and what was published stay.

    Where the two versions cannot be compared, because one of them cannot be copied or they are of different kinds, the
    new one takes over all the same, because that is what has been deployed: without an alarm, with a warning, counted
    as unexplained.

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
    swapped, events, why = _replaced(state, new, source, timestamp_ms)
    for name, refusal in refusals(state.config, new.model):
        logger.warning("model %s: version %s goes on without %s: %s", state.model_id, new.name, name, refusal)
    events += in_mode(version_incidents(swapped, source, len(events)), state.config.mode)
    swapped.labels.begin_version(is_other=swapped.loss.output != state.loss.output)
    if why is not None:
        swapped.counts.versions["unexplained"] += 1
        logger.warning(
            "model %s: version %s takes over from %s at observation %d; the change is not explained: %s",
            state.model_id,
            new.name,
            state.version,
            state.n_observations + 1,
            why,
        )
    return swapped, events


def go_back(
    state: ModelState, model: Any, source: Source, timestamp_ms: int, n_before: int = 0
) -> tuple[ModelState, list[Event]]:
    """Return the state with a copy of an earlier state of the model in its place, and the events of what that ends.

    It is the same version, so nothing is compared and no alarm is raised; else all is as with a new version.

    Parameters
    ----------
    n_before
        Number of events that follow from the same record and come before.
    """
    earlier = replace(state.current, model=model)
    swapped, events, _ = _replaced(state, earlier, source, timestamp_ms, n_before, explain=False)
    swapped.good = state.good
    return swapped, events


def _replaced(
    state: ModelState, new: Version, source: Source, timestamp_ms: int, n_before: int = 0, *, explain: bool = True
) -> tuple[ModelState, list[Event], str | None]:
    """Return the state with another model, the events, and why nothing will be explained."""
    swapped = state.with_version(
        replace(new, deployed=max(state.current.deployed, new.deployed)),
        explainers={
            name: explainer_of_version(state.model_id, state.settings, name, explainer, new.model)
            for name, explainer in state.explainers.items()
        },
        change=state.change,
    )
    told, why = begin_comparison(swapped.change, new.model, new.name, explain=explain)
    events: list[Event] = [
        *change_events(swapped, told, source, timestamp_ms, n_before),
        *shifts_replaced(state, source),
        *loss_shift_replaced(state, source),
    ]
    if why is not None and swapped.change is not None and swapped.change.model is not new.model:
        swapped.change = new_change_explainer(state.model_id, state.settings, new.model, new.name)
    of_trees = () if swapped.mdi is None else (swapped.mdi.publication,)
    for publication in (*swapped.publications.values(), *of_trees):
        publication.begin_version(state.n_observations + 1)
    return swapped, in_mode(events, state.config.mode), why


def begin_with(state: ModelState, new: Version) -> ModelState:
    """Return the state of a model without observations, begun with the new version: there is nothing to take over."""
    begun = new_state(state.model_id, state.config, replace(new, deployed=max(state.current.deployed, new.deployed)))
    place = {name: getattr(state, name) for name, rule in RULES.items() if rule.kept is Kept.ALWAYS}
    return replace(begun, stored_deployed=state.stored_deployed, **place)
