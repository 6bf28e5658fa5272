"""Watches models in a service's own process, without worker or Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from enum import Enum
from typing import Any, Final, Literal, Self

from prometheus_client.registry import Collector

from ...errors import InvalidParameterError, ModelError, SnapshotError
from ...loss_shift.guard import LossGuard
from ...losses.losses import NamedLoss
from ...notebook.rows import as_row
from ...predictions import is_usable, label_of
from ...typing import Features
from ...validation import check_choice, check_integer, check_number
from ...wording import did_you_mean
from ..holdout import take_holdout, take_holdout_or_warn
from ..joiner import Join
from ..outbox import Publisher
from ..series_limits import Limits
from ..settings import PublishRule
from ..step import AbsurdPredictionError, KeptPrediction
from . import arguments
from .arguments import DEFAULT, Id
from .collector import MonitorCollector
from .intake import Intake
from .model import DUPLICATE_ID, Arrived, MonitoredModel

_FORMAT = 2


class _Given(Enum):
    NOTHING = "nothing"


_NO_LABEL: Final = _Given.NOTHING


class Monitor:
    """Monitor of a service's models: feature importance, quality, incidents.

    `predict` answers a request by the model and does nothing else. `observe` and `label` note what is known, and a
    thread of the monitor scores, explains and, where that is wanted, learns it. If more than `max_waiting` observations
    wait, they are not explained any more until there are fewer, but scored, counted and learnt all the same; beyond
    twice as many, the caller takes one, too. No observation is lost, and memory is bounded.

    Several threads may call any method at once, except `restore`, which comes before them. In a coroutine, call it by
    `await asyncio.to_thread(monitor.predict, "bank", x)`: the loop goes on while the model answers or is taught.

    Metrics and events are those of a worker, by the same code: its dashboards, rules and page are good for them.

    Parameters
    ----------
    models
        Model id to model, for those that need no settings; `add` adds others.
    in_background
        False: `observe` and `label` do all of that before they return. Then the same calls give the same events,
        whatever the machine is doing.
    max_waiting
        Valid range >= 1. Waiting observations of a model beyond which none is explained.
    on_error
        `count`: what a model raises while it is watched is counted in `monitor_failures_total` and told in the log once
        by kind, and the service hears nothing of it. `raise`: it is raised by `observe` and `label`, or by the next
        `flush` where that happens in the background. What a model raises in `predict` is always raised: there is no
        answer.
    topic_prefix
        First part of the names of the topics of events.
    limits
        How many series there are at most: `Limits`, or a mapping as `{"max_features": 50}`.
    clock
        Returns seconds since 1970: the time of observations that come without one.

    Examples
    --------
    >>> from river import tree
    >>> from river.datasets import synth
    >>> monitor = Monitor(in_background=False).add("credit", tree.HoeffdingTreeClassifier(), learn=True, change=None)
    >>> for x, y in synth.Agrawal(seed=7).take(1000):
    ...     monitor.observe("credit", x, y)
    >>> importance = monitor.importances("credit")["pfi"]
    >>> max(importance, key=importance.get)
    'age'
    """

    def __init__(
        self,
        models: Mapping[str, Any] | None = None,
        *,
        in_background: bool = True,
        max_waiting: int = 1000,
        on_error: Literal["count", "raise"] = "count",
        topic_prefix: str = "attributary",
        limits: Limits | Mapping[str, int] = Limits(),  # noqa: B008 - it is frozen
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.max_waiting = check_integer("max_waiting", max_waiting, minimum=1)
        self.on_error = check_choice("on_error", on_error, ("count", "raise"))
        self.topics = arguments.topics_of(topic_prefix)
        self._clock = clock
        self._models: dict[str, MonitoredModel] = {}
        self._intake = Intake(
            self._models,
            in_background=in_background,
            max_waiting=self.max_waiting,
            raises=on_error == "raise",
            topics=self.topics,
        )
        self._collector = MonitorCollector(
            lambda: dict(self._models), self.max_waiting, arguments.made_of("limits", limits, Limits), clock
        )
        if models is not None and not isinstance(models, Mapping):
            raise InvalidParameterError("models", "a mapping of model ids to models, as {'bank': model}", models)
        for model_id, model in (models or {}).items():
            self.add(model_id, model)

    def add(
        self,
        model_id: str,
        model: Any,
        *,
        version: str = "1",
        mode: Literal["labelled", "unlabelled", "anomaly"] | None = None,
        learn: bool = False,
        loss: NamedLoss | None = DEFAULT.loss,
        alpha: float = DEFAULT.alpha,
        explainers: str | Mapping[str, Mapping[str, Any]] | Sequence[str] = tuple(DEFAULT.explainers),
        change: Mapping[str, Any] | None = DEFAULT.change,
        watch_loss: bool = DEFAULT.watch_loss,
        watch_inputs: bool = DEFAULT.watch_inputs,
        holdout: Iterable[tuple[Features, Any]] | None = None,
        quality: Sequence[str] | None = DEFAULT.quality,
        positive: Any = DEFAULT.positive,
        missing: str | Mapping[str, Any] = DEFAULT.missing,
        groups: Mapping[str, Sequence[str]] = DEFAULT.groups,
        feature_share: float = DEFAULT.feature_share,
        explain_every: int = 1,
        publish: PublishRule | Mapping[str, Any] = DEFAULT.publish,
        label_ttl_s: float = 86_400.0,
        max_labels_waiting: int = Join.max_waiting,
        seed: int = DEFAULT.seed,
    ) -> Self:
        """Watch another model; return the monitor.

        What is not said here is as a worker has it by default.

        Parameters
        ----------
        model_id
            Names the model in metrics and events.
        model
            Anything that explainers take. It is referred to, not copied.
        version
            Name of its version in events.
        mode
            `labelled`: each observation has a label. `unlabelled`: none has, and the model's own predictions stand for
            them. `anomaly`: the model is an anomaly detector, whose score is explained. None is `anomaly` for such a
            one, and `labelled` for anything else.
        learn
            Whether the monitor teaches the model every observation, by `learn_one`.
        loss, alpha, missing, groups
            As `RemovalExplainer` has them.
        explainers
            `pfi`, `sage` or both; or each with its parameters, as `{"pfi": {"n_samples": 10}}`.
        change
            Parameters of `ChangeExplainer`; None: changes are not explained, as of an anomaly detector that learns.
        watch_loss
            Whether lasting shifts of the loss are told.
        watch_inputs
            Whether features whose values break are told.
        holdout
            Pairs of features and label on which a model that does not learn was validated, in the order of time: what
            the first labels are compared with, as `LossMonitor.from_holdout` has them.
        quality
            Names of metrics of River, as `quality_metrics` has them; None are those that fit the model.
        positive
            The class that counts as positive in these metrics, and in a loss of costs that names none; None is the
            greater one of two.
        feature_share
            Of pfi: share of the features that is evaluated per observation, in (0, 1].
        explain_every
            Valid range >= 1. One in so many observations is explained.
        publish
            When importance events are due: a `PublishRule`, or a mapping as `{"every": 100}`.
        label_ttl_s, max_labels_waiting
            How long a prediction with an id is kept for its label, and how many are.
        seed
            Of the explainers' generators, together with the model id.

        Raises
        ------
        InvalidParameterError
            A parameter is not known or out of its range, the id is taken, or the hold-out does not fit the model.
        ModelError
            The model cannot be explained like this, or is to learn and cannot.
        """
        if arguments.model_id_of(model_id) in self._models:
            raise InvalidParameterError("model_id", "an id that no model of the monitor has", model_id)
        settings = arguments.settings_of(
            model, mode=mode, learn=learn, explainers=explainers, change=change, watch_loss=watch_loss,
            watch_inputs=watch_inputs, holdout=arguments.holdout_of(holdout), quality=quality, positive=positive,
            publish=publish, loss=loss, alpha=alpha, missing=missing, groups=groups, feature_share=feature_share,
            seed=seed,
        )  # fmt: skip
        ttl_ms = round(1000 * check_number("label_ttl_s", label_ttl_s, above=0.0))
        join = Join(ttl_ms, check_integer("max_labels_waiting", max_labels_waiting, minimum=1))
        every = check_integer("explain_every", explain_every, minimum=1)
        added = MonitoredModel(
            model_id, model, settings, version=arguments.version_of(version), explain_every=every, join=join
        )
        take_holdout(added)
        self._models[model_id] = added
        return self

    def predict(self, model_id: str, x: Any, *, id: Id | None = None, time_ms: int | None = None) -> Any:  # noqa: A002
        """Return the predicted label or number; None where there is none yet.

        Parameters
        ----------
        x
            The features: a mapping, or a row of a data frame.
        id
            Id by which `label` will name the observation. The observation is kept until then, and the model's loss is
            that of this answer. A text, an integer or a UUID; 17 and "17" are one.
        time_ms
            Time of the observation, in milliseconds since 1970; None is now.

        Raises
        ------
        Exception
            What the model raises.
        """
        y_pred = self._answer(model_id, x, id, time_ms)
        return label_of(y_pred) if y_pred else y_pred

    def predict_proba(
        self,
        model_id: str,
        x: Any,
        *,
        id: Id | None = None,  # noqa: A002
        time_ms: int | None = None,
    ) -> dict[Any, float]:
        """Return the probability of each class, or {} where there is none yet.

        Parameters are those of `predict`.

        Raises
        ------
        ModelError
            The model, or the loss that it is watched by, knows no probabilities.
        """
        output = self._model(model_id).loss.output
        y_pred = self._answer(model_id, x, id, time_ms)
        if y_pred is not None and (output == "label" or not isinstance(y_pred, dict)):
            raise ModelError(f"model {model_id} is watched by what it predicts without probabilities: call predict")
        return dict(y_pred or {})

    def observe(self, model_id: str, x: Any, y: Any = _NO_LABEL, *, time_ms: int | None = None) -> None:
        """Note an observation, with its label where there are labels.

        Parameters
        ----------
        x, y
            As `RemovalExplainer.explain_one` takes them; without `y` where the model has no labels.
        time_ms
            Time of the observation, in milliseconds since 1970; None is now.

        Raises
        ------
        InvalidParameterError
            `x` is no row, or there is no `y` and the model has labels.
        """
        model = self._model(model_id)
        if y is _NO_LABEL:
            if model.settings.mode == "labelled":
                raise InvalidParameterError(
                    "y",
                    "the label of the observation; where it comes later, predict(…, id=…) keeps the observation and "
                    "label(…) brings it, and add(…, mode='unlabelled') is for a model without labels",
                    None,
                )
            y = None
        model.inbox.append(Arrived(dict(as_row(x)), y, None, self._now(time_ms)))
        self._intake.arrived(model)

    def label(self, model_id: str, of: Any, y: Any, *, time_ms: int | None = None) -> None:
        """Note the label of an observation, found by id or given as features.

        A label may come before its observation. One that comes twice or too late is counted in `labels_total`.

        Parameters
        ----------
        of
            The id of the prediction, or the features.
        time_ms
            Time of the label, in milliseconds since 1970; None is now.
        """
        if arguments.is_row(of):
            self.observe(model_id, of, y, time_ms=time_ms)
            return
        model, now = self._model(model_id), self._now(time_ms)
        key = _key_of(model, of)
        with model.joining:
            labels = model.begin_joining()
            labels.move(now)
            joined = labels.label(key, now, y)
            if joined is None:
                return
            waited = joined.observation
            kept = KeptPrediction(waited.y_pred, waited.version, waited.n_learnt)
            model.inbox.append(Arrived(waited.x, y, kept, now, "label"))
        self._intake.arrived(model)

    def replace(self, model_id: str, model: Any, version: str, *, time_ms: int | None = None) -> Self:
        """Let a new version of a model take over; return the monitor.

        The version before takes what waits first. Both versions are compared on the observations that come next: an
        event says at once that the new one has taken over, and `change["window"]` observations later what it relies on
        more or less. Predictions of the version before that wait for their labels are not scored. A hold-out is the
        reference of the new version, too: add the model anew if that has learnt these rows.

        Raises
        ------
        InvalidParameterError
            The version is the present one.
        ExplainerError
            The new version cannot be explained as it is set: the one before goes on.
        """
        watched, version, now = self._model(model_id), arguments.version_of(version), self._now(time_ms)
        self._intake.take_all(watched)
        with watched.lock:
            if version == watched.version:
                raise InvalidParameterError("version", "another name than that of the present version", version)
            self._intake.put(watched, watched.replace(model, version, now))
            take_holdout_or_warn(watched)
        self._intake.outbox.publish()
        return self

    def importances(self, model_id: str) -> dict[str, dict[Any, float]]:
        """Return the importance of each feature, in loss units, by explainer."""
        model = self._model(model_id)
        with model.lock:
            return {name: dict(explainer.importance) for name, explainer in model.explainers.items()}

    def guard(self, model_id: str) -> LossGuard | None:
        """Return since when the loss is guarded; None if it is not watched."""
        model = self._model(model_id)
        with model.lock:
            return None if model.loss_watch is None else model.loss_watch.guard(model.n_observations)

    def model(self, model_id: str) -> Any:
        """Return the model of this id, restored if `restore` was called."""
        return self._model(model_id).model

    @property
    def models(self) -> tuple[str, ...]:
        """The ids of the models."""
        return tuple(self._models)

    @property
    def collector(self) -> Collector:
        """Collector for a registry: `REGISTRY.register(monitor.collector)`."""
        return self._collector

    def publish_to(self, publisher: Publisher | None) -> Self:
        """Give every event from now on to a publisher; return the monitor.

        It is called with topic, key, value and headers, one event after the other, by the thread of the monitor or by
        who calls `flush`. What it raises is counted in `monitor_events_total` and told in the log; the event is not
        given to it again.

        Raises
        ------
        InvalidParameterError
            It cannot be called with an event, or is a coroutine function.
        """
        self._intake.outbox.publisher = arguments.publisher_of(publisher)
        return self

    def flush(self) -> None:
        """Take all that waits, with explanations, and publish the events.

        Raises
        ------
        Exception
            With `on_error="raise"`: the first error that a model has raised since the last time.
        """
        self._intake.flush()

    def close(self) -> None:
        """Take all that waits, publish the events, and end the thread.

        What is noted later waits for `flush`.
        """
        self._intake.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def snapshot(self) -> dict[str, Any]:
        """Return plain data from which the same models go on to the last bit.

        It contains what waits, and every model that learns, as a pickle, which runs code when `restore` loads it. Keep
        a snapshot where nobody else can write. While it is taken nothing is explained, but answers are given.
        """
        models = dict(self._models)
        with ExitStack() as held:  # all models at one moment
            for model in models.values():
                held.enter_context(model.lock)
            taken = {model_id: model.snapshot() for model_id, model in models.items()}
            return {"format": _FORMAT, "models": taken, "outgoing": self._intake.outbox.snapshot()}

    def restore(self, snapshot: Mapping[str, Any]) -> Self:
        """Go on from a snapshot; return the monitor.

        Add the same models with the same settings first.

        Raises
        ------
        SnapshotError
            The snapshot is of other models, versions or settings; the monitor is as it was.
        """
        if not isinstance(snapshot, Mapping):
            raise SnapshotError(
                f"expected what snapshot() has returned, got {type(snapshot).__name__}; of bytes, give pickle.loads(…)"
            )
        if snapshot.get("format") != _FORMAT or not {"models", "outgoing"} <= snapshot.keys():
            raise SnapshotError(
                f"expected a snapshot of a monitor, of format {_FORMAT}, got format {snapshot.get('format')!r} with "
                f"{', '.join(map(str, snapshot)) or 'nothing'}: begin without it, or with the release that took it"
            )
        if snapshot["models"].keys() != self._models.keys():
            raise SnapshotError(
                f"the snapshot is of the models {', '.join(snapshot['models'])}, and the monitor has "
                f"{', '.join(self._models) or 'none'}: add the same before you restore"
            )
        self._models.update({name: model.restored(snapshot["models"][name]) for name, model in self._models.items()})
        self._intake.outbox.restore(snapshot["outgoing"])
        self._intake.wake()
        return self

    def _model(self, model_id: str) -> MonitoredModel:
        try:
            return self._models[model_id]
        except KeyError:
            near = did_you_mean(model_id, self._models)
            expected = f"one of {', '.join(self._models) or 'the models that were added, and there are none'}"
            raise InvalidParameterError("model_id", expected, model_id, near) from None

    def _now(self, time_ms: int | None) -> int:
        return round(1000 * self._clock()) if time_ms is None else arguments.time_of(time_ms)

    def _answer(self, model_id: str, x: Any, id_: Id | None, time_ms: int | None) -> Any:
        model, row, now = self._model(model_id), dict(as_row(x)), self._now(time_ms)
        key = None if id_ is None else _key_of(model, id_)
        try:
            kept = model.answer(row)
        except Exception as error:
            self._intake.note(model, "predict", error)
            raise
        y_pred = kept.y_pred
        if y_pred is not None and not is_usable(y_pred) and model.model_loss.value is not None:
            self._intake.note(model, "predict", AbsurdPredictionError(y_pred))
        elif key is not None:
            self._keep(model, key, row, kept, now)
        return y_pred

    def _keep(self, model: MonitoredModel, key: str, x: dict[str, Any], kept: KeptPrediction, now: int) -> None:
        """Keep a prediction for its label, which may have come."""
        with model.joining:
            labels = model.begin_joining()
            labels.move(now)
            if labels.knows(key):
                labels.repeat()
                model.failures[DUPLICATE_ID] += 1
                return
            assert kept.n_learnt is not None  # it is no logged one
            joined, _ = labels.observe(key, now, x, kept.y_pred, kept.version, kept.n_learnt)
            features = Arrived(x, None, None, now, "features")
            model.inbox.append(features if joined is None else Arrived(x, joined.y, kept, now))
        self._intake.arrived(model)


def _key_of(model: MonitoredModel, id_: Id) -> str:
    """Return the id by which an observation of the model waits for its label."""
    if model.settings.mode != "labelled":
        said = f"left out with mode={model.settings.mode!r}: no label is waited for, observe(…) notes what came"
        raise InvalidParameterError("id", said, id_)
    return arguments.id_of(id_)
