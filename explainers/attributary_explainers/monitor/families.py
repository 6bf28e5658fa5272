"""Reads the metrics of a model off its state."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ..incremental.base import SKIP_REASONS
from ..loss_shift.events import Kind
from ..ranking import shares
from .catalogue import HISTOGRAMS
from .events import Measured, finite
from .joiner import BUCKETS_S
from .quality import quality_figures
from .series_limits import ShownFeatures
from .state import VERSION_OUTCOMES, Watched

Catalogue = Mapping[str, tuple[str, tuple[str, ...]]]
"""Metric name without the prefix `attributary_` to help text and labels."""

_PATTERNS = ("trend", "recurring")
OTHER = "__other__"

Buckets = list[tuple[str, float]]
"""Upper bound of each bucket of a histogram, and how many are at or below it."""

AddHistogram = Callable[[str, tuple[str, ...], Buckets, float], None]
"""Adds a histogram: name, values of the labels, buckets, sum."""

LABEL_OUTCOMES = ("joined", "joined_old_version", "orphaned", "duplicate", "changed", "late")


class Add(Protocol):
    """Adds a sample to the metric of a name; None adds nothing."""

    def __call__(  # noqa: D102
        self, name: str, labels: tuple[str, ...], value: float | None, /
    ) -> None: ...


class Families:
    """Metric families of a single reading, each of which takes samples."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._families = {name: new_family(name, catalogue) for name in catalogue}

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._families.values())

    def add(self, name: str, labels: tuple[str, ...], value: float | None) -> None:
        """Add a sample to a metric; None adds nothing."""
        if value is not None:
            self._families[name].add_metric(labels, value)  # type: ignore[attr-defined]

    def add_histogram(self, name: str, labels: tuple[str, ...], buckets: Buckets, total: float) -> None:
        """Add a histogram."""
        self._families[name].add_metric(labels, buckets, total)  # type: ignore[attr-defined]


def new_family(name: str, catalogue: Catalogue) -> Metric:
    """Make the family of a metric, before its first sample."""
    text, labels = catalogue[name]
    full = f"attributary_{name}"
    if name.endswith("_total"):
        return CounterMetricFamily(full.removesuffix("_total"), text, labels=labels)
    if name in HISTOGRAMS:
        return HistogramMetricFamily(full, text, labels=labels)
    return GaugeMetricFamily(full, text, labels=labels)


def add_importances(labels: tuple[str, str], explainer: Measured, features: ShownFeatures, add: Add) -> Collection[Any]:
    """Add the importances of an explainer; return the features shown.

    Or those of a merge. The labels are model id and name.
    """
    importance, half_width = explainer.importance, explainer.half_width
    share = shares(importance)
    shown = features.choose(*labels, importance)
    for feature in shown:
        add("feature_importance", (*labels, str(feature)), importance[feature])
        add("feature_importance_share_ratio", (*labels, str(feature)), share[feature])
        add("feature_importance_half_width", (*labels, str(feature)), finite(half_width[feature]))
    if rest := importance.keys() - set(shown):
        add("feature_importance", (*labels, OTHER), sum(importance[feature] for feature in rest))
        add("feature_importance_share_ratio", (*labels, OTHER), sum(share[feature] for feature in rest))
    return shown


def shown_largest(largest: float | None) -> str:
    """Return the largest value of a loss as a label."""
    return "+Inf" if largest is None else f"{largest:.3g}"


def n_series(state: Watched, max_features: int) -> int:
    """Return how many series of features a model has at most.

    They are five or, with a doubt, six for each, and the two sums of the others.
    """
    of_explainers = state.explainers.values()
    return sum((5 + bool(e.observational_doubt)) * min(len(e.importance), max_features) + 2 for e in of_explainers)


def add_model(state: Watched, features: ShownFeatures, add: Add) -> None:
    """Add a model's metrics, except the metrics of `add_late_labels`."""
    model = (state.model_id,)
    for name, explainer in state.explainers.items():
        labels = (state.model_id, name)
        doubt = explainer.observational_doubt
        shown = add_importances(labels, explainer, features, add)
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
    _incidents(state, add)
    add("model_observations_total", model, float(state.n_observations))
    add("model_missing_values_total", model, float(state.n_missing))
    add("model_other_categories_total", model, float(state.n_other_categories))
    for path, n in state.evaluations.items():
        add("model_evaluations_total", (*model, path), float(n))
    add("explain_every_observations", model, float(state.explain_every))
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
        for pattern in _PATTERNS:
            add("model_pattern", (*model, pattern), float(change.pattern == pattern))


def _quality(state: Watched, add: Add) -> None:
    """Add a model's quality metrics, and the reference's."""
    for name, figure in quality_figures(state.quality).items():
        add("model_quality", (state.model_id, name), figure.value)
        add("model_quality_reference", (state.model_id, name), figure.reference)


def _shifts(state: Watched, name: str, shown: Collection[Any], add: Add) -> None:
    """Add the lasting importance shifts of an explainer's shown features."""
    labels, watch = (state.model_id, name), state.shifts[name]
    shifted, total = watch.shift, sum(map(abs, watch.reference.values()))
    least = {feature: share * total for feature, share in watch.least_change.items()}
    for feature in shown:
        is_shifted = shifted is not None and shifted.feature == feature
        add("importance_shifted", (*labels, str(feature)), float(is_shifted))
        if feature in least:
            add("importance_least_shift", (*labels, str(feature)), finite(least[feature]))
    if shifted is not None and shifted.feature not in shown:
        add("importance_shifted", (*labels, str(shifted.feature)), 1.0)


def _loss_shifts(state: Watched, add: Add) -> None:
    """Add the lasting shifts of the loss, if it is watched."""
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
    add("model_watch_armed", model, float(monitor.ready))
    for kind in get_args(Kind):
        add("loss_shift_open", (*model, kind), float(shift is not None and shift.kind == kind))


def _incidents(state: Watched, add: Add) -> None:
    """Add the open incident to be reported, and the counts of incidents."""
    model, watch = (state.model_id,), state.incident_watch
    for (what, severity), n in state.counts.incidents.items():
        add("incidents_total", (*model, what, severity), float(n))
    one = None if watch is None else watch.open
    add("incident_since_timestamp_seconds", model, None if watch is None else _seconds(watch.since_ms))
    if watch is not None and one is not None and one.is_heard:
        add("incident_open", (*model, one.what, one.severity), 1.0)
        words = one.headline(state.model_id), one.action(), one.details()
        add("incident_info", (*model, watch.open_id or "", *words), 1.0)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def add_late_labels(state: Watched, add: Add, add_histogram: AddHistogram, now_s: float) -> None:
    """Add the metrics of a model whose labels come later or never.

    `now_s` is the clock, in seconds since 1970: how long the oldest has waited is shown by it, and nothing decided.
    """
    model = (state.model_id,)
    add("model_prediction_mismatch_ratio", model, finite(state.mismatch.value))
    late = state.late
    if late is None:
        return
    if late.pairs is not None:
        add("observations_expired_total", (*model, "pair"), float(late.pairs.n_expired))
    if late.labels is None:
        return
    if state.present_loss is not None:
        add("model_present_loss", model, finite(state.present_loss.value))
    joiner = late.labels
    counts, oldest = joiner.counts, joiner.oldest_ms
    add("observations_observed_total", model, float(counts.observed))
    add("observations_waiting", model, float(joiner.n_waiting))
    add("observations_waiting_limit", model, float(joiner.max_waiting))
    add("observations_waiting_oldest_seconds", model, 0.0 if oldest is None else max(now_s - oldest / 1000, 0.0))
    add("observations_expired_total", (*model, "ttl"), float(counts.expired_ttl))
    add("observations_expired_total", (*model, "cap"), float(counts.expired_cap))
    outcomes = (
        counts.joined - counts.old_version,
        counts.old_version,
        counts.orphaned,
        counts.duplicate - counts.changed,
        counts.changed,
        counts.late,
    )
    for outcome, n in zip(LABEL_OUTCOMES, outcomes, strict=True):
        add("labels_total", (*model, outcome), float(n))
    add("labels_early", model, float(joiner.n_early))
    add_histogram("label_delay_seconds", model, cumulated(BUCKETS_S, joiner.delays), joiner.total_delay_ms / 1000)


def cumulated(bounds: Sequence[float], counts: Sequence[int]) -> Buckets:
    """Return histogram buckets from counts per bucket, the last unbounded."""
    buckets, total = [], 0
    for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets
