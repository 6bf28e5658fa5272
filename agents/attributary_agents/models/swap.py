"""Replacement of a model's version between two observations."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from attributary_explainers.monitor.events import Event, in_mode
from attributary_explainers.monitor.explainers import begin_comparison, explainer_of_version, new_change_explainer
from attributary_explainers.monitor.incident_events import count_version, ended_incidents, version_incidents
from attributary_topics import Source

from .model_state import RULES, ModelState, new_state
from .rules import Kept, refusals
from .versions import Version

logger = logging.getLogger(__name__)


def swap(state: ModelState, new: Version, source: Source) -> tuple[ModelState, list[Event]]:
    """Replace a model's present version; return the state and the events.

    Both are compared on the observations that come next, which neither has learnt: an incident begins with the new
    version, and the comparison comes `change.window` observations later. An open incident of the old version ends.
    Importances, losses and the mean prediction start afresh, for they are of the present version. What is stored to
    draw replacements from, unless the new version raises on it, the counts, and what was published stay.

    Where the two versions cannot be compared, because one of them cannot be copied or they are of different kinds, the
    new one takes over all the same, because that is what has been deployed: with a warning, counted as unexplained.

    Parameters
    ----------
    state
        The present state. It is whole until the new one is returned, and not to be used afterwards.
    source
        Place of the record that the new version predicts first.

    Raises
    ------
    ExplainerError
        The new version cannot be explained as configured: the state is as it was.
    """
    swapped, why = _replaced(state, new)
    for name, refusal in refusals(state.config, new.model):
        logger.warning("model %s: version %s goes on without %s: %s", state.model_id, new.name, name, refusal)
    ended = ended_incidents(state, source)
    events: list[Event] = in_mode([*ended, *version_incidents(swapped, source, len(ended))], state.config.mode)
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


def go_back(state: ModelState, model: Any) -> ModelState:
    """Replace the model in a state by an earlier copy of it.

    It is the same version, so nothing is compared; else all is as with a new version.
    """
    swapped, _ = _replaced(state, replace(state.current, model=model), explain=False)
    swapped.good = state.good
    return swapped


def _replaced(state: ModelState, new: Version, *, explain: bool = True) -> tuple[ModelState, str | None]:
    """Return the state with another model, and why nothing will be explained."""
    swapped = state.with_version(
        replace(new, deployed=max(state.current.deployed, new.deployed)),
        explainers={
            name: explainer_of_version(state.model_id, state.settings, name, explainer, new.model)
            for name, explainer in state.explainers.items()
        },
        change=state.change,
    )
    told, why = begin_comparison(swapped.change, new.model, new.name, explain=explain)
    for one in told:
        count_version(swapped, one)
    if why is not None and swapped.change is not None and swapped.change.model is not new.model:
        swapped.change = new_change_explainer(state.model_id, state.settings, new.model, new.name)
    of_trees = () if swapped.mdi is None else (swapped.mdi.publication,)
    for publication in (*swapped.publications.values(), *of_trees):
        publication.begin_version(state.n_observations + 1)
    return swapped, why


def begin_with(state: ModelState, new: Version) -> ModelState:
    """Begin the state of a model without observations with a new version.

    There is nothing to take over.
    """
    begun = new_state(state.model_id, state.config, replace(new, deployed=max(state.current.deployed, new.deployed)))
    place = {name: getattr(state, name) for name, rule in RULES.items() if rule.kept is Kept.ALWAYS}
    return replace(begun, stored_deployed=state.stored_deployed, **place)
