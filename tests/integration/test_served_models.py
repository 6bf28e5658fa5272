"""Models that are served, on real Kafka: what fails costs time and nothing else, and no other model anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.kafka import produce, read_all
from support.models.served_models import ServedModels
from support.undisturbed import events_by_id, undisturbed
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from tests.integration.configs import created, observation
from tests.integration.served import FACTORY, probabilities

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N = 600
PATIENCE = {"timeout": 0.5, "max_rows": 100}


@pytest.fixture
def server() -> Iterator[ServedModels]:
    with ServedModels({"bank": probabilities}) as one:
        yield one


def of(model: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": model,
        "learn": False,
        "features": {"a": "number", "b": "number", "c": "number"},
        "alpha": 0.01,
        "explainers": {"pfi": {"n_samples": 2}, "sage": {"n_samples": 2}},
        "change": {"window": 200, "detector": "page_hinkley"},
        "publish": {"every": 50},
    }


def served(server: ServedModels) -> dict[str, Any]:
    return of({"served": server.address("bank"), "output": "predictions", "classes": [False, True], **PATIENCE})


def with_models(raw: dict[str, Any], models: dict[str, Any]) -> tuple[dict[str, Any], Config]:
    raw = {**raw, "models": models}
    return raw, parse_config(raw)


def stream(n: int, key: bytes) -> list[Any]:
    return [(key, observation(i, flipped=i > n // 2), []) for i in range(n)]


def metric(worker: WorkerProcess, name: str, model_id: str = "bank") -> float:
    found = worker.samples(f"attributary_endpoint_{name}")
    return sum(value for labels, value in found.items() if ("model_id", model_id) in labels)


def waits(worker: WorkerProcess) -> bool:
    return metric(worker, "waiting_seconds") > 1


def check_alike(broker: Broker, config: Config, raw: dict[str, Any], models: dict[str, Any]) -> None:
    """Check that what was published is what the same models in this process make of the stream, to the last bit."""
    _, own = with_models(raw, models)
    expected = undisturbed(broker.bootstrap, own)
    for topic, sent in expected.sent.items():
        assert events_by_id(read_all(broker.bootstrap, topic)) == sent, topic
    assert expected.sent[config.kafka.topics.importances]
    incidents = [json.loads(value or b"") for value, _ in expected.sent[config.kafka.topics.incidents].values()]
    assert {one["model_id"] for one in incidents} == set(models), "the streams should change the losses"


def test_failures_an_outage_kills_and_stops_lose_and_change_nothing_and_other_models_go_on(
    server: ServedModels, kafka_broker: Broker, tmp_path: Path
) -> None:
    raw, _ = created(kafka_broker, partitions=2)
    with ServedModels({"bank": probabilities}, seed=2) as other:
        raw, config = with_models(raw, {"bank": served(server), "shop": served(other)})
        topic = config.kafka.topics.observations

        def consumed(worker: WorkerProcess) -> tuple[float, float]:
            found = worker.samples("attributary_records_consumed_total")
            at = {dict(labels)["partition"]: n for labels, n in found.items() if dict(labels)["topic"] == topic}
            return at.get("0", 0.0), at.get("1", 0.0)

        of_shop = stream(N, b"shop")
        produce(kafka_broker.bootstrap, topic, stream(N, b"bank"), partition=0)
        produce(kafka_broker.bootstrap, topic, of_shop[: N // 4], partition=1)
        for one in (server, other):
            one.failures = {500: 0.08, "reset": 0.08, "hang": 0.02, 503: 0.02}
        worker = WorkerProcess(raw, tmp_path, forked=True)
        with worker:
            wait_for("a fourth of each", lambda: min(consumed(worker)) >= N // 4, 120)
            server.stop()
            wait_for("observations that wait", lambda: waits(worker), 60)
            produce(kafka_broker.bootstrap, topic, of_shop[N // 4 :], partition=1)
            wait_for("the other model goes on", lambda: consumed(worker)[1] >= N // 2, 60)
            worker.kill()
        with worker:  # the endpoint is still away
            wait_for("observations that wait", lambda: waits(worker), 60)
            wait_for("the other model is through", lambda: consumed(worker)[1] == N, 60)
            assert consumed(worker)[0] < N
            assert metric(worker, "waiting_seconds", "bank") > 0
            assert metric(worker, "waiting_seconds", "shop") == 0
            assert worker.stop() == 0
        with worker:  # it is back while the worker waits for it
            wait_for("observations that wait", lambda: waits(worker), 60)
            server.start()
            worker.wait_consumed(2 * N, timeout_s=120)
            assert worker.total("dead_letters_total") == 0
            assert worker.total("model_observations_total") == 2 * N
            assert metric(worker, "waiting_seconds") == 0
            assert metric(worker, "requests_total") > 0
            assert worker.stop() == 0
        assert sum(one.failed.total() for one in (server, other)) > 20, "a fifth of the requests should have failed"
    assert "had not been foreseen" not in worker.log.read_text()
    check_alike(kafka_broker, config, raw, dict.fromkeys(("bank", "shop"), of({"factory": FACTORY})))
