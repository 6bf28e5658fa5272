"""The catalogue of metrics: names, help texts and labels."""

from __future__ import annotations

from attributary_explainers.monitor.catalogue import OF_MODELS, OF_MONITOR

from .endpoints import ENDPOINT_METRICS
from .registry import REGISTRY_METRICS
from .sources import SOURCE_METRICS

_EXPLAINER = ("model_id", "explainer")
_MODEL = ("model_id",)
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
