"""The metric catalogue, and the Collector that reads it off the live state at each scrape.

No metric is kept in a registry: a model that has moved to another worker has no series here from that moment on.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Self

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from attributary_explainers import SKIP_REASONS
from attributary_topics import REASONS

from ..config.settings import Config
from ..kafka.transactions import OUTCOMES as TRANSACTION_OUTCOMES
from ..models.counts import ALARM_ROUTES, CHANGES, LOSS_SHIFTS, VERSION_OUTCOMES
from ..models.model_state import ModelState
from ..models.quality import quality_figures
from ..models.telling.changes import exemplar
from ..models.telling.events import finite
from ..sources.mappers.board import SourcesBoard
from ..state.checkpoints import PartitionCounters
from ..state.taken.origins import OUTCOMES, PASSED_OVER
from ..worker.view import Durations, PartitionView, WorkerView
from .catalogue import CATALOGUE, EXPORTED, HISTOGRAMS, OF_MACHINE
from .importances import OTHER, Add, add_importances, add_merge, n_merged_series, shown_largest
from .late_labels import Buckets, add_late_labels, cumulated
from .registry import add_registry
from .series_limits import ShownFeatures, ShownModels
from .sources import add_sources
from .templates import add_templates

__all__ = ["CATALOGUE", "EXPORTED", "OF_MACHINE", "OTHER", "AttributaryCollector"]

_PATTERNS = ("trend", "recurring")


_WITHOUT_LOCK = (
    "worker_step_seconds",
    "worker_step_limit_seconds",
    "worker_stalls_total",
    "broker_up",
    "broker_last_answer_timestamp_seconds",
    "write_unacknowledged_seconds",
)

_PATIENCE_S = 1.0


class _BusyError(Exception):
    """A step has held the lock for longer than a scrape waits."""


class _Turns:
    """Takes turns with the observations at the view's lock, so that they pass in between while many models are read.

    Raises _BusyError, also from the block's beginning, when the lock is not to be had within a second.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._is_held = False

    def yield_lock(self) -> None:
        """Let whoever waits have the lock first."""
        self._lock.release()
        self._is_held = False
        time.sleep(0)  # the interpreter's own lock too: otherwise this thread has ours again before the other wakes
        self._take()

    def __enter__(self) -> Self:
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_held:
            self._lock.release()

    def _take(self) -> None:
        self._is_held = self._lock.acquire(timeout=_PATIENCE_S)
        if not self._is_held:
            raise _BusyError


class AttributaryCollector(Collector):
    """Reads every metric off the worker's view."""

    def __init__(self, config: Config, view: WorkerView, board: SourcesBoard | None = None) -> None:
        self._config = config
        self._board = board
        self._view = view
        self._last: list[Metric] = []
        self._features = ShownFeatures(config.metrics.max_features)
        self._models = ShownModels(config.metrics.max_models, config.metrics.max_series)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not scrape a worker that is not there yet."""
        return []

    def collect(self) -> Iterable[Metric]:
        """A reading in which each model is of one moment; the previous one while an observation takes over a second."""
        with contextlib.suppress(_BusyError), _Turns(self._view.lock) as turns:
            partitions: list[tuple[int, int]] | None = None
            # Again, where a partition has come or gone between two models: it takes its series along.
            while partitions != (partitions := [(n, id(owned)) for n, owned in self._view.partitions.items()]):
                read = list(self._read(turns))
            self._last = read
        # Without the lock: they are there for the time when a step holds it.
        return [*self._last, *self._activity()]

    def _activity(self) -> Iterator[Metric]:
        activity, brokers = self._view.activity, self._view.brokers
        values = {
            "worker_step_seconds": activity.step_s,
            "worker_step_limit_seconds": self._config.watchdog.warn_after_s,
            "worker_stalls_total": float(activity.n_stalls),
            "broker_up": float(brokers.away_s is None) if brokers.is_known else None,
            "broker_last_answer_timestamp_seconds": brokers.last_answer_s,
            "write_unacknowledged_seconds": brokers.writes.age_s,
        }
        for name, value in values.items():
            family = _family(name)
            if value is not None:
                family.add_metric((), value)  # type: ignore[attr-defined]
            yield family

    def _read(self, turns: _Turns) -> Iterator[Metric]:
        families = {name: _family(name) for name in CATALOGUE if name not in _WITHOUT_LOCK}

        def add(name: str, labels: tuple[str, ...], value: float | None, last: Exemplar | None = None) -> None:
            if value is not None:
                more = {} if last is None else {"exemplar": last}  # only counters take one
                families[name].add_metric(labels, value, **more)  # type: ignore[attr-defined]

        def add_histogram(name: str, labels: tuple[str, ...], buckets: Buckets, total: float) -> None:
            families[name].add_metric(labels, buckets, total)  # type: ignore[attr-defined]

        view = self._view
        sharded = self._config.sharded
        # A shard has no series of its model: those are of the merge, by its owner alone.
        models = {
            model_id: (state, owned)
            for owned in view.partitions.values()
            for model_id, state in owned.partition.models.items()
            if model_id not in sharded
        }
        merged_by = [owned.merges.models for owned in view.partitions.values() if owned.merges is not None]
        merges = {model_id: merge for one in merged_by for model_id, merge in one.items()}
        self._features.keep_only(models.keys() | merges.keys())
        n_series = {model_id: self._n_series(state) for model_id, (state, _) in models.items()}
        for model_id, merge in merges.items():
            n_series[model_id] = n_merged_series(merge, self._config.metrics.max_features)
        of_template = {model_id: t for model_id in n_series if (t := self._config.finder.template_of(model_id))}
        shown = self._models.choose(n_series, of_template)
        view.shown = self._models.remembered
        for model_id in sorted(n_series.keys() & shown):
            if model_id in merges:
                add_merge(merges[model_id], self._features, add)
            else:
                self._model(*models[model_id], add)
                add_late_labels(models[model_id][0], add, add_histogram, time.time())
            if model_id in of_template:
                add("model_template", (model_id, of_template[model_id]), 1.0)
            turns.yield_lock()
        owned_by = [owned.partition.models for owned in view.partitions.values()]
        resting = {model_id for one in owned_by for model_id in one.resting} - models.keys() - sharded
        # That most models of a template have no series is what they are for: `models_known` counts them.
        without = ((n_series.keys() - shown) | resting) & self._config.models.keys()
        add("series_dropped_models", (), float(len(without)))
        add_templates(self._config, view, add)
        add("models_restoring", (), float(sum(len(one.waiting) for one in owned_by)))
        add("models_resting", (), float(len(resting)))
        add("models_refused", (), float(sum(len(one.refused) for one in owned_by)))
        add("state_records_foreign_total", (), float(view.records.n_foreign))
        topics = self._config.kafka.topics
        for number, owned in view.partitions.items():
            place = (topics.observations, str(number))
            _add_records(place, owned.partition.counters, owned.lag.records, add)
            add("checkpoint_pending_seconds", place, owned.pending_s)
            add("transaction_open_seconds", place, owned.transaction_s)
        if view.transactions is not None:
            for outcome in TRANSACTION_OUTCOMES:
                add("transactions_total", (outcome,), float(view.transactions[outcome]))
        for number, owned in view.partitions.items():
            if owned.control is not None:
                place = (topics.models, str(number))
                _add_records(place, owned.control.counters, owned.control_lag.records, add)
                add("transaction_open_seconds", place, owned.control_transaction_s)
            if owned.merges is not None:
                _add_records((owned.merges.topic, str(number)), owned.merges.counters, None, add)
        add_registry(self._view, add)
        if self._board is not None:
            add_sources(self._board, add)
        add("last_checkpoint_timestamp_seconds", (), view.last_checkpoint_s)
        for stage, durations in (("observation", view.observation_times), ("checkpoint", view.checkpoint_times)):
            add_histogram("stage_duration_seconds", (stage,), *_histogram(durations))
        yield from families.values()

    def _n_series(self, state: ModelState) -> int:
        """Series of features at most: five or, with a doubt, six for each, and the two sums of the others."""
        limit = self._config.metrics.max_features
        of_explainers = state.explainers.values()
        return sum((5 + bool(e.observational_doubt)) * min(len(e.importance), limit) + 2 for e in of_explainers)

    def _model(self, state: ModelState, owned: PartitionView, add: Add) -> None:
        model = (state.model_id,)
        for name, explainer in state.explainers.items():
            labels = (state.model_id, name)
            doubt = explainer.observational_doubt
            shown = add_importances(labels, explainer, self._features, add)
            for feature in shown:
                if feature in doubt:
                    add("feature_importance_doubt", (*labels, str(feature)), finite(doubt[feature]))
            moved, gain = state.publications[name].movement(explainer.importance)
            add("importance_shift_ratio", labels, moved)
            add("importance_ndcg_ratio", labels, gain)
            known = [share for share in explainer.locality.values() if math.isfinite(share)]
            add("importance_locality_ratio", labels, max(known, default=None))
            add("explainer_observations", labels, float(explainer.n_observations))
            _shifts(state, name, shown, add)
            add("explainer_stale", labels, float(state.publications[name].is_stale(explainer)))
            for reason in SKIP_REASONS:
                add("explainer_skipped_total", (*labels, reason), float(explainer.skipped[reason]))
        _quality(state, add)
        add("model_loss", model, finite(state.model_loss.value))
        add("model_baseline_loss", model, finite(state.baseline_loss.value))
        _loss_shifts(state, add)
        add("model_observations_total", model, float(state.n_observations))
        add("model_missing_values_total", model, float(state.n_missing))
        add("model_other_categories_total", model, float(state.n_other_categories))
        for path, n in state.evaluations.items():
            add("model_evaluations_total", (*model, path), float(n))
        add("explain_every_observations", model, float(state.explain_every))
        add("explain_share_ratio", model, owned.explain_shares.get(state.model_id))
        add("explain_budget_ratio", model, state.config.explain.budget)
        add("model_state_bytes", model, _maybe(owned.state_bytes.get(state.model_id)))
        add("last_observation_timestamp_seconds", model, _seconds(state.last_observation_ms))
        change, counts = state.change, state.counts
        detector = change.detector_name or "none" if change else "none"
        loss = state.loss
        largest = shown_largest(loss.largest)
        add("model_info", (*model, state.version, loss.name, loss.unit, largest, detector), 1.0)
        for outcome in VERSION_OUTCOMES:
            add("model_versions_total", (*model, outcome), float(counts.versions[outcome]))
        add("model_recoveries_total", model, float(counts.recoveries["recovered"]))
        add("model_observations_forgotten_total", model, float(counts.recoveries["forgotten"]))
        if change is not None:
            add("model_discrepancy", model, finite(change.discrepancy))
            add("model_discrepancy_threshold", model, change.threshold)
            add("model_discrepancy_observations", model, float(change.n_discrepancy))
            add("model_examining", model, float(bool(state.open_alarms)))
            for pattern in _PATTERNS:
                add("model_pattern", (*model, pattern), float(change.pattern == pattern))
            for route in ALARM_ROUTES:
                add("model_alarms_total", (*model, route), float(counts.alarms[route]))
                add("model_alarms_not_confirmed_total", (*model, route), float(counts.not_confirmed[route]))
            for found in CHANGES:
                add("model_changes_total", (*model, *found), float(counts.changes[found]), exemplar(state, *found))
            add("model_last_change_timestamp_seconds", model, _seconds(state.last_change_ms))


def _quality(state: ModelState, add: Add) -> None:
    """Add the metrics of the model's predictions that are known, beside the same over the reference."""
    for name, figure in quality_figures(state.quality).items():
        add("model_quality", (state.model_id, name), figure.value)
        add("model_quality_reference", (state.model_id, name), figure.reference)


def _shifts(state: ModelState, name: str, shown: Collection[Any], add: Add) -> None:
    """Add what is known of lasting shifts of an explainer's importances, of the features that are shown."""
    labels, watch = (state.model_id, name), state.shifts[name]
    shifted, least = watch.shift.shift, watch.least
    add("importance_shifts_total", labels, float(state.counts.shifts[name]))
    for feature in shown:
        is_shifted = shifted is not None and shifted.feature == feature
        add("importance_shifted", (*labels, str(feature)), float(is_shifted))
        if feature in least:
            add("importance_least_shift", (*labels, str(feature)), finite(least[feature]))
    if shifted is not None and shifted.feature not in shown:
        add("importance_shifted", (*labels, str(shifted.feature)), 1.0)


def _loss_shifts(state: ModelState, add: Add) -> None:
    """Add what is known of lasting shifts of the loss, where the configuration has it watched."""
    model, watch = (state.model_id,), state.loss_watch
    if watch is None:
        return
    monitor, shift = watch.monitor, watch.monitor.shift
    excess = monitor.excess
    if excess is None and shift is not None:  # just told: the observations after it are still few
        excess = shift.excess
    if excess is not None:
        add("model_excess_loss", model, finite(excess.after - excess.before))
        add("model_excess_loss_low", model, finite(excess.low))
        add("model_excess_loss_high", model, finite(excess.high))
    add("loss_reference_observations", model, float(monitor.n_reference if monitor.ready else 0))
    for kind in LOSS_SHIFTS:
        add("loss_shift_open", (*model, kind), float(shift is not None and shift.kind == kind))
        add("loss_shifts_total", (*model, kind), float(state.counts.loss_shifts[kind]))


def _add_records(place: tuple[str, str], counters: PartitionCounters, lag: int | None, add: Add) -> None:
    add("records_consumed_total", place, float(counters.consumed))
    add("records_unavailable_total", place, float(counters.unavailable))
    add("transaction_offsets_total", place, float(counters.transactional))
    for outcome in (*OUTCOMES, PASSED_OVER):
        add("origin_records_total", (*place, outcome), float(counters.origins.counts[outcome]))
    add("origin_records_total", (*place, "replayed_repeat"), float(counters.replayed.n_repeats))
    add("consumer_lag_records", place, _maybe(lag))
    # By partition, though nobody asks for it: a sum over the partitions of a worker falls when one leaves, and
    # rises by all that ever was when one comes.
    for reason in sorted(REASONS.keys() | counters.dead_letters.keys()):
        add("dead_letters_total", (*place, reason), float(counters.dead_letters[reason]))


def _family(name: str) -> Metric:
    text, labels = CATALOGUE[name]
    full = f"attributary_{name}"
    if name.endswith("_total"):
        return CounterMetricFamily(full.removesuffix("_total"), text, labels=labels)
    if name in HISTOGRAMS:
        return HistogramMetricFamily(full, text, labels=labels)
    return GaugeMetricFamily(full, text, labels=labels)


def _histogram(durations: Durations) -> tuple[Buckets, float]:
    return cumulated(durations.bounds, durations.counts), durations.sum


def _maybe(value: int | None) -> float | None:
    return None if value is None else float(value)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
