"""Takes one observation through one model: predict, score, explain, learn.

The worker, `attributary replay` and the tests all call `prequential`, which knows nothing of Kafka.
"""

from __future__ import annotations

import math
from typing import Any

from attributary_explainers import is_usable, read_missing
from attributary_topics import ChangeEvent, ExplanationEvent, ImportanceEvent, Observation, Source

from .budget import StageTimer
from .limits import AbsurdPredictionError, check_known, is_absurd
from .model_state import ModelState
from .quality import update_quality
from .telling.changes import change_events
from .telling.events import importance_event
from .telling.losses import loss_events
from .telling.shifts import shift_events


class StepError(Exception):
    """The model raised on an observation, predicted what no loss takes, or would have had too many features with it.

    `stage` says where: decode (too many features), predict, explain, learn or change; `reason` is that of the dead
    letter.
    """

    def __init__(self, stage: str, error: Exception) -> None:
        self.stage = stage
        self.error = error
        self.reason = "prediction_not_finite" if isinstance(error, AbsurdPredictionError) else "model_failed"
        super().__init__(f"{stage}: {type(error).__name__}: {error}")


_UNMEASURED = StageTimer()


def prequential(
    state: ModelState,
    observation: Observation,
    source: Source,
    timestamp_ms: int,
    timer: StageTimer = _UNMEASURED,
    n_before: int = 0,
) -> list[ImportanceEvent | ChangeEvent]:
    """Predict, score, explain, learn, look for change; return the events that follow (iSAGE Algorithm 6).

    Parameters
    ----------
    state
        State of the observation's model; updated in place.
    source, timestamp_ms
        Place and time of the observation's record.
    timer
        Adds up what the observation takes; it decides nothing here.
    n_before
        Number of events that follow from the observation and come before, because a new version has taken over.

    Raises
    ------
    StepError
        The model raised, or its prediction or its loss is not finite. Before `learn` nothing of the model has
        changed. In `learn` the model may have learnt in part; that part is kept, by every replay in the same way.
    """
    x, y = observation.x, observation.y
    if state.config.missing not in ("value", "skip"):
        # The model too reads the observation by the policy; `skip` is the explainers' business.
        x = dict(read_missing(x, state.config.missing) or {})
    stage, explains = "decode", (state.n_observations + 1) % state.explain_every == 0
    clock = timer.clock
    began_at = clock()
    try:
        check_known(state, x)
        stage, together = "predict", state.together
        y_pred: Any = together.predict(x, explain=explains)
        n_rows = together.n_rows if explains else None
        predicted_at = clock()
        if is_usable(y_pred):
            stage = "explain"
            loss = state.loss(y, y_pred)
            if is_absurd(loss):
                raise AbsurdPredictionError(state.model_id, y_pred, loss)
            marginal = state.marginal.copy()
            baseline = state.loss(y, marginal.update(y_pred))
            # An infinite one, and the prediction behind it, would stay in the means for ever.
            if math.isfinite(baseline):
                state.marginal = marginal
                state.model_loss.update(loss)
                state.baseline_loss.update(baseline)
                if state.quality is not None:
                    update_quality(state.quality, state.model_id, state.config, y, y_pred)
        elif state.model_loss.value is not None and _is_not_finite(own := together.function(x)):
            # A model that has never predicted a number may begin with NaN: it is taught, as one without a prediction.
            # By a fast path, NaN looks like no prediction: the model itself says which it is.
            raise AbsurdPredictionError(state.model_id, own)
        stage = "explain"
        scored_at = clock()
        known = {name: explainer.n_observations for name, explainer in state.explainers.items()}
        if explains:
            together.explain(y)
        else:
            together.pass_over()
        explained_at = clock()
        stage = "learn"
        if state.config.learn:
            state.model.learn_one(x, y)
        stage = "change"
        told = state.change.update(x, y, y_pred) if state.change else ()
    except Exception as error:  # a model is the user's code: whatever it raises is about this observation
        state.n_failed += 1
        raise StepError(stage, error) from error
    timer.add(predicted_at - began_at, explained_at - scored_at, clock() - began_at, n_rows)
    state.n_observations += 1
    state.last_observation_ms = timestamp_ms
    changes = change_events(state, told, source, timestamp_ms, n_before)
    has_changed = any(isinstance(event, ExplanationEvent) and event.route != "version" for event in changes)
    events: list[ImportanceEvent | ChangeEvent] = [*changes]
    explained = [name for name, n in known.items() if state.explainers[name].n_observations > n]
    events += shift_events(state, explained, source, n_before + len(events))
    events += loss_events(state, x, y, y_pred, source, n_before + len(events))
    for name, publication in state.publications.items():
        if has_changed:
            publication.restart_reference(state.n_observations)
        trigger = publication.trigger(state.explainers[name], state.n_observations)
        if trigger is not None:
            events.append(importance_event(state, name, trigger, source))
    return events


def _is_not_finite(prediction: Any) -> bool:
    return prediction is not None and not is_usable(prediction)
