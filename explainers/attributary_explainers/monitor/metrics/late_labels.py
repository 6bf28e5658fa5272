"""The metrics of models whose labels come later, or never."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..joining.joiner import BUCKETS_S, Joiner
from ..telling.events import finite
from ..watched import Watched
from .importances import Add

Buckets = list[tuple[str, float]]
"""Upper bound of each bucket of a histogram, and how many are at or below it."""

AddHistogram = Callable[[str, tuple[str, ...], Buckets, float], None]
"""Adds a histogram: name, values of the labels, buckets, sum."""

LABEL_OUTCOMES = ("joined", "joined_old_version", "orphaned", "duplicate", "changed", "late")


def add_late_labels(state: Watched, add: Add, add_histogram: AddHistogram, now_s: float) -> None:
    """Add what a model has beside others because its labels come later or never.

    Parameters
    ----------
    now_s
        The clock, in seconds since 1970: how long the oldest has waited is shown by it, and nothing decided.
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
    _add_joiner(model, late.labels, add, add_histogram, now_s)


def _add_joiner(model: tuple[str], joiner: Joiner, add: Add, add_histogram: AddHistogram, now_s: float) -> None:
    counts, oldest = joiner.counts, joiner.oldest_ms
    add("observations_observed_total", model, float(counts.observed))
    add("observations_waiting", model, float(joiner.n_waiting))
    add("observations_waiting_limit", model, float(joiner.max_waiting))
    add("observations_waiting_oldest_seconds", model, 0.0 if oldest is None else max(now_s - oldest / 1000, 0.0))
    add("observations_expired_total", (*model, "ttl"), float(counts.expired_ttl))
    add("observations_expired_total", (*model, "cap"), float(counts.expired_cap))
    outcomes = {
        "joined": counts.joined - counts.old_version,
        "joined_old_version": counts.old_version,
        "orphaned": counts.orphaned,
        "duplicate": counts.duplicate - counts.changed,
        "changed": counts.changed,
        "late": counts.late,
    }
    for outcome in LABEL_OUTCOMES:
        add("labels_total", (*model, outcome), float(outcomes[outcome]))
    add("labels_early", model, float(joiner.n_early))
    add_histogram("label_delay_seconds", model, cumulated(BUCKETS_S, joiner.delays), joiner.total_delay_ms / 1000)


def cumulated(bounds: Sequence[float], counts: Sequence[int]) -> Buckets:
    """Return the buckets of a histogram whose counts are each of one bucket alone, the last beyond all bounds."""
    buckets, total = [], 0
    for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets
