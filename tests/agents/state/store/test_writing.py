"""Stored bytes survive every torn write, a worker that was thought dead, and compaction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.errors import DamagedStateError
from attributary_agents.state.records import StateRecords, chunk_key, head_key
from attributary_agents.state.seal import Seal
from attributary_agents.state.store import PartitionStore

from .changelog import LENGTHS, CrashError, Log, blob, put


def test_what_is_written_is_read_here_and_by_the_next_owner() -> None:
    log = Log()
    store = log.owner(1)
    for n, length in enumerate(LENGTHS):
        put(store, b"m", blob(n, length))
        put(store, b"\0checkpoint/3", b"%d" % n)
        for reader in (store, log.owner(2)):
            assert reader.load(b"m") == blob(n, length)
            assert reader.load(b"\0checkpoint/3") == b"%d" % n
            assert reader.load(b"other") is None


def test_after_a_crash_at_any_record_there_is_the_old_state_or_the_new_one_whole() -> None:
    outcomes = set()
    for n, length in enumerate(LENGTHS):
        for left in range(14):
            log = Log()
            store = log.owner(1)
            put(store, b"m", blob(100, 37))
            put(store, b"m", blob(101, 23))
            log.left = left
            try:
                put(store, b"m", blob(n, length))
                done = True
            except CrashError:
                done = False
            found = log.owner(2).load(b"m")
            assert found == blob(n, length) or (not done and found == blob(101, 23))
            outcomes.add((done, found == blob(101, 23)))
    assert outcomes == {(True, False), (False, True), (False, False)}


@given(st.data())
def test_of_two_owners_the_later_wins_whatever_the_first_still_sends(data: st.DataObject) -> None:
    log = Log()
    first = log.owner(data.draw(st.integers(0, 5), "generation"))
    put(first, b"m", blob(1, 25))
    late = Log()
    first._send_record = late.send  # thought dead; what it sends from now on arrives later
    second = log.owner(data.draw(st.integers(6, 9), "next generation"))
    put(first, b"m", blob(2, data.draw(st.sampled_from(LENGTHS), "late length")))
    put(second, b"m", blob(3, data.draw(st.sampled_from(LENGTHS), "length")))
    written, delayed = list(log.records), list(late.records)
    merged = [*written]
    place = 0
    for record in delayed:  # anywhere, in their order
        place = data.draw(st.integers(place, len(merged)))
        merged.insert(place, record)
        place += 1
    expected = second.load(b"m")
    log.records = merged
    for records in (merged, log.compacted(data.draw(st.integers(0, 99), "compaction"))):
        third = PartitionStore(log.recovered(records), 3, 10, log.send, Seal())
        assert third.epoch > second.epoch > first.epoch
        assert third.load(b"m") == expected
    put(third, b"m", b"now")
    last = log.owner(11)
    assert last.load(b"m") == b"now"
    # Whatever earlier owners have left has been deleted.
    assert set(last._records.epochs(3, b"m")) == {third.epoch}


def test_before_the_later_owner_has_written_the_first_one_s_last_word_counts() -> None:
    log = Log()
    first = log.owner(1)
    put(first, b"m", b"one")
    log.owner(2)
    put(first, b"m", b"two")  # durable before the checkpoint that it belongs to is
    assert log.owner(3).load(b"m") == b"two"


def test_epochs_rise_when_the_group_is_made_again_and_its_generations_begin_at_one() -> None:
    log = Log()
    epochs = []
    for generation in (7, 8, 1, 2, 3, 0):
        store = log.owner(generation)
        put(store, b"m", b"%d" % generation)
        epochs.append(store.epoch)
    assert epochs == sorted(set(epochs))


def test_chunks_are_deleted_when_there_are_fewer_and_no_more_than_two_generations_are_kept() -> None:
    log = Log()
    store = log.owner(1)
    for n, length in enumerate((95, 95, 25, 25, 15, 15)):
        put(store, b"m", blob(n, length))
    kept = {key for key, value in dict(log.records).items() if value is not None}
    assert kept == {head_key(b"m", 1), *(chunk_key(b"m", 1, slot, index) for slot in (0, 1) for index in (0, 1))}


def test_a_record_under_a_name_alone_is_foreign_and_left_alone() -> None:
    log = Log()
    log.records = [(b"m", b"ATS5 of nobody"), (b"\0checkpoint/3", b'{"format":1}')]
    store = log.owner(1)
    assert store.load(b"m") is store.load(b"\0checkpoint/3") is None
    put(store, b"m", b"new")
    assert log.owner(2).load(b"m") == b"new"
    assert (b"m", None) not in log.records


@pytest.mark.parametrize("length", [8, 35])
def test_every_changed_byte_is_found_or_changes_nothing(length: int) -> None:
    log = Log()
    put(log.owner(1), b"m", blob(1, length))
    harmless, said = 0, set()
    for n, (key, value) in enumerate(log.records):
        for i in range(len(value)):
            damaged = Log()
            damaged.records = list(log.records)
            damaged.records[n] = (key, value[:i] + bytes([value[i] ^ 1]) + value[i + 1 :])
            try:
                assert damaged.owner(2).load(b"m") == blob(1, length)
                harmless += 1  # the slot of a state without chunks
            except DamagedStateError as error:
                said.add(str(error)[:28])
        for torn in (value[:-1], b"", None):
            damaged.records[n] = (key, torn)
            if torn is None and key == head_key(b"m", 1):
                assert damaged.owner(2).load(b"m") is None  # deleted, as a reset does
            else:
                with pytest.raises(DamagedStateError):
                    damaged.owner(2).load(b"m")
    assert harmless <= 1
    assert said == {"m, as stored of partition 3,"}


def test_only_partitions_that_are_ours_are_kept() -> None:
    records = StateRecords()
    for partition in range(3):
        records.apply(partition, head_key(b"m", 1), b"value")
    records.keep_only({1})
    assert [records.names(n) for n in range(3)] == [[], [b"m"], []]


def test_a_chunk_that_is_gone_is_named_as_such_beside_an_older_generation() -> None:
    log = Log()
    store = log.owner(1)
    for n in range(2):
        put(store, b"m", blob(n, 35))
    log.records.append((chunk_key(b"m", 1, 1, 2), None))
    with pytest.raises(DamagedStateError, match=r"m, .* has 2 of 4 chunks"):
        log.owner(2).load(b"m")
