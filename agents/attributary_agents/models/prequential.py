"""Handling of an observation by a model: predict, score, explain, learn.

The worker, `attributary replay` and the tests all call `prequential`, which knows nothing of Kafka.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import Any

from attributary_explainers import LabelError
from attributary_explainers.models.known import classes_of
from attributary_explainers.monitor.events import Event, feature_importances, finite, in_mode, of_late_labels
from attributary_explainers.monitor.quality import quality_figures
from attributary_explainers.monitor.step import AbsurdPredictionError as AbsurdError
from attributary_explainers.monitor.step import KeptPrediction, Step, events_after
from attributary_topics import DependenceEvent, ImportanceEvent, InvalidRecordError, Observation, Source

from .budget import StageTimer
from .dependence import FoundCurve
from .guards.label_kinds import DECIDES, MAJORITY
from .guards.limits import AbsurdPredictionError, bounded, features_of_model, n_missing
from .guards.ranges import TARGET
from .model_state import ModelState

logger = logging.getLogger(__name__)


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


_REASONS: dict[type[Exception], str] = {AbsurdPredictionError: "prediction_not_finite", LabelError: "wrong_label"}


class StepError(Exception):
    """Failure of a model on an observation, or refusal of the observation.

    The model raised, its prediction fits no loss, or earlier observations rule this one out. `stage` says where: decode
    (refused by what is known of earlier observations), predict, explain, learn or change; `reason` is that of the dead
    letter.
    """

    def __init__(self, stage: str, error: Exception) -> None:
        self.stage = stage
        self.error = error
        if isinstance(error, InvalidRecordError) and stage == "decode":
            self.reason = error.reason
        else:
            self.reason = next((reason for kind, reason in _REASONS.items() if isinstance(error, kind)), "model_failed")
        super().__init__(f"{stage}: {type(error).__name__}: {error}")


_UNMEASURED = StageTimer()


def prequential(
    state: ModelState,
    observation: Observation,
    source: Source,
    timestamp_ms: int,
    timer: StageTimer = _UNMEASURED,
    n_before: int = 0,
    kept: KeptPrediction | None = None,
    *,
    is_new: bool = True,
) -> list[Event]:
    """Predict, score, explain, learn, watch for change; return the events.

    This is Algorithm 6 of iSAGE.

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
    is_new
        Whether the features have not been seen before their label came.

    Raises
    ------
    StepError
        The model raised, or its prediction or its loss is not finite. Before `learn` nothing of the model has
        changed. In `learn` the model may have learnt in part; that part is kept, by every replay in the same way.
    """
    config = state.config
    mode = config.mode
    has_label = mode not in ("unlabelled", "anomaly")
    step = Step(timer.clock if timer.is_due() else None)
    clock = step.clock
    began_at = 0.0 if clock is None else clock()
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
        explains = (state.n_observations + 1) % state.explain_every == 0
        if state.pdp is not None and (is_whole or config.missing != "skip"):
            step.also = partial(_follow, state)
        step.take(state, observation.x, x, y, explains=explains, kept=kept, logged=observation.y_pred)
    except Exception as error:  # a model is the user's code: whatever it raises is about this observation
        state.n_failed += 1
        if step.stage != "decode" and not isinstance(error, LabelError):
            state.good.note_failure()
        if isinstance(error, AbsurdError):
            error = AbsurdPredictionError(state.model_id, error)
        raise StepError(step.stage, error) from error
    if clock is not None:
        n_rows = state.together.n_rows if explains else None
        times = step.predicted_at - began_at, step.explained_at - step.scored_at, clock() - began_at
        timer.add(*times, n_rows)
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
        if state.pdp is not None:
            state.pdp.forget(forgotten)
    state.good.note(state.model, state.n_observations, x, y)
    if not is_whole:
        state.n_missing += n_missing(observation.x)
    state.last_observation_ms = timestamp_ms
    events = events_after(state, observation.x, y, step, source, timestamp_ms, n_before, is_new=is_new)
    return [*events, *events_beside(state, observation.x, step.scored, source)]


def _follow(state: ModelState, x: dict[str, Any], y_pred: Any) -> None:
    """Take an observation that is explained into the partial dependence."""
    if state.pdp is not None:
        is_own = state.loss.output in ("probabilities", "number")
        importance = partial(leading_importance, state)
        asked = state.together.function if is_own else None
        state.pdp.update(x, y_pred, state.n_observations + 1, importance, asked)


def _check_label_kind(state: ModelState, y: Any) -> None:
    """Check the kind of a label; begin again if the first labels were wrong.

    The labels of a model that is scored without labels are not checked.
    """
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
