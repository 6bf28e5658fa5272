"""Takes an observation through a model (iSAGE Algorithm 6).

In this order: predict, score, explain, learn, look for change, watch, publish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attributary_topics import Place, Source

from ..change.events import ChangeEvent as Told
from ..change.events import ChangeExplanation
from ..losses.labels import check_label
from ..predictions import is_usable
from ..validation import LARGEST
from ..wording import show_number
from .events import Event, importance_event, in_mode, shard_importance
from .holdout import take_holdout_or_warn
from .incident_events import incident_events, note_changes
from .mismatch import as_output
from .quality import tell_silent
from .state import Watched

MATURE = 2000
"""Observations of a mirror that are learnt before its changes are looked for: until then it only becomes alike."""


@dataclass(frozen=True, slots=True)
class KeptPrediction:
    """Prediction made when an observation came, before its label.

    The model's version and count of observations are those of then; there is no count of a prediction that was logged.
    """

    y_pred: Any
    version: str
    n_learnt: int | None

    def scored(self, state: Watched, y: Any, y_pred: Any) -> Any:
        """Return the prediction whose loss counts, usually the kept prediction.

        None where there is none, or it is of an old version. It is the present one, `y_pred`, where the model has
        learnt nothing in between. InvalidRecordError (`wrong_prediction`): the logged one cannot be compared with the
        label.
        """
        if self.n_learnt is None:
            return as_output(self.y_pred, y, state.loss.output)
        if self.version != state.version:
            if state.late is not None and state.late.labels is not None:
                state.late.labels.counts.old_version += 1
            return None
        return y_pred if self.n_learnt == state.n_observations + state.n_failed else self.y_pred


class AbsurdPredictionError(Exception):
    """Says that a prediction or its loss is no number of use.

    The observation is not learnt.
    """

    def __init__(self, prediction: Any, loss: float | None = None) -> None:
        self.prediction, self.loss = prediction, loss
        self.found = f"{prediction!r}"[:80] + (f", whose loss is {show_number(loss)}" if loss is not None else "")
        super().__init__(f"the model predicts {self.found}")


def is_absurd(loss: float) -> bool:
    """Return whether a loss is NaN, infinite or beyond 1e150."""
    return not (math.isfinite(loss) and abs(loss) < LARGEST)


def score(state: Watched, y: Any, y_pred: Any) -> tuple[float, float | None]:
    """Take a prediction into the means of the losses, and into the quality.

    Return its loss and that of the mean prediction, None where there is none.

    AbsurdPredictionError: no mean would take its loss. The losses are as they were.
    """
    loss = state.loss(y, y_pred)
    if is_absurd(loss):
        raise AbsurdPredictionError(y_pred, loss)
    baseline = None
    if state.loss.is_score:  # a mean score is no better and no worse than another one: nothing to compare it with
        state.model_loss.update(loss)
    else:
        marginal = state.marginal
        before = marginal.mark()
        baseline = math.nan
        try:
            baseline = state.loss(y, marginal.update(y_pred))
        finally:
            # An infinite one, and the prediction behind it, would stay in the means for ever.
            if not math.isfinite(baseline):
                marginal.go_back(before)
        if not math.isfinite(baseline):
            return loss, None
        state.model_loss.update(loss)
        state.baseline_loss.update(baseline)
    quality = state.quality
    if quality is not None:
        quality.update(y, y_pred)
        if quality.n_observations == quality.reference_ends:
            tell_silent(quality, state.model_id, state.settings)
    return loss, baseline


class Step:
    """An observation on its way through a model.

    `clock` returns seconds; None measures nothing. `also` is called with the observation and its prediction once both
    are explained, before the model learns: what explains it beside the explainers. Its time is explaining.

    `stage` is where the observation is, also after an error: decode, predict, explain, learn or change. `y_pred` is
    what the model predicts now and `scored` the prediction whose loss counts, None where there is none; `losses` are
    that loss and the one of the mean prediction. `known` has, by
    explainer, the number of observations that it had explained before, `told` what the change explainer has told.
    """

    def __init__(
        self, clock: Callable[[], float] | None = None, also: Callable[[dict[str, Any], Any], None] | None = None
    ) -> None:
        self.clock, self.also = clock, also
        self.stage = "decode"
        self.y_pred: Any = None
        self.scored: Any = None
        self.losses: tuple[float | None, float | None] = None, None
        self.known: Sequence[int] = ()
        self.told: Sequence[Told] = ()
        self.predicted_at = self.scored_at = self.explained_at = 0.0

    def take(
        self,
        state: Watched,
        given: dict[str, Any],
        x: dict[str, Any],
        y: Any,
        *,
        explains: bool,
        kept: KeptPrediction | None = None,
        logged: Any = None,
    ) -> None:
        """Take the observation through the model, explained or passed over.

        What the model raises is raised; before `learn` nothing of it has changed. So it is where the prediction or its
        loss is not finite (AbsurdPredictionError).

        Parameters
        ----------
        given, x
            The observation as it came, and without what is missing where the model is not to see that.
        kept
            What was predicted when the observation came, where its label came later. That is what is scored; what is
            explained and learnt is the model as it is now.
        logged
            The prediction that was logged with it.
        """
        clock, settings, together = self.clock, state.settings, state.together
        if settings.holdout is not None:
            take_holdout_or_warn(state)
        self.stage = "predict"
        y_pred = self.y_pred = self.scored = together.predict(given, explain=explains)
        if clock is not None:
            self.predicted_at = clock()
        can_be_used = is_usable(y_pred)
        if can_be_used:
            self._score(state, y, kept)
            if logged is not None and y_pred is not None:
                state.mismatch.update(logged, y_pred)
        elif state.model_loss.value is not None:
            # A model that has never predicted a number may begin with NaN: it is taught, as one without a prediction.
            # By a fast path, NaN looks like no prediction: the model itself says which it is.
            own = together.function(x)
            if own is not None and not is_usable(own):
                raise AbsurdPredictionError(own)
        self.stage = "explain"
        if clock is not None:
            self.scored_at = clock()
        self.known = [explainer.n_observations for explainer in state.explainers.values()]
        if explains:
            together.explain(y, wanted=False)
            if can_be_used and self.also is not None:
                self.also(x, y_pred)
        else:
            together.pass_over()
        if clock is not None:
            self.explained_at = clock()
        self.stage = "learn"
        if settings.learn:
            state.learn(x, y)
        self.stage = "change"
        is_immature = settings.mode == "mirror" and state.n_observations < MATURE
        if state.change and not is_immature:
            self.told = state.change.update(x, y, y_pred)

    def _score(self, state: Watched, y: Any, kept: KeptPrediction | None) -> None:
        y_pred = self.y_pred
        self.stage = "explain"
        if not state.n_observations:
            check_label(state.loss, y, y_pred)
        if kept is not None:
            self.stage = "decode"  # what may be wrong here is a prediction that was logged
            self.scored = kept.scored(state, y, y_pred)
            self.stage = "explain"
        present = None if state.present_loss is None else state.loss(y, y_pred)
        if present is not None and is_absurd(present):  # what was predicted then may have been right
            raise AbsurdPredictionError(y_pred, present)
        if state.settings.mode != "unlabelled" and self.scored is not None:
            self.losses = score(state, y, self.scored)
        if present is not None and state.present_loss is not None:
            state.present_loss.update(present)


def events_after(
    state: Watched,
    x: dict[str, Any],
    y: Any,
    step: Step,
    source: Place,
    timestamp_ms: int,
    n_before: int = 0,
    *,
    is_new: bool = True,
) -> list[Event]:
    """Return the events that follow from an observation that is learnt.

    Parameters
    ----------
    step
        The way of the observation through the model.
    n_before
        Number of events of the same record that come before, because a new version has taken over.
    is_new
        Whether `arrived_incidents` has not seen the features.
    """
    settings = state.settings
    _note(state, x, y, step)
    of = state, x if is_new else None, y, step.scored, step.losses, source, timestamp_ms, n_before
    events: list[Event] = [*incident_events(*of)]
    has_changed = any(isinstance(one, ChangeExplanation) and one.route != "version" for one in step.told)
    for name, publication in state.publications.items():
        if has_changed:
            publication.restart_reference(state.n_observations)
        trigger = publication.trigger(state.explainers[name], state.n_observations)
        if trigger is None:
            continue
        if settings.sharded and isinstance(source, Source):
            events.append(shard_importance(state, name, source, timestamp_ms))
        else:
            events.append(importance_event(state, name, trigger, source))
    return in_mode(events, settings.mode)


def _note(state: Watched, x: dict[str, Any], y: Any, step: Step) -> None:
    """Show the observation to the watches, and pass on their reports.

    The reports go to the watch of incidents.
    """
    watch = state.incident_watch
    if watch is None:  # of one shard, which is not the whole model
        return
    if step.told:
        note_changes(state, watch, step.told)
    if step.known:
        for n, (name, explainer) in zip(step.known, state.explainers.items(), strict=True):
            if explainer.n_observations > n:
                shift = state.shifts[name].update(*explainer.latest_increments, state.n_observations)
                if shift is not None:
                    watch.note(shift)
    if step.scored is not None and state.loss_watch is not None:
        for one in state.loss_watch.update(x, y, step.scored):
            watch.note(one)
