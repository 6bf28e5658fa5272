"""A dead letter that is sent again is handled once, through crashes, on the observations and the models topic."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.state.names import checkpoint_key, control_checkpoint_key
from attributary_agents.worker.checkpoint import Cut
from attributary_agents.worker.deployments import PartitionControl
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_topics import REPLAYED_HEADER
from tests.agents.stand_ins import BAD, GOOD, MODELS, TOPIC, balances, config_of

CONFIG = config_of("m", features={"a": "number", "b": "number"})


def again(offset: int, letter_id: bytes, value: bytes = GOOD, topic: str = TOPIC) -> Record:
    return Record(topic, 0, offset, 1_700_000_000_000, b"m", value, [("trace", b"1"), (REPLAYED_HEADER, letter_id)])


def stored(partition: Partition, table: dict[bytes, bytes]) -> None:
    cut = Cut(partition, None)
    while not cut.is_encoded:
        one = cut.encode_next()
        table[one.model_id.encode()] = one.blob
    table[checkpoint_key(0)] = cut.encode_checkpoint()
    cut.finish()


def partition_of(table: dict[bytes, bytes]) -> Partition:
    return Partition(TOPIC, 0, CONFIG, table.get)


def test_a_repeat_is_dropped_and_counted() -> None:
    partition = partition_of({})
    for offset, letter in enumerate((b"t:0:1", b"t:0:2", b"t:0:1", b"t:0:1")):
        assert partition.handle(again(offset, letter)) == []
        assert balances(partition.counters)
    assert partition.models["m"].n_observations == 2
    assert (partition.counters.consumed, partition.counters.used, partition.counters.replayed.n_repeats) == (4, 2, 2)


def test_one_that_fails_again_is_a_dead_letter_once() -> None:
    _, poison, reason = BAD["no JSON"]
    partition = partition_of({})
    (letter,) = partition.handle(again(0, b"t:0:1", poison or b""))
    assert ("attributary-dlq-id", f"{TOPIC}:0:0".encode()) in letter.headers
    assert partition.handle(again(1, b"t:0:1", poison or b"")) == []
    assert partition.counters.dead_letters[reason] == 1
    assert balances(partition.counters)


def test_one_that_ends_workers_is_refused_once() -> None:
    partition = partition_of({})
    assert len(partition.refuse(again(0, b"t:0:1"))) == 1
    assert partition.refuse(again(1, b"t:0:1")) == []
    assert balances(partition.counters)


@pytest.mark.parametrize("crash_at", range(7))
def test_a_crash_at_any_record_changes_nothing(crash_at: int) -> None:
    """States are stored up to the crash, and the checkpoint three records before: what follows comes again."""
    ids = [b"t:0:1", b"t:0:2", b"t:0:1", b"t:0:3", b"t:0:2", b"t:0:3", b"t:0:4"]
    records = [again(offset, letter) for offset, letter in enumerate(ids)]
    table: dict[bytes, bytes] = {}
    partition = partition_of(table)
    for record in records[: max(crash_at - 3, 0)]:
        partition.handle(record)
    if crash_at > 3:
        stored(partition, table)
    for record in records[max(crash_at - 3, 0) : crash_at]:
        partition.handle(record)
    if crash_at:
        checkpoint = table.get(checkpoint_key(0))
        stored(partition, table)  # the states are ahead of the checkpoint: it was not written
        table.pop(checkpoint_key(0))
        if checkpoint is not None:
            table[checkpoint_key(0)] = checkpoint

    after = partition_of(table)
    for record in records:
        after.handle(record)
    assert after.models["m"].n_observations == 4
    assert (after.counters.consumed, after.counters.used, after.counters.replayed.n_repeats) == (7, 4, 3)


def test_a_checkpoint_under_way_knows_nothing_of_what_came_after_its_cut() -> None:
    table: dict[bytes, bytes] = {}
    partition = partition_of(table)
    partition.handle(again(0, b"t:0:1"))
    cut = Cut(partition, None)
    partition.handle(again(1, b"t:0:2"))
    one = cut.encode_next()
    table |= {one.model_id.encode(): one.blob, checkpoint_key(0): cut.encode_checkpoint()}
    after = partition_of(table)
    assert after.counters.replayed.knows(b"t:0:1")
    assert not after.counters.replayed.knows(b"t:0:2")
    after.handle(again(1, b"t:0:2"))
    after.handle(again(2, b"t:0:2"))
    assert after.models["m"].n_observations == 2
    assert balances(after.counters)


def test_a_version_that_is_sent_again_takes_over_once() -> None:
    def version(name: str) -> bytes:
        return b'{"version": "%s", "model": {"class": "river.naive_bayes.GaussianNB"}}' % name.encode()

    table: dict[bytes, bytes] = {}
    control = PartitionControl(MODELS, partition_of(table), table.get)
    records: list[Any] = [
        again(0, b"models:0:7", version("2"), MODELS),
        Record(MODELS, 0, 1, 1_700_000_000_000, b"m", version("3")),
        again(2, b"models:0:7", version("2"), MODELS),  # a replay that was begun again: 3 stays
    ]
    for record in records:
        assert (control.find_wanted(record) is None) is (record.offset == 2)
        table.update(control.take(record, -1).writes)
        assert balances(control.counters)
    log = control.partition.models.log("m")
    assert log.entries[-1].version == "3"
    restarted = PartitionControl(MODELS, partition_of(table), table.get)
    assert (restarted.offset, restarted.counters.replayed.n_repeats) == (2, 1)
    assert control_checkpoint_key(0) in table
