"""The series of MLflow's registry are those of the process that asks it, and end when another one does."""

from __future__ import annotations

import logging

import pytest

from attributary_agents.monitoring.metrics import REGISTRY_METRICS, AttributaryCollector
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.view import PartitionView, WorkerView
from tests.agents.stand_ins import config_of


def series(view: WorkerView) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in AttributaryCollector(config_of(), view).collect():
        for sample in family.samples:
            name = sample.name.removeprefix("attributary_")
            if name in REGISTRY_METRICS:
                labels = tuple(sample.labels.values())
                assert labels not in found.setdefault(name, {}), "Prometheus takes a series once a scrape"
                found[name][labels] = sample.value
    return found


def test_a_process_that_has_not_asked_has_none() -> None:
    assert series(WorkerView({})) == {}


def test_they_are_what_the_board_says() -> None:
    view = WorkerView({n: PartitionView(Partition("o", n, config_of(), lambda _key: None)) for n in (0, 1)})
    view.registry.note_answer()
    view.registry.note_missing("m", "no alias")
    view.registry.n_sent["m"] += 2
    for shard in view.partitions.values():
        shard.partition.models.awaited.add("m")
    view.registry.note_retried("m", "no route to the bucket")
    found = series(view)
    last = found.pop("mlflow_last_answer_timestamp_seconds")[()]
    assert last == view.registry.answered_at
    assert found == {
        "mlflow_up": {(): 1},
        "mlflow_version_missing": {("m",): 1},
        "mlflow_deployments_total": {("m",): 2},
        "model_version_retried": {("m",): 1},
        "model_version_awaited": {("m",): 1},
    }
    view.registry.note_away("refused")
    view.registry.missing.clear()
    found = series(view)
    assert found["mlflow_up"] == {(): 0}
    assert found["mlflow_last_answer_timestamp_seconds"] == {(): last}
    assert "mlflow_version_missing" not in found
    view.registry.forget(["m"])
    assert set(series(view)) == {"mlflow_deployments_total", "model_version_awaited"}


def test_what_lasts_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    board = WorkerView({}).registry
    with caplog.at_level(logging.INFO, "attributary_agents"):
        for _ in range(3):
            board.note_away("refused")
            board.note_missing("m", "no alias 'a'")
        board.note_answer()
        board.note_answer()
    assert [record.message for record in caplog.records] == [
        "MLflow's registry cannot be asked, and is asked again until it can: refused",
        "models.m: no alias 'a'; its version stays",
        "MLflow's registry answers again",
    ]
