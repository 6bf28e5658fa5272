"""The series of endpoints are of the models that were asked for, also before their first observation is handled."""

from __future__ import annotations

from attributary_agents.monitoring.metrics import ENDPOINT_METRICS, AttributaryCollector
from attributary_agents.worker.endpoints import EndpointsView
from attributary_agents.worker.view import WorkerView
from tests.agents.stand_ins import config_of


def series(view: WorkerView) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in AttributaryCollector(config_of(), view).collect():
        for sample in family.samples:
            if family.name.removeprefix("attributary_") in {name.removesuffix("_total") for name in ENDPOINT_METRICS}:
                name = sample.name.removeprefix("attributary_endpoint_")
                found.setdefault(name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_a_worker_without_served_models_has_none() -> None:
    assert series(WorkerView({})) == {}


def test_requests_are_counted_by_what_became_of_them_and_waiting_is_told_while_it_lasts() -> None:
    view, now = WorkerView({}), [100.0]
    view.endpoints = EndpointsView(lambda: now[0])
    counts = view.endpoints.of("m")
    for outcome, seconds in (("retried", 2.0), ("retried", 0.02), ("ok", 0.003), ("refused", 40.0)):
        counts.note(outcome, seconds)
    view.endpoints.begin_waiting(0, "m")
    now[0] = 103.0
    view.endpoints.begin_waiting(1, "m")
    now[0] = 107.0
    found = series(view)
    assert found["requests_total"] == {("m", "ok"): 1, ("m", "retried"): 2, ("m", "refused"): 1}
    buckets = found["duration_seconds_bucket"]
    assert [buckets["m", le] for le in ("0.005", "0.01", "0.025", "1.0", "2.5", "30.0", "+Inf")] == [
        1,
        1,
        2,
        2,
        3,
        3,
        4,
    ]
    assert found["duration_seconds_sum"] == {("m",): 42.023}
    assert found["waiting_seconds"] == {("m",): 7}, "of the partition that has waited longest"
    view.endpoints.end_waiting(0)
    assert series(view)["waiting_seconds"] == {("m",): 4}
    view.endpoints.end_waiting(1)
    assert series(view)["waiting_seconds"] == {("m",): 0}
