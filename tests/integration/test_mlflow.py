"""Models of a real MLflow registry, on SQLite, on Apache Kafka: an alias moves while a worker runs, around kills."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.kafka import alter_topic, produce, read_all
from support.models.mlflow_registry import MlflowRegistry
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

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.timeout(1200)]
N = 400
"""Observations that each version gets."""

N_VERSIONS = 5
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
def registry(tmp_path_factory: pytest.TempPathFactory) -> MlflowRegistry:
    """A registry with five versions of the model bank; of the odd ones a decides, of the even ones b."""
    registry = MlflowRegistry(tmp_path_factory.mktemp("mlflow"))
    folders = [registry.save(trained(flipped=flipped)) for flipped in (False, True)]
    for version in range(N_VERSIONS):
        registry.register("bank", folders[version % 2])
    return registry


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
    raw["checkpoint"] = {"interval_s": 600, "max_observations": 280}  # so that a kill has something repeated
    config = parse_config(raw)
    create_topics(config)
    # Each write of a log of deployments is looked at, also one that compaction would have removed meanwhile.
    kept = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(3_600_000)}
    alter_topic(broker.bootstrap, config.kafka.changelog, kept)
    alter_topic(broker.bootstrap, config.kafka.topics.models, kept)
    return raw, config


def said(broker: Broker, config: Config) -> list[str]:
    """The versions on the models topic."""
    records = read_all(broker.bootstrap, config.kafka.topics.models)
    return [str(json.loads(record.value or b"")["mlflow"]) for record in records]


class Story:
    """A worker and what happens to it; the observations of version v are those from (v - 1) N on."""

    def __init__(self, broker: Broker, registry: MlflowRegistry, folder: Path) -> None:
        self.broker, self.registry = broker, registry
        self.raw, self.config = configured(broker, registry)
        self.worker = WorkerProcess(self.raw, folder, forked=True)
        self.version = self.n_sent = 0

    def move(self, *, wait: bool = True) -> None:
        """Have the alias name the next version; wait until the worker has stored it."""
        self.version += 1
        self.registry.point("bank", "champion", str(self.version))
        if wait:
            self.wait_stored()

    def wait_stored(self) -> None:
        what = f"version {self.version} is stored"
        wait_for(what, lambda: len(stored_deployments(self.config)) == self.version, every_s=0.5)

    def send(self, up_to: int = N) -> None:
        """Send the observations of the version, up to the one of this number."""
        stop = (self.version - 1) * N + up_to
        records: list[Any] = [
            (b"bank", observation(i, flipped=self.version % 2 == 0), []) for i in range(self.n_sent, stop)
        ]
        produce(self.broker.bootstrap, self.config.kafka.topics.observations, records, partition=0)
        self.n_sent = stop

    def wait_handled(self) -> None:
        """Wait until the worker has handled all of them, by the version that is meant."""
        self.worker.wait_consumed(self.n_sent + self.version, timeout_s=240)
        assert versions(self.worker) == {"bank": str(self.version)}

    def metric(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        return self.worker.samples(f"attributary_{name}")

    def wait_for_a_look(self) -> None:
        """Wait until the worker has asked the registry and done what follows from it."""
        name = "mlflow_last_answer_timestamp_seconds"
        first = wait_for("the registry has answered", lambda: self.metric(name))
        wait_for("it has answered again", lambda: self.metric(name) not in ({}, first))


def test_an_alias_moves_around_kills_and_while_the_registry_is_away(
    kafka_broker: Broker, registry: MlflowRegistry, tmp_path: Path
) -> None:
    """One story, for a start takes its time: each version takes over where it would have without the disturbances."""
    story, away = Story(kafka_broker, registry, tmp_path), registry.path.with_suffix(".away")
    worker, missing = story.worker, {(("model_id", "bank"),): 1}
    story.move(wait=False)
    story.send()  # before there is any version: all of these are for the first one
    with worker:
        story.wait_handled()
        assert story.metric("mlflow_up") == {(): 1}
        assert story.metric("model_version_awaited") == {}
        story.move(wait=False)
        worker.kill()  # at once
    with worker:
        story.wait_stored()
        story.send()
        story.wait_handled()
        story.move()
        worker.kill()  # once stored
    with worker:
        story.wait_for_a_look()  # a restart deploys nothing
        story.send()
        story.wait_handled()
        story.move()
        story.send(N // 3)
        wait_for("it took over", lambda: versions(worker) == {"bank": str(story.version)})
        worker.kill()  # once taken over
    registry.path.rename(away)
    with worker:
        wait_for("the registry is away", lambda: story.metric("mlflow_up") == {(): 0})
        story.send()
        story.wait_handled()  # what has a version is not held up
        away.rename(registry.path)
        story.move()
        assert story.metric("mlflow_up") == {(): 1}
        assert story.metric("mlflow_deployments_total") == {(("model_id", "bank"),): 1}, "by this process"
        # What it lacks while a worker runs ends nothing.
        registry.point("bank", "challenger", "2")
        registry.client.delete_registered_model_alias("bank", "champion")
        wait_for("the alias is missed", lambda: story.metric("mlflow_version_missing") == missing)
        story.send()
        story.wait_handled()
        assert worker.stop() == 0
    check_log(worker.log.read_text())
    check_events(story)
    with worker:  # but it ends a start
        assert worker.wait(120) == 2
    log = worker.log.read_text()
    assert "models.bank: model.mlflow: models:/bank@champion: no alias 'champion'; it has challenger\n" in log
    assert "Traceback" not in log


def check_log(log: str) -> None:
    assert log.count("cannot be asked, and is asked again until it can") == 1
    assert log.count("MLflow's registry answers again") == 1
    assert log.count("; its version stays") == 1
    assert "Traceback" not in log


def check_events(story: Story) -> None:
    numbers = range(1, N_VERSIONS + 1)
    config = story.config
    assert said(story.broker, config) == [f"models:/bank/{version}" for version in numbers]
    seen = stored_deployments(config)
    assert seen == {(0, version - 1): (version - 1) * N - 1 for version in numbers}
    sent = check_equal(story.broker.bootstrap, config, seen).sent
    incidents = [json.loads(value or b"") for value, _ in sent[config.kafka.topics.incidents].values()]
    begun = [one["model_version"] for one in incidents if (one["what"], one["revision"]) == ("version", 1)]
    assert sorted(begun) == [str(version) for version in numbers[1:]]
    compared = [one["explanation"] for one in incidents if (one["what"], one["reason"]) == ("version", "confirmed")]
    moves = [(one["model_version_before"], one["model_version"]) for one in compared]
    assert sorted(moves) == [(str(version), str(version + 1)) for version in numbers[:-1]]
    importances = [json.loads(value or b"") for value, _ in sent[config.kafka.topics.importances].values()]
    found = {(one["source"]["offset"] // N + 1, one["model_version"]) for one in importances}
    assert found == {(version, str(version)) for version in numbers}


def test_of_two_workers_one_looks_and_another_goes_on(
    kafka_broker: Broker, registry: MlflowRegistry, tmp_path: Path
) -> None:
    registry.point("bank", "champion", "1")
    raw, config = configured(kafka_broker, registry, partitions=2)
    workers = [WorkerProcess(raw, tmp_path, forked=True) for _ in range(2)]
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
    assert said(kafka_broker, config) == ["models:/bank/1", "models:/bank/2"]
