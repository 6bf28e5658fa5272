"""What a service publishes is as the contracts say, and the page of `attributary serve` shows it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from river import linear_model, preprocessing, tree

from attributary_agents.serve.reading import arrived, kinds_of
from attributary_agents.serve.store.store import Store
from attributary_agents.serve.views.whole import whole
from attributary_explainers import Monitor
from attributary_explainers.monitor.settings import PublishRule
from tests.agents.serve.views.stores import config_of
from tests.explainers.monitor.test_monitor import credit

CONTRACTS = Path(__file__).resolve().parents[3] / "docs" / "contracts"
Records = list[tuple[str, bytes, bytes, list[tuple[str, bytes]]]]


def watched(monitor: Monitor, from_ms: int = 0) -> Records:
    """What is said of a stream that changes half-way, and of a version that takes over at its end."""
    sent: Records = []
    model = tree.HoeffdingTreeClassifier(grace_period=50)
    monitor.add("bank", model, learn=True, change={"window": 100}, publish=PublishRule(every=100))
    monitor.publish_to(lambda *record: sent.append(record))
    for n, (x, y) in enumerate(credit(1200)):
        monitor.observe("bank", x, y, time_ms=from_ms + 1000 * n)
    monitor.replace("bank", model.clone(), "2", time_ms=from_ms + 1_200_000)
    return sent


def of_prices() -> Records:
    """What is said of a regressor whose loss rises until it has learnt that another feature counts now."""
    sent: Records = []
    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    monitor = Monitor(in_background=False).publish_to(lambda *record: sent.append(record))
    monitor.add("price", model, learn=True, alpha=0.005, change={"window": 200}, publish={"every": 200})
    rng = random.Random(1)
    for n in range(3000):
        x = {name: rng.gauss(0.0, 1.0) for name in ("f0", "f1", "f2")}
        y = 10.0 + 5.0 * x["f0" if n < 1500 else "f1"] + x["f2"] + rng.gauss(0.0, 0.5)
        monitor.observe("price", x, y, time_ms=1000 * n)
    return sent


@pytest.fixture(scope="module")
def records() -> Records:
    return watched(Monitor(in_background=False))


def faults(kind: str, value: Any) -> list[str]:
    """What the committed schema of a kind of record finds wrong with one."""
    schema = json.loads((CONTRACTS / f"{kind}.schema.json").read_text())
    return [error.message for error in Draft202012Validator(schema).iter_errors(value)]


def test_every_event_is_as_the_committed_contracts_say(records: Records) -> None:
    seen: set[str] = set()
    for topic, key, value, headers in (*records, *of_prices()):
        event, kind = json.loads(value), topic.split(".")[1].removesuffix("s")
        assert topic == f"attributary.{kind}s.v1"
        assert key == event["model_id"].encode()
        assert faults(kind, event) == []
        assert faults(kind, {**event, "model_version": 2}), "the schema would let anything through"
        assert "source" not in event, "there is no record"
        assert faults("event-headers", {name: text.decode() for name, text in headers}) == []
        seen.add(event.get("event", kind))
    assert seen == {"importance", "incident"}


def test_what_a_service_says_after_a_restart_is_taken_for_no_repetition(records: Records) -> None:
    again = watched(Monitor(in_background=False), from_ms=10_000_000)
    assert len(again) == len(records)
    assert not {dict(one[3])["ce_id"] for one in again} & {dict(one[3])["ce_id"] for one in records}


def test_the_page_shows_a_service_s_model(records: Records) -> None:
    kinds: dict[str, Any] = dict(kinds_of(config_of({"bank": {}}).kafka.topics))
    with Store() as store:
        for n, (topic, key, value, headers) in enumerate(records):
            record = SimpleNamespace(
                topic=topic, partition=0, offset=n, key=key, value=value, headers=headers, timestamp=n
            )
            if topic in kinds:
                store.take([arrived(record, kinds[topic])])
        assert store.n_refused == 0
        found = whole(store, config_of({"bank": {}}), build="1")
    assert set(found["models"]) == {"bank"}
    incidents = {json.loads(value)["id"] for topic, _, value, _ in records if topic.endswith("incidents.v1")}
    assert incidents
    assert found["incidents"].keys() == incidents
    assert {json.loads(value)["observation"] for topic, _, value, _ in records if topic.endswith("importances.v1")} >= {
        100 * i for i in range(3, 13)
    }
