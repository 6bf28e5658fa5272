"""Rehearsal of a model: rows through the worker's own functions.

Nothing is sent and nothing is kept: the partition, its state table and its records are made for the rehearsal alone.
"""

from __future__ import annotations

import logging
import random
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from attributary_explainers import (
    ExplainerError,
    InvalidParameterError,
    ProbabilityError,
    TrainedModel,
    model_kind,
    read_missing,
)
from attributary_explainers.models.batch import IN_ONE_CALL, BatchFunction
from attributary_explainers.models.known import features_of
from attributary_explainers.monitor.events import model_guard
from attributary_explainers.predictions import is_usable, predict_rows
from attributary_topics import OBSERVATION, InvalidRecordError, ModelGuard, Observation

from ..config.settings import Config
from ..errors import ConfigError, DamagedStateError, StateError, without_text
from ..kafka.observations import encode_value
from ..models.artefacts.served.errors import NotNowError, ServedError
from ..models.artefacts.served.model import ServedModel
from ..models.from_mlflow.flavours import labels_only
from ..models.from_mlflow.pyfunc import is_pyfunc
from ..models.guards.limits import LABELLED
from ..models.guards.ranges import ALL_OTHERS
from ..models.model_state import ModelState
from ..models.trial import check_model
from ..state.codec import encode_state
from ..worker.dead_letter_log import DeadLetterLog
from ..worker.partition import Partition
from ..worker.reading import ObservationReader
from ..worker.records import Record
from .doubts import doubts, encode_text, many_numbers, no_prediction, nothing_explained, positive_class, wrong_labels

MADE_UP = "made-up rows"

N_ROWS = 40
"""Rows of a rehearsal, where nothing else is said."""

_MOST_TEXT = 1000
"""Characters that are shown of what an exception says."""

_OF_THE_MODEL = ("model_failed", "prediction_not_finite", "wrong_label")
"""Reasons of dead letters that are no fault of the record alone."""


@dataclass
class Rehearsal:
    """Findings from the rehearsal of a model.

    None, or nothing, stands where something does not apply.

    Attributes
    ----------
    registered
        Which version of MLflow's registry was tried.
    rows, sought
        Where the rows come from, and where rows were looked for in vain.
    n_used, n_explained
        Rows that were predicted and learnt, and those that an importance is made of.
    dead_letters, examples
        Rows that a worker would send to the dead letters, by reason, and what the first of each says.
    prediction, label
        What the model predicts for the last row before learning it, and the row's label.
    loss, is_score, loss_value, why
        The loss in words, whether it is an anomaly detector's score, its mean over the rows, and why it is that one.
    positive
        Which of two classes counts as positive without being named.
    guard, guarded_from
        From when on shifts of its loss would be told, and from about which observation on at the rate of the rows.
    step_s, state_bytes
        Median time of a step in seconds, and size of the stored state.
    restored
        What was equal when the stored state took one more row as well.
    untried
        Why the rows say nothing of the model, although some were used.
    problem, said
        Why the model cannot work, and what to do, without a value of a row; and what the exception behind it says,
        which may hold some.
    """

    model_id: str
    registered: str | None = None
    rows: str | None = None
    n_rows: int = 0
    n_used: int = 0
    n_explained: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, dict[str, int]] = field(default_factory=dict)
    prediction: Any = None
    label: Any = None
    loss: str | None = None
    is_score: bool = False
    loss_value: float | None = None
    why: str | None = None
    positive: str | None = None
    evaluated: str | None = None
    guard: ModelGuard | None = None
    guarded_from: int | None = None
    step_s: float | None = None
    state_bytes: int | None = None
    restored: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    sought: str | None = None
    untried: str | None = None
    problem: str | None = None
    said: str | None = None

    @property
    def works(self) -> bool:
        """Whether the model was tried, and nothing speaks against it."""
        return self.problem is None and self.untried is None and self.n_used > 0


def rehearse(
    config: Config,
    model_id: str,
    values: Sequence[bytes] | None = None,
    rows: str = MADE_UP,
    more: Sequence[bytes] = (),
) -> Rehearsal:
    """Take records of a model all the way; then store and restore its state.

    Parameters
    ----------
    values
        Values of records of the observations topic; None makes some up, where the features are known.
    rows
        Says where the values are from.
    more
        Values from there that are looked at, and not taken all the way.
    """
    rehearsal = Rehearsal(model_id)
    with quiet():
        try:
            state = check_model(model_id, config.settings_of(model_id))
            if state.config.registered is not None:
                rehearsal.registered = f"{state.config.registered} is version {state.version} now"
            if is_pyfunc(state.model):
                rehearsal.doubts.append(labels_only())
            if values is None:
                config, values = with_labels(config), _made_up(state, {})
            stage = _Stage(*config.with_one_of(model_id), rehearsal)
            if values:
                rehearsal.rows = rows
                if isinstance(state.model, ServedModel):  # before all rows wait for it
                    first = next(filter(None, map(stage.observation, values)), None)
                    _first_prediction(state, {} if first is None else first.x)
                stage.play(values, more)
            else:
                trial = Rehearsal(model_id)
                if not isinstance(state.model, ServedModel):  # an endpoint is not asked for what is made up
                    stage = _Stage(*config.with_one_of(model_id), trial)
                    stage.play(_made_up(state, {"a": "number", "b": "number"}))
                evaluated = trial.evaluated if trial.n_used else "known with the first observation"
                rehearsal.evaluated = f"{evaluated} (two made-up numbers)"
        except (ConfigError, ExplainerError) as error:
            rehearsal.problem = str(error).removeprefix(f"models.{model_id}: ")
    return rehearsal


def with_labels(config: Config) -> Config:
    """Return a configuration for rows that are joined already.

    The label of a mirror is the logged prediction.
    """
    models = {
        entry: model.model_copy(update={"mode": "labelled"} if model.mode == "mirror" else None)
        for entry, model in config.models.items()
    }
    for model in models.values():
        model.take_join(None)
    return config.model_copy(update={"models": models, "sources": {}, "labels": {}})


def made_up_values(config: Config, model_id: str, n_features: int | None = None) -> list[bytes]:
    """Return made-up values of a model's records; none if features unknown.

    Parameters
    ----------
    n_features
        So many numbers, where nobody says.
    """
    with quiet():
        state = check_model(model_id, config.settings_of(model_id))
        return _made_up(state, {f"feature{k}": "number" for k in range(n_features or 0)})


def _made_up(state: ModelState, unknown: Mapping[str, str]) -> list[bytes]:
    """Make up records of the features that are declared, or in the model.

    They are the same each time. The labels are the classes that the model knows before it has learnt.
    """
    config, model, rng = state.config, state.model, random.Random(1)
    kinds: Mapping[str, str] | None = config.features
    if kinds is None:
        kinds = model.feature_kinds if isinstance(model, TrainedModel) else dict.fromkeys(features_of(model), "number")
    bounds = {name: config.bounds.get(name) or config.bounds.get(ALL_OTHERS) for name in kinds or unknown}
    xs = [
        {str(name): _value(rng, kind, bounds[name]) for name, kind in (kinds or unknown).items()} for _ in range(N_ROWS)
    ]
    if not xs[0]:
        return []
    prediction, is_number = _first_prediction(state, xs[0]), state.loss.output in ("number", "any")
    labels = list(prediction) if isinstance(prediction, dict) and len(prediction) > 1 else [False, True]
    if not config.has_labels:
        return [encode_value({"x": x}) for x in xs]
    return [encode_value({"x": x, "y": rng.random() if is_number else rng.choice(labels)}) for x in xs]


def _value(rng: random.Random, kind: str, bounds: tuple[float | None, float | None] | None) -> Any:
    if kind == "category":
        return rng.choice(["a", "b", "c"])
    if kind == "boolean":
        return rng.random() < 0.5
    low, high = bounds or (None, None)
    least = low if low is not None else (0.0 if high is None else high - 1.0)
    return rng.uniform(least, high if high is not None else least + 1.0)


def _first_prediction(state: ModelState, x: Mapping[str, Any]) -> Any:
    """Return the model's prediction for a row; None where it raises.

    Raises
    ------
    ConfigError
        The model is served, and its endpoint does not answer.
    """
    try:
        return state.together.function(_given(state, x)) if x else None
    except NotNowError as error:
        raise ConfigError(
            f"the endpoint does not answer: {error}. Is model.served right, and is it there for this machine? A worker "
            "would wait for it"
        ) from None
    except ServedError as error:
        raise ConfigError(f"the endpoint {state.model.served.url} does not take a row: {error}") from None
    except Exception:  # noqa: BLE001 - whatever the model raises on a row, the rehearsal says
        return None


@contextmanager
def quiet() -> Iterator[None]:
    """Silence a worker's logs and warnings: only the report tells."""
    ours = logging.getLogger("attributary_agents")
    level = ours.level
    ours.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        ours.setLevel(level)


class _Errors(DeadLetterLog):
    """Dead letter log that keeps the first exception of each reason."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.first: dict[str, Exception] = {}

    def note(self, key: bytes | None, stage: str, reason: str, error: Exception, where: str) -> None:
        """Keep the exception, if it is the first of its reason."""
        self.first.setdefault(reason, error)


class _Stage:
    """Partition of a rehearsal's own, which notes its findings there."""

    def __init__(self, config: Config, model_id: str, rehearsal: Rehearsal) -> None:
        self._config, self._model_id, self._rehearsal = config, model_id, rehearsal
        self._errors = _Errors(config)
        self._partition = Partition("rehearsal", 0, config, lambda _key: None, dead_letter_log=self._errors)
        self._reader = ObservationReader(model_id.encode(), config.settings_of(model_id), config.max_observation_bytes)
        self._seconds: list[float] = []

    def play(self, values: Sequence[bytes], more: Sequence[bytes] = ()) -> None:
        """Take the values all the way, in order, and judge the model.

        Parameters
        ----------
        more
            Further values, which are only decoded: what is rare shows in many.
        """
        rehearsal, read = self._rehearsal, list(map(self.observation, values))
        observations = [one for one in read if one is not None]
        for value, observation in zip(values, read, strict=True):
            if observation is not None and observation is observations[-1]:
                state, last = self._partition.models.find_or_make(self._model_id), value
                rehearsal.prediction, rehearsal.label = _prediction(state, observation), observation.y
            self._handle(value)
        rehearsal.n_rows, rehearsal.n_used = len(values), self._partition.counters.used
        rehearsal.dead_letters = {reason: n for reason, n in self._partition.counters.dead_letters.items() if n}
        rehearsal.examples = {reason: str(error)[:_MOST_TEXT] for reason, error in self._errors.first.items()}
        rehearsal.step_s = median(self._seconds[len(values) // 2 :])
        if observations:
            further = [one for one in map(self.observation, more) if one is not None]
            self._count(state, further)
            self._judge(state, observations, [*observations, *further])
            self._restore(state, observations[-1], last)

    def observation(self, value: bytes) -> Observation | None:
        """Return the observation in a record's value; None where there is none."""
        reader = self._reader
        try:
            arrival = reader.read(value) if reader.is_whole else reader.read_arrival(value, OBSERVATION)
        except InvalidRecordError:
            return None
        return arrival if isinstance(arrival, Observation) else None

    def _record(self, value: bytes) -> Record:
        return Record("rehearsal", 0, self._partition.offset + 1, 0, self._model_id.encode(), value)

    def _handle(self, value: bytes) -> None:
        record, began_at = self._record(value), time.perf_counter()
        self._partition.handle(record)
        self._seconds.append(time.perf_counter() - began_at)

    def _count(self, state: ModelState, further: Sequence[Observation]) -> None:
        """Read the model's counts; a frozen model's loss watch has more rows."""
        rehearsal = self._rehearsal
        n_explained = max((e.n_observations for e in state.explainers.values()), default=0)
        rehearsal.n_explained = min(n_explained, rehearsal.n_used)  # without the rows of a hold-out
        rehearsal.skipped = {name: dict(e.skipped) for name, e in state.explainers.items() if e.skipped}
        rehearsal.loss, rehearsal.is_score, rehearsal.why = state.loss.statement, state.loss.is_score, _why(state)
        rehearsal.loss_value, rehearsal.evaluated = state.model_loss.value, _evaluated(state)
        if state.loss_watch is not None:
            if not state.config.learn and not isinstance(state.model, ServedModel):
                for observation, y_pred in zip(further, _predictions(state, further), strict=True):
                    state.loss_watch.update(None, observation.y, y_pred)
            monitor = state.loss_watch.monitor
            rehearsal.guard, rehearsal.guarded_from = (
                model_guard(monitor.guard),
                monitor.guard.due_at(monitor.n_observations),
            )

    def _restore(self, state: ModelState, observation: Observation, value: bytes) -> None:
        """Store the state, restore it, and let both take another row."""
        rehearsal, blob = self._rehearsal, encode_state(state)
        rehearsal.state_bytes = len(blob)
        again = Partition("rehearsal", 0, self._config, {self._model_id.encode(): blob}.get)
        try:
            restored = again.models.find_or_make(self._model_id)
        except (StateError, DamagedStateError) as error:
            # What is said of a refused model is about one that is stored, and here nothing is.
            cause = error.__cause__ if isinstance(error.__cause__, DamagedStateError) else error
            rehearsal.problem = rehearsal.problem or f"its state was stored and cannot be restored: {cause}"
            return
        record = self._record(value)
        predictions = _prediction(state, observation), _prediction(restored, observation)
        events = self._partition.handle(record), again.handle(record)
        ours, theirs = (of.models[self._model_id].snapshot() for of in (self._partition, again))
        # Of the model itself the predictions tell: equal objects may have different pickles.
        parts = {name: (ours[name], theirs[name]) for name in ours if name != "current"}
        parts = {"prediction": predictions, "events": events, **parts}
        rehearsal.restored = [name for name, both in parts.items() if are_equal(*both)]
        if differing := [name for name in parts if name not in rehearsal.restored]:
            rehearsal.doubts.append(f"after its state was stored and restored, it differs in {', '.join(differing)}")

    def _judge(self, state: ModelState, played: Sequence[Observation], decoded: Sequence[Observation]) -> None:
        """Say why the model fails on these rows, and list doubts on all decoded."""
        rehearsal, is_labelled = self._rehearsal, state.config.has_labels
        failed = sum(rehearsal.dead_letters.get(reason, 0) for reason in _OF_THE_MODEL)
        ys: list[Any] = [observation.y for observation in played] if is_labelled else []
        many = many_numbers(state.loss, ys)
        if failed > rehearsal.n_used:
            self._judge_failure(state, played, failed)
        elif (
            rehearsal.n_used
            and not state.config.learn
            and (rehearsal.loss_value if is_labelled else rehearsal.prediction) is None
        ):
            rehearsal.problem = no_prediction(state.model)
        elif many and any(y != int(y) for y in ys):
            rehearsal.problem = f"{many}: take a regressor, or name the column of the label with --target"
        if rehearsal.problem is None and state.loss.output in LABELLED:
            try:
                rehearsal.positive = positive_class(state, decoded, rehearsal.prediction)
            except InvalidParameterError as error:
                rehearsal.problem = str(error)
        if rehearsal.problem is None and rehearsal.n_used:
            self._judge_explained(state)
        if rehearsal.problem is not None:
            if rehearsal.rows == MADE_UP:
                rehearsal.problem += " (the rows are made up: try your own with --sample FILE)"
            return
        if failed:
            rehearsal.doubts.append(f"{failed} of {rehearsal.n_rows} rows fail in the model")
        bad = {reason: n for reason, n in rehearsal.dead_letters.items() if reason not in _OF_THE_MODEL}
        if rehearsal.n_used and sum(bad.values()) > rehearsal.n_rows / 2:
            reasons = ", ".join(f"{n} {reason}" for reason, n in bad.items())
            rehearsal.doubts.append(f"{sum(bad.values())} of {rehearsal.n_rows} rows are no observations: {reasons}")
        rehearsal.doubts += [many] if many else []
        rehearsal.doubts += doubts(state, decoded, ys, _predictions(state, played))

    def _judge_explained(self, state: ModelState) -> None:
        """Say why no row was explained, unless `explain` or few rows are why."""
        rehearsal, every = self._rehearsal, state.explain_every
        if rehearsal.n_explained or not state.explainers or state.config.explain.budget is not None:
            return
        if rehearsal.n_used // every - (every == 1) >= 1:  # the first of all has nothing to draw from
            if rehearsal.loss_value is not None:
                rehearsal.problem = nothing_explained(rehearsal.skipped, rehearsal.n_used)
            else:
                rehearsal.untried = (
                    f"the model predicted nothing for any of the {rehearsal.n_used} rows that it learnt, so nothing "
                    "was explained: see when it begins to predict"
                )
        elif every == 1:
            rehearsal.untried = (
                f"{rehearsal.n_used} of {rehearsal.n_rows} rows can be used, and the first has nothing to draw from, "
                "so nothing was explained: give more rows"
            )

    def _judge_failure(self, state: ModelState, observations: Sequence[Observation], failed: int) -> None:
        """Say why the model fails on most rows.

        The exception's text, which may be of a row, is kept apart.
        """
        rehearsal = self._rehearsal
        reason = next(reason for reason in _OF_THE_MODEL if rehearsal.dead_letters.get(reason))
        error = self._errors.first[reason]
        names = sorted({name for one in observations for name, value in one.x.items() if isinstance(value, str)})
        rehearsal.said = rehearsal.examples.get(reason)
        if reason == "wrong_label":
            rehearsal.problem = wrong_labels(state.config, state.model)
        elif isinstance(error, ProbabilityError):
            rehearsal.problem, rehearsal.said = str(error), None
        elif reason == "model_failed" and names and self._is_of_text(error, observations):
            rehearsal.problem = encode_text(state.model, names)
        else:
            rows = "every row" if not rehearsal.n_used else f"{failed} of {failed + rehearsal.n_used} rows"
            rehearsal.problem = f"{type(state.model).__name__} fails on {rows}: {without_text(error)}"

    def _is_of_text(self, error: Exception, observations: Sequence[Observation]) -> bool:
        """Return whether the failure goes away with numbers in place of text.

        The model may still fail in another way.
        """
        own = self._config.settings_of(self._model_id).model_copy(update={"features": None})
        stage = _Stage(
            self._config.model_copy(update={"models": {self._model_id: own}}), self._model_id, Rehearsal(self._model_id)
        )
        for observation in observations:
            x = {name: 0.0 if isinstance(value, str) else value for name, value in observation.x.items()}
            stage._handle(encode_value({"x": x, "y": observation.y}))
        left = stage._errors.first.get("model_failed")
        return left is None or (type(left), without_text(left)) != (type(error), without_text(error))


def _prediction(state: ModelState, observation: Observation) -> Any:
    with suppress(Exception):  # the step says what the model raises
        prediction = state.together.function(_given(state, observation.x))
        return prediction if is_usable(prediction) else None
    return None


def _predictions(state: ModelState, observations: Sequence[Observation]) -> list[Any]:
    with suppress(Exception):  # the step says what the model raises
        predictions = predict_rows(state.together.function, [_given(state, each.x) for each in observations])
        return [each if is_usable(each) else None for each in predictions]
    return [_prediction(state, each) for each in observations]


def _given(state: ModelState, x: Mapping[str, Any]) -> dict[str, Any]:
    policy = "absent" if state.config.missing == "skip" else state.config.missing
    return dict(read_missing(x, policy) or {})


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
    return f"row by row, {paths.most_common(1)[0][0] if paths else 'no row was evaluated'}"


def are_equal(ours: Any, theirs: Any) -> bool:
    """Return whether plain data are the same, NaN included."""
    try:
        np.testing.assert_equal(ours, theirs)
    except AssertionError:
        return False
    return True
