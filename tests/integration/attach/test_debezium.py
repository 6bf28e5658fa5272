"""Rows of a table as Debezium writes them, in Avro, whose outcome is an update of the same row."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.kafka import create_topics, produce
from support.registry import SchemaRegistry, avro_bytes, framed

from attributary_agents.demo.brokers import Broker
from tests.integration.attach.attached import Attached, shown
from tests.integration.attach.laws import application

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.registry]

N, CHANGED_FROM = 2000, 1000
BEGIN_MS, STEP_MS, DAY_MS = 1_770_000_000_000, 1_800_000, 86_400_000
TOPIC = "core.public.applications"
ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "age", "type": "int"},
        {"name": "job", "type": "string"},
        {"name": "balance", "type": "double"},
        {"name": "duration", "type": "int"},
        {"name": "housing", "type": "boolean"},
        {"name": "subscribed", "type": ["null", "boolean"], "default": None},
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "core.public.applications",
    "fields": [
        {"name": "before", "type": ["null", ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {
            "name": "source",
            "type": {
                "type": "record",
                "name": "Source",
                "namespace": "io.debezium.connector.postgresql",
                "fields": [{"name": "ts_ms", "type": "long"}, {"name": "table", "type": "string"}],
            },
        },
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}


def changes() -> tuple[list[tuple[int, int, dict[str, Any] | None]], Counter[str], dict[int, int]]:
    """Return the table's changes as time, row and envelope; what there is of each kind; when silent rows came.

    An outcome comes five days after its row. Of a hundred rows one is deleted before and one after that, two are
    updated without one, and one never gets it. A deletion is an envelope, and then no value.
    """
    rng = random.Random(1)
    made: list[tuple[int, int, dict[str, Any] | None]] = []
    counts: Counter[str] = Counter()
    silent: dict[int, int] = {}

    def change(at_ms: int, number: int, op: str, before: Any, after: Any) -> None:
        source = {"ts_ms": at_ms, "table": "applications"}
        made.append((at_ms, number, {"before": before, "after": after, "source": source, "op": op, "ts_ms": at_ms}))
        counts[op] += 1

    for i in range(N):
        row, subscribed = application(rng, i, changed=i >= CHANGED_FROM)
        at_ms, kind = BEGIN_MS + i * STEP_MS, i % 100
        change(at_ms, i, "r" if i < 100 else "c", None, row)
        if kind in (20, 21):
            updated = {**row, "balance": -1e6, "job": "retired"}
            change(at_ms + DAY_MS + 1, i, "u", row, updated)
            row = updated
        if kind == 40:
            change(at_ms + DAY_MS + 2, i, "d", row, None)
            made.append((at_ms + DAY_MS + 3, i, None))
        if kind in (40, 60):
            silent[i] = at_ms
            continue
        known = {**row, "subscribed": subscribed}
        change(at_ms + 5 * DAY_MS + 4, i, "u", row, known)
        counts["outcome"] += 1
        if kind == 80:
            change(at_ms + 6 * DAY_MS + 5, i, "d", known, None)
            made.append((at_ms + 6 * DAY_MS + 6, i, None))
    return sorted(made, key=lambda one: one[0]), counts, silent


def test_rows_and_their_outcomes_end_in_importances_and_a_change_in_its_explanation(
    kafka_broker: Broker, schema_registry: SchemaRegistry, tmp_path: Path
) -> None:
    schema_id = schema_registry.register(f"{TOPIC}-value", ENVELOPE)
    made, counts, silent = changes()
    create_topics(kafka_broker.bootstrap, {TOPIC: 3})
    records = [
        (str(number).encode(), None if one is None else framed(schema_id, avro_bytes(ENVELOPE, one)), [])
        for _, number, one in made
    ]
    produce(kafka_broker.bootstrap, TOPIC, records)

    raw = shown("debezium.md", "debezium.yaml")
    raw["kafka"]["schema_registry"]["url"] = schema_registry.url
    attached = Attached(raw, kafka_broker, tmp_path)
    with attached.worker:
        attached.wait_accepted(N + counts["outcome"])
        assert attached.by("origin_records_total", "outcome") == {"accepted": N + counts["outcome"]}
        account = {name: n for name, n in attached.account("bank").items() if n or name in ("waiting", "early")}
        assert attached.worker.stop() == 0

    last = max(at_ms for at_ms, _, one in made if one is not None and one["op"] == "u")
    expired = sum(at_ms + 30 * DAY_MS < last for at_ms in silent.values())
    assert expired > 0
    assert account == {
        "observed": N,
        "labels_joined": counts["outcome"],
        "expired_ttl": expired,
        "waiting": len(silent) - expired,
        "early": 0,
    }
    assert attached.dead_letters() == []
    first, last_event = attached.importance_until("bank", CHANGED_FROM), attached.importance("bank")
    assert attached.most_important(first) == "duration"
    assert attached.most_important(last_event) == "balance"
    assert set(last_event["features"]) == {"age", "job", "balance", "duration", "housing"}
    n_before = sum(i not in silent for i in range(CHANGED_FROM))
    attached.check_told("bank", "debezium.md", n_before)
    gained = attached.changed("bank")
    assert set(gained) == {"duration", "balance"}
    assert gained["duration"] < 0 < gained["balance"]
