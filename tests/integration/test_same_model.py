"""The same model on Apache Kafka says what the library says of it in one process: from a file, and asked over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.models.given import WAYS
from benchmarks.models.same import MODEL_ID, Explained, given, in_own_process, published
from support.kafka import produce, read_all
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from tests.agents.models.trained import ESTIMATORS, N_TRAINED, ROWS, X, Y
from tests.integration.configs import created

pytestmark = [pytest.mark.long, pytest.mark.kafka]


@pytest.mark.parametrize("way", ["V2 over HTTP", "ONNX"])
def test_a_worker_says_what_the_library_says(way: str, kafka_broker: Broker, tmp_path: Path) -> None:
    estimator = ESTIMATORS["linear"].fit(X[:N_TRAINED], Y[:N_TRAINED])
    with given(WAYS[way], estimator) as said:
        raw, config = created(kafka_broker)
        raw |= said
        topics = config.kafka.topics
        values = [json.dumps({"x": dict(x), "y": y}).encode() for x, y in ROWS]
        produce(kafka_broker.bootstrap, topics.observations, [(MODEL_ID.encode(), value, []) for value in values])
        with WorkerProcess(raw, tmp_path) as worker:
            worker.wait_consumed(len(ROWS), timeout_s=120)
            assert worker.stop() == 0
    reference = in_own_process(estimator, ROWS)
    events = published(record.value or b"" for record in read_all(kafka_broker.bootstrap, topics.importances))
    assert len(events) == 3
    assert Explained(events, reference.left_out, 0.0).differs(reference) <= WAYS[way].tolerance
