"""Models of a real MLflow registry, on SQLite, on Apache Kafka: an alias moves while a worker runs, around kills."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.kafka import alter_topic, produce, read_all
from support.mlflow_registry import MlflowRegistry
from support.states import stored_deployments
from support.undisturbed import check_equal
from support.waiting import wait_for as wait_within
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics
from tests.integration.configs import logistic_config, observation
from tests.integration.versions import versions

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.timeout(600)]
N = 1000
wait_for = partial(wait_within, timeout_s=180)  # MLflow's client alone begins in seconds, on a machine that is busy
FEATURES = ("a", "b", "c")


def trained(*, flipped: bool) -> Any:
    """A logistic regression that has learnt that a decides, or b once flipped."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    rows = [json.loads(observation(i, flipped=flipped)) for i in range(300)]
    table = pd.DataFrame([row["x"] for row in rows], columns=list(FEATURES))
    return LogisticRegression().fit(table, [row["y"] for row in rows])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> MlflowRegistry:
    """A registry with two versions of the model bank; of the first a decides, of the second b."""
    registry = MlflowRegistry(tmp_path_factory.mktemp("mlflow"))
    for flipped in (False, True):
        registry.register("bank", registry.save(trained(flipped=flipped)))
    return registry


@pytest.fixture
def registry(saved: MlflowRegistry) -> MlflowRegistry:
    saved.point("bank", "champion", "1")
    return saved


def configured(broker: Broker, registry: MlflowRegistry, **kafka: Any) -> tuple[dict[str, Any], Config]:
    raw = logistic_config(broker.bootstrap)
    raw["kafka"] |= kafka
    raw["models"] = {
        "bank": {
            **raw["models"]["credit"],
            "learn": False,
            "model": {"mlflow": "models:/bank@champion", "poll": "1s"},
        }
    }
    raw["mlflow"] = {"tracking_uri": registry.uri}
    config = parse_config(raw)
    create_topics(config)
    # Each write of a log of deployments is looked at, also one that compaction would have removed meanwhile.
    kept = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(3_600_000)}
    alter_topic(broker.bootstrap, config.kafka.changelog, kept)
    alter_topic(broker.bootstrap, config.kafka.topics.models, kept)
    return raw, config


def send(broker: Broker, config: Config, start: int, stop: int) -> None:
    flipped = start >= N
    records: list[Any] = [(b"bank", observation(i, flipped=flipped), []) for i in range(start, stop)]
    produce(broker.bootstrap, config.kafka.topics.observations, records, partition=0)


def said(broker: Broker, config: Config) -> list[dict[str, Any]]:
    """The records of the models topic."""
    return [json.loads(record.value or b"") for record in read_all(broker.bootstrap, config.kafka.topics.models)]


def version_events(sent: dict[str, dict[str, Any]], config: Config) -> list[tuple[str, str, str]]:
    events = [json.loads(value or b"") for value, _ in sent[config.kafka.topics.changes].values()]
    return [
        (one["event"], one.get("model_version_before"), one["model_version"])
        for one in events
        if one.get("route") == "version"
    ]


def test_an_alias_moves_while_a_worker_runs(kafka_broker: Broker, registry: MlflowRegistry, tmp_path: Path) -> None:
    raw, config = configured(kafka_broker, registry)
    send(kafka_broker, config, 0, N)  # before there is any version: all of these are for the first one
    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(N + 1, timeout_s=120)
        assert versions(worker) == {"bank": "1"}
        registry.point("bank", "champion", "2")
        wait_for("version 2 is stored", lambda: len(stored_deployments(config)) == 2)
        send(kafka_broker, config, N, 2 * N)
        worker.wait_consumed(2 * N + 2, timeout_s=120)
        assert versions(worker) == {"bank": "2"}
        metrics = worker.metrics()
        assert worker.stop() == 0
    with WorkerProcess(raw, tmp_path) as worker:  # a restart deploys nothing
        wait_for("the registry has answered", lambda: worker.metrics().get("attributary_mlflow_up"))
        wait_for("it has answered again", lambda: answers(worker) > 1)
        assert worker.stop() == 0
    records = said(kafka_broker, config)
    assert [(one["version"], one["mlflow"]) for one in records] == [("1", "models:/bank/1"), ("2", "models:/bank/2")]
    assert metrics["attributary_mlflow_up"] == {(): 1}
    assert metrics["attributary_mlflow_deployments_total"] == {(("model_id", "bank"),): 2}
    assert "attributary_model_version_awaited" not in metrics
    assert stored_deployments(config) == {(0, 0): -1, (0, 1): N - 1}
    sent = check_equal(kafka_broker.bootstrap, config, {(0, 0): -1, (0, 1): N - 1}).sent
    assert version_events(sent, config) == [("alarm", "1", "2"), ("explanation", "1", "2")]
    importances = [json.loads(value or b"") for value, _ in sent[config.kafka.topics.importances].values()]
    assert {(one["model_version"], one["source"]["offset"] >= N) for one in importances} == {("1", False), ("2", True)}


def answers(worker: WorkerProcess) -> int:
    """How often the time of the registry's last answer has been seen to move."""
    found = worker.metrics().get("attributary_mlflow_last_answer_timestamp_seconds", {}).get((), 0)
    seen = _SEEN.setdefault(worker.pid, set())
    seen.add(found)
    return len(seen - {0})


_SEEN: dict[int, set[float]] = {}


@pytest.mark.parametrize("moment", ["at once", "once stored", "once taken over"])
def test_a_kill_around_the_move_leaves_the_same_events(
    moment: str, kafka_broker: Broker, registry: MlflowRegistry, tmp_path: Path
) -> None:
    raw, config = configured(kafka_broker, registry)
    raw["checkpoint"] = {"interval_s": 600, "max_observations": 700}
    send(kafka_broker, config, 0, N)
    worker = WorkerProcess(raw, tmp_path)
    with worker:
        worker.wait_consumed(N + 1, timeout_s=120)
        registry.point("bank", "champion", "2")
        if moment != "at once":
            wait_for("it is stored", lambda: len(stored_deployments(config)) == 2)
        if moment == "once taken over":
            send(kafka_broker, config, N, N + 300)
            wait_for("it took over", lambda: versions(worker) == {"bank": "2"})
        worker.kill()
    with worker:
        wait_for("version 2 is stored", lambda: len(stored_deployments(config)) == 2)
        send(kafka_broker, config, N + 300 if moment == "once taken over" else N, 2 * N)
        worker.wait_consumed(2 * N + 2, timeout_s=120)
        assert worker.stop() == 0
    assert [one["mlflow"] for one in said(kafka_broker, config)] == ["models:/bank/1", "models:/bank/2"]
    seen = stored_deployments(config)
    sent = check_equal(kafka_broker.bootstrap, config, seen).sent
    assert version_events(sent, config) == [("alarm", "1", "2"), ("explanation", "1", "2")]


def test_a_registry_that_is_away_holds_up_nothing_that_has_a_version(
    kafka_broker: Broker, registry: MlflowRegistry, tmp_path: Path
) -> None:
    raw, config = configured(kafka_broker, registry)
    away = registry.path.with_suffix(".away")
    send(kafka_broker, config, 0, N // 2)
    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(N // 2 + 1, timeout_s=120)
        assert worker.stop() == 0
    registry.path.rename(away)
    try:
        with WorkerProcess(raw, tmp_path) as worker:
            wait_for("the registry is away", lambda: worker.metrics().get("attributary_mlflow_up") == {(): 0})
            send(kafka_broker, config, N // 2, N)
            worker.wait_consumed(N + 1, timeout_s=120)
            assert versions(worker) == {"bank": "1"}
            away.rename(registry.path)
            registry.point("bank", "champion", "2")
            wait_for("version 2 is stored", lambda: len(stored_deployments(config)) == 2)
            assert worker.metrics()["attributary_mlflow_up"] == {(): 1}
            # What it lacks while it runs ends nothing.
            registry.client.delete_registered_model_alias("bank", "champion")
            missing = {(("model_id", "bank"),): 1}
            wait_for(
                "the alias is missed",
                lambda: worker.metrics().get("attributary_mlflow_version_missing") == missing,
            )
            send(kafka_broker, config, N, N + 200)
            worker.wait_consumed(N + 202, timeout_s=120)
            assert versions(worker) == {"bank": "2"}
            assert worker.stop() == 0
            log = worker.log.read_text()
    finally:
        if away.exists():
            away.rename(registry.path)
    assert log.count("cannot be asked, and is asked again until it can") == 1
    assert log.count("MLflow's registry answers again") == 1
    assert log.count("no alias 'champion'; it has none; its version stays") == 1
    assert "Traceback" not in log
    check_equal(kafka_broker.bootstrap, config)


def test_of_two_workers_one_looks_and_another_goes_on(
    kafka_broker: Broker, registry: MlflowRegistry, tmp_path: Path
) -> None:
    raw, config = configured(kafka_broker, registry, partitions=2)
    workers = [WorkerProcess(raw, tmp_path), WorkerProcess(raw, tmp_path)]
    with workers[0], workers[1]:
        wait_for("both have partitions", lambda: all(worker.is_ready() for worker in workers))
        wait_for("one has sent the first version", lambda: len(said(kafka_broker, config)) == 1)
        asking = [worker for worker in workers if "attributary_mlflow_up" in worker.metrics()]
        assert len(asking) == 1
        asking[0].kill()
        (other,) = (worker for worker in workers if worker is not asking[0])
        wait_for("the other one asks", lambda: other.metrics().get("attributary_mlflow_up") == {(): 1})
        registry.point("bank", "champion", "2")
        wait_for("it has sent the second version", lambda: len(said(kafka_broker, config)) == 2)
        assert other.stop() == 0
    assert [one["mlflow"] for one in said(kafka_broker, config)] == ["models:/bank/1", "models:/bank/2"]


def test_an_alias_that_is_not_there_ends_the_start(
    kafka_broker: Broker, registry: MlflowRegistry, tmp_path: Path
) -> None:
    registry.client.delete_registered_model_alias("bank", "champion")
    registry.point("bank", "challenger", "2")
    raw, _ = configured(kafka_broker, registry)
    with WorkerProcess(raw, tmp_path) as worker:
        assert worker.wait(60) == 2
        log = worker.log.read_text()
    registry.client.delete_registered_model_alias("bank", "challenger")
    assert "models.bank: model.mlflow: models:/bank@champion: no alias 'champion'; it has challenger" in log
    assert "Traceback" not in log
