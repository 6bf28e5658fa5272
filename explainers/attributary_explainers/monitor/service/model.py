"""A monitor's model: its state, its waiting observations and its locks."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from attributary_topics import Unsourced

from ...errors import LabelError, SnapshotError
from ...incremental.base import differing
from ...incremental.explainers import Explainers
from ...missing import has_missing, is_missing, read_missing
from ...models.function import model_function, resolve_loss
from ...models.learning import learn_function
from ...pickling import dump_model, load_model
from ...predictions import label_of
from ...quality.quality import Quality
from ...smoothing.means import SmoothedMean, SmoothedPrediction
from ...snapshots import attributes, register, set_attributes
from ...typing import Features
from ..events import Event, in_mode
from ..explainers import (
    begin_comparison,
    explainer_of_version,
    new_change_explainer,
    new_explainer,
    new_loss_watch,
    new_shift_watches,
)
from ..incident_events import arrived_incidents, count_version, ended_incidents, version_incidents
from ..incident_watch import IncidentWatch, new_incident_watch
from ..joiner import Join, Joiner, Late
from ..mismatch import Mismatch
from ..publication import new_publications
from ..quality import new_quality
from ..settings import Settings
from ..state import ModelCounts
from ..step import AbsurdPredictionError, KeptPrediction, Step, events_after

MODEL_FAILED = "model_failed"
REASONS: dict[type[Exception], str] = {AbsurdPredictionError: "prediction_not_finite", LabelError: "wrong_label"}
"""Why an observation is not taken, by the error; anything else is `model_failed`."""

DUPLICATE_ID = "duplicate_id"

FAILURES = (MODEL_FAILED, *REASONS.values(), DUPLICATE_ID)
"""Reasons that are counted."""


class Arrived(NamedTuple):
    """Waiting item: an observation, its features alone, or a later label."""

    x: dict[str, Any]
    y: Any
    kept: KeptPrediction | None
    time_ms: int
    part: Literal["whole", "features", "label"] = "whole"


class Told(NamedTuple):
    """An event with its observation, time and number in that observation."""

    event: Event
    place: Unsourced
    time_ms: int
    n: int


class MonitoredModel:
    """A monitored model of a service, with its state and locks.

    Three locks. `lock` is held by whoever takes an observation through the model or reads what is known of it. With it
    or without it, one of the two others is held for a moment: `asking` while the model is taught or, where it learns,
    asked by the service; `joining` for what waits for its label, and for counts. So whoever has one of these two waits
    for nobody, and nobody who answers waits for `lock`.

    ExplainerError: the model cannot be explained as it is set, or is to learn and cannot.
    """

    def __init__(
        self, model_id: str, model: Any, settings: Settings, *, version: str, explain_every: int, join: Join
    ) -> None:
        self.model_id, self.model, self.settings, self.version = model_id, model, settings, version
        self.explain_every, self.join = explain_every, join
        self.lock, self.asking, self.joining = threading.Lock(), threading.Lock(), threading.Lock()
        self.inbox: deque[Arrived] = deque()
        self.loss = resolve_loss(model, settings.scored_loss)
        self.function = model_function(model, self.loss.output)
        self._learn = learn_function(model) if settings.learn else None
        self.explainers = {name: new_explainer(model_id, settings, name, model) for name in settings.explainers}
        self.together = Explainers(model, self.explainers, self.loss.output, settings.missing)
        self.publications = new_publications(settings)
        self.shifts = new_shift_watches(settings)
        self.loss_watch = new_loss_watch(model_id, settings, model)
        self.change = new_change_explainer(model_id, settings, model, version)
        self.incident_watch = new_incident_watch(settings, model)
        self.quality = new_quality(settings, model)
        self.counts = ModelCounts()
        self.late: Late | None = None
        self.present_loss: SmoothedMean | None = None
        self._begin_figures()
        self.n_observations = self.n_failed = self.n_missing = self.n_other_categories = 0
        self.n_told = 0
        """Events that follow from the last observation so far."""
        self.n_not_explained = 0
        """Observations that were passed over because too many waited."""
        self.failures: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        """What became of events: published, failed or dropped."""
        self.last_observation_ms: int | None = None

    @property
    def evaluations(self) -> dict[str, int]:
        """Observations evaluated by this process, by path: fast or naive."""
        paths = self.together.paths
        return {"fast": paths["fast"], "naive": paths.total() - paths["fast"]}

    @property
    def fidelity(self) -> float | None:
        """None, since only a mirror has a fidelity."""
        return None

    def learn(self, x: Features, y: Any, /) -> None:
        """Teach the model an observation, while nobody asks it."""
        assert self._learn is not None  # or `settings.learn` is false
        with self.asking:
            self._learn(x, y)

    def row(self, x: dict[str, Any]) -> dict[str, Any]:
        """Return the features as the model sees them, by its missing policy."""
        policy = self.settings.missing
        read = read_missing(x, "absent" if policy == "skip" else policy)
        return x if read is x else dict(read or {})

    def ask(self, x: dict[str, Any]) -> Any:
        """Return the model's prediction, as its loss reads it."""
        row = self.row(x)
        if not self.settings.learn:
            return self.function(row)
        with self.asking:
            return self.function(row)

    def answer(self, x: dict[str, Any]) -> KeptPrediction:
        """Return the model's prediction, its version, and how much it learnt.

        Version and count are read before the model is asked. If it is taught meanwhile, the prediction counts as an
        earlier one, and is scored as it is.
        """
        version, n_learnt = self.version, self.n_observations + self.n_failed
        return KeptPrediction(self.ask(x), version, n_learnt)

    def take(self, one: Arrived, *, may_explain: bool = True) -> list[Told]:
        """Pass an observation through the model; return the resulting events.

        It is not explained where too many wait. What the model raises, or `AbsurdPredictionError`, is raised: the model
        has not taken it.
        """
        if one.part == "features":
            place = Unsourced(self.version, self.n_observations, one.time_ms)
            return self._told(arrived_incidents(self, one.x, place, one.time_ms, self.n_told), one.time_ms)
        step = Step()
        is_due = (self.n_observations + 1) % self.explain_every == 0
        try:
            y = self._label(one)
            step.take(self, one.x, self.row(one.x), y, explains=is_due and may_explain, kept=one.kept)
        except Exception:
            self.n_failed += 1
            raise
        self.n_observations += 1
        self.n_not_explained += is_due and not may_explain
        if has_missing(one.x):
            self.n_missing += sum(map(is_missing, one.x.values()))
        self.last_observation_ms = one.time_ms
        place = Unsourced(self.version, self.n_observations, one.time_ms)
        self.n_told = 0
        events = events_after(self, one.x, y, step, place, one.time_ms, is_new=one.part == "whole")
        return self._told(events, one.time_ms)

    def _told(self, events: Sequence[Event], time_ms: int) -> list[Told]:
        place, first = Unsourced(self.version, self.n_observations, time_ms), self.n_told
        self.n_told += len(events)
        return [Told(event, place, time_ms, n) for n, event in enumerate(events, start=first)]

    def _label(self, one: Arrived) -> Any:
        """Return an observation's label, or else the model's own prediction."""
        mode = self.settings.mode
        if mode == "labelled":
            return one.y
        return None if mode == "anomaly" else label_of(self.ask(one.x))

    def replace(self, model: Any, version: str, time_ms: int) -> list[Told]:
        """Let a new version take over; return the events that say so.

        Both are compared on the observations that come next. Importances, losses and watches begin afresh; what is
        stored to draw replacements from, the counts and what waits stay. ExplainerError: the new version cannot be
        explained as it is set, or is to learn and cannot. All is as it was.
        """
        settings, model_id, place = self.settings, self.model_id, Unsourced(version, self.n_observations, time_ms)
        loss = resolve_loss(model, settings.scored_loss)
        function = model_function(model, loss.output)
        learn = learn_function(model) if settings.learn else None
        watch, quality = new_loss_watch(model_id, settings, model), new_quality(settings, model)
        explainers = {
            name: explainer_of_version(model_id, settings, name, one, model) for name, one in self.explainers.items()
        }
        events: list[Event] = [*ended_incidents(self, place)]
        with self.asking:
            self.model, self.version, self.loss, self.function = model, version, loss, function
            self._learn, self.loss_watch, self.quality, self.explainers = learn, watch, quality, explainers
        self.together = Explainers(model, explainers, loss.output, settings.missing)
        self._begin_figures()
        self.shifts = new_shift_watches(settings)
        told, why = begin_comparison(self.change, model, version, explain=True)
        for one in told:
            count_version(self, one)
        events = in_mode([*events, *version_incidents(self, place, len(events))], settings.mode)
        if why is not None:
            self.counts.versions["unexplained"] += 1
            if self.change is not None and self.change.model is not model:
                self.change = new_change_explainer(model_id, settings, model, version)
        for publication in self.publications.values():
            publication.begin_version(self.n_observations + 1)
        return [Told(event, place, time_ms, n) for n, event in enumerate(events)]

    def _begin_figures(self) -> None:
        """Begin the means of the losses and of the predictions."""
        alpha = self.settings.alpha
        self.model_loss, self.baseline_loss = SmoothedMean(alpha), SmoothedMean(alpha)
        self.marginal = SmoothedPrediction(alpha)
        self.mismatch = Mismatch(alpha)
        self.present_loss = None if self.late is None else SmoothedMean(alpha)

    def count_failure(self, reason: str) -> None:
        """Count an observation or a prediction that was of no use."""
        with self.joining:
            self.failures[reason] += 1

    def count_event(self, outcome: str) -> None:
        """Count an event by its outcome."""
        with self.joining:
            self.events[outcome] += 1

    def begin_joining(self) -> Joiner:
        """Return the joiner of predictions and labels, made if needed."""
        if self.late is None:
            self.late, self.present_loss = Late.of(self.join), SmoothedMean(self.settings.alpha)
        assert self.late is not None
        assert self.late.labels is not None
        return self.late.labels

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from, with the bytes of a learning model.

        The caller holds `lock`. What waits is read last, in a moment, so that answers are given meanwhile.
        """
        known = {
            "model": dump_model(self.model) if self.settings.learn else None,
            "version": self.version,
            **{name: {key: one.snapshot() for key, one in getattr(self, name).items()} for name in _BY_EXPLAINER},
            **{name: None if (one := getattr(self, name)) is None else one.snapshot() for name in _PARTS},
        }
        state = attributes(self, _STATE)
        with self.joining:
            late = None if self.late is None else self.late.snapshot()
            return {**known, "late": late, "state": state | attributes(self, _JOINING), "inbox": list(self.inbox)}

    def restored(self, snapshot: dict[str, Any]) -> MonitoredModel:
        """Return the model restored from `snapshot`; this object is unchanged.

        SnapshotError: the snapshot is of another version, of other explainers or of other parameters.
        """
        if snapshot["version"] != self.version:
            raise SnapshotError(
                f"model {self.model_id}: the snapshot is of version {snapshot['version']!r}, not of {self.version!r}: "
                "begin afresh with a new version, or add the model with the snapshot's"
            )
        if (snapshot["model"] is None) == self.settings.learn:
            raise SnapshotError(f"model {self.model_id}: the snapshot is of one with learn={not self.settings.learn}")
        model = self.model if snapshot["model"] is None else load_model(snapshot["model"])
        new = MonitoredModel(
            self.model_id,
            model,
            self.settings,
            version=self.version,
            explain_every=self.explain_every,
            join=self.join,
        )
        new._load(snapshot)
        return new

    def _check_parameters(self, name: str, mine: Any, its: dict[str, Any]) -> None:
        # Of another format there may be no parameters: `restore` says so.
        if said := differing(mine.parameters, its.get("parameters", mine.parameters)):
            raise SnapshotError(
                f"model {self.model_id}: the snapshot is of `{name}` with other settings ({said}): add the model "
                "with the settings that it had, or begin without the snapshot"
            )

    def _load(self, snapshot: dict[str, Any]) -> None:
        parts = {"change": "change", "watch_loss": "loss_watch", "quality": "quality"}
        others = [name for name, of in parts.items() if (getattr(self, of) is None) != (snapshot[of] is None)]
        if self.explainers.keys() != snapshot["explainers"].keys():
            others.insert(0, "explainers")
        if others:
            raise SnapshotError(f"model {self.model_id}: the snapshot is of a model with another `{others[0]}`")
        watch, change = self.loss_watch, self.change
        for name, explainer in self.explainers.items():
            self._check_parameters(name, explainer, snapshot["explainers"][name])
        if change is not None:
            self._check_parameters("change", change, snapshot["change"])
        if watch is not None:
            self._check_parameters("watch_loss", watch, snapshot["loss_watch"])
        for name in _BY_EXPLAINER:
            for key, one in getattr(self, name).items():
                one.restore(snapshot[name][key])
        if watch is not None:
            watch.restore(snapshot["loss_watch"])
        if change is not None:
            change.restore(snapshot["change"])
        if self.incident_watch is not None:
            self.incident_watch = IncidentWatch.from_snapshot(snapshot["incident_watch"])
        if self.quality is not None:
            self.quality = Quality.from_snapshot(snapshot["quality"])
        if snapshot["late"] is not None:
            self.begin_joining().restore(snapshot["late"]["labels"])
        set_attributes(self, snapshot["state"])
        self.inbox = deque(Arrived(*one) for one in snapshot["inbox"])


_BY_EXPLAINER = ("explainers", "publications", "shifts")
_PARTS = ("loss_watch", "change", "incident_watch", "quality")
_STATE = (
    *("n_observations", "n_failed", "n_missing", "n_not_explained", "n_told", "last_observation_ms"),
    *("model_loss", "baseline_loss", "marginal", "counts"),
)
_JOINING = ("present_loss", "failures", "events")
"""What is read and changed while `joining` is held."""

register(SmoothedPrediction)


def reason_of(error: Exception) -> str:
    """Return why an observation is not taken."""
    return next((reason for kind, reason in REASONS.items() if isinstance(error, kind)), MODEL_FAILED)
