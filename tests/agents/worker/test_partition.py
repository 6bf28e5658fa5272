"""One partition: bad records, redelivery, and crash and resume at every point."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import DamagedStateError, StateError
from attributary_agents.state.checkpoints import PartitionCounters, decode_checkpoint, encode_checkpoint
from attributary_agents.state.codec import encode_state
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker.partition import Partition, _level
from attributary_agents.worker.records import Outgoing, Record
from attributary_topics import DEAD_LETTER_HEADER_PREFIX, REASONS, IncidentEvent
from tests.agents.monitoring.views import config_of, filled
from tests.agents.stand_ins import BAD, DEAD_LETTERS, FACTORY, GOOD, TOPIC, TOUCHY_FACTORY, balances, header

Table = dict[bytes, bytes]


def config(**model: Any) -> Config:
    chosen = {"factory": FACTORY, "features": {"a": "number", "b": "number"}, **model}
    return parse_config({"models": {"m": chosen, "n": chosen}})


def partition_of(chosen: Config, table: Table | None = None, number: int = 0) -> Partition:
    return Partition(TOPIC, number, chosen, (table or {}).get)


def record(offset: int, key: bytes | None = b"m", value: bytes | None = GOOD, **more: Any) -> Record:
    return Record(TOPIC, more.pop("partition", 0), offset, 1_700_000_000_000 + offset, key, value, **more)


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_record_becomes_one_dead_letter_with_its_bytes_and_reason(kind: str) -> None:
    key, value, reason = BAD[kind]
    partition = partition_of(config())
    headers = [("trace", b"\x00\xff"), ("trace", b"twice")]
    partition.handle(record(0))
    (letter,) = partition.handle(record(1, key, value, headers=headers))

    assert letter.topic == DEAD_LETTERS
    assert (letter.key, letter.value) == (key, value)
    assert letter.headers[:2] == headers
    ours = {
        name.removeprefix(DEAD_LETTER_HEADER_PREFIX): text.decode("utf-8", "replace")
        for name, text in letter.headers[2:]
    }
    assert (ours["reason"], ours["stage"], ours["error"]) == (reason, "decode", "InvalidRecordError")
    assert (ours["topic"], ours["partition"], ours["offset"]) == (TOPIC, "0", "1")
    assert ours["timestamp-ms"] == "1700000000001"
    assert len(ours["message"]) < 500
    assert "expected" in ours["message"]
    assert partition.counters.dead_letters[reason] == 1
    assert (partition.counters.consumed, partition.counters.used) == (2, 1)
    assert balances(partition.counters)
    # The next good one is explained as if nothing had been.
    partition.handle(record(2))
    assert partition.models["m"].n_observations == 2


def test_every_counter_balances_after_every_record() -> None:
    partition = partition_of(config())
    for offset, (key, value, _) in enumerate((*BAD.values(), (b"m", GOOD, ""), *BAD.values())):
        partition.handle(record(offset, key, value))
        assert partition.counters.consumed == offset + 1
        assert balances(partition.counters)
    assert set(partition.counters.dead_letters) == set(REASONS)


def test_a_header_without_a_value_does_not_stop_the_partition() -> None:
    headers: Any = [("trace", None)]  # Kafka allows it, and some clients send it
    partition = partition_of(config())
    (letter,) = partition.handle(record(0, b"m", b"{poison", headers=headers))
    assert letter.headers[0] == ("trace", None)
    assert header(letter, "attributary-dlq-reason") == "invalid_json"


@pytest.mark.parametrize("stage", ["predict", "learn"])
def test_a_model_that_raises_costs_one_dead_letter(stage: str) -> None:
    partition = partition_of(config(factory=TOUCHY_FACTORY, features=None, explainers={"pfi": {}, "sage": {}}))
    for offset in range(5):
        partition.handle(record(offset, value=b'{"x": {"a": %d, "b": 1, "c": "fine"}, "y": true}' % offset))
    value = b'{"x": {"a": 0.5, "b": 1, "c": "%s"}, "y": true}' % stage.encode()
    (letter,) = partition.handle(record(5, value=value))

    assert (letter.topic, letter.value) == (DEAD_LETTERS, value)
    assert header(letter, "attributary-dlq-reason") == "model_failed"
    assert header(letter, "attributary-dlq-stage") == stage
    assert header(letter, "attributary-dlq-message").startswith("cannot")
    assert balances(partition.counters)
    assert partition.models["m"].failed_offsets == {5: "model_failed"}
    partition.record_checkpoint(5, {})
    assert partition.models["m"].failed_offsets == {}


def test_records_that_come_again_are_ignored() -> None:
    partition = partition_of(config(publish={"every": 1}))
    sent = [partition.handle(record(offset)) for offset in range(4)]
    assert [len(outgoing) for outgoing in sent] == [0, 1, 1, 1]
    before = encode_state(partition.models["m"]), encode_checkpoint(3, partition.counters)
    assert [partition.handle(record(offset)) for offset in (0, 3, 2, 3)] == [[]] * 4
    assert (encode_state(partition.models["m"]), encode_checkpoint(3, partition.counters)) == before
    assert partition.n_pending == 4


def test_an_event_carries_the_model_as_key_and_where_it_came_from() -> None:
    partition = partition_of(config(publish={"every": 2}, explainers={"pfi": {}, "sage": {}}))
    partition.handle(record(7))
    first, second = partition.handle(record(9))
    assert (first.topic, first.key) == ("attributary.importances.v1", b"m")
    assert header(first, "ce_id") == f"m:{TOPIC}:0:9:0"
    assert header(second, "ce_id") == f"m:{TOPIC}:0:9:1"
    assert header(first, "ce_time") == "2023-11-14T22:13:20.009Z"
    assert orjson.loads(second.value or b"")["explainer"] == "sage"


def test_a_model_on_two_partitions_is_refused_and_says_so() -> None:
    chosen = config()
    first = partition_of(chosen)
    first.handle(record(0))
    table = {b"m": encode_state(first.models["m"])}
    second = partition_of(chosen, table, number=1)
    (letter,) = second.handle(record(0, partition=1))
    assert header(letter, "attributary-dlq-reason") == "model_on_two_partitions"
    assert balances(second.counters)


def test_a_state_that_this_release_cannot_read_stops_instead_of_forgetting() -> None:
    partition = partition_of(config(), {b"m": b"ATS1 of an old release"})
    with pytest.raises(StateError, match="attributary models reset m"):
        partition.handle(record(0))


def damaged(name: bytes, table: Table) -> Callable[[bytes], bytes | None]:
    def load(key: bytes) -> bytes | None:
        if key == name:
            raise DamagedStateError(f"{key!r} is torn")
        return table.get(key)

    return load


def test_a_damaged_state_is_refused_and_the_other_models_go_on(caplog: pytest.LogCaptureFixture) -> None:
    partition = Partition(TOPIC, 0, config(), damaged(b"m", {}))
    partition.models.restore("m")
    partition.models.restore("n")
    letters = [one for i in range(40) for one in partition.handle(record(i, b"m" if i % 2 else b"n"))]
    refused = [one for one in letters if one.topic == DEAD_LETTERS]
    assert [header(one, "attributary-dlq-offset") for one in refused] == [str(i) for i in range(1, 40, 2)]
    assert {header(one, "attributary-dlq-reason") for one in refused} == {"damaged_state"}
    assert "attributary models reset m" in header(refused[0], "attributary-dlq-message")
    assert partition.models.keys() == {"n"}
    assert partition.models["n"].n_observations == 20
    assert (partition.counters.consumed, partition.counters.used) == (40, 20)
    assert balances(partition.counters)
    assert len([r for r in caplog.records if r.levelname == "ERROR"]) == 1, "said once, not of each observation"


def test_a_damaged_checkpoint_loses_the_counters_and_nothing_else() -> None:
    whole, table = partition_of(config()), Table()
    for i in range(60):
        whole.handle(record(i))
        if i == 29:
            table[b"m"] = encode_state(whole.models["m"])
    partition = Partition(TOPIC, 0, config(), damaged(checkpoint_key(0), table))
    partition.begin_at(20)  # committed before the state was stored
    for i in range(20, 60):
        partition.handle(record(i))
    assert partition.models["m"].explainers["pfi"].importance == whole.models["m"].explainers["pfi"].importance
    assert partition.models["m"].n_observations == 60
    assert partition.counters.consumed == 40
    assert balances(partition.counters)


def test_a_checkpoint_round_trip() -> None:
    counters = PartitionCounters(consumed=9, used=5, unavailable=3)
    counters.dead_letters["invalid_json"] = 4
    found, offset = decode_checkpoint(encode_checkpoint(11, counters))
    assert (offset, found.consumed, found.used, found.unavailable) == (11, 9, 5, 3)
    assert found.dead_letters == dict.fromkeys(REASONS, 0) | {"invalid_json": 4}
    fresh, nowhere = decode_checkpoint(None)
    assert nowhere == -1
    assert fresh.dead_letters == dict.fromkeys(REASONS, 0)


@pytest.mark.parametrize("blob", [b"", b"{", b"[]", b'{"format": 2}', b'{"format": 1}', b"null"])
def test_a_checkpoint_that_cannot_be_read_says_what_to_do(blob: bytes) -> None:
    with pytest.raises(StateError, match="delete its changelog topic"):
        decode_checkpoint(blob)


def test_the_checkpoint_s_key_is_no_model_id() -> None:
    assert checkpoint_key(3).startswith(b"\x00")
    assert checkpoint_key(3) != checkpoint_key(30)


def test_numbers_outside_their_bounds_are_dead_letters_or_clipped() -> None:
    bounds = {"a": [-1.0, None], "*": [None, 10]}
    chosen = {"features": None, "bounds": bounds, "explainers": {"pfi": {}}}
    values = [b"-2", b"1e300", b'"text"', b"true", b"5"]
    records = [
        record(i, value=b'{"x": {"a": %s, "b": %s}, "y": true}' % (value if i % 2 else b"0", b"1" if i % 2 else value))
        for i, value in enumerate(values * 2)
    ]
    partition = partition_of(config(**chosen))
    letters = [one for each in records for one in partition.handle(each) if one.topic == DEAD_LETTERS]
    found = [(header(one, "attributary-dlq-reason"), header(one, "attributary-dlq-message")) for one in letters]
    assert {reason for reason, _ in found} == {"out_of_bounds", "model_failed"}
    refused = [message for reason, message in found if reason == "out_of_bounds"]
    assert len(refused) == 2, "a may be 1e300, b may be -2"
    assert any("x.a: expected a number of at least -1 (bounds" in message for message in refused)
    assert any("x.b: expected a number of at most 10 (bounds" in message for message in refused)
    assert balances(partition.counters)

    partition = partition_of(config(**chosen, clip=True))
    (letter,) = partition.handle(record(0, value=b'{"x": {"a": "text", "b": 1}, "y": true}'))
    assert header(letter, "attributary-dlq-reason") == "model_failed", "clipping is for numbers"
    partition.handle(record(1, value=b'{"x": {"a": -2, "b": 1e300}, "y": true}'))
    (model,) = (state.model for state in partition.models.values())
    assert model.calls[-1] == ("learn", {"a": -1.0, "b": 10.0})


def test_a_prediction_that_is_not_finite_is_counted_again_after_a_crash() -> None:
    table: Table = {}
    chosen = config(factory=None, model={"class": "river.linear_model.LinearRegression"}, features=None, explainers={})
    partition = partition_of(chosen, table)
    for i in range(5):
        partition.handle(record(i, value=b'{"x": {"a": %d}, "y": 1}' % i))
    bad = record(5, value=b'{"x": {"a": 1e300}, "y": 1}')
    (letter,) = partition.handle(bad)
    assert header(letter, "attributary-dlq-reason") == "prediction_not_finite"
    assert "models reset m" in header(letter, "attributary-dlq-message")
    table[b"m"] = encode_state(partition.models["m"])  # and dies before its checkpoint
    again = partition_of(chosen, table)
    for i in range(5):
        again.handle(record(i, value=b'{"x": {"a": %d}, "y": 1}' % i))
    assert again.handle(bad) == []
    assert again.counters.dead_letters["prediction_not_finite"] == 1
    assert balances(again.counters)


def test_the_log_says_incidents_and_no_other_events(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=Partition.__module__)
    sent: list[Outgoing] = []
    filled(config_of("m"), {0: ["m"]}, n=450, flip_at=200, sent=sent)
    events = [json.loads(one.value or b"") for one in sent if one.topic.endswith("incidents.v1")]
    assert {event["life"] for event in events} == {"suspected", "confirmed", "over", "withdrawn"}
    said = [record for record in caplog.records if record.name == Partition.__module__]
    assert [record.getMessage() for record in said] == [event["sentence"] for event in events]
    assert {record.levelname for record in said} == {"INFO", "WARNING"}


@pytest.mark.parametrize(
    ("life", "severity", "reason", "level"),
    [
        ("suspected", "critical", "suspected", logging.ERROR),
        ("suspected", "warning", "suspected", logging.INFO),
        ("confirmed", "critical", "confirmed", logging.ERROR),
        ("confirmed", "critical", "raised", logging.ERROR),
        ("confirmed", "critical", "lasts", logging.INFO),
        ("confirmed", "warning", "confirmed", logging.WARNING),
        ("confirmed", "info", "confirmed", logging.INFO),
        ("over", "critical", "settled", logging.INFO),
        ("withdrawn", "critical", "noise", logging.INFO),
    ],
)
def test_an_incident_is_as_loud_as_it_is_bad_and_while_it_is_news(
    life: str, severity: str, reason: str, level: int
) -> None:
    assert _level(cast(IncidentEvent, SimpleNamespace(life=life, severity=severity, reason=reason))) == level
