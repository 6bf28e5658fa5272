"""What KServe logs of two services, requests and responses apart: a mirror of each, and one of them that changes."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.kafka import create_topics, produce

from attributary_agents.demo.brokers import Broker
from tests.integration.attach.attached import Attached, shown
from tests.integration.attach.laws import score, transaction

pytestmark = [pytest.mark.long, pytest.mark.kafka]

ROWS, CHANGED_FROM = 10, 3200
REQUESTS = {"fraud-a": 480, "fraud-b": 300}
BEGIN_MS, STEP_MS = 1_780_000_000_000, 1000
NAMES = ["amount", "distance", "hour", "age"]

Sent = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]


def event(service: str, kind: str, number: int, at_ms: int, value: dict[str, Any]) -> tuple[int, Sent]:
    at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    headers = {
        "ce_specversion": "1.0",
        "ce_id": f"{service}-{number}",
        "ce_source": "http://localhost:9081/",
        "ce_type": f"org.kubeflow.serving.inference.{kind}",
        "ce_time": at,
        "ce_inferenceservicename": service,
        "ce_namespace": "default",
        "content-type": "application/json",
    }
    return at_ms, (None, json.dumps(value).encode(), [(name, text.encode()) for name, text in headers.items()])


def logged(service: str, n: int, *, lost: set[int]) -> list[tuple[int, Sent]]:
    """Return what is logged of a service, with the times: n requests, and the responses that are not lost."""
    rng, made = random.Random(service), []
    for number in range(n):
        rows = [transaction(rng) for _ in range(ROWS)]
        changed = service == "fraud-a" and number * ROWS >= CHANGED_FROM
        tensor = {"name": "transaction", "shape": [ROWS, len(NAMES)], "datatype": "FP64"}
        data = [[row[name] for name in NAMES] for row in rows]
        inputs = [{**tensor, "data": data, "parameters": {"names": NAMES}}]
        scores = [score(row, changed=changed) for row in rows]
        outputs = [{"name": "score", "shape": [ROWS, 1], "datatype": "FP64", "data": scores}]
        at_ms = BEGIN_MS + number * STEP_MS + (service == "fraud-b")
        made.append(event(service, "request", number, at_ms, {"inputs": inputs}))
        if number not in lost:
            answer = {"model_name": service, "model_version": "1", "outputs": outputs}
            made.append(event(service, "response", number, at_ms + 40, answer))
    return made


def test_two_services_have_mirrors_and_the_change_of_one_is_explained(kafka_broker: Broker, tmp_path: Path) -> None:
    lost = {"fraud-a": {5, 50, 475}, "fraud-b": set[int]()}
    made = [one for service, n in REQUESTS.items() for one in logged(service, n, lost=lost[service])]
    create_topics(kafka_broker.bootstrap, {"inference-logs": 3})
    produce(kafka_broker.bootstrap, "inference-logs", [sent for _, sent in sorted(made, key=lambda one: one[0])])

    attached = Attached(shown("inference-logs.md", "inference-logs.yaml"), kafka_broker, tmp_path)
    checked = attached.run("check", "--sample", "100")
    assert (checked.exit_code, "1 of 1 models work" in checked.output) == (0, True), checked.output
    with attached.worker:
        attached.wait_accepted(ROWS * len(made))
        assert attached.by("origin_records_total", "outcome") == {"accepted": ROWS * len(made)}
        expired = attached.by("observations_expired_total", "model_id", reason="pair")
        fidelity = attached.samples("model_fidelity_ratio")
        learnt = attached.by("model_observations_total", "model_id")
        assert attached.worker.stop() == 0

    assert attached.dead_letters() == []
    assert expired == {"fraud-a": ROWS * 2}  # the third one may still be answered
    assert learnt == {"fraud-a": ROWS * (REQUESTS["fraud-a"] - 3), "fraud-b": ROWS * REQUESTS["fraud-b"]}
    assert {service: value > 0.8 for ((_, service),), value in fidelity.items()} == dict.fromkeys(REQUESTS, True)
    for service, most in (("fraud-a", "distance"), ("fraud-b", "amount")):
        before, last = attached.importance_until(service, CHANGED_FROM), attached.importance(service)
        assert (last["mode"], set(last["features"])) == ("mirror", set(NAMES))
        assert last["fidelity"] > 0.8
        assert (attached.most_important(before), attached.most_important(last)) == ("amount", most)
    attached.check_told("fraud-a", "inference-logs.md", CHANGED_FROM - 2 * ROWS)
    gained = attached.changed("fraud-a")
    assert set(gained) <= {"amount", "distance", "hour"}, "the age has no part in it"
    assert gained["amount"] < 0 < gained["distance"]
    assert abs(gained.get("hour", 0)) < min(-gained["amount"], gained["distance"]) / 2
    assert "distance" not in attached.changed("fraud-b")
