"""A worker with models in files of ONNX that is killed and restarted leaves what an undisturbed one leaves."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from support.kafka import alter_topic, produce
from support.onnx_files import converted
from support.states import stored_deployments
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics
from tests.integration.configs import logistic_config, observation
from tests.integration.versions import deploy, versions

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N = 3000


def trained(*, flipped: bool) -> bytes:
    """The file of a logistic regression that has learnt that a decides, or b."""
    rows = [json.loads(observation(i, flipped=flipped)) for i in range(500)]
    table = np.array([[row["x"][name] for name in "abc"] for row in rows])
    return converted(LogisticRegression().fit(table, [row["y"] for row in rows]), table, zipmap=False)


def test_kills_around_observations_and_a_deployment_leave_the_same_events(kafka_broker: Broker, tmp_path: Path) -> None:
    folder = tmp_path / "artefacts"
    folder.mkdir()
    (folder / "one.onnx").write_bytes(trained(flipped=False))
    (folder / "two.onnx").write_bytes(trained(flipped=True))
    sha256 = hashlib.sha256(trained(flipped=False)).hexdigest()
    raw = logistic_config(kafka_broker.bootstrap)
    own = {**raw["models"]["credit"], "model": {"file": "one.onnx", "sha256": sha256}, "learn": False}
    raw |= {"models": {"credit": own}, "artefacts": {"directory": str(folder)}}
    config = parse_config(raw)
    create_topics(config)
    alter_topic(
        kafka_broker.bootstrap,
        config.kafka.changelog,
        {"cleanup.policy": "compact", "min.compaction.lag.ms": str(3_600_000)},
    )
    topics = config.kafka.topics
    send = [(b"credit", observation(i, flipped=i > N // 2), []) for i in range(N)]
    produce(kafka_broker.bootstrap, topics.observations, send[: N // 2])
    worker = WorkerProcess(raw, tmp_path)
    for n in (N // 5, N // 3):
        with worker:
            worker.wait_consumed(n, timeout_s=120)
            worker.kill()
    with worker:
        worker.wait_consumed(N // 2, timeout_s=120)
        deploy(worker, "credit", "--artefact", "two.onnx", "--version", "2")
        wait_for("it is stored", lambda: len(stored_deployments(config)) == 1)
        produce(kafka_broker.bootstrap, topics.observations, send[N // 2 :])
        wait_for("version 2 of credit", lambda: versions(worker).get("credit") == "2")
        worker.kill()
    with worker:
        worker.wait_consumed(N + 1, timeout_s=120)
        assert worker.stop() == 0
    sent = check_equal(kafka_broker.bootstrap, config, stored_deployments(config)).sent
    assert not sent[topics.dead_letters]
    changes = [json.loads(value or b"") for value, _ in sent[topics.changes].values()]
    told = [(one["event"], one["model_version"]) for one in changes if one["route"] == "version"]
    assert told == [("alarm", "2"), ("explanation", "2")]
    events = [json.loads(value or b"") for value, _ in sent[topics.importances].values()]
    first, last = (one["features"] for one in (events[0], events[-1]))
    assert (first["a"]["rank"], last["b"]["rank"]) == (1, 1)
