"""`attributary check --sample N`: a rehearsal with the last records of the observations topic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from support.kafka import produce, read_all

from attributary_agents.cli.main import cli
from attributary_agents.demo.brokers import Broker
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.embedded]


def test_each_model_takes_its_own_last_records(embedded_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(embedded_broker, partitions=2, models=("credit", "debit", "silent"))
    topics = config.kafka.topics
    records = [(b"credit", observation(i), []) for i in range(80)]
    records += [(b"debit", b"{poison" if i % 2 else observation(i), []) for i in range(10)]
    produce(embedded_broker.bootstrap, topics.observations, records)
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    outputs = topics.dead_letters, topics.incidents
    before = {topic: len(read_all(embedded_broker.bootstrap, topic)) for topic in outputs}

    done = CliRunner().invoke(cli, ["check", "-c", str(path), "--sample", "50", "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["broker"] == "ok"
    credit, debit, silent = found["models"].values()
    assert (credit["n_rows"], credit["n_used"], credit["rows"]) == (
        50,
        50,
        f"the last records of {topics.observations}",
    )
    assert credit["label"] == json.loads(observation(79))["y"]
    assert (debit["n_rows"], debit["n_used"], debit["dead_letters"]) == (10, 5, {"invalid_json": 5})
    assert (silent["n_used"], silent["rows"]) == (40, "made-up rows")
    # Another model's many records behind them keep nobody's from being found.
    produce(embedded_broker.bootstrap, topics.observations, [(b"credit", observation(i), []) for i in range(700)])
    again = CliRunner().invoke(cli, ["check", "-c", str(path), "--sample", "5", "--json"], catch_exceptions=False)
    assert [each["n_rows"] for each in json.loads(again.stdout)["models"].values()] == [5, 5, 40]
    for topic, n in before.items():
        assert len(read_all(embedded_broker.bootstrap, topic)) == n
