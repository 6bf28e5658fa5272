"""What a poll brings, on real Kafka: very many partitions, a backlog beside a trickle, a version within a backlog."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.kafka import produce
from support.states import stored_deployments
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from tests.integration.configs import created, observation
from tests.integration.versions import deploy, versions

pytestmark = [pytest.mark.long, pytest.mark.kafka]

SLOW = "tests.integration.test_polls:SlowClassifier"
HEAVY, LIGHT = "heavy", "light"


class SlowClassifier:
    """Takes ten milliseconds for a prediction, and learns nothing."""

    def predict_proba_one(self, x: dict[str, float]) -> dict[bool, float]:
        time.sleep(0.01)
        return {False: 0.5, True: 0.5}

    def learn_one(self, x: dict[str, float], y: bool) -> None:
        pass


def test_a_backlog_of_one_partition_holds_up_none_of_another(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(kafka_broker, partitions=2, models=(HEAVY, LIGHT))
    raw["models"][HEAVY] = {"model": {"factory": SLOW}, "explainers": {}, "features": raw["models"][LIGHT]["features"]}
    topic, n, n_light = config.kafka.topics.observations, 3000, 20
    produce(kafka_broker.bootstrap, topic, [(HEAVY.encode(), observation(i), []) for i in range(n)], partition=0)

    def consumed(partition: int) -> int:
        found = worker.samples("attributary_records_consumed_total")
        return int(sum(value for labels, value in found.items() if ("partition", str(partition)) in labels))

    worker = WorkerProcess(raw, tmp_path)
    with worker:
        worker.wait_consumed(50, timeout_s=120)
        light = [(LIGHT.encode(), observation(i), []) for i in range(n_light)]
        produce(kafka_broker.bootstrap, topic, light, partition=1)
        deadline = time.monotonic() + 60
        while consumed(1) < n_light:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        # A poll brings up to a thousand records: behind two of them the light ones would come.
        assert consumed(0) < 1000
        assert worker.stop() == 0


def test_with_very_many_partitions_and_a_trickle_nothing_is_lost_when_the_worker_is_killed(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    n_partitions, n_rounds = 60, 12
    models = tuple(f"model-{n:02d}" for n in range(n_partitions))
    raw, config = created(kafka_broker, partitions=n_partitions, models=models)
    topic, n_sent = config.kafka.topics.observations, 0
    worker = WorkerProcess(raw, tmp_path)
    worker.start()
    try:
        for i in range(n_rounds):
            for number, model_id in enumerate(models):
                values = [observation(i * 7 + k) for k in range(40 if number == i else 1)]
                records = [(model_id.encode(), value, []) for value in values]
                produce(kafka_broker.bootstrap, topic, records, partition=number)
                n_sent += len(records)
            if i % 4 == 2:
                worker.kill()
                worker.start()
        # Counted by this process since its last start, and by those before up to their checkpoints.
        deadline = time.monotonic() + 240
        while worker.total("records_consumed_total") < n_sent:
            assert time.monotonic() < deadline, worker.log_tail
            time.sleep(0.2)
        assert worker.stop() == 0
    finally:
        if worker.exit_code is None:
            worker.kill()
    expected = check_equal(kafka_broker.bootstrap, config)
    assert sum(partition.counters.consumed for partition in expected.partitions.values()) == n_sent
    assert len(expected.partitions) == n_partitions


def test_a_version_that_comes_within_a_backlog_takes_over_between_two_observations_also_after_a_kill(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    raw, config = created(kafka_broker)
    bootstrap, topic, n, n_later = kafka_broker.bootstrap, config.kafka.topics.observations, 9000, 1000
    stream = [(b"credit", observation(i), []) for i in range(n + n_later)]
    produce(bootstrap, topic, stream[:n], partition=0)
    worker = WorkerProcess(raw, tmp_path)
    with worker:
        worker.wait_consumed(500, timeout_s=120)
        said = deploy(worker, "credit", "--version", "2", "--class", "river.naive_bayes.GaussianNB")
        wait_for("the deployment is stored", lambda: stored_deployments(config))
        worker.kill()
    produce(bootstrap, topic, stream[n:], partition=0)
    with worker:
        wait_for("version 2 of credit", lambda: versions(worker).get("credit") == "2", timeout_s=240)
        wait_for("all is read", lambda: worker.total("records_consumed_total") == n + n_later + 1)
        assert worker.stop() == 0
    (after,) = stored_deployments(config).values()
    assert 500 <= after < n + n_later - 1
    check_equal(bootstrap, config, {(0, said["offset"]): after})
