"""Labels that are shuffled, late, doubled, missing, or first; and a day of them that is read at once."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support.kafka import create_topics, produce

from attributary_agents.demo.brokers import Broker
from tests.integration.attach.attached import Attached

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N, STEP_MS, MINUTE_MS = 2880, 30_000, 60_000  # a day
BEGIN_MS, TTL_MS = 1_780_000_000_000, 120 * 60_000


def made() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a day of loans, and their outcomes in the order in which they are written."""
    rng = random.Random(3)
    loans, outcomes = [], []
    for i in range(N):
        at_ms = BEGIN_MS + i * STEP_MS
        age, amount = rng.randrange(18, 80), round(rng.gauss(0, 1), 3)
        loans.append({"loan": i, "at": at_ms, "age": age, "amount": amount})
        kind = rng.random()
        if kind < 0.04:
            continue  # missing
        minutes = rng.uniform(1, 80)
        if kind < 0.09:
            minutes = rng.uniform(150, 200)  # too late
        elif kind < 0.14:
            minutes = -rng.uniform(1, 30)  # first
        outcome = {"loan": i, "at": at_ms + round(minutes * MINUTE_MS), "paid": amount > 0}
        outcomes.append(outcome)
        if kind > 0.95:
            again = outcome["at"] + round(rng.uniform(0.1, 5) * MINUTE_MS)
            outcomes.append({**outcome, "at": again, "paid": outcome["paid"] if kind > 0.97 else not outcome["paid"]})
    outcomes += [{"loan": -i, "at": BEGIN_MS + i * 10 * MINUTE_MS, "paid": True} for i in range(1, 31)]  # of nothing
    outcomes.sort(key=lambda one: one["at"] + rng.uniform(0, 20 * MINUTE_MS))
    return loans, outcomes


def test_a_day_of_them_is_joined_as_far_as_the_data_allow(kafka_broker: Broker, tmp_path: Path) -> None:
    loans, outcomes = made()
    create_topics(kafka_broker.bootstrap, {"loans": 3, "outcomes": 2})
    produce(kafka_broker.bootstrap, "loans", [(None, json.dumps(one).encode(), []) for one in loans])
    keyed = [(str(one["loan"]).encode(), json.dumps(one).encode(), []) for one in outcomes]
    produce(kafka_broker.bootstrap, "outcomes", keyed)
    raw = {
        "kafka": {"partitions": 1},
        "sources": {"loans": {"topic": "loans", "id": "loan", "time": "at"}},
        "labels": {"outcomes": {"topic": "outcomes", "id": "loan", "time": "at", "y": "paid", "ttl": "2h"}},
        "models": {"credit": {"model": {"class": "river.naive_bayes.GaussianNB"}, "change": None}},
    }
    attached = Attached(raw, kafka_broker, tmp_path)
    total = len(loans) + len(outcomes)
    with attached.worker:
        attached.wait_accepted(total)
        assert attached.by("origin_records_total", "outcome") == {"accepted": total}
        account = attached.account("credit")
        learnt = attached.by("model_observations_total", "model_id")
        assert attached.worker.stop() == 0
    assert attached.dead_letters() == []

    came = {one["loan"]: one["at"] for one in loans}
    labelled = {one["loan"]: one["at"] for one in sorted(outcomes, key=lambda one: -one["at"])}  # the first one counts
    joined = {loan for loan, at in labelled.items() if loan in came and abs(at - came[loan]) <= TTL_MS}
    n_repeated = sum(one["loan"] in joined for one in outcomes) - len(joined)
    assert 0.85 < len(joined) / N < 0.95
    assert n_repeated > 50
    assert account["labels_joined"] == learnt["credit"] == len(joined)
    assert account["observed"] == N == len(joined) + account["waiting"] + account["expired_ttl"]
    assert account["labels_duplicate"] + account["labels_changed"] == n_repeated
    of_nothing = sum(one["loan"] not in came for one in outcomes)
    assert account["labels_orphaned"] == of_nothing
    assert account["labels_late"] == sum(one["loan"] in came.keys() - joined for one in outcomes)
    counted = sum(n for name, n in account.items() if name.startswith("labels_")) + account["early"]
    assert counted == len(outcomes)
