"""Stage of a rehearsal: rows through a partition, then a verdict.

The state is stored and restored before the last row.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from statistics import median
from typing import Any

import numpy as np

from attributary_explainers import InvalidParameterError, ProbabilityError, model_kind, read_missing
from attributary_explainers.losses.labels import check_positive
from attributary_explainers.models.batch import IN_ONE_CALL, BatchFunction
from attributary_explainers.models.known import classes_of
from attributary_explainers.monitor.events import model_guard
from attributary_explainers.predictions import is_usable, predict_rows
from attributary_topics import (
    DEAD_LETTER_HEADER_PREFIX,
    OBSERVATION,
    InvalidRecordError,
    Needs,
    Observation,
    decode_arrival,
    decode_observation,
)

from ..config.settings import Config
from ..errors import DamagedStateError, StateError
from ..errors import without_text as place_of
from ..kafka.producing import encode_value
from ..models.artefacts.served.model import ServedModel
from ..models.guards.limits import LABELLED, within_bounds
from ..models.model_state import ModelState
from ..state.codec import encode_state
from ..worker.dead_letter_log import DeadLetterLog
from ..worker.partition import Partition
from ..worker.records import Outgoing, Record
from .doubts import (
    assumed_positive,
    doubts_of_bounds,
    doubts_of_holdout,
    doubts_of_names,
    doubts_of_predictions,
    doubts_of_types,
)
from .finding import MADE_UP, Rehearsal
from .remedies import (
    encode_text,
    many_numbers,
    no_prediction,
    nothing_explained,
    numbers_as_classes,
    text_features,
    without_text,
    wrong_labels,
)

_OF_THE_MODEL = ("model_failed", "prediction_not_finite", "wrong_label")
"""Reasons of dead letters that are no fault of the record alone."""


_UNLABELLED, _OF_DETECTORS = Needs(label=False), Needs(label=False, unread=True)


class _Errors(DeadLetterLog):
    """Dead letter log that keeps the first exception of each reason."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.first: dict[str, Exception] = {}

    def note(self, key: bytes | None, stage: str, reason: str, error: Exception, where: str) -> None:
        """Keep the exception, if it is the first of its reason."""
        self.first.setdefault(reason, error)


class Stage:
    """Rehearsal in a partition of its own.

    Parameters
    ----------
    found
        What is found is written there.
    """

    def __init__(self, config: Config, model_id: str, found: Rehearsal) -> None:
        self._config, self._model_id, self._found = config, model_id, found
        self._stored: dict[bytes, bytes] = {}
        self._errors = _Errors(config)
        self._partition = Partition("rehearsal", 0, config, self._stored.get, dead_letter_log=self._errors)
        self._seconds: list[float] = []

    def play(self, values: Sequence[bytes], more: Sequence[bytes] = ()) -> None:
        """Take the values all the way, in order, and record the findings.

        Parameters
        ----------
        more
            Further values, which are only decoded: what is rare shows in many.
        """
        records = [Record("rehearsal", 0, n, 0, self._model_id.encode(), value) for n, value in enumerate(values)]
        observations = [self._decoded(record) for record in records]
        n_played = len(records)
        further = [self._decoded(Record("rehearsal", 0, n_played, 0, self._model_id.encode(), value)) for value in more]
        last = max((n for n, observation in enumerate(observations) if observation is not None), default=-1)
        for record in records[: max(last, 0)]:
            self._handle(record)
        if last >= 0:
            self._play_last(records[last], observations[last])
        for record in records[last + 1 :]:
            self._handle(record)
        self._watch([observation for observation in further if observation is not None])
        self._count(len(records))
        played = [observation for observation in observations if observation is not None]
        self._judge(played, [*played, *(observation for observation in further if observation is not None)])

    def _decoded(self, record: Record) -> Observation | None:
        config = self._config.settings_of(self._model_id)
        try:
            if not config.has_labels:
                needs = _OF_DETECTORS if config.mode == "anomaly" else _UNLABELLED
                found = decode_arrival(self._model_id, record.value, OBSERVATION, needs, features=config.features)
                assert isinstance(found, Observation)  # what else an observation's value is, is refused
                return within_bounds(found, config)
            return within_bounds(decode_observation(record.key, record.value, features=config.features), config)
        except InvalidRecordError:
            return None

    def _handle(self, record: Record) -> list[Outgoing]:
        began_at = time.perf_counter()
        sent = self._partition.handle(record)
        self._seconds.append(time.perf_counter() - began_at)
        for outgoing in sent:
            if outgoing.topic == self._config.kafka.topics.dead_letters:
                headers = {
                    name.removeprefix(DEAD_LETTER_HEADER_PREFIX): (value or b"").decode()
                    for name, value in outgoing.headers
                }
                self._found.examples.setdefault(headers["reason"], headers["message"])
        return sent

    def _play_last(self, record: Record, observation: Observation | None) -> None:
        """Store the state, restore it, and let both take the last observation."""
        assert observation is not None
        state = self._partition.models.find_or_make(self._model_id)
        self._found.label = observation.y
        self._found.prediction = _prediction(state, observation)
        blob = encode_state(state)
        self._found.state_bytes = len(blob)
        again = Partition("rehearsal", 0, self._config, {self._model_id.encode(): blob}.get)
        try:
            restored = again.models.find_or_make(self._model_id)
        except (StateError, DamagedStateError) as error:
            # What is said of a refused model is about one that is stored, and here nothing is.
            cause = error.__cause__ if isinstance(error.__cause__, DamagedStateError) else error
            self._found.problem = f"its state was stored and cannot be restored: {cause}"
            return
        predictions = _prediction(restored, observation), self._found.prediction
        sent = again.handle(record), self._handle(record)
        mine, its = (of.models[self._model_id].snapshot() for of in (self._partition, again))
        # Of the model itself the predictions tell: equal objects may have different pickles.
        equal = {name: _are_equal(mine[name], its[name]) for name in mine if name != "current"}
        equal = {"prediction": _are_equal(*predictions), "events": sent[0] == sent[1], **equal}
        self._found.restored = [name for name, is_equal in equal.items() if is_equal]
        if not all(equal.values()):
            differing = ", ".join(name for name, is_equal in equal.items() if not is_equal)
            self._found.doubts.append(f"after its state was stored and restored, it differs in {differing}")

    def _watch(self, further: Sequence[Observation]) -> None:
        """Feed a frozen model's loss watch the rows that were only decoded."""
        state = self._partition.models.get(self._model_id)
        if state is None or state.loss_watch is None or state.config.learn or isinstance(state.model, ServedModel):
            return
        for observation, y_pred in zip(further, _predictions(state, further), strict=True):
            state.loss_watch.update(None, observation.y, y_pred)

    def _count(self, n_rows: int) -> None:
        found, counters = self._found, self._partition.counters
        state = self._partition.models.get(self._model_id)
        found.n_rows, found.n_used = n_rows, counters.used
        found.dead_letters = {reason: n for reason, n in counters.dead_letters.items() if n}
        found.step_s = median(self._seconds[len(self._seconds) // 2 :])
        if state is None:
            return
        n_explained = max((e.n_observations for e in state.explainers.values()), default=0)
        found.n_explained = min(n_explained, found.n_used)  # without the rows of a hold-out
        found.skipped = {name: dict(e.skipped) for name, e in state.explainers.items() if e.skipped}
        found.loss, found.is_score = state.loss.statement, state.loss.is_score
        found.loss_value = state.model_loss.value
        found.why = _why(state)
        if state.loss_watch is not None:
            monitor = state.loss_watch.monitor
            found.guard, found.guarded_from = model_guard(monitor.guard), monitor.guard.due_at(monitor.n_observations)
        found.evaluated = _evaluated(state)

    def _judge(self, observations: Sequence[Observation], decoded: Sequence[Observation]) -> None:
        """Say why the model fails on these rows, and list doubts on all decoded."""
        found = self._found
        state = self._partition.models.get(self._model_id)
        if found.problem is not None or state is None:
            return
        failed = sum(found.dead_letters.get(reason, 0) for reason in _OF_THE_MODEL)
        is_labelled = state.config.has_labels
        ys = [observation.y for observation in observations] if is_labelled else []
        if failed > found.n_used:
            self._judge_failure(state, observations, failed)
        elif (
            found.n_used
            and not state.config.learn
            and (state.model_loss.value if is_labelled else found.prediction) is None
        ):
            found.problem = no_prediction(state.model)
        else:
            found.problem = numbers_as_classes(state.loss, ys)
        if found.problem is None and state.loss.output in LABELLED:
            self._judge_positive(state, decoded)
        if found.problem is None and found.n_used:
            self._judge_explained(state)
        if found.problem is not None:
            if found.rows == MADE_UP:
                found.problem += " (the rows are made up: try your own with --sample FILE)"
            return
        if failed:
            found.doubts.append(f"{failed} of {found.n_rows} rows fail in the model")
        bad = {reason: n for reason, n in found.dead_letters.items() if reason not in _OF_THE_MODEL}
        if found.n_used and sum(bad.values()) > found.n_rows / 2:
            reasons = ", ".join(f"{n} {reason}" for reason, n in bad.items())
            found.doubts.append(f"{sum(bad.values())} of {found.n_rows} rows are no observations: {reasons}")
        if doubt := many_numbers(state.loss, ys):
            found.doubts.append(doubt)
        found.doubts += doubts_of_names(state.config, decoded)
        found.doubts += doubts_of_types(state.config, decoded)
        found.doubts += doubts_of_bounds(state, decoded)
        found.doubts += doubts_of_predictions(state, ys, _predictions(state, observations))
        found.doubts += doubts_of_holdout(state, decoded)

    def _judge_positive(self, state: ModelState, decoded: Sequence[Observation]) -> None:
        """Report the positive class: assumed, or named and unknown."""
        holdout, predicted = state.settings.holdout, self._found.prediction
        known = {*(predicted if isinstance(predicted, dict) else ()), *classes_of(state.model)}
        labels = {one.y for one in decoded} | {y for _, y in (() if holdout is None else holdout.rows)}
        classes = {*known, *labels} - {None}
        try:
            check_positive(state.config.positive, classes)
        except InvalidParameterError as error:
            self._found.problem = str(error)
        else:
            self._found.positive = assumed_positive(state, classes)

    def _judge_explained(self, state: ModelState) -> None:
        """Say why no row was explained, unless `explain` or few rows are why."""
        found, every = self._found, state.explain_every
        # The first of all has nothing to draw from.
        due = found.n_used // every - (every == 1)
        if found.n_explained or not state.explainers or state.config.explain.budget is not None:
            return
        if due < 1:
            if every == 1:
                found.untried = (
                    f"{found.n_used} of {found.n_rows} rows can be used, and the first has nothing to draw from, so "
                    "nothing was explained: give more rows"
                )
            return
        if state.model_loss.value is None:
            found.untried = (
                f"the model predicted nothing for any of the {found.n_used} rows that it learnt, so nothing was "
                "explained: see when it begins to predict"
            )
            return
        found.problem = nothing_explained(found.skipped, found.n_used)

    def _judge_failure(self, state: ModelState, observations: Sequence[Observation], failed: int) -> None:
        """Say why the model fails on most rows.

        The exception's text, which may be of a row, is kept apart.
        """
        found = self._found
        reason = next(reason for reason in _OF_THE_MODEL if found.dead_letters.get(reason))
        error = self._errors.first[reason]
        names = text_features([observation.x for observation in observations])
        rows = "every row" if not found.n_used else f"{failed} of {failed + found.n_used} rows"
        found.said = found.examples.get(reason)
        if reason == "wrong_label":
            found.problem = wrong_labels(state.config, state.model)
        elif isinstance(error, ProbabilityError):
            found.problem, found.said = str(error), None
        elif reason == "model_failed" and names and self._is_of_text(error, observations):
            found.problem = encode_text(state.model, names)
        else:
            found.problem = f"{type(state.model).__name__} fails on {rows}: {place_of(error)}"

    def _is_of_text(self, error: Exception, observations: Sequence[Observation]) -> bool:
        """Return whether the failure goes away with numbers in place of text.

        The model may still fail in another way.
        """
        own = self._config.settings_of(self._model_id).model_copy(update={"features": None})
        config = self._config.model_copy(update={"models": {self._model_id: own}})
        errors = _Errors(config)
        partition = Partition("rehearsal", 0, config, lambda _key: None, dead_letter_log=errors)
        for n, observation in enumerate(observations):
            value = encode_value({"x": without_text(observation.x), "y": observation.y})
            partition.handle(Record("rehearsal", 0, n, 0, self._model_id.encode(), value))
        left = errors.first.get("model_failed")
        return left is None or (type(left), place_of(left)) != (type(error), place_of(error))


def _prediction(state: ModelState, observation: Observation) -> Any:
    try:
        found = state.together.function(_given(state, observation))
    except Exception:  # noqa: BLE001 - the step says what the model raises
        return None
    return found if is_usable(found) else None


def _predictions(state: ModelState, observations: Sequence[Observation]) -> list[Any]:
    with suppress(Exception):  # the step says what the model raises
        found = predict_rows(state.together.function, [_given(state, each) for each in observations])
        return [one if is_usable(one) else None for one in found]
    return [_prediction(state, each) for each in observations]


def _given(state: ModelState, observation: Observation) -> dict[str, Any]:
    policy = "absent" if state.config.missing == "skip" else state.config.missing
    return dict(read_missing(observation.x, policy) or {})


def _why(state: ModelState) -> str:
    if state.config.loss is not None:
        return "the configuration names it (`loss`)"
    kind = model_kind(state.model)
    if kind == "classifier":
        return f"the model is a classifier with{'' if state.loss.output == 'probabilities' else 'out'} probabilities"
    return "the model is an anomaly detector" if kind == "anomaly_detector" else "the model is a regressor"


def _evaluated(state: ModelState) -> str:
    if isinstance(state.model, ServedModel):
        return f"by {state.model.served.url}, the rows of an observation in one request"
    paths = Counter(state.together.paths)
    if paths["fast"]:
        return "by its fast path"
    if isinstance(state.together.function, BatchFunction):
        return IN_ONE_CALL
    reason = paths.most_common(1)[0][0] if paths else "no row was evaluated"
    return f"row by row, {reason}"


def _are_equal(a: Any, b: Any) -> bool:
    """Return whether plain data are the same, NaN included."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_are_equal(value, b[name]) for name, value in a.items())
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.asarray(a).dtype == np.asarray(b).dtype and _are_equal(np.asarray(a).tolist(), np.asarray(b).tolist())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_are_equal, a, b))
    return bool(a == b) or bool(a != a and b != b)
