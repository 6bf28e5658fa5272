"""Ten kinds of bad record each end in the dead-letter topic as they were, with a reason; the worker goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kafka import produce, read_all
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics
from tests.integration.configs import logistic_config, observation

pytestmark = pytest.mark.long

X = b'{"x": {"a": 1, "b": 2, "c": 3}, "y": true}'
BAD: dict[str, tuple[bytes | None, bytes | None, str]] = {
    "no JSON": (b"credit", b"{poison", "invalid_json"),
    "no model id": (None, X, "missing_model_id"),
    "wrong types": (b"credit", b'{"x": {"a": "one", "b": 2, "c": 3}, "y": true}', "wrong_type"),
    "NaN": (b"credit", b'{"x": {"a": NaN, "b": 2, "c": 3}, "y": true}', "not_finite"),
    "infinity": (b"credit", b'{"x": {"a": 1, "b": -Infinity, "c": 3}, "y": true}', "not_finite"),
    "missing features": (b"credit", b'{"x": {"a": 1, "c": 3}, "y": true}', "missing_feature"),
    "unknown model": (b"debit", X, "unknown_model"),
    "empty value": (b"credit", b"", "empty_value"),
    "no value at all": (b"credit", None, "empty_value"),
    "2 MB value": (b"credit", b'{"x": {"a": "' + b"x" * 2_000_000 + b'"}}', "too_large"),
    "bad UTF-8 key": (b"\xff\xfe", X, "invalid_model_id"),
}
HEADERS = [("trace", b"\x00\x01")]


@pytest.mark.parametrize(
    "fixture",
    [
        pytest.param("kafka_broker", marks=[pytest.mark.kafka]),
        pytest.param("embedded_broker", marks=[pytest.mark.embedded]),
    ],
)
def test_bad_records_end_in_the_dead_letters_and_the_worker_goes_on(
    fixture: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    broker: Broker = request.getfixturevalue(fixture)
    raw = logistic_config(broker.bootstrap)
    raw["kafka"]["instance_id"] = "only"
    config = parse_config(raw)
    topics = config.kafka.topics
    create_topics(config)
    records = []
    for i, (key, value, _) in enumerate(BAD.values()):
        records += [(key, value, HEADERS), (b"credit", observation(i), [])]
    produce(broker.bootstrap, topics.observations, records, partition=0)

    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(len(records), timeout_s=60)
        consumed, explained = worker.total("records_consumed_total"), worker.total("model_observations_total")
        by_reason = worker.metrics()["attributary_dead_letters_total"]
        assert worker.stop() == 0

    letters = read_all(broker.bootstrap, topics.dead_letters)
    found = {(letter.key, letter.value): dict(letter.headers) for letter in letters}
    assert len(letters) == len(BAD)
    for key, value, reason in BAD.values():
        headers = found[key, value]
        assert headers["attributary-dlq-reason"] == reason.encode()
        assert headers["attributary-dlq-message"]
        assert headers["attributary-dlq-topic"] == topics.observations.encode()
        assert headers["trace"] == HEADERS[0][1]
    assert consumed == len(records) == explained + len(letters)
    assert explained == len(BAD)
    assert sum(by_reason.values()) == len(BAD)
    for reason in {reason for _, _, reason in BAD.values()}:
        count = by_reason[("partition", "0"), ("reason", reason), ("topic", topics.observations)]
        assert count == sum(reason == other for _, _, other in BAD.values())
