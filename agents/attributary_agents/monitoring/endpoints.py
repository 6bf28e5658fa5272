"""Metrics of the endpoints of served models."""

from __future__ import annotations

from collections.abc import Collection

from attributary_explainers.monitor.families import Add, AddHistogram, cumulated

from ..worker.endpoints.counts import BUCKETS_S, OUTCOMES, EndpointsView

_MODEL = ("model_id",)

ENDPOINT_METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "endpoint_requests_total": (
        "Requests to the endpoint of a served model since the worker began, by what became of them",
        ("model_id", "outcome"),
    ),
    "endpoint_duration_seconds": ("Time of a request to the endpoint of a served model, until its answer", _MODEL),
    "endpoint_breaker_open": (
        "1 while observations wait for an endpoint that does not answer, and that only single requests try",
        _MODEL,
    ),
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
    for model_id in sorted(view.open.keys() - hidden)[:at_most]:
        counts = view.of(model_id)
        for outcome in OUTCOMES:
            add("endpoint_requests_total", (model_id, outcome), float(counts.outcomes[outcome]))
        add_histogram("endpoint_duration_seconds", (model_id,), cumulated(BUCKETS_S, counts.times), counts.sum_s)
        add("endpoint_breaker_open", (model_id,), float(view.is_open(model_id)))
        add("endpoint_waiting_seconds", (model_id,), view.waiting_s(model_id))
