"""The shipped rules in a Prometheus that scrapes the web servers of two workers: a change, and a move."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.monitoring import Prometheus, every_second
from support.waiting import wait_for

from attributary_agents.config.settings import Config
from attributary_agents.monitoring.rules.recorded import recorded, recordings
from attributary_agents.monitoring.web import WebServer
from attributary_agents.worker.view import WorkerView
from tests.agents.monitoring.views import config_of, filled

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "rules" / "attributary.rules.yml"
pytestmark = [pytest.mark.long, pytest.mark.prometheus]


@pytest.fixture
def config() -> Config:
    made = config_of("m", explain={"budget": 0.5})
    return made.model_copy(update={"web": made.web.model_copy(update={"port": 0})})


ELSEWHERE = ("labels_", "fidelity", "mismatch", "_expired", "_waiting", "_unlabelled", "source_lag", "endpoint_")
"""Parts of the names of series of what is not configured here: late labels, mirrors, endpoints and sources."""


@pytest.fixture
def views(config: Config) -> tuple[WorkerView, WorkerView]:
    """A worker whose model has not changed yet, and one without partitions."""
    view = filled(config, {0: ["m"]}, n=60, flip_at=1000)
    assert view.partitions[0].partition.models["m"].n_changes == 0
    return view, WorkerView({})


@pytest.fixture
def prometheus(tmp_path: Path, config: Config, views: tuple[WorkerView, WorkerView]) -> Iterator[Prometheus]:
    """Scrapes the two workers each second."""
    with ExitStack() as stack:
        targets = []
        for view in views:
            web = WebServer(config, view)
            web.start()
            stack.callback(web.stop)
            targets.append(f"127.0.0.1:{web.port}")
        features = ["--enable-feature=exemplar-storage"]
        yield stack.enter_context(Prometheus(tmp_path, every_second(RULES, *targets), arguments=features))


def test_a_change_is_told_once_and_a_move_changes_nothing(
    config: Config, prometheus: Prometheus, views: tuple[WorkerView, WorkerView]
) -> None:
    here, there = views
    names = {recording.record for recording in recordings()}
    # Not before the first change, and not before there is something that importances and losses are compared with.
    later = ("model_last_change_timestamp_seconds", "importance_least_shift", "model_excess_loss")
    conditional = {recorded(name) for name in later} | {name for name in names if any(one in name for one in ELSEWHERE)}
    assert len(names - conditional) > 20

    def there_are() -> bool:
        found = {series.labels["__name__"] for series in prometheus.query('{__name__=~".+:.+"}')}
        print("absent:", names - found)
        return names - conditional <= found

    wait_for("the recorded series", there_are, 60)
    assert {rule["health"] for rule in prometheus.rules()} == {"ok"}
    assert fired(prometheus) == set()

    sent = filled(config, {0: ["m"]}, n=200)  # what the model has been through since
    with here.lock:
        here.partitions[0] = sent.partitions[0]
    changes = sent.partitions[0].partition.models["m"].n_changes
    assert changes > 0
    wait_for("the alert", lambda: "AttributaryChangeDetected" in fired(prometheus), 60)
    found = [alert for alert in prometheus.alerts() if alert["labels"]["alertname"] == "AttributaryChangeDetected"]
    for alert in found:
        assert alert["labels"]["model_id"] == "m"
        assert alert["annotations"]["explanation"] == "attributary changes m"

    last = sent.partitions[0].partition.models["m"].last_change
    assert last is not None
    wait_for("the exemplar", lambda: last["id"] in exemplars(prometheus), 60)

    total = f"sum({recorded('model_changes_total')})"
    with there.lock:
        there.partitions[0] = here.partitions[0]  # for a moment both show it
    wait_for("both", lambda: value(prometheus, "count(attributary_model_loss)") == 2, 60)
    assert value(prometheus, total) == changes
    with here.lock:
        del here.partitions[0]
    wait_for("the move", lambda: value(prometheus, "count(attributary_model_loss)") == 1, 60)
    wait_for("the recorded series again", there_are, 60)
    assert value(prometheus, total) == changes
    assert {rule["health"] for rule in prometheus.rules()} == {"ok"}


def fired(prometheus: Prometheus) -> set[str]:
    return {alert["labels"]["alertname"] for alert in prometheus.alerts() if alert["state"] == "firing"}


def value(prometheus: Prometheus, expression: str) -> float | None:
    found = prometheus.query(expression)
    return found[0].value if found else None


def exemplars(prometheus: Prometheus) -> set[str]:
    # An exemplar has the time of its observation, which here is years ago.
    return {labels["event_id"] for labels in prometheus.exemplars("attributary_model_changes_total", time.time())}
