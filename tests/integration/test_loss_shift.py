"""A model that does not learn becomes wrong in a worker: its incident is on the topic, and the command prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from support.kafka import produce
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.demo.brokers import Broker
from tests.agents.models.frozen import FLIPPED_FROM, made
from tests.integration.configs import created

pytestmark = [pytest.mark.long, pytest.mark.embedded]

N = FLIPPED_FROM + 1200


def test_flipped_labels_are_told_by_a_worker(embedded_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(embedded_broker, models=("m",), kafka={"instance_id": "only"})
    model = {"factory": "tests.agents.models.frozen:frozen", "learn": False, "explain": {"every": 64}, "change": None}
    raw["models"] = {"m": model}
    records = [(b"m", json.dumps({"x": one.x, "y": one.y}).encode(), []) for one in made(N, seed=11)]
    produce(embedded_broker.bootstrap, config.kafka.topics.observations, records, partition=0)

    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(N, timeout_s=120)
        open_now = worker.metrics()["attributary_incident_open"]
        assert worker.stop() == 0
    assert [(dict(labels), value) for labels, value in open_now.items()] == [
        ({"model_id": "m", "what": "worse", "severity": "critical"}, 1)
    ]

    (tmp_path / "attributary.yaml").write_text(yaml.safe_dump(raw))
    command = ["incidents", "m", "--config", str(tmp_path / "attributary.yaml"), "--json"]
    printed = CliRunner().invoke(cli, [*command, "--revisions"])
    assert printed.exit_code == 0, (printed.output, printed.exception)
    first, second = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [(one["what"], one["life"]) for one in (first, second)] == [("worse", "suspected"), ("worse", "confirmed")]
    assert first["id"] == second["id"]
    assert all(abs(one["since"]["observation"] - FLIPPED_FROM) <= 150 for one in (first, second))
    newest = CliRunner().invoke(cli, command)
    assert [json.loads(line)["sentence"] for line in newest.stdout.splitlines()] == [second["sentence"]]
