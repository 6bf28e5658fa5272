"""A partition takes each mapped record once; what is dropped is counted, whatever is damaged or killed."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest

from attributary_agents.errors import DamagedStateError
from attributary_agents.kafka.batches import UnreadBatch
from attributary_agents.state.checkpoints import encode_checkpoint, encode_copy
from attributary_agents.state.codec import encode_state
from attributary_agents.state.names import checkpoint_copy_key, checkpoint_key, wanted_names
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from tests.agents.stand_ins import GOOD, TOPIC, balances, config_of, header

CONFIG = config_of("m")
COPY = checkpoint_copy_key(0)


def record(offset: int, origin: bytes | None, value: bytes = GOOD, **more: Any) -> Record:
    headers = [] if origin is None else [("attributary-origin", origin)]
    return Record(
        TOPIC, 0, offset, 1_700_000_000_000 + offset, b"m", value, [*headers, *more.pop("headers", [])], **more
    )


SENT = (b"t:0:0:0:s:0", b"t:0:1:0:r:0", b"t:0:3:0:r:2", b"t:0:0:0:s:0", b"t:0:2:0:s:1", b"t:0:3:0:r:2", None)
"""The third is early, the fourth a repeat, and the last is no mapped one."""

COUNTS = Counter(accepted=4, repeat=1, early=1)


def test_each_observation_is_taken_once_and_what_is_dropped_is_counted() -> None:
    partition = Partition(TOPIC, 0, CONFIG, {}.get)
    for offset, origin in enumerate(SENT):
        partition.handle(record(offset, origin))
        assert balances(partition.counters)
    assert partition.counters.origins.counts == COUNTS
    assert (partition.counters.consumed, partition.counters.used) == (7, 5)
    assert partition.models["m"].n_observations == 5


@pytest.mark.parametrize("kept", range(len(SENT)))
def test_a_model_that_is_ahead_of_the_checkpoint_makes_no_difference(kept: int) -> None:
    before = Partition(TOPIC, 0, CONFIG, {}.get)
    table: dict[bytes, bytes] = {}
    for offset, origin in enumerate(SENT):
        before.handle(record(offset, origin))
        if offset == kept:
            table[checkpoint_key(0)] = encode_checkpoint(offset, before.counters)
    table[b"m"] = encode_state(before.models["m"])
    after = Partition(TOPIC, 0, CONFIG, table.get)
    for offset, origin in enumerate(SENT):
        after.handle(record(offset, origin))
    assert after.counters == before.counters
    found = after.models.find("m")
    assert found is not None
    assert found.n_observations == 5


@pytest.mark.parametrize("origin", [b"", b"t:0:0:0:x:0", b"t:0:-1:0:s:0", b"\xff"])
def test_a_header_that_cannot_be_read_is_a_dead_letter(origin: bytes) -> None:
    partition = Partition(TOPIC, 0, CONFIG, {}.get)
    (letter,) = partition.handle(record(0, origin))
    assert header(letter, "attributary-dlq-reason") == "wrong_origin"
    assert "expected topic:partition:offset:n:s or r:previous" in header(letter, "attributary-dlq-message")
    assert balances(partition.counters)


def test_a_record_that_has_ended_workers_is_taken_all_the_same_so_that_what_follows_is_not_early() -> None:
    partition = Partition(TOPIC, 0, CONFIG, {}.get)
    assert len(partition.refuse(record(0, b"t:0:0:0:s:0"))) == 1
    assert partition.refuse(record(1, b"t:0:0:0:s:0")) == []
    assert balances(partition.counters)
    partition.handle(record(2, b"t:0:1:0:r:0"))
    assert partition.counters.origins.counts == Counter(accepted=2, repeat=1)


def test_a_dead_letter_that_is_sent_again_on_purpose_is_not_dropped_as_a_repeat() -> None:
    partition = Partition(TOPIC, 0, CONFIG, {}.get)
    partition.handle(record(0, b"t:0:0:0:s:0", b"{poison"))
    partition.handle(record(1, b"t:0:0:0:s:0", headers=[("attributary-replayed", b"t:0:0")]))
    assert partition.counters.used == 1


def test_behind_a_batch_that_cannot_be_read_nothing_is_waited_for() -> None:
    partition = Partition(TOPIC, 0, CONFIG, {}.get)
    partition.handle(record(0, b"t:0:0:0:s:0"))
    unread = UnreadBatch.of("unreadable_batch", "a whole one", "a damaged one")
    partition.handle(Record(TOPIC, 0, 9, 0, None, None, (), unread))
    partition.handle(record(10, b"t:0:8:0:r:7"))
    assert partition.counters.origins.counts == Counter(accepted=2)


class _Damaged(dict[bytes, bytes]):
    """A table in which one name holds other bytes than a worker has written."""

    damaged = (checkpoint_key(0),)

    def get(self, key: bytes, default: Any = None) -> Any:
        if key in self.damaged:
            raise DamagedStateError("the stored checkpoint has 3 bytes of 30")
        return super().get(key, default)


def _table() -> dict[bytes, bytes]:
    before = Partition(TOPIC, 0, CONFIG, {}.get)
    before.handle(record(0, b"t:0:0:0:s:0"))
    before.handle(record(1, b"t:0:1:0:r:0"))
    copy = encode_copy(1, before.counters)
    assert copy is not None
    return {
        b"m": encode_state(before.models["m"]),
        COPY: copy,
        checkpoint_key(0): encode_checkpoint(1, before.counters),
    }


@pytest.mark.parametrize(
    "table", [_Damaged(_table()), {name: one for name, one in _table().items() if name in (b"m", COPY)}]
)
def test_where_the_checkpoint_is_damaged_or_gone_its_copy_knows_what_was_taken(
    table: dict[bytes, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    partition = Partition(TOPIC, 0, CONFIG, table.get)
    assert "its copy takes its place, and nothing is lost" in caplog.text
    partition.begin_at(2)
    partition.handle(record(2, b"t:0:1:0:s:1"))
    assert partition.counters.origins.counts == Counter(accepted=2, repeat=1)
    assert (partition.counters.consumed, partition.models.get("m")) == (3, None)


def test_where_the_copy_is_damaged_too_it_is_said_that_repeats_count_twice(caplog: pytest.LogCaptureFixture) -> None:
    table = _Damaged(_table())
    table.damaged = (checkpoint_key(0), COPY)  # type: ignore[assignment]
    with caplog.at_level(logging.ERROR):
        partition = Partition(TOPIC, 0, CONFIG, table.get)
    assert "what a mapper of `sources` repeats is taken a second time" in caplog.text
    partition.begin_at(2)
    partition.handle(record(2, b"t:0:5:0:r:4"))  # nobody knows what came before it: it is not early for ever
    assert partition.counters.origins.counts == Counter(accepted=1)


def test_without_mapped_records_there_is_no_copy() -> None:
    partition = Partition(TOPIC, 0, CONFIG, {}.get)
    partition.handle(record(0, None))
    assert encode_copy(0, partition.counters) is None
    assert wanted_names(CONFIG.finder)(checkpoint_copy_key(12), 12)
