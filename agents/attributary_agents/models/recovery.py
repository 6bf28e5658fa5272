"""Takes a model that fails on whatever comes back to its last good state.

When a model fails on several records in a row, either the records are at fault or what it learnt before. Observations
that it could handle once tell which: if it cannot handle most of them now, and the copy of its last good state can,
the copy takes its place.
"""

from __future__ import annotations

import logging
from typing import Any

from attributary_explainers import Explainers, ModelError, dump_model, is_usable, load_model
from attributary_explainers.models.learning import learn_function
from attributary_explainers.monitor.events import Event, in_mode
from attributary_explainers.monitor.explainers import new_change_explainer
from attributary_explainers.monitor.incident_events import back_incidents
from attributary_explainers.monitor.step import is_absurd
from attributary_topics import Observation, Source

from ..errors import told
from .guards.limits import features_of_model
from .model_state import ModelState
from .prequential import StepError
from .swap import go_back
from .versions import allowlist_of

logger = logging.getLogger(__name__)


def recover(
    state: ModelState, observation: Observation, error: StepError, source: Source, n_before: int
) -> tuple[ModelState, list[Event]] | None:
    """Return the last good state of a faulty model, and the events about it.

    The model is examined at its third failure in a row and, where it was found well, after twice as many each time:
    records at fault cannot make a worker examine it at each of them.

    Parameters
    ----------
    state
        State of a model that has just failed; not to be used afterwards where another one is returned.
    observation, error
        What it failed on, and how. The observation is to be handled again by the state that is returned.
    n_before
        Number of events that follow from the same record and come before.

    Returns
    -------
    None where it is too early to tell, where the model is well, or where the copy would be no better.
    """
    good = state.good
    if not (state.config.learn and good.is_examination_due):
        return None
    # Without any, the version has failed since it began: then this one has to be enough.
    read = allowlist_of(state.config).load
    try:
        known = good.observations(read) or [(features_of_model(observation.x, state.config.missing), observation.y)]
        copy = good.load(read)
    except Exception as unreadable:  # noqa: BLE001 - it was stored: who can write states decides what it raises
        good.give_up()
        logger.error(
            "model %s fails on each observation, and its last good state cannot be read (%s): deploy another version, "
            "or start it afresh with `attributary models reset %s`",
            *(state.model_id, told(unreadable), state.model_id),
        )
        return None
    if _handles(state, _copy(state.model), known):
        good.acquit()
        if error.stage == "change":  # what is at fault is a reference that was frozen before
            state.change = new_change_explainer(state.model_id, state.settings, state.model, state.version)
            logger.error("model %s: change explanation fails on each observation and starts afresh", state.model_id)
        return None
    if not _handles(state, copy, known, begins=good.is_beginning):
        good.acquit()
        logger.error(
            "model %s fails on each observation, and its last good state, after observation %d, would fail as well: "
            "deploy another version, or start it afresh with `attributary models reset %s`",
            state.model_id,
            good.at,
            state.model_id,
        )
        return None
    recovered, n_forgotten = go_back(state, good.load(read)), state.n_observations - good.at
    said = (
        f"{good.n_failed} observations in a row failed to {error.stage} ({type(error.error).__name__}); went back to "
        f"observation {good.at}, forgets {n_forgotten}"
    )
    events: list[Event] = in_mode(back_incidents(recovered, said, source, n_before), state.config.mode)
    recovered.counts.recoveries["recovered"] += 1
    recovered.counts.recoveries["forgotten"] += n_forgotten
    recovered.good.went_back()
    recovered.n_failed -= 1  # the observation at hand is handled again
    return recovered, events


def _copy(model: Any) -> Any:
    try:
        return load_model(dump_model(model))
    except ModelError:
        return None


def _handles(state: ModelState, model: Any, known: list[tuple[dict[str, Any], Any]], *, begins: bool = False) -> bool:
    """Return whether a model predicts and learns most of the observations.

    The model is spoilt by that.

    Parameters
    ----------
    begins
        Whether the model has learnt nothing: then its predictions may be NaN.
    """
    if model is None:
        return False
    function = Explainers(model, {}, state.loss.output).function
    learn = learn_function(model)
    n = 0
    for x, y in known:
        try:
            y_pred = function(x)
            if is_usable(y_pred):
                handled = not is_absurd(state.loss(y, y_pred))
            else:
                handled = y_pred is None or begins or state.model_loss.value is None
            learn(x, y)
        except Exception:  # noqa: BLE001 - a model is the user's code: whatever it raises, it fails
            continue
        n += handled
    return 2 * n >= len(known)
