"""The catalogue of the metrics of a model: names, help texts and labels."""

from __future__ import annotations

_FEATURE = ("model_id", "explainer", "feature")
_EXPLAINER = ("model_id", "explainer")
_MODEL = ("model_id",)
_METRIC = ("model_id", "metric")

OF_MODELS: dict[str, tuple[str, tuple[str, ...]]] = {
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
    "explainer_skipped_total": ("Observations that were not explained", (*_EXPLAINER, "reason")),
    "explain_every_observations": ("One in so many observations is explained now; 1 is all", _MODEL),
    "model_loss": (
        "Smoothed loss of the model before it learns each observation, in the same unit; of a detector its mean score",
        _MODEL,
    ),
    "model_baseline_loss": ("The same of the smoothed mean prediction, which knows no feature", _MODEL),
    "model_quality": ("The metric of the model's predictions before it learns each observation, smoothed", _METRIC),
    "model_quality_reference": ("The same over the reference, 2 / alpha observations of the model's version", _METRIC),
    "model_discrepancy": (
        "Distance between reference model and model over the last window, in spreads of the targets, or of the scores",
        _MODEL,
    ),
    "model_discrepancy_threshold": ("Discrepancy above which the model counts as another one", _MODEL),
    "model_discrepancy_observations": ("Observations in the discrepancy", _MODEL),
    "model_info": (
        "The model's version, its loss with unit and largest value (+Inf: none) and its drift detector; always 1",
        (*_MODEL, "version", "loss", "loss_unit", "loss_largest", "detector"),
    ),
    "model_observations_total": ("Observations predicted, explained and learnt", _MODEL),
    "model_missing_values_total": ("Values of features that were missing in these observations", _MODEL),
    "model_other_categories_total": ("Categories beyond max_categories, which the model sees as __other__", _MODEL),
    "model_evaluations_total": ("Observations evaluated, by path", (*_MODEL, "path")),
    "incident_open": (
        "1 while an incident of the model is open that is confirmed, or suspected and critical",
        (*_MODEL, "what", "severity"),
    ),
    "incident_info": (
        "The id and the words of that incident: the verdict, what to do and when, and the details; always 1",
        (*_MODEL, "id", "headline", "action", "details"),
    ),
    "incident_since_timestamp_seconds": ("Time since which the last of these incidents has been", _MODEL),
    "incidents_total": ("Incidents that were confirmed", (*_MODEL, "what", "severity")),
    "model_pattern": ("1 while a trend or a recurring change that was told goes on", (*_MODEL, "pattern")),
    "importance_shifted": ("1 from an importance shift to its release", _FEATURE),
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
    "model_watch_armed": ("1 where shifts of the loss can be told, 0 while too few labels have come", _MODEL),
    "loss_shift_open": ("1 from a shift of the loss of this kind to its release", (*_MODEL, "kind")),
    "explainer_stale": (
        "1 while the last event holds figures that had not been updated since the one before",
        _EXPLAINER,
    ),
    "model_versions_total": ("New versions of the model, by what became of them", (*_MODEL, "outcome")),
    "model_recoveries_total": ("Times that the model went back to its last good state", _MODEL),
    "model_observations_forgotten_total": ("Observations that it had learnt and forgot by that", _MODEL),
    "last_observation_timestamp_seconds": ("Time of the last observation", _MODEL),
    "model_present_loss": ("Smoothed loss of the model as it is now, where labels come later", _MODEL),
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
}
"""Metric name without the prefix `attributary_` to help text and labels, of what a worker and a monitor both know."""

HISTOGRAMS = frozenset({"endpoint_duration_seconds", "label_delay_seconds", "stage_duration_seconds"})
"""Those that are histograms, of a worker, too."""

OF_MONITOR: dict[str, tuple[str, tuple[str, ...]]] = {
    "monitor_failures_total": ("Observations and predictions that were of no use, by reason", (*_MODEL, "reason")),
    "monitor_waiting_observations": ("Observations that wait to be taken, off the path of requests", _MODEL),
    "monitor_waiting_limit": ("Waiting observations beyond which none is explained until there are fewer", _MODEL),
    "monitor_not_explained_total": ("Observations that were not explained because too many waited", _MODEL),
    "monitor_events_total": ("Events of the model, by what became of them", (*_MODEL, "outcome")),
}
"""The same of what only a service with a `Monitor` exports."""
