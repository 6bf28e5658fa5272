"""The accounts of the scenarios with sources see a record too many, one too few, and a label that is lost."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from benchmarks.chaos.compare.accounts import unbalanced
from benchmarks.chaos.lab.attached import PARTITIONS, attached_config, attached_records, fate

from attributary_agents.config.reading import parse_config
from attributary_explainers.monitor.joiner import Joiner

N = 3_000


def test_the_configuration_is_one() -> None:
    config = parse_config(attached_config("localhost:9092", "attached"))
    assert list(config.sources) == ["visits"]
    assert list(config.labels) == ["outcomes"]


def test_outcomes_come_in_every_way() -> None:
    records = attached_records("here", N, seed=1, drift_at=N)
    assert {one.topic for one in records} == {f"here-{name}" for name in PARTITIONS}
    assert all(0 <= one.partition < PARTITIONS[(one.topic or "").removeprefix("here-")] for one in records)
    times = [one.time_ms or 0 for one in records]
    assert times == sorted(times)
    kinds = Counter(fate((one.topic or "").removeprefix("here-"), one.value).partition("-")[0] for one in records)
    assert kinds["dead letter"] > 5
    assert kinds["passed over"] > 5
    visits = [json.loads(one.value or b"") for one in records if b'"id": "v' in (one.value or b"")]
    outcomes = Counter(json.loads(one.value or b"")["visit"] for one in records if b'"visit": ' in (one.value or b""))
    assert len(visits) == N
    assert sum(name.startswith("stray") for name in outcomes) > 10
    assert sum(n == 2 for n in outcomes.values()) > 20
    known = [outcomes[visit["id"]] for visit in visits[: N - 700]]
    assert 0.01 < known.count(0) / len(known) < 0.06


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("observed", ["observed 3, accounted for 2"]),
        ("expired_ttl", ["observed 2, accounted for 3"]),
        ("labels", ["labels 2, accounted for 1"]),
        ("duplicate", ["labels 1, accounted for 2"]),
        ("joined", ["observed 2, accounted for 3", "labels 1, accounted for 2"]),
    ],
)
def test_one_too_many_or_too_few_is_named(field: str, said: list[str]) -> None:
    joiner = Joiner(ttl_ms=1000, max_waiting=10)
    joiner.move(1)
    joiner.observe("a", 1, {"x": 1.0}, 0.0, "1", 0)
    joiner.observe("b", 1, {"x": 1.0}, 0.0, "1", 0)
    joiner.label("a", 1, 1.0)
    assert unbalanced(joiner) == []
    setattr(joiner.counts, field, getattr(joiner.counts, field) + 1)
    assert unbalanced(joiner) == said
