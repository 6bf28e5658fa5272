"""A topic whose key is the model id, read by workers in place of ours; one of them is killed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.kafka import create_topics, produce, read_all
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics as create_ours
from tests.integration.configs import logistic_config

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N = 1200


def test_a_topic_keyed_by_model_id_is_read_as_it_is(kafka_broker: Broker, tmp_path: Path) -> None:
    raw = logistic_config(kafka_broker.bootstrap, partitions=3, models=("m1", "m2"))
    prefix = raw["kafka"]["topic_prefix"]
    topic = f"{prefix}-flat"
    source = {"topic": topic, "key": "direct", "model": "{$key}", "y": "label", "x": {"only": ["a", "b", "c"]}}
    raw["sources"] = {"flat": {**source, "where": "kind == 'row'"}}
    create_topics(kafka_broker.bootstrap, {topic: 3})
    config = parse_config(raw)
    create_ours(config)

    rng = random.Random(3)
    records = []
    for n in range(N):
        a = rng.gauss(0, 1)
        row = {"kind": "row" if n % 10 else "note", "a": a, "b": rng.gauss(0, 1), "c": 0.5, "label": a > 0}
        value = b"{broken" if n % 400 == 7 else json.dumps(row).encode()
        records.append((f"m{n % 2 + 1}".encode(), value, []))
    produce(kafka_broker.bootstrap, topic, records)

    with WorkerProcess(raw, tmp_path) as first:
        first.wait_consumed(300, timeout_s=90)
        first.kill()
    second = WorkerProcess(raw, tmp_path)
    with second:
        second.wait_consumed(N, timeout_s=120)
        metrics = second.metrics()
        assert second.stop() == 0

    passed_over = metrics["attributary_origin_records_total"]
    assert sum(n for labels, n in passed_over.items() if ("outcome", "passed_over") in labels) == N // 10
    assert sum(metrics["attributary_dead_letters_total"].values()) == 3
    observed = metrics["attributary_model_observations_total"]
    assert sum(observed.values()) == N - N // 10 - 3
    letters = {record.value for record in read_all(kafka_broker.bootstrap, config.kafka.topics.dead_letters)}
    assert letters == {b"{broken"}
    events = read_all(kafka_broker.bootstrap, config.kafka.topics.importances)
    last = json.loads(events[-1].value)
    assert max(last["features"], key=lambda name: last["features"][name]["importance"]) == "a"
    assert last["source"]["topic"] == topic
    assert len(read_all(kafka_broker.bootstrap, topic)) == N, "nothing is written to it"

    path = tmp_path / "rows.csv"
    path.write_text("a,b,c,label\n1,2,3,true\n")
    refused = CliRunner().invoke(cli, ["produce", "-c", str(second.config_path), str(path), "--model", "m1"])
    assert "which is not ours" in str(refused.exception)
