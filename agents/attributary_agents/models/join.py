"""Arrival of observations in parts or without labels.

Each record either waits or completes an observation. An observation that is complete goes through `prequential`, which
explains and learns it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from attributary_explainers import is_usable
from attributary_explainers.monitor.joiner import Joiner, Waiting
from attributary_explainers.monitor.step import AbsurdPredictionError as AbsurdError
from attributary_explainers.monitor.step import KeptPrediction
from attributary_explainers.predictions import label_of
from attributary_topics import InvalidRecordError, LateLabel, Observation, Response

from .guards.limits import AbsurdPredictionError, features_of_model
from .model_state import ModelState
from .prequential import StepError

Arrival = Observation | LateLabel | Response
"""A record of such a model."""

Ready = tuple[Observation, KeptPrediction | None]
"""A complete observation, and what was predicted when it came; None where that was just now."""


def arrive(state: ModelState, arrival: Arrival, timestamp_ms: int, *, is_request: bool = False) -> Ready | None:
    """Take a record; return the observation that it completes, or None.

    Parameters
    ----------
    state
        State of the record's model; what waits in it is updated.
    timestamp_ms
        Kafka's timestamp, for a record that says no time itself.
    is_request
        Whether the observation is a request, whose response comes by itself.

    Raises
    ------
    StepError
        The observation has come before, its time is too far ahead, or the model cannot predict it. Nothing but the time
        of the stream has moved.
    """
    time_ms = timestamp_ms if arrival.time_ms is None else arrival.time_ms
    try:
        _check_time(state, time_ms, timestamp_ms)
        if isinstance(arrival, LateLabel):
            return _labelled(state, arrival, time_ms)
        if isinstance(arrival, Response):
            return _answered(state, arrival, time_ms)
        if is_request:
            return _asked(state, arrival, time_ms)
        return _observed(state, arrival, time_ms)
    except StepError:
        state.n_failed += 1
        raise


def _check_time(state: ModelState, time_ms: int, timestamp_ms: int) -> None:
    """Refuse a time far ahead of Kafka's timestamp.

    By a single wrong clock everything that waits would expire.
    """
    join = state.config.join
    if join is not None and 0 < timestamp_ms < time_ms - join.max_ahead_ms:
        expected = f"at most {join.max_ahead_ms / 1000:g} s after Kafka's timestamp, {timestamp_ms} (max_ahead)"
        raise StepError("decode", InvalidRecordError("wrong_time", "time", expected, time_ms))


def _asked(state: ModelState, request: Observation, time_ms: int) -> Ready | None:
    pairs = _joiner(state, "pairs")
    pairs.move(time_ms)
    key = _key(request)
    _refuse_repeated(pairs, key)
    joined, _ = pairs.observe(key, time_ms, request.x, None, state.version, 0)
    return (
        None
        if joined is None
        else _observed(state, _pair(request.model_id, key, joined.observation, joined.y), time_ms)
    )


def _answered(state: ModelState, response: Response, time_ms: int) -> Ready | None:
    pairs = _joiner(state, "pairs")
    pairs.move(time_ms)
    joined = pairs.label(response.id, time_ms, response.y_pred)
    if joined is None:
        return None
    request = joined.observation
    return _observed(state, _pair(response.model_id, response.id, request, joined.y), request.time_ms)


def _pair(model_id: str, key: str, request: Waiting, y_pred: Any) -> Observation:
    return Observation(model_id, request.x, None, y_pred, key, request.time_ms)


def _observed(state: ModelState, observation: Observation, time_ms: int) -> Ready | None:
    mode = state.config.mode
    if mode == "mirror":
        return replace(observation, y=label_of(observation.y_pred), y_pred=None), None
    if mode == "anomaly":
        return replace(observation, y=None), None
    if mode == "unlabelled":
        own = _predict(state, observation)
        state.note_logged(observation.y_pred, own)
        return replace(observation, y=label_of(own), y_pred=None), None
    if state.late is None or state.late.labels is None:
        return observation, None
    return _waiting(state, state.late.labels, observation, time_ms)


def _waiting(state: ModelState, joiner: Joiner, observation: Observation, time_ms: int) -> Ready | None:
    _count_unlabelled(state, joiner.move(time_ms))
    key = _key(observation)
    _refuse_repeated(joiner, key)
    logged = observation.y_pred
    own = None if joiner.is_awaited(key) else _predict(state, observation)
    if own is not None:
        state.note_logged(logged, own)
    kept = own if logged is None else logged
    learnt = state.n_observations + state.n_failed
    joined, expired = joiner.observe(
        key, time_ms, observation.x, kept, state.version, -1 if logged is not None else learnt
    )
    _count_unlabelled(state, expired)
    if joined is None:
        return None
    # With its logged prediction, which is compared with the model's own as soon as there is that one.
    kept_one = None if logged is None else KeptPrediction(logged, state.version, None)
    return replace(observation, y=joined.y), kept_one


def _labelled(state: ModelState, label: LateLabel, time_ms: int) -> Ready | None:
    joiner = _joiner(state, "labels")
    _count_unlabelled(state, joiner.move(time_ms))
    joined = joiner.label(label.id, time_ms, label.y)
    if joined is None:
        return None
    waited = joined.observation
    observation = Observation(label.model_id, waited.x, label.y, None, label.id, waited.time_ms)
    is_logged = waited.n_learnt < 0
    return observation, KeptPrediction(waited.y_pred, waited.version, None if is_logged else waited.n_learnt)


def _joiner(state: ModelState, name: str) -> Joiner:
    joiner: Joiner | None = getattr(state.late, name, None)
    assert joiner is not None  # or the record would have been refused: `Needs.kinds`
    return joiner


def _key(observation: Observation) -> str:
    assert observation.id is not None  # or the record would have been refused: `Needs.id`
    return observation.id


def _refuse_repeated(joiner: Joiner, key: str) -> None:
    if joiner.knows(key):
        joiner.repeat()
        raise StepError(
            "decode", InvalidRecordError("duplicate_id", "id", "an id of which no observation has come", key)
        )


def _predict(state: ModelState, observation: Observation) -> Any:
    """Return the model's prediction for an observation.

    Where there is a prediction, nothing in the state changes.
    """
    x = features_of_model(observation.x, state.config.missing)
    try:
        y_pred = state.together.function(x)
    except Exception as error:  # a model is the user's code: whatever it raises is about this observation
        state.good.note_failure()
        raise StepError("predict", error) from error
    if y_pred is not None and not is_usable(y_pred) and state.model_loss.value is not None:
        raise StepError("predict", AbsurdPredictionError(state.model_id, AbsurdError(y_pred)))
    return y_pred


def _count_unlabelled(state: ModelState, expired: Iterable[Waiting]) -> None:
    """Add unlabelled observations to the mean prediction, if configured.

    These are observations whose label has not come in time.
    """
    join = state.config.join
    if join is None or not join.explains_unlabelled:
        return
    for one in expired:
        if one.version == state.version and one.n_learnt >= 0 and is_usable(one.y_pred):
            state.marginal.update(one.y_pred)
