"""The catalogue of metrics: names, help texts and labels."""

from __future__ import annotations

from .endpoints import ENDPOINT_METRICS
from .sources import SOURCE_METRICS

_FEATURE = ("model_id", "explainer", "feature")
_EXPLAINER = ("model_id", "explainer")
_MODEL = ("model_id",)
_METRIC = ("model_id", "metric")
_PARTITION = ("topic", "partition")
_TEMPLATE = ("template",)
_WORKER = ("worker",)

CATALOGUE: dict[str, tuple[str, tuple[str, ...]]] = {
    "feature_importance": ("Importance of the feature, in the loss_unit of attributary_model_info", _FEATURE),
    "feature_importance_share_ratio": ("Part of the sum of importances, negatives counted as 0", _FEATURE),
    "feature_importance_half_width": (
        "Half the width of the 95 % interval of the importance, in the same unit",
        _FEATURE,
    ),
    "feature_importance_doubt": ("Least error of observational importance, where draws miss dependence", _FEATURE),
    "importance_ndcg_ratio": ("NDCG of the ranking against the reference; 1 is unchanged", _EXPLAINER),
    "importance_shift_ratio": ("Share of importance that has moved since the reference", _EXPLAINER),
    "importance_locality_ratio": (
        "Largest share by which an importance may be off because stored observations are near in time",
        _EXPLAINER,
    ),
    "explainer_observations": ("Observations that the importance is made of", _EXPLAINER),
    "explainer_shards": ("Of a sharded model: shards whose estimates the importance is made of", _EXPLAINER),
    "explainer_skipped_total": ("Observations that were not explained", (*_EXPLAINER, "reason")),
    "explain_every_observations": ("One in so many observations is explained now; 1 is all", _MODEL),
    "explain_share_ratio": ("Share of the time that explaining took, when last measured", _MODEL),
    "explain_budget_ratio": ("Share of the time that explaining may take, where a budget is configured", _MODEL),
    "model_loss": ("Smoothed loss of the model before it learns each observation, in the same unit", _MODEL),
    "model_baseline_loss": ("The same of the smoothed mean prediction, which knows no feature", _MODEL),
    "model_quality": ("The metric of the model's predictions before it learns each observation, smoothed", _METRIC),
    "model_quality_reference": ("The same over the reference, 2 / alpha observations of the model's version", _METRIC),
    "model_discrepancy": (
        "Distance between reference model and model over the last window, in spreads of the targets",
        _MODEL,
    ),
    "model_discrepancy_threshold": ("Discrepancy above which the model counts as another one", _MODEL),
    "model_discrepancy_observations": ("Observations in the discrepancy", _MODEL),
    "model_info": (
        "The model's version, its loss with unit and largest value (+Inf: none) and its drift detector; always 1",
        (*_MODEL, "version", "loss", "loss_unit", "loss_largest", "detector"),
    ),
    "model_state_bytes": ("Size of the stored state", _MODEL),
    "model_observations_total": ("Observations predicted, explained and learnt", _MODEL),
    "model_missing_values_total": ("Values of features that were missing in these observations", _MODEL),
    "model_other_categories_total": ("Categories beyond max_categories, which the model sees as __other__", _MODEL),
    "model_evaluations_total": ("Observations evaluated, by path", (*_MODEL, "path")),
    "model_alarms_total": ("Alarms that were published: the model may have changed", (*_MODEL, "route")),
    "model_examining": ("1 while an alarm is examined", _MODEL),
    "model_changes_total": ("Changes explained", (*_MODEL, "route", "verdict")),
    "model_alarms_not_confirmed_total": ("Alarms that were nothing worth telling", (*_MODEL, "route")),
    "model_pattern": ("1 while a trend or a recurring change that was told goes on", (*_MODEL, "pattern")),
    "importance_shifted": ("1 from an importance shift to its release", _FEATURE),
    "importance_shifts_total": ("Importance shifts told", _EXPLAINER),
    "importance_least_shift": ("Least change of the importance that can be told, in the unit of the loss", _FEATURE),
    "model_excess_loss": (
        "By how much the loss is above what was to be expected of the predictions, less what that was in the reference",
        _MODEL,
    ),
    "model_excess_loss_low": ("Lower bound of its 95 % interval", _MODEL),
    "model_excess_loss_high": ("Upper bound of its 95 % interval", _MODEL),
    "loss_reference_observations": (
        "Observations that the loss is compared with; 0 until shifts of it can be told",
        _MODEL,
    ),
    "loss_shift_open": ("1 from a shift of the loss of this kind to its release", (*_MODEL, "kind")),
    "loss_shifts_total": ("Shifts of the loss told", (*_MODEL, "kind")),
    "explainer_stale": (
        "1 while the last event holds figures that had not been updated since the one before",
        _EXPLAINER,
    ),
    "model_versions_total": ("New versions of the model, by what became of them", (*_MODEL, "outcome")),
    "model_recoveries_total": ("Times that the model went back to its last good state", _MODEL),
    "model_observations_forgotten_total": ("Observations that it had learnt and forgot by that", _MODEL),
    "model_last_change_timestamp_seconds": (
        "Time of the observation of the last model change, which matured is not",
        _MODEL,
    ),
    "last_observation_timestamp_seconds": ("Time of the last observation", _MODEL),
    "model_present_loss": ("Smoothed loss of the model as it is now, where labels come later", _MODEL),
    "model_fidelity_ratio": ("Of a mirror: share of the logged predictions' loss that it explains", _MODEL),
    "model_fidelity_limit_ratio": ("Of a mirror: fidelity below which it is doubted", _MODEL),
    "model_prediction_mismatch_ratio": (
        "Share of the logged predictions that are not the model's own, smoothed: another model is in service",
        _MODEL,
    ),
    "observations_observed_total": ("Observations taken to wait for their labels", _MODEL),
    "observations_waiting": ("Observations that wait for their label", _MODEL),
    "observations_waiting_limit": ("So many may wait: labels.<name>.max_waiting", _MODEL),
    "observations_waiting_oldest_seconds": ("Age of the observation that waits longest, by the clock", _MODEL),
    "observations_expired_total": (
        "Observations whose label did not come in time (ttl), that gave way (cap), or requests without response (pair)",
        (*_MODEL, "reason"),
    ),
    "labels_total": ("Labels that came by themselves, by what became of them", (*_MODEL, "outcome")),
    "labels_early": ("Labels that wait for their observation", _MODEL),
    "label_delay_seconds": ("Time of the stream from an observation to its label", _MODEL),
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

OF_MACHINE: dict[str, tuple[str, tuple[str, ...]]] = {
    "worker_up": ("1 where this worker of `attributary run --workers` has answered this scrape, 0 where not", _WORKER),
    "worker_restarts_total": ("Times that this worker has ended by itself and was started again", _WORKER),
}
"""The same of what one address exports beside it that serves several workers (`supervise/web.py`).

There, whatever is of no model and of no partition has the label `worker`, too.
"""

EXPORTED = CATALOGUE | OF_MACHINE
"""All that rules and dashboards can ask for."""

HISTOGRAMS = frozenset({"stage_duration_seconds", "label_delay_seconds", "endpoint_duration_seconds"})
"""Those that are histograms."""
