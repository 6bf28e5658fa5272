"""Rentals over six partitions, their counts an hour later over three: one model, or one for each station."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support.kafka import create_topics, produce

from attributary_agents.demo.brokers import Broker
from tests.integration.attach.attached import Attached, shown
from tests.integration.attach.laws import rental

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N, CHANGED_FROM, STEP_MS = 2400, 1200, 30_000
BEGIN_MS, HOUR_MS = 1_780_000_000_000, 3_600_000


@pytest.fixture(scope="module")
def rentals(kafka_broker: Broker) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Each rental that is on the topic, with its count; one of fifty is never counted."""
    rng = random.Random(1)
    made: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
    for i in range(N):
        record, count = rental(rng, i, at_ms=BEGIN_MS + i * STEP_MS, changed=i >= CHANGED_FROM)
        counted = {"id": record["id"], "ts": record["ts"] + HOUR_MS, "station": record["station"], "count": count}
        made.append((record, counted if i % 50 != 7 else None))
    create_topics(kafka_broker.bootstrap, {"rentals": 6, "counts": 3})
    stations = [(record["station"].encode(), json.dumps(record).encode(), []) for record, _ in made]
    produce(kafka_broker.bootstrap, "rentals", stations)
    counts = [(None, json.dumps(counted).encode(), []) for _, counted in made if counted is not None]
    produce(kafka_broker.bootstrap, "counts", counts)
    return made


def expected_account(of_model: list[tuple[dict[str, Any], dict[str, Any] | None]], ttl_ms: int) -> dict[str, int]:
    """Return what must become of a model's rentals, by their times alone."""
    joined = sum(counted is not None for _, counted in of_model)
    last = max(record["ts"] if counted is None else counted["ts"] for record, counted in of_model)
    silent = [record["ts"] for record, counted in of_model if counted is None]
    expired = sum(ts + ttl_ms < last for ts in silent)
    account = {"labels_joined": joined, "observed": len(of_model), "waiting": len(silent) - expired, "early": 0}
    return account | ({"expired_ttl": expired} if expired else {})


@pytest.mark.parametrize("file", ["bike-sharing.yaml", "stores.yaml"])
def test_rentals_and_their_counts_end_in_importances_and_a_change_in_its_explanation(
    kafka_broker: Broker, rentals: list[tuple[dict[str, Any], dict[str, Any] | None]], tmp_path: Path, file: str
) -> None:
    attached = Attached(shown("bike-sharing.md", file), kafka_broker, tmp_path)
    models: dict[str, list[tuple[dict[str, Any], dict[str, Any] | None]]] = {}
    for one in rentals:
        models.setdefault("bikes" if file == "bike-sharing.yaml" else f"store-{one[0]['station']}", []).append(one)
    total = N + sum(counted is not None for _, counted in rentals)
    with attached.worker:
        attached.wait_accepted(total)
        assert attached.by("origin_records_total", "outcome") == {"accepted": total}
        for model_id, of_model in models.items():
            found = {name: n for name, n in attached.account(model_id).items() if n or name in ("waiting", "early")}
            assert found == expected_account(of_model, 3 * HOUR_MS)
        status = json.loads(attached.run("sources", "status", "--json").stdout)
        assert attached.worker.stop() == 0
    assert {one["name"] for one in status} == {"rentals", "counts"}
    places = [place for one in status for place in one["places"]]
    assert (len(places), {place["lag"] for place in places}) == (9, {0})
    assert attached.dead_letters() == []
    for model_id, of_model in models.items():
        n_before = sum(counted is not None for record, counted in of_model if int(record["id"][1:]) < CHANGED_FROM)
        before, last = attached.importance_until(model_id, n_before), attached.importance(model_id)
        assert (attached.most_important(before), attached.most_important(last)) == ("temp", "hum")
        assert "station" not in last["features"]
        attached.check_told(model_id, "bike-sharing.md", n_before)
        gained = attached.changed(model_id)
        assert set(gained) <= {"temp", "hum"}
        assert gained["temp"] < 0
