"""Catalogue of the metrics, and the Collector that reads live state.

It reads at each scrape. No metric is kept in a registry: a model that has moved to another worker has no series here
from that moment on. Sums over the models of a template are of the worker, and have no model id: which worker shows a
model is decided for each id, and its series count once.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Self

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from attributary_explainers.monitor.catalogue import OF_MODELS, OF_MONITOR
from attributary_explainers.monitor.events import finite
from attributary_explainers.monitor.families import (
    Add,
    AddHistogram,
    Buckets,
    Families,
    add_importances,
    add_late_labels,
    add_model,
    cumulated,
    n_series,
    new_family,
    shown_largest,
)
from attributary_explainers.monitor.series_limits import ShownFeatures, ShownModels
from attributary_topics import REASONS, ShardImportance

from ..config.settings import Config
from ..kafka.transactions import OUTCOMES as TRANSACTION_OUTCOMES
from ..models.impurity import TreeImportance
from ..models.model_state import ModelState
from ..sources.mappers.board import OUTCOMES as SOURCE_OUTCOMES
from ..sources.mappers.board import SourcesBoard
from ..state.checkpoints import PartitionCounters
from ..state.deduplication import OUTCOMES, PASSED_OVER
from ..worker.endpoints import BUCKETS_S, EndpointsView
from ..worker.endpoints import OUTCOMES as ENDPOINT_OUTCOMES
from ..worker.shards import MergedModel
from ..worker.view import Durations, PartitionView, WorkerView

_MODEL = ("model_id",)

ENDPOINT_METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "endpoint_requests_total": (
        "Requests to the endpoint of a served model since the worker began, by what became of them",
        ("model_id", "outcome"),
    ),
    "endpoint_duration_seconds": ("Time of a request to the endpoint of a served model, until its answer", _MODEL),
    "endpoint_waiting_seconds": ("How long observations have waited for answers of the endpoint; 0: none wait", _MODEL),
}
"""Part of the catalogue: name without the prefix to help text and labels."""


def add_endpoints(
    view: EndpointsView, hidden: Collection[str], at_most: int, add: Add, add_histogram: AddHistogram
) -> None:
    """Add the series of models for which an endpoint was asked.

    Also where the first observation still waits for the answer.

    Parameters
    ----------
    hidden
        Ids of the models that have no series, because there are too many.
    """
    for model_id in sorted(view.counts.keys() - hidden)[:at_most]:
        counts = view.of(model_id)
        for outcome in ENDPOINT_OUTCOMES:
            add("endpoint_requests_total", (model_id, outcome), float(counts.outcomes[outcome]))
        add_histogram("endpoint_duration_seconds", (model_id,), cumulated(BUCKETS_S, counts.times), counts.sum_s)
        add("endpoint_waiting_seconds", (model_id,), view.waiting_s(model_id))


REGISTRY_METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "mlflow_up": (
        "1 while MLflow's registry answers this worker, 0 while it does not; absent where another worker asks it",
        (),
    ),
    "mlflow_last_answer_timestamp_seconds": ("Time of its last answer to this worker", ()),
    "mlflow_version_missing": ("1 while it has no such model, alias or version as the configuration names", _MODEL),
    "mlflow_deployments_total": ("Versions that this worker has deployed because an alias named them", _MODEL),
    "model_version_retried": (
        "1 while a version of the model cannot be had or built, for a cause that may pass, and is tried again",
        _MODEL,
    ),
    "model_version_awaited": ("1 while observations wait for the model's first version", _MODEL),
}
"""Part of the catalogue: name without the prefix to help text and labels."""


def add_registry(view: WorkerView, add: Add) -> None:
    """Add the series of the registry, as this process knows it."""
    board = view.registry
    if board.is_up is not None:
        add("mlflow_up", (), float(board.is_up))
        add("mlflow_last_answer_timestamp_seconds", (), board.answered_at)
    for model_id in board.missing.copy():
        add("mlflow_version_missing", (model_id,), 1.0)
    for model_id in board.retried.copy():
        add("model_version_retried", (model_id,), 1.0)
    for model_id, n in board.n_sent.copy().items():
        add("mlflow_deployments_total", (model_id,), float(n))
    for model_id in {one for owned in view.partitions.values() for one in owned.partition.models.awaited.copy()}:
        add("model_version_awaited", (model_id,), 1.0)


_SOURCE = ("source",)

SOURCE_METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "source_records_total": (
        "Records of the source since its mapping began here, by what became of them",
        ("source", "outcome"),
    ),
    "source_lag_records": ("Offsets of the source's topic that are not mapped yet", ("source", "topic", "partition")),
    "source_time_lag_seconds": ("Age of the record mapped last, by its own time; 0 where all is mapped", _SOURCE),
    "source_waiting_registry": ("1 while a schema cannot be fetched and the source waits for it", _SOURCE),
}
"""Part of the catalogue: name without the prefix to help text and labels."""


def add_sources(board: SourcesBoard, add: Add) -> None:
    """Add the series of the sources that are mapped here."""
    for name, section in board.sections.copy().items():
        for outcome in SOURCE_OUTCOMES:
            add("source_records_total", (name, outcome), float(section.counts[outcome]))
        for (topic, partition), lag in section.lags.copy().items():
            add("source_lag_records", (name, topic, str(partition)), float(lag))
        add("source_time_lag_seconds", (name,), section.time_lag_s)
        add("source_waiting_registry", (name,), float(section.is_waiting()))


def add_templates(config: Config, view: WorkerView, add: Add) -> None:
    """Add the series of each template of the configuration."""
    known = [owned.partition.models.known for owned in view.partitions.values()]
    for template in config.finder.templates:
        labels = (template,)
        add("models_loaded", labels, float(sum(one.n_loaded(template) for one in known)))
        add("models_known", labels, float(sum(one.n_known(template) for one in known)))
        add("model_loads_total", labels, float(view.n_loads[template]))
        add("model_evictions_total", labels, float(view.n_evictions[template]))
        add("template_observations_total", labels, float(view.n_of_templates[template]))


def n_tree_series(mdi: TreeImportance | None, max_features: int) -> int:
    """Return the greatest number of feature series of an importance.

    Two for each feature, and the two sums of the others.
    """
    return 0 if mdi is None else 2 * min(len(mdi.importance), max_features) + 2


def add_tree_importance(model_id: str, mdi: TreeImportance | None, features: ShownFeatures, add: Add) -> None:
    """Add the series of mean decrease in impurity, as last published.

    It has no intervals.
    """
    if mdi is None:
        return
    labels = (model_id, mdi.name)
    add_importances(labels, mdi, features, add)
    moved, gain = mdi.publication.movement(mdi.importance)
    add("importance_shift_ratio", labels, moved)
    add("importance_ndcg_ratio", labels, gain)
    add("explainer_observations", labels, float(mdi.n_observations))


def n_merged_series(merge: MergedModel, max_features: int) -> int:
    """Return the greatest number of feature series of a merge.

    Three for each feature, and the two sums of the others.
    """
    return sum(3 * min(len(one.merged.importance), max_features) + 2 for one in merge.explainers.values())


def add_merge(merge: MergedModel, features: ShownFeatures, add: Add) -> None:
    """Add the series of a sharded model."""
    latest: ShardImportance | None = None
    losses: tuple[float | None, float | None] = None, None
    for name, one in merge.explainers.items():
        labels, said = (merge.model_id, name), one.shards
        add_importances(labels, one.merged, features, add)
        add("explainer_observations", labels, float(sum(shard.n_observations for shard in said.values())))
        add("explainer_shards", labels, float(len(said)))
        if (last := one.latest) is not None and (latest is None or last.timestamp_ms > latest.timestamp_ms):
            latest, losses = last, one.losses
    if latest is None:
        return
    model = (merge.model_id,)
    add("model_loss", model, losses[0])
    add("model_baseline_loss", model, losses[1])
    add("model_observations_total", model, float(merge.n_observations))
    add("last_observation_timestamp_seconds", model, latest.timestamp_ms / 1000)
    loss = latest.loss, latest.loss_unit, shown_largest(latest.loss_largest)
    add("model_info", (*model, latest.model_version, *loss, "none"), 1.0)


_EXPLAINER = ("model_id", "explainer")
_PARTITION = ("topic", "partition")
_TEMPLATE = ("template",)

CATALOGUE: dict[str, tuple[str, tuple[str, ...]]] = {
    **OF_MODELS,
    "explainer_shards": ("Of a sharded model: shards whose estimates the importance is made of", _EXPLAINER),
    "model_state_bytes": ("Size of the stored state", _MODEL),
    "explain_share_ratio": ("Share of the time that explaining took, when last measured", _MODEL),
    "explain_budget_ratio": ("Share of the time that explaining may take, where a budget is configured", _MODEL),
    "model_fidelity_ratio": ("Of a mirror: share of the logged predictions' loss that it explains", _MODEL),
    "model_fidelity_limit_ratio": ("Of a mirror: fidelity below which it is doubted", _MODEL),
    "records_consumed_total": ("Records read from the topic", _PARTITION),
    "records_unavailable_total": ("Offsets with no record: retention, compaction", _PARTITION),
    "transaction_offsets_total": ("Offsets of markers of transactions and of aborted records", _PARTITION),
    "origin_records_total": ("Records that may have come before, by what became of them", (*_PARTITION, "outcome")),
    "consumer_lag_records": ("Records in the topic that are not yet handled", _PARTITION),
    "transaction_open_seconds": (
        "How long an open transaction has held up the partition at the same offset; 0: none does",
        _PARTITION,
    ),
    "transactions_total": ("Transactions of this worker, by how they ended, with delivery: exactly_once", ("outcome",)),
    "dead_letters_total": ("Records that could not be used", (*_PARTITION, "reason")),
    "stage_duration_seconds": ("Duration of a stage", ("stage",)),
    "last_checkpoint_timestamp_seconds": ("Time of the last checkpoint of any partition", ()),
    "checkpoint_pending_seconds": ("Age of the oldest record that is handled and not yet stored; 0: none", _PARTITION),
    "models_restoring": ("Models that are about to be restored, which have no series until they are", ()),
    "models_resting": ("Models without series that stay as they are stored until they are asked for", ()),
    "models_loaded": ("Models of the template that are in memory", _TEMPLATE),
    "models_known": ("Models of the template that there are, in memory or stored, of this worker", _TEMPLATE),
    "model_loads_total": ("Times that a stored model of the template was loaded", _TEMPLATE),
    "model_evictions_total": ("Times that a model of the template was idle, and left the memory", _TEMPLATE),
    "template_observations_total": ("Observations that all models of the template have taken", _TEMPLATE),
    "model_template": ("Which template a model with series is of; always 1", (*_MODEL, "template")),
    "models_refused": ("Models whose stored state is damaged: their observations become dead letters", ()),
    "state_records_foreign_total": ("Records in the state's changelog that no worker has written, or of no model", ()),
    "worker_step_seconds": ("How long the present step has lasted: observation, checkpoint; 0 between steps", ()),
    "worker_step_limit_seconds": ("Duration beyond which a step is a stall: watchdog.warn_after_s", ()),
    "worker_stalls_total": ("Steps and pauses of the event loop beyond watchdog.warn_after_s", ()),
    **SOURCE_METRICS,
    **REGISTRY_METRICS,
    **ENDPOINT_METRICS,
    "broker_up": (
        "1 while brokers answer, 0 while requests fail and none has answered; absent until one is asked",
        (),
    ),
    "broker_last_answer_timestamp_seconds": ("Time of the last answer of any broker", ()),
    "write_unacknowledged_seconds": (
        "Age of the oldest write or commit of offsets that brokers have not acknowledged; 0: none waits",
        (),
    ),
    "series_dropped_models": ("Models without series because of metrics.max_models or metrics.max_series", ()),
}
"""Metric name without the prefix `attributary_` to help text and labels."""

EXPORTED = CATALOGUE | OF_MONITOR
"""All that rules and dashboards can ask for."""


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
