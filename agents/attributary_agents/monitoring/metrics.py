"""Metric catalogue, and the Collector that reads live state.

It does so at each scrape.

No metric is kept in a registry: a model that has moved to another worker has no series here from that moment on.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Self

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from attributary_explainers.monitor.events import finite
from attributary_explainers.monitor.families import (
    OTHER,
    Add,
    Buckets,
    Families,
    add_late_labels,
    add_model,
    cumulated,
    n_series,
    new_family,
)
from attributary_explainers.monitor.series_limits import ShownFeatures, ShownModels
from attributary_topics import REASONS

from ..config.settings import Config
from ..kafka.transactions import OUTCOMES as TRANSACTION_OUTCOMES
from ..models.model_state import ModelState
from ..sources.mappers.board import SourcesBoard
from ..state.checkpoints import PartitionCounters
from ..state.taken.origins import OUTCOMES, PASSED_OVER
from ..worker.view import Durations, PartitionView, WorkerView
from .catalogue import CATALOGUE, EXPORTED
from .endpoints import add_endpoints
from .merges import add_merge, n_merged_series
from .registry import add_registry
from .sources import add_sources
from .templates import add_templates
from .trees import add_tree_importance, n_tree_series

__all__ = ["CATALOGUE", "EXPORTED", "OTHER", "AttributaryCollector", "registry"]

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
    """Turns at the view's lock, shared with the observations.

    They pass in between while many models are read.

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
        """Return nothing, so that registering does not scrape.

        The worker is not there yet.
        """
        return []

    def collect(self) -> Iterable[Metric]:
        """Return a reading in which each model is of the same moment.

        While an observation takes over a second, the previous reading is returned.
        """
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
        families = Families({name: what for name, what in CATALOGUE.items() if name not in _WITHOUT_LOCK})
        add, add_histogram = families.add, families.add_histogram

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
        most = self._config.metrics.max_features
        counted = {
            model_id: n_series(state, most) + n_tree_series(state.mdi, most) for model_id, (state, _) in models.items()
        }
        for model_id, merge in merges.items():
            counted[model_id] = n_merged_series(merge, most)
        of_template = {model_id: t for model_id in counted if (t := self._config.finder.template_of(model_id))}
        shown = self._models.choose(counted, of_template)
        view.shown = self._models.remembered
        for model_id in sorted(counted.keys() & shown):
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
        without = ((counted.keys() - shown) | resting) & self._config.models.keys()
        add("series_dropped_models", (), float(len(without)))
        add_templates(self._config, view, add)
        add_endpoints(view.endpoints, counted.keys() - shown, self._config.metrics.max_models, add, add_histogram)
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
        yield from families

    def _model(self, state: ModelState, owned: PartitionView, add: Add) -> None:
        model = (state.model_id,)
        add_model(state, self._features, add)
        add_tree_importance(state.model_id, state.mdi, self._features, add)
        add("explain_share_ratio", model, owned.explain_shares.get(state.model_id))
        add("explain_budget_ratio", model, state.config.explain.budget)
        add("model_state_bytes", model, _maybe(owned.state_bytes.get(state.model_id)))
        if state.config.mode == "mirror":
            add("model_fidelity_ratio", model, finite(state.fidelity))
            add("model_fidelity_limit_ratio", model, state.config.fidelity)


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
    return new_family(name, CATALOGUE)


def _histogram(durations: Durations) -> tuple[Buckets, float]:
    return cumulated(durations.bounds, durations.counts), durations.sum


def _maybe(value: int | None) -> float | None:
    return None if value is None else float(value)


def registry(config: Config, view: WorkerView, board: SourcesBoard | None = None) -> CollectorRegistry:
    """Return a new registry of our metrics and the process's metrics."""
    fresh = CollectorRegistry()
    fresh.register(AttributaryCollector(config, view, board))
    ProcessCollector(registry=fresh)
    PlatformCollector(registry=fresh)
    GCCollector(registry=fresh)
    return fresh
