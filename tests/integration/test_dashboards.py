"""Every query of every dashboard, asked of a real Prometheus that has scraped a real worker on Apache Kafka.

A model changes, another rejects its alarm, records are bad, a new version takes over. The time range is what Prometheus
has seen; its scrape interval, a second, is what Grafana is told.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from benchmarks.dashboards.grafana import Session, panels
from benchmarks.harness import WorkerProcess
from click.testing import CliRunner

from attributary_agents.brokers import Broker
from attributary_agents.cli import cli
from attributary_agents.config import parse_config
from attributary_agents.monitoring.dashboards import dashboards
from attributary_agents.topic_admin import create_topics
from tests.integration.configs import logistic_config, observation
from tests.support.kafka import produce
from tests.support.monitoring import Prometheus, Series, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.prometheus]
DASHBOARDS = {name: json.loads(text) for name, text in dashboards().items()}
CHANGED, REJECTED = "credit", "fraud"
RULES = {
    "groups": [
        {
            "name": "test",
            "rules": [
                {
                    "alert": "AttributaryTest",
                    "expr": "attributary_model_info == 1",
                    "labels": {"severity": "info"},
                }
            ],
        }
    ]
}


@pytest.fixture(scope="module")
def seen(kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, float, float]]:
    """Prometheus, and the time range in which everything has happened."""
    folder = tmp_path_factory.mktemp("dashboards")
    raw = logistic_config(kafka_broker.bootstrap, models=(CHANGED, REJECTED))
    never = {**raw["models"][REJECTED]["change"], "threshold": 0.95}
    raw["models"] = {
        CHANGED: {**raw["models"][CHANGED], "explain": {"budget": 0.9}},
        REJECTED: {**raw["models"][REJECTED], "change": never},
    }
    config = parse_config(raw)
    create_topics(config)
    topic = config.kafka.topics.observations
    rules = folder / "rules.yml"
    rules.write_text(yaml.safe_dump(RULES))

    def send(values: list[bytes]) -> None:
        produce(
            kafka_broker.bootstrap,
            topic,
            [(model.encode(), value, []) for value in values for model in (CHANGED, REJECTED)],
            partition=0,
        )

    with WorkerProcess(raw, folder) as worker:
        scrape: dict[str, Any] = {
            "job_name": "attributary",
            "static_configs": [{"targets": [f"127.0.0.1:{worker.port}"]}],
        }
        settings = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [scrape],
        }
        with Prometheus(folder, settings) as prometheus:
            began = time.time()

            def holds(expr: str) -> None:
                wait_for(expr, lambda: prometheus.query(expr), 90)

            wait_for("the worker is ready", worker.is_ready, 90)
            send([observation(i) for i in range(1000)])
            send([b"{poison", json.dumps({"x": {"a": 1.0}}).encode()])
            holds("sum(attributary_model_observations_total) == 2000 and count(attributary_model_state_bytes) == 2")
            before = time.time()
            holds(f"timestamp(attributary_model_info) > {before + 3}")
            send([observation(i, flipped=True) for i in range(1500)])
            holds(f'sum(attributary_model_changes_total{{model_id="{CHANGED}"}}) > 0')
            holds(f'attributary_model_rejected_discrepancy{{model_id="{REJECTED}"}} > 0')
            version = ["--class", "river.naive_bayes.GaussianNB", "--version", "2"]
            deployed = CliRunner().invoke(
                cli, ["models", "deploy", CHANGED, "-c", str(worker.config_path), "--partition", "0", *version]
            )
            assert deployed.exit_code == 0, deployed.output
            holds('sum(attributary_records_consumed_total{topic=~".*models.*"}) == 1')
            send([observation(i, flipped=True) for i in range(300)])
            holds('attributary_model_info{version="2"}')
            holds("sum(attributary_consumer_lag_records) == 0")
            after = time.time()
            holds(f"timestamp(attributary_model_info) > {after + 3}")
            yield prometheus, began, time.time()


def told(answer: list[Series]) -> int:
    """How many points of it are numbers."""
    return sum(not math.isnan(value) for series in answer for _, value in series.points)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_query_of_every_panel_and_annotation_returns_data(
    name: str, seen: tuple[Prometheus, float, float]
) -> None:
    prometheus, began, ended = seen
    # Each model has what the other has not: a change, a rejected alarm.
    models = (CHANGED, REJECTED) if name == "attributary-model.json" else ("",)
    points: dict[tuple[str, str], int] = {}
    for model in models:
        chosen = {"before": "5s", **({"model_id": model} if model else {})}
        session = Session(prometheus, DASHBOARDS[name], began, ended, 1, chosen)
        for panel in panels(DASHBOARDS[name]):
            for asked in session.ask(panel):
                at = panel["title"], asked.ref
                points[at] = points.get(at, 0) + told(asked.answer)
        for annotation, asked in session.annotations():
            at = annotation["name"], "annotation"
            points[at] = points.get(at, 0) + sum(value > 0 for s in asked.answer for _, value in s.points)
    assert points
    assert [at for at, n in points.items() if not n] == []
