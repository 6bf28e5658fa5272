"""One path through every feature on Apache Kafka, for `make test`; the other files here go into each of them.

Observations of two models, poisoned records, a drift, a new version, SIGKILL, a restart; then the topics, the stored
state, the metrics and `attributary incidents`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.kafka import produce
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from tests.integration.configs import logistic_config, observation
from tests.integration.versions import deploy, versions

pytestmark = [pytest.mark.kafka]
MODELS = ("credit", "fraud")
N = 2000
POISONED = range(50, N, 500)


def test_a_worker_is_killed_on_the_way_and_leaves_what_an_undisturbed_one_leaves(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    raw = logistic_config(kafka_broker.bootstrap, models=MODELS)
    config = parse_config(raw)
    topics, bootstrap = config.kafka.topics, kafka_broker.bootstrap
    worker = WorkerProcess(raw, tmp_path)
    at = ["-c", str(worker.config_path)]
    assert CliRunner().invoke(cli, ["topics", "create", *at]).exit_code == 0
    values = [b"{poison" if i in POISONED else observation(i, flipped=i > N // 4) for i in range(N)]
    records = [(MODELS[i % 3 == 0].encode(), value, []) for i, value in enumerate(values)]

    produce(bootstrap, topics.observations, records[: N // 2], partition=0)
    with worker:
        worker.wait_consumed(N // 2, timeout_s=120)
        deploy(worker, "credit", "--class", "river.naive_bayes.GaussianNB", "--version", "2")
        worker.wait_consumed(N // 2 + 1, timeout_s=120)
        produce(bootstrap, topics.observations, records[N // 2 : 3 * N // 4], partition=0)
        wait_for("version 2 takes over", lambda: versions(worker) == {"credit": "2", "fraud": "1"})
        worker.kill()
    produce(bootstrap, topics.observations, records[3 * N // 4 :], partition=0)
    with worker:
        worker.wait_consumed(N + 1, timeout_s=120)
        assert versions(worker) == {"credit": "2", "fraud": "1"}
        metrics = worker.metrics()
        assert worker.stop() == 0

    expected = check_equal(bootstrap, config)
    letters = expected.sent[topics.dead_letters]
    assert {dict(headers)["attributary-dlq-reason"] for _, headers in letters.values()} == {b"invalid_json"}
    assert len(letters) == len(POISONED) == sum(metrics["attributary_dead_letters_total"].values())
    assert sum(metrics["attributary_model_observations_total"].values()) == N - len(POISONED)
    state = expected.partitions[0].models["fraud"]
    for name, explainer in state.explainers.items():
        for feature, value in explainer.importance.items():
            labels = (("explainer", name), ("feature", feature), ("model_id", "fraud"))
            assert metrics["attributary_feature_importance"][labels] == value

    incidents = expected.sent[topics.incidents]
    assert incidents, "the drift changes the models"
    events = [json.loads(value or b"") for value, _ in expected.sent[topics.importances].values()]
    assert {(event["model_id"], event["model_version"]) for event in events} == {
        ("credit", "1"),
        ("credit", "2"),
        ("fraud", "1"),
    }
    printed = CliRunner().invoke(cli, ["incidents", *at, "--last", "100", "--revisions", "--json"])
    assert printed.exit_code == 0, (printed.output, printed.exception)
    told = [json.loads(line) for line in printed.stdout.splitlines()]
    sent = [json.loads(value or b"") for value, _ in incidents.values()]
    assert sorted((event["id"], event["revision"]) for event in told) == sorted(
        (event["id"], event["revision"]) for event in sent
    )
