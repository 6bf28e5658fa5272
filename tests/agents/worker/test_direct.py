"""A topic that is not ours, read in place of ours because its key is the model id."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import ConfigError
from attributary_agents.kafka.topics.specs import topic_specs
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from tests.agents.stand_ins import FACTORY, balances, header

SOURCE = {"topic": "rentals", "key": "direct", "model": "{$key}", "y": "late", "where": "kind == 'trip'", "time": "ts"}
MODELS = {"m": {"factory": FACTORY, "publish": {"every": 5, "min_observations": 5}}}


def config(**source: Any) -> Any:
    return parse_config({"sources": {"s": {**SOURCE, **source}}, "models": MODELS})


def row(n: int, **more: Any) -> dict[str, Any]:
    return {"kind": "trip", "ts": 1_700_000_000 + n, "a": 1.0 if n % 3 else -1.0, "b": n / 7, "late": n % 3 > 0, **more}


def record(topic: str, offset: int, value: Any, key: bytes | None = b"m") -> Record:
    encoded = value if isinstance(value, bytes) or value is None else orjson.dumps(value)
    return Record(topic, 0, offset, 1_700_000_000_000 + 1000 * offset, key, encoded)


def test_observations_are_those_that_would_be_on_our_topic() -> None:
    direct = Partition("rentals", 0, config(), {}.get)
    ours = Partition("rentals", 0, parse_config({"models": MODELS}), {}.get)
    for n in range(60):
        fields = row(n)
        x = {name: fields[name] for name in ("a", "b")}
        told = direct.handle(record("rentals", n, fields))
        expected = ours.handle(record("rentals", n, {"x": x, "y": fields["late"], "time": fields["ts"] * 1000}))
        assert [(one.value, one.headers) for one in told] == [(one.value, one.headers) for one in expected]
    assert direct.models["m"].n_observations == 60
    assert direct.counters.used == 60


def test_what_is_passed_over_is_counted_and_what_is_wrong_is_a_dead_letter_with_its_bytes() -> None:
    partition = Partition("rentals", 0, config(), {}.get)
    partition.handle(record("rentals", 0, row(0)))
    assert partition.handle(record("rentals", 1, row(1, kind="other"))) == []
    assert partition.handle(record("rentals", 2, None)) == []
    (letter,) = partition.handle(record("rentals", 3, row(3, a={"deep": 1}, late=None)))
    assert header(letter, "attributary-dlq-reason") == "missing_label"
    assert letter.value == orjson.dumps(row(3, a={"deep": 1}, late=None))
    (letter,) = partition.handle(record("rentals", 4, b"{"))
    assert header(letter, "attributary-dlq-reason") == "invalid_json"
    (letter,) = partition.handle(record("rentals", 5, row(5), key=b"nobody"))
    assert header(letter, "attributary-dlq-reason") == "unknown_model"
    assert partition.counters.origins.counts["passed_over"] == 2
    assert partition.models["m"].n_observations == 1
    assert balances(partition.counters)


def test_its_topic_is_neither_made_nor_mapped_nor_written_to() -> None:
    chosen = config()
    assert chosen.kafka.topics.observations == "rentals"
    names = {spec.name for spec in topic_specs(chosen)}
    assert not names & {"rentals", "attributary.observations.v1", "attributary.sources.v1"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"model": "m"}, 'sources.s: key: direct needs model: "{$key}", the key as the model id; else use key: copy'),
        ({"format": "open-inference"}, "sources.s: key: direct takes json and cloudevents: use key: copy for"),
        ({"topic": ["a", "b"]}, "sources.s: key: direct needs one topic and no other source: use key: copy"),
    ],
)
def test_what_cannot_be_read_directly_is_said(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as told:
        config(**more)
    assert said in str(told.value)
