"""Every kind of bad record ends in the dead-letter topic as they were, with a reason; the worker goes on."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from support.kafka import produce, read_all
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from tests.agents.stand_ins import BAD, GOOD
from tests.integration.configs import created

pytestmark = pytest.mark.long

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
    raw, config = created(broker, models=("m",), kafka={"instance_id": "only"})
    raw["models"]["m"]["features"] = {"a": "number", "b": "number"}
    topics = config.kafka.topics
    records = []
    for key, value, _ in BAD.values():
        records += [(key, value, HEADERS), (b"m", GOOD, [])]
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
    by_name = Counter(reason for _, _, reason in BAD.values())
    # The log has each reason once as it comes, the rest by number at the stop, and nothing out of a record.
    log = worker.log.read_text(errors="replace")
    for reason in by_name:
        n_more = [int(n) for n in re.findall(rf"(\d+) more dead letters in \d+ s: {reason} ", log)]
        assert log.count(f"dead letter: {reason} ") + sum(n_more) == by_name[reason]
        assert log.count(f"dead letter: {reason} ") == 1
    assert not [text for text in ("poison", "debit", '"one"') if text in log]
