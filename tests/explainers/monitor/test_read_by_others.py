"""What a service publishes is as the contracts say, and the page of `attributary serve` shows it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from river import tree

from attributary_agents.serve.reading.records import arrived, kinds_of
from attributary_agents.serve.store.store import Store
from attributary_agents.serve.views.whole import whole
from attributary_explainers import Monitor
from attributary_explainers.monitor.settings import PublishRule
from tests.agents.serve.views.stores import config_of
from tests.explainers.monitor.test_monitor import credit

CONTRACTS = Path(__file__).resolve().parents[3] / "docs" / "contracts"
Records = list[tuple[str, bytes, bytes, list[tuple[str, bytes]]]]


@pytest.fixture(scope="module")
def records() -> Records:
    sent: Records = []
    model = tree.HoeffdingTreeClassifier(grace_period=50)
    monitor = Monitor(in_background=False).add(
        "bank", model, learn=True, change={"window": 100}, publish=PublishRule(every=100)
    )
    monitor.publish_to(lambda *record: sent.append(record))
    for n, (x, y) in enumerate(credit(1200)):
        monitor.observe("bank", x, y, time_ms=1000 * n)
    monitor.replace("bank", model.clone(), "2", time_ms=1_200_000)
    return sent


def without_records(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an event that follows from no record: all but `source` is the same."""
    schema = copy.deepcopy(schema)
    for part in (schema, *schema.get("$defs", {}).values()):
        if "source" in part.get("required", ()):
            part["required"].remove("source")
    return schema


def test_events_are_as_the_contracts_say_but_for_the_record(records: Records) -> None:
    schemas = {
        f"attributary.{kind}s.v1": json.loads((CONTRACTS / f"{kind}.schema.json").read_text())
        for kind in ("importance", "change")
    }
    headers_schema = Draft202012Validator(json.loads((CONTRACTS / "event-headers.schema.json").read_text()))
    assert {topic for topic, *_ in records} == set(schemas)
    for topic, key, value, headers in records:
        event = json.loads(value)
        assert key == b"bank"
        assert list(Draft202012Validator(without_records(schemas[topic])).iter_errors(event)) == []
        assert [one.message for one in Draft202012Validator(schemas[topic]).iter_errors(event)], "source is not there"
        assert list(headers_schema.iter_errors({name: text.decode() for name, text in headers})) == []


def test_the_page_shows_a_service_s_model(records: Records) -> None:
    kinds: dict[str, Any] = dict(kinds_of(config_of({"bank": {}}).kafka.topics))
    with Store() as store:
        for n, (topic, key, value, headers) in enumerate(records):
            record = SimpleNamespace(
                topic=topic, partition=0, offset=n, key=key, value=value, headers=headers, timestamp=n
            )
            store.take([arrived(record, kinds[topic])])
        assert store.n_refused == 0
        found = whole(store, config_of({"bank": {}}), build="1")
    assert set(found["models"]) == {"bank"}
    changes = [json.loads(value) for topic, _, value, _ in records if topic.endswith("changes.v1")]
    assert len(changes) > 1
    assert found["models"]["bank"]["changes"]["n"] > 0
    assert {json.loads(value)["observation"] for topic, _, value, _ in records if topic.endswith("importances.v1")} >= {
        100 * i for i in range(3, 13)
    }
