"""Takes one observation through one model: predict, score, explain, learn.

The worker, `attributary replay` and the tests all call `prequential`, which knows nothing of Kafka.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from attributary_explainers import LabelError, is_usable
from attributary_explainers.losses.labels import check_label
from attributary_explainers.monitor.joining.logged import as_output
from attributary_explainers.monitor.scoring import AbsurdLossError, is_absurd, score
from attributary_explainers.monitor.telling.following import Event, events_after
from attributary_topics import InvalidRecordError, Observation, Source

from .budget import StageTimer
from .guards.label_kinds import DECIDES, MAJORITY, classes_of
from .guards.limits import AbsurdPredictionError, bounded, features_of_model, n_missing
from .guards.ranges import TARGET
from .model_state import ModelState

logger = logging.getLogger(__name__)

_REASONS: dict[type[Exception], str] = {AbsurdPredictionError: "prediction_not_finite", LabelError: "wrong_label"}


class StepError(Exception):
    """The model raised on an observation or predicted what no loss takes, or what it knows already refuses it.

    `stage` says where: decode (refused by what is known of earlier observations), predict, explain, learn or change;
    `reason` is that of the dead letter.
    """

    def __init__(self, stage: str, error: Exception) -> None:
        self.stage = stage
        self.error = error
        if isinstance(error, InvalidRecordError) and stage == "decode":
            self.reason = error.reason
        else:
            self.reason = next((reason for kind, reason in _REASONS.items() if isinstance(error, kind)), "model_failed")
        super().__init__(f"{stage}: {type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class KeptPrediction:
    """What was predicted when an observation came whose label came later.

    Attributes
    ----------
    version
        The model's version then.
    n_learnt
        The model's count of observations then; None for a prediction that was logged.
    """

    y_pred: Any
    version: str
    n_learnt: int | None

    def scored(self, state: ModelState, y: Any, y_pred: Any) -> Any:
        """Return the prediction whose loss counts, the kept one; None where there is none, or it is of an old version.

        Parameters
        ----------
        y_pred
            The present prediction, which it is where the model has learnt nothing in between.

        Raises
        ------
        InvalidRecordError
            `wrong_prediction`: the logged one cannot be compared with the label.
        """
        if self.n_learnt is None:
            return as_output(self.y_pred, y, state.loss.output)
        if self.version != state.version:
            return None
        return y_pred if self.n_learnt == state.n_observations + state.n_failed else self.y_pred


_UNMEASURED = StageTimer()


def prequential(
    state: ModelState,
    observation: Observation,
    source: Source,
    timestamp_ms: int,
    timer: StageTimer = _UNMEASURED,
    n_before: int = 0,
    kept: KeptPrediction | None = None,
) -> list[Event]:
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

    kept
        What was predicted when the observation came, where its label came later. That is what is scored; what is
        explained and learnt is the model as it is now.

    Raises
    ------
    StepError
        The model raised, or its prediction or its loss is not finite. Before `learn` nothing of the model has
        changed. In `learn` the model may have learnt in part; that part is kept, by every replay in the same way.
    """
    stage = "decode"
    config = state.config
    mode = config.mode
    has_label = mode not in ("unlabelled", "anomaly")
    has_loss = mode != "unlabelled"
    clock = timer.clock if timer.is_due() else None
    began_at = predicted_at = scored_at = explained_at = 0.0
    if clock is not None:
        began_at = clock()
    try:
        state.features.check(observation.x)
        if has_label:
            _check_label_kind(state, observation.y)
        if has_label and state.loss.output == "number" and not state.loss.is_score:  # a score is of no label
            state.target_range.check({TARGET: observation.y})
        kinds = {*map(type, observation.x.values())}
        observation = bounded(state, observation, has_text=str in kinds)
        x, y, is_whole = observation.x, observation.y, type(None) not in kinds
        if not is_whole:
            # The explainers and the watch of the loss read missing values by themselves, by the same policy.
            x = features_of_model(x, config.missing)
        if config.learn and state.good.copy is None:
            state.good.begin(state.model, state.n_observations)
        stage, together = "predict", state.together
        explains = (state.n_observations + 1) % state.explain_every == 0
        y_pred: Any = together.predict(observation.x, explain=explains)
        if clock is not None:
            predicted_at = clock()
        scored = y_pred
        if is_usable(y_pred):
            stage = "explain"
            if not state.n_observations:
                check_label(state.loss, y, y_pred)
            if kept is not None:
                stage = "decode"  # what may be wrong here is a prediction that was logged
                scored = _scored(state, kept, y, y_pred)
                stage = "explain"
            present = None if state.present_loss is None else state.loss(y, y_pred)
            if present is not None and is_absurd(present):  # what was predicted then may have been right
                raise AbsurdPredictionError(state.model_id, y_pred, present)
            if has_loss and scored is not None:
                _score(state, y, scored)
            if present is not None and state.present_loss is not None:
                state.present_loss.update(present)
            state.note_logged(observation.y_pred, y_pred)
        elif state.model_loss.value is not None and _is_not_finite(own := together.function(x)):
            # A model that has never predicted a number may begin with NaN: it is taught, as one without a prediction.
            # By a fast path, NaN looks like no prediction: the model itself says which it is.
            raise AbsurdPredictionError(state.model_id, own)
        stage = "explain"
        if clock is not None:
            scored_at = clock()
        known = [explainer.n_observations for explainer in state.explainers.values()]
        if explains:
            together.explain(y)
        else:
            together.pass_over()
        if clock is not None:
            explained_at = clock()
        stage = "learn"
        if config.learn:
            state.learn(x, y)
        stage = "change"
        is_immature = mode == "mirror" and state.n_observations < MATURE
        told = state.change.update(x, y, y_pred) if state.change and not is_immature else ()
    except Exception as error:  # a model is the user's code: whatever it raises is about this observation
        state.n_failed += 1
        if stage != "decode" and not isinstance(error, LabelError):
            state.good.note_failure()
        raise StepError(stage, error) from error
    if clock is not None:
        n_rows = together.n_rows if explains else None
        timer.add(predicted_at - began_at, explained_at - scored_at, clock() - began_at, n_rows)
    state.n_observations += 1
    if mode == "mirror":
        n_scored = state.model_loss.weights.n
        state.doubt.look(state.model_id, state.fidelity, config.fidelity, n_scored, state.n_observations)
    if has_label and not state.loss.is_score:  # a score is of no label
        state.labels.note(y)
    forgotten = state.features.note(observation.x)
    if forgotten:
        for explainer in state.explainers.values():
            explainer.forget(forgotten)
    state.good.note(state.model, state.n_observations, x, y)
    if not is_whole:
        state.n_missing += n_missing(observation.x)
    state.last_observation_ms = timestamp_ms
    return events_after(state, observation.x, y, scored, told, known, source, timestamp_ms, n_before)


MATURE = 2000
"""Observations of a mirror that are learnt before its changes are looked for: until then it only becomes alike."""


def _scored(state: ModelState, kept: KeptPrediction, y: Any, y_pred: Any) -> Any:
    is_old = kept.n_learnt is not None and kept.version != state.version
    if is_old and state.late is not None and state.late.labels is not None:
        state.late.labels.counts.old_version += 1
    return kept.scored(state, y, y_pred)


def _score(state: ModelState, y: Any, y_pred: Any) -> None:
    try:
        score(state, y, y_pred)
    except AbsurdLossError as error:
        raise AbsurdPredictionError(state.model_id, y_pred, error.loss) from None


def _check_label_kind(state: ModelState, y: Any) -> None:
    """Check the kind of a label, where the model has labels; begin again where the first labels were the wrong ones."""
    if state.loss.is_score:
        return
    labels = state.labels
    before, n_learnt = labels.kind, labels.n_learnt
    if not labels.check(y, state.config.label, classes_of(state.model) if before is None else ()):
        return
    # What only a version before has learnt stays: these labels are of its successor.
    forgotten = state.n_observations if n_learnt >= min(state.n_observations, DECIDES) else 0
    if forgotten:
        state.begin_again()
        what = f"it begins again, and forgets the {forgotten} observations before"
    else:
        what = "nothing has to be forgotten"
    if n_learnt < DECIDES:
        logger.warning("model %s: its labels are %ss, and not %ss: %s", state.model_id, labels.kind, before, what)
        return
    logger.error(
        "model %s: its labels are %ss from now on, which outnumber the %ss before by %d: %s. If they are the wrong "
        "ones, declare the right kind (models.%s.label: %s) and import an earlier state (attributary models import)",
        *(state.model_id, labels.kind, before, MAJORITY, what, state.model_id, before),
    )


def _is_not_finite(prediction: Any) -> bool:
    return prediction is not None and not is_usable(prediction)
