"""Shards of a model on several partitions and the owner of their merge, against one worker that has it all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import ConfigError, StateError
from attributary_agents.state.codec import decode_state, encode_state
from attributary_agents.state.names import merge_key, wanted_names
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_agents.worker.shards import decode_merge
from attributary_explainers import ImportanceShift
from tests.agents.stand_ins import TOPIC, config_of, header
from tests.agents.worker.sharing.streams import Broker, pair, record, sharded, sharded_config

N = 2000


def shard_of(i: int) -> int:
    """Uneven traffic on four partitions."""
    return (0, 0, 0, 1, 1, 2, 0, 3)[i % 8]


class Shards:
    """Four partitions of one model, each with a state of its own."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.partitions = [Partition(TOPIC, n, broker.config, lambda _key: None) for n in range(4)]

    def handle(self, n: int, value: bytes) -> list[Outgoing]:
        partition = self.partitions[n]
        return partition.handle(record(n, partition.offset + 1, value))

    def run(self, first: int, end: int) -> None:
        for i in range(first, end):
            self.broker.send(self.handle(shard_of(i), pair(i)))


def ran(n: int = N, **model: Any) -> tuple[Shards, Broker]:
    broker = Broker(sharded_config(**model))
    shards = Shards(broker)
    shards.run(0, n)
    return shards, broker


def stored(broker: Broker) -> dict[str, Any]:
    (blob,) = broker.table.values()
    return {name: one.snapshot() for name, one in decode_merge("m", blob).explainers.items()}


def values_of(event: Outgoing) -> dict[str, Any]:
    return json.loads(event.value or b"")


def one_worker(broker: Broker, n: int, reported: dict[int, int]) -> dict[str, float]:
    """What one worker says of the observations that the shards had reported.

    The first observation of each explainer is only stored: that of the first shard stands for those of the others.
    """
    partition = Partition(TOPIC, 0, broker.config.without_shards, lambda _key: None)
    seen, offset = dict.fromkeys(range(4), 0), 0
    for i in range(n):
        shard = shard_of(i)
        seen[shard] += 1
        if seen[shard] <= reported[shard] and (seen[shard] > 1 or shard == 0):
            partition.handle(record(0, offset, pair(i)))
            offset += 1
    state = partition.models["m"]
    assert state.explainers["pfi"].skipped["nothing_stored"] == 1
    return state.explainers["pfi"].importance


def test_the_merge_says_what_one_worker_says_of_all_observations() -> None:
    shards, broker = ran()
    merge = broker.merges.models["m"].explainers["pfi"]
    reported = {number: said.observation for number, said in merge.last.items()}
    assert set(reported) == {0, 1, 2, 3}
    whole = one_worker(broker, N, reported)
    last = values_of(broker.events[-1])
    assert {name: one["importance"] for name, one in last["features"].items()} == pytest.approx(whole, abs=1e-12)
    assert whole["a"] == whole["b"] > 0.05
    assert last["features"]["c"]["importance"] == whole["c"] == 0.0
    assert (last["observation"], last["n_observations"]) == (sum(reported.values()), sum(reported.values()) - 4)
    assert last["trigger"] == "interval"
    assert all(one.topic == broker.config.kafka.topics.importances for one in broker.events)
    assert len(broker.events) == sum(n // 50 for n in reported.values())
    assert header(broker.events[-1], "ce_id") == f"m:attributary-shards:2:{len(broker.sent) - 1}:0"
    assert header(broker.events[-1], "ce_time").startswith("2023-11-14")
    assert [p.models["m"].n_observations for p in shards.partitions] == [N // 2, N // 4, N // 8, N // 8]


def test_a_shard_publishes_nothing_but_its_estimates_at_its_intervals() -> None:
    broker = Broker(sharded_config(publish={"every": 50, "min_observations": 1, "material_shift": 0.0001}))
    shards = Shards(broker)
    sent = [one for i in range(800) for one in shards.handle(0, pair(i))]
    assert [one.topic for one in sent] == ["attributary-shards"] * 16
    assert [header(one, "ce_type") for one in sent] == ["attributary.shard.v1"] * 16


@pytest.mark.parametrize("is_sharded", [True, False])
def test_a_shard_is_not_watched_for_shifts(is_sharded: bool) -> None:
    partition = Partition(TOPIC, 0, sharded_config(sharded=is_sharded, alpha=0.1), lambda _key: None)
    for i in range(200):
        partition.handle(record(0, i, pair(i)))
    is_fresh = partition.models["m"].shifts["pfi"].snapshot() == ImportanceShift().snapshot()
    assert is_fresh == is_sharded


def test_estimates_that_come_again_change_nothing_and_send_nothing() -> None:
    _, broker = ran(800)
    n, table = len(broker.events), dict(broker.table)
    broker.sent += broker.sent  # every shard was killed, and repeats all that it has sent
    for offset in range(len(broker.sent) // 2, len(broker.sent)):
        assert broker.deliver(offset) == []
    assert len(broker.events) == n
    assert broker.table == table


@pytest.mark.parametrize("stores", [True, False])
def test_an_owner_that_is_killed_sends_the_same_bytes_again(stores: bool) -> None:
    undisturbed = ran(800)[1]
    broker = Broker(undisturbed.config)
    broker.sent = undisturbed.sent
    for offset in range(len(broker.sent)):
        broker.deliver(offset, stores=stores or offset % 3 > 0)
        if offset % 3 == 0:  # killed before the offset was committed, and where `stores` says so before it was stored
            broker.merges = broker.owner()
            broker.deliver(offset)
    by_id: dict[str, set[tuple[bytes | None, str]]] = {}
    for one in broker.events:
        by_id.setdefault(header(one, "ce_id"), set()).add((one.value, header(one, "ce_time")))
    assert all(len(found) == 1 for found in by_id.values())
    assert by_id == {header(one, "ce_id"): {(one.value, header(one, "ce_time"))} for one in undisturbed.events}
    assert len(broker.events) == len(undisturbed.events) + (0 if stores else -(-len(broker.sent) // 3))
    assert stored(broker) == stored(undisturbed)


def test_a_stored_merge_that_is_damaged_begins_afresh_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    shards, broker = ran(800)
    broker.table[merge_key("m", 2)] = broker.table[merge_key("m", 2)][:-9]
    broker.merges = broker.owner()
    assert broker.merges.models == {}
    assert "begins afresh" in caplog.text
    before = len(broker.events)
    shards.run(800, 1600)
    assert len(broker.events) > before
    assert len(broker.merges.models["m"].explainers["pfi"].shards) == 4


BAD: dict[str, tuple[bytes | None, Callable[[dict[str, Any]], Any], str]] = {
    "no key": (None, lambda said: said, "missing_model_id"),
    "another model": (b"n", lambda said: {**said, "model_id": "n"}, "unknown_model"),
    "another model's content": (b"m", lambda said: {**said, "model_id": "n"}, "wrong_type"),
    "no object": (b"m", lambda _said: [], "wrong_type"),
    "a field too few": (b"m", lambda said: {k: v for k, v in said.items() if k != "alpha"}, "wrong_type"),
    "a number as text": (b"m", lambda said: {**said, "n_observations": "9"}, "wrong_type"),
    "a count below 1": (b"m", lambda said: {**said, "n_represented": 0}, "wrong_type"),
    "a count beyond all": (b"m", lambda said: {**said, "n_observations": 2**64 - 1}, "wrong_type"),
    "an alpha that underflows": (b"m", lambda said: {**said, "alpha": 5e-324}, "wrong_type"),
    "an explainer that is not configured": (b"m", lambda said: {**said, "explainer": "zzz"}, "wrong_type"),
    "a partition that there is not": (
        b"m",
        lambda said: {**said, "source": {**said["source"], "partition": 99}},
        "wrong_type",
    ),
    "another topic": (b"m", lambda said: {**said, "source": {**said["source"], "topic": "elsewhere"}}, "wrong_type"),
    "no alpha": (b"m", lambda said: {**said, "alpha": 2.0}, "wrong_type"),
    "an importance beyond all": (
        b"m",
        lambda said: {**said, "features": {"a": {"value": 1e200, "std_error": 1}}},
        "wrong_type",
    ),
    "an error below 0": (
        b"m",
        lambda said: {**said, "features": {"a": {"value": 1, "std_error": -1}}},
        "wrong_type",
    ),
    "no place": (b"m", lambda said: {**said, "source": {"topic": "t", "partition": -1, "offset": 0}}, "wrong_type"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_record_that_no_worker_has_written_becomes_a_dead_letter(kind: str) -> None:
    _, broker = ran(400)
    key, spoil, reason = BAD[kind]
    value = json.dumps(spoil(json.loads(broker.sent[0]))).encode()
    table = dict(broker.table)
    taken = broker.merges.take(Record(broker.config.kafka.shards, 2, 99, 0, key, value))
    (letter,) = taken.outgoing
    assert (letter.topic, letter.key, letter.value) == (broker.config.kafka.topics.dead_letters, key, value)
    assert header(letter, "attributary-dlq-reason") == reason
    assert taken.writes == []
    assert broker.table == table
    assert broker.merges.counters.dead_letters == {reason: 1}


def deployed(broker: Broker, shards: Shards, number: int, version: str) -> None:
    """Let another version of the same model take over in one shard, as a deployment does."""
    from attributary_agents.models.swap import swap
    from attributary_agents.models.versions import configured_version

    partition = shards.partitions[number]
    state = partition.models["m"]
    new = configured_version(state.config)
    new = type(new)(**{**vars(new), "name": version})
    swapped, events = swap(state, new, record(number, 0, b"").source)
    assert events == []
    partition.models._states["m"] = swapped


def test_shards_of_two_versions_are_never_merged() -> None:
    shards, broker = ran(1600)
    switched: set[int] = set()
    first, seen = len(broker.events), []
    for i in range(1600, 4800):
        for number, at in ((1, 1700), (3, 2200), (0, 2600), (2, 3000)):
            if i == at:
                deployed(broker, shards, number, "2")
                switched.add(number)
        broker.send(shards.handle(shard_of(i), pair(i)))
        merge = broker.merges.models["m"].explainers["pfi"]
        versions = {said.model_version for said in merge.shards.values()}
        assert len(versions) == 1
        seen.append((versions.pop(), len(merge.shards)))
    told = [values_of(one)["model_version"] for one in broker.events[first:]]
    assert told == ["1"] * told.count("1") + ["2"] * told.count("2"), "and it never goes back"
    assert told.count("1") > 0
    assert seen[0] == ("1", 4)
    assert seen[-1] == ("2", 4)
    assert ("2", 1) in seen
    assert seen == sorted(seen, key=lambda one: (one[0], one[1] if one[0] == "2" else 0))


@pytest.mark.long
def test_a_version_that_is_gone_back_to_is_merged_again() -> None:
    shards, broker = ran(1600)
    n = 1600
    for version in ("2", "1"):
        for number in range(4):
            deployed(broker, shards, number, version)
            shards.run(n, n + 300)
            n += 300
        shards.run(n, n + 1600)
        n += 1600
        merge = broker.merges.models["m"].explainers["pfi"]
        assert {said.model_version for said in merge.shards.values()} == {version}
        assert len(merge.shards) == 4
        last = values_of(broker.events[-1])
        assert (last["model_version"], last["n_observations"]) == (
            version,
            sum(said.n_observations for said in merge.shards.values()),
        )


def test_estimates_by_other_parameters_are_not_merged_with_those_before() -> None:
    shards, broker = ran(1600)
    alone = Shards(Broker(sharded_config(explainers={"pfi": {"n_samples": 7}})))
    state = encode_state(shards.partitions[1].models["m"])
    config = alone.broker.config
    alone.partitions[1].models._states["m"] = decode_state("m", config.models["m"], state)
    alone.partitions[1].offset = shards.partitions[1].offset
    for i in range(200):
        broker.send(alone.handle(1, pair(10_000 + i)))
    merge = broker.merges.models["m"].explainers["pfi"]
    assert set(merge.shards) == {1}
    assert sum(said.n_observations for said in merge.shards.values()) <= 200


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ({"learn": True}, "needs `learn: false`"),
        ({"change": {"window": 100}}, "needs `change: null`"),
        ({"watch_loss": True}, "needs `watch_loss: false`"),
        ({"quality": ["accuracy"]}, "needs `quality: []`"),
    ],
)
def test_a_sharded_model_refuses_what_needs_all_observations(model: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        parse_config(sharded(**model))
    plain = parse_config(sharded(**{**model, "sharded": False}))
    assert not plain.sharded


def test_what_a_sharded_model_cannot_tell_is_off() -> None:
    config = parse_config({**sharded(), "defaults": {"alpha": 0.5}})
    model = config.models["m"]
    assert (model.change, model.watch_loss, model.quality) == (None, False, [])
    assert config.sharded == {"m"}
    assert not config.without_shards.sharded


def test_the_state_of_a_shard_is_no_state_of_a_whole_model() -> None:
    shards, broker = ran(100)
    blob = encode_state(shards.partitions[0].models["m"])
    with pytest.raises(StateError, match="sharded: true"):
        decode_state("m", broker.config.without_shards.models["m"], blob)
    assert decode_state("m", broker.config.models["m"], blob).n_observations > 10


def test_the_merge_has_a_name_of_its_own_on_its_partition() -> None:
    is_wanted = wanted_names(config_of("m").finder)
    assert is_wanted(merge_key("m", 3), 3)
    assert not is_wanted(merge_key("m", 3), 2)
    assert not is_wanted(merge_key("n", 3), 3)
