"""Stored bytes survive every torn write, a worker that was thought dead, compaction, and foreign records."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.errors import ConfigError, DamagedStateError, StateError
from attributary_agents.state import records as state_records
from attributary_agents.state import store as state_store
from attributary_agents.state.names import wanted_names
from attributary_agents.state.objects import ObjectStore
from attributary_agents.state.records import StateRecords, chunk_key, head_key
from attributary_agents.state.seal import MAGIC, Head, Seal
from attributary_agents.state.store import PartitionStore

KEY = b"k" * 32
Record = tuple[bytes, bytes | None]


class CrashError(Exception):
    """The process ends here."""


class Log:
    """A changelog partition: takes records in their order, until it is told to fail."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.left: int | None = None

    def send(self, partition: int, key: bytes, value: bytes | None) -> Awaitable[object]:
        assert partition == 3
        if self.left is not None:
            if self.left == 0:
                raise CrashError
            self.left -= 1
        self.records.append((key, value))
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def compacted(self, seed: int) -> list[Record]:
        """Some keys with their last record only, as a cleaner leaves it that has come so far."""
        rng = random.Random(seed)
        clean = {key for key in sorted({key for key, _ in self.records}) if rng.random() < 0.5}
        last = {key: n for n, (key, _) in enumerate(self.records)}
        return [
            (key, value)
            for n, (key, value) in enumerate(self.records)
            if key not in clean or (last[key] == n and value is not None)
        ]

    def recovered(self, records: list[Record] | None = None, seal: Seal | None = None) -> StateRecords:
        found = StateRecords(seal=seal)
        for key, value in self.records if records is None else records:
            found.apply(3, key, value)
        return found

    def owner(self, generation: int, seal: Seal | None = None, objects: ObjectStore | None = None) -> PartitionStore:
        return PartitionStore(self.recovered(seal=seal), 3, generation, self.send, seal or Seal(), objects)


def put(store: PartitionStore, name: bytes, blob: bytes) -> None:
    asyncio.run(store.put(name, blob))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_store, "CHUNK_BYTES", 10)


def blob(n: int, length: int) -> bytes:
    return random.Random(n).randbytes(length)


LENGTHS = (0, 1, 10, 11, 35, 10, 52, 20, 5, 40, 41, 3)


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


class TestSignature:
    def signed(self) -> Log:
        log = Log()
        put(log.owner(1, Seal(KEY)), b"m", blob(1, 35))
        return log

    def test_is_read_with_the_key_and_without_one(self) -> None:
        for seal in (Seal(KEY), Seal()):
            assert self.signed().owner(2, seal).load(b"m") == blob(1, 35)

    @pytest.mark.parametrize("accept_unsigned", [False, True])
    def test_another_key_is_refused(self, accept_unsigned: bool) -> None:
        with pytest.raises(StateError, match=r"with another key.*state\.key"):
            self.signed().owner(2, Seal(b"x" * 32, accept_unsigned=accept_unsigned)).load(b"m")

    def test_unsigned_is_refused_unless_accepted_and_signed_at_the_next_write(self) -> None:
        log = Log()
        put(log.owner(1), b"m", b"plain")
        with pytest.raises(StateError, match=r"is not signed.*accept_unsigned: true"):
            log.owner(2, Seal(KEY)).load(b"m")
        changing = log.owner(2, Seal(KEY, accept_unsigned=True))
        assert changing.load(b"m") == b"plain"
        put(changing, b"m", b"signed")
        assert log.owner(3, Seal(KEY)).load(b"m") == b"signed"

    def test_signing_what_is_there_signs_all_names_at_once_and_changes_no_byte(self) -> None:
        log, names = Log(), {b"m": b"plain", b"n": blob(2, 35), b"\0checkpoint/3": b"{}"}
        for name, content in names.items():
            put(log.owner(1), name, content)
        assert asyncio.run(log.owner(2).sign()) == asyncio.run(log.owner(2, Seal(KEY)).sign()) == 0
        changing = log.owner(2, Seal(KEY, accept_unsigned=True))
        assert asyncio.run(changing.sign()) == 3
        assert asyncio.run(changing.sign()) == 0
        signed = log.owner(3, Seal(KEY))
        assert {name: signed.load(name) for name in names} == names
        assert signed._records.n_foreign == 0

    def test_signing_leaves_what_is_damaged_and_what_is_signed_with_another_key(self) -> None:
        log = self.signed()
        put(log.owner(2), b"n", blob(2, 35))
        log.records = [one for one in log.records if b"c" not in one[0] or one[0].startswith(b"m")]
        before = list(log.records)
        assert asyncio.run(log.owner(3, Seal(b"x" * 32, accept_unsigned=True)).sign()) == 0
        assert log.records == before

    def test_a_record_under_another_model_s_key_or_epoch_is_refused(self) -> None:
        (_, value) = next((key, value) for key, value in self.signed().records if key == head_key(b"m", 1))
        for key in (head_key(b"n", 1), head_key(b"m", 2)):
            log = Log()
            log.records = [(key, value)]
            with pytest.raises(StateError, match="another key"):
                log.owner(3, Seal(KEY)).load(key.split(b"\0")[0])

    def test_no_field_of_the_head_can_be_changed(self) -> None:
        log = Log()
        put(log.owner(1, Seal(KEY)), b"m", b"12345678")
        key, value = log.records[0]
        head, inline = Seal(KEY).read(key, value)
        forged = Head.of(b"87654321")
        line = Seal().write(key, Head(**{**vars(forged), "hmac": head.hmac}))
        assert inline == b"12345678"
        log.records[0] = (key, line + b"87654321")
        with pytest.raises(StateError):
            log.owner(2, Seal(KEY)).load(b"m")


class TestForeign:
    """With a key nobody's record but an owner's counts; without one, no epoch that no owner can have."""

    def stored(self) -> Log:
        log = Log()
        for name in (b"m", b"n", b"\0checkpoint/3"):
            put(log.owner(4, Seal(KEY)), name, b"true " + name)
        return log

    def forge(self, log: Log, name: bytes, epoch: int, value: bytes | None = None) -> None:
        key = head_key(name, epoch)
        log.records.append((key, Seal().write(key, Head.of(b"forged"), b"forged") if value is None else value))

    @pytest.mark.parametrize("epoch", [1, 5, 1000, 999_999_999_999_999])
    @pytest.mark.parametrize("value", [None, b"", b"garbage", MAGIC + b"{}\n"])
    def test_an_unsigned_head_is_counted_told_passed_over_and_deleted(
        self, epoch: int, value: bytes | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        log = self.stored()
        self.forge(log, b"m", epoch, value)
        store = log.owner(5, Seal(KEY))
        assert store.load(b"m") == b"true m"
        assert store._records.n_foreign == 1
        assert [one.levelname for one in caplog.records] == ["WARNING"]
        assert "1 record of the state's changelog, under m, is of no worker" in caplog.text
        assert store.epoch < 100
        put(store, b"m", b"newer")
        assert {key for key, value in dict(log.records).items() if value is not None and key.startswith(b"m\0")} == {
            head_key(b"m", store.epoch)
        }
        last = log.owner(6, Seal(KEY))
        assert last.load(b"m") == b"newer"
        assert last._records.n_foreign == 0

    def test_a_forged_head_of_the_very_epoch_that_comes_next_is_overwritten(self) -> None:
        log = self.stored()
        epoch = log.owner(5, Seal(KEY)).epoch
        self.forge(log, b"m", epoch)
        log.records.append((chunk_key(b"m", epoch, 0, 7), b"forged"))
        store = log.owner(5, Seal(KEY))
        assert (store.epoch, store.load(b"m")) == (epoch, b"true m")
        put(store, b"m", blob(1, 25))
        for reader in (store, log.owner(6, Seal(KEY))):
            assert reader.load(b"m") == blob(1, 25)

    def test_forged_chunks_alone_push_no_epoch_and_are_deleted(self) -> None:
        log = self.stored()
        for epoch in (10**9, 10**14):
            log.records.append((chunk_key(b"m", epoch, 0, 0), b"forged"))
        store = log.owner(5, Seal(KEY))
        assert store.epoch < 100
        put(store, b"m", b"newer")
        assert not [key for key, value in dict(log.records).items() if b"000000" in key and value is not None]

    def test_a_name_of_which_no_head_is_signed_is_damaged_where_others_are(self) -> None:
        log = self.stored()
        log.records.append((head_key(b"m", 4), None))
        self.forge(log, b"m", 9)
        store = log.owner(5, Seal(KEY))
        with pytest.raises(
            DamagedStateError,
            match=r"m, as stored .* is not signed.* somebody else .* Other states",
        ):
            store.load(b"m")
        assert store.load(b"n") == b"true n"

    def test_where_no_head_at_all_is_signed_the_key_is_another_one(self) -> None:
        with pytest.raises(StateError, match="with another key") as raised:
            self.stored().owner(5, Seal(b"x" * 32)).load(b"m")
        assert not isinstance(raised.value, DamagedStateError)

    def test_while_a_group_begins_to_sign_unsigned_heads_count_but_for_epochs_that_none_can_have(self) -> None:
        log = Log()
        put(log.owner(4), b"m", b"plain")
        self.forge(log, b"m", 999_999_999_999_999)
        store = log.owner(5, Seal(KEY, accept_unsigned=True))
        assert store.load(b"m") == b"plain"
        assert store.epoch < 100

    def test_without_a_key_an_epoch_that_no_owner_can_have_does_not_count(self) -> None:
        log = Log()
        put(log.owner(4), b"m", b"true")
        self.forge(log, b"m", 999_999_999_999_999)
        store = log.owner(5)
        assert (store.load(b"m"), store._records.n_foreign) == (b"true", 1)
        put(store, b"m", b"newer")
        assert log.owner(6).load(b"m") == b"newer"
        assert (head_key(b"m", 999_999_999_999_999), None) in log.records

    def test_epochs_of_a_long_life_count_although_compaction_has_left_none_below(self) -> None:
        log = Log()
        self.forge(log, b"m", 5 * 10**11)
        store = log.owner(3)
        assert (store.epoch, store.load(b"m")) == (5 * 10**11 + 3, b"forged")


class TestBounds:
    """Chunks that no head names are kept up to a bound, whoever wrote them; none that is needed is lost by it."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(state_records, "LOOSE_BYTES", 100)
        monkeypatch.setattr(state_records, "LOOSE_RECORDS", 30)

    def forged(self, n: int, epoch: int = 9 * 10**14, slot: int = 0) -> list[Record]:
        return [(chunk_key(b"m", epoch, slot, index), b"forged....") for index in range(n)]

    def read(self, log: Log, seal: Seal | None = None) -> StateRecords:
        """As a recovery does: once more where that is needed."""
        records = log.recovered(seal=seal)
        if records.lacking():
            for key, value in log.records:
                records.apply_again(3, key, value)
        assert not records.lacking()
        records.drop_loose()
        return records

    @pytest.mark.parametrize("epoch", [2, 3, 9 * 10**14])
    @pytest.mark.parametrize("seal", [Seal(), Seal(KEY)], ids=["no key", "key"])
    def test_forged_chunks_are_not_kept_but_counted_told_once_and_deleted(
        self, epoch: int, seal: Seal, caplog: pytest.LogCaptureFixture
    ) -> None:
        log = Log()
        put(log.owner(1, seal), b"m", blob(1, 35))
        log.records += self.forged(25, epoch)
        records = self.read(log, seal)
        assert bytes_in(records) < 35 + 400
        store = PartitionStore(records, 3, 4, log.send, seal)
        assert store.load(b"m") == blob(1, 35)
        # Those of an epoch that an owner can have count where they are more than one who fell is likely to leave.
        assert records.n_foreign == (25 if epoch > 10**12 else 15)
        assert [one.levelname for one in caplog.records] == ["WARNING"]
        assert "under m, are of no worker of this group (chunks without a head)" in caplog.text
        put(store, b"m", blob(2, 35))
        left = {key for key, value in dict(log.records).items() if value is not None}
        assert all(b"\0%d\0" % store.epoch in key for key in left)
        assert self.read(log, seal).n_foreign == 0

    def test_an_owner_who_fell_before_the_head_is_told_of_nowhere_and_its_chunks_are_deleted(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        log = Log()
        put(log.owner(1, Seal(KEY)), b"m", blob(1, 35))
        log.left = 3
        with pytest.raises(CrashError):
            put(log.owner(2, Seal(KEY)), b"m", blob(2, 45))
        log.left = None
        records = self.read(log, Seal(KEY))
        store = PartitionStore(records, 3, 3, log.send, Seal(KEY))
        assert (store.load(b"m"), records.n_foreign, caplog.text) == (blob(1, 35), 0, "")
        put(store, b"m", blob(3, 35))
        assert set(log.recovered()._partitions[3][b"m"]) == {store.epoch}

    @pytest.mark.parametrize("n", [9, 25, 300])
    @pytest.mark.parametrize("length", [35, 95, 1000])
    def test_a_state_is_whole_wherever_forged_chunks_lie_and_however_long_it_is(self, n: int, length: int) -> None:
        for seed in range(10):
            log = Log()
            for generation, seed_of_blob in ((1, 1), (2, 2)):
                owner = PartitionStore(self.read(log, Seal(KEY)), 3, generation, log.send, Seal(KEY))
                for k in range(3):
                    put(owner, b"m", blob(10 * seed_of_blob + k, length))
                put(owner, b"\0checkpoint/3", blob(seed, 50))
            rng = random.Random(seed)
            for key, value in self.forged(n, rng.choice([owner.epoch, owner.epoch + 1, 10**14]), slot=1):
                if key not in dict(log.records):  # an owner's own chunk can be overwritten: that is damage
                    log.records.insert(rng.randrange(len(log.records) + 1), (key, value))
            records = self.read(log, Seal(KEY))
            assert bytes_in(records) <= 2 * length + 2000
            store = PartitionStore(records, 3, 3, log.send, Seal(KEY))
            assert store.load(b"m") == blob(22, length)
            assert store.load(b"\0checkpoint/3") == blob(seed, 50)

    def test_heads_that_are_not_signed_are_kept_in_part_and_up_to_a_number(self) -> None:
        log = Log()
        put(log.owner(1, Seal(KEY)), b"m", b"true")
        log.records += [(head_key(b"m", 10 + n), Seal().write(b"", Head.of(b""), bytes(10_000))) for n in range(50)]
        records = self.read(log, Seal(KEY))
        assert bytes_in(records) < 31 * 2048 + 1000
        store = PartitionStore(records, 3, 2, log.send, Seal(KEY))
        assert (store.load(b"m"), records.n_foreign) == (b"true", 50)

    def test_forgetting_partitions_makes_room(self) -> None:
        records = StateRecords()
        for key, value in self.forged(40):
            records.apply(1, key, value)
        records.keep_only([])
        assert (records._n_loose, records._loose_bytes, records.unnoted(1)) == (0, 0, 0)

    @given(st.data())
    def test_what_is_counted_as_loose_is_what_is_loose(self, data: st.DataObject) -> None:
        records = StateRecords(seal=Seal())
        heads = [Seal().write(b"", Head.of(b"", chunks=n, slot=s), b"") for n in range(3) for s in (0, 1)]
        for _ in range(data.draw(st.integers(0, 40))):
            epoch = data.draw(st.integers(1, 2))
            if data.draw(st.booleans()):
                key, value = head_key(b"m", epoch), data.draw(st.sampled_from([None, b"garbage", *heads]))
            else:
                key = chunk_key(b"m", epoch, data.draw(st.integers(0, 1)), data.draw(st.integers(0, 3)))
                value = data.draw(st.sampled_from([None, b"x" * 10, b"y" * 30]))
            records.apply(3, key, value, is_ours=data.draw(st.booleans()))
            loose = [written.loose() for _, _, written in records.all_of(3)]
            assert records._n_loose == sum(n for n, _ in loose)
            assert records._loose_bytes == sum(size for _, size in loose)


def bytes_in(records: StateRecords) -> int:
    """Bytes of the values that are kept."""
    return sum(
        len(written.head or b"") + sum(len(chunk or b"") for chunk in written.chunks.values())
        for _, _, written in records.all_of(3)
    )


ANY_KEY = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.builds(head_key, st.sampled_from([b"m", b"n", b"\0checkpoint/3"]), st.integers(0, 10**20)),
    st.builds(chunk_key, st.just(b"m"), st.integers(0, 5), st.integers(0, 3), st.integers(0, 10**12)),
)
ANY_VALUE = st.one_of(
    st.none(),
    st.binary(max_size=60),
    st.binary(max_size=60).map(MAGIC.__add__),
    st.just(MAGIC + b'{"size":1,"sha256":3}\n'),
    st.just(MAGIC + b'{"size":1,"sha256":"","chunks":1000000000,"slot":0}\n'),
)


@given(st.lists(st.tuples(ANY_KEY, ANY_VALUE), max_size=20))
def test_foreign_records_never_raise_and_are_never_taken_for_a_state(records: list[tuple[bytes, bytes]]) -> None:
    log = Log()
    put(log.owner(1), b"m", b"true")
    found = log.recovered()
    for key, value in records:
        found.apply(3, key, value)
    store = PartitionStore(found, 3, 2, log.send, Seal(KEY, accept_unsigned=True))
    for name in (b"m", b"n", b"\0checkpoint/3"):
        try:
            loaded = store.load(name)
        except (DamagedStateError, StateError):
            continue
        assert loaded in (None, b"true")


def test_names_of_others_are_counted_and_not_kept() -> None:
    records = StateRecords(lambda name, _partition: name == b"m")
    for key in (b"m", head_key(b"m", 4), b"other", head_key(b"other", 4), None, b""):
        records.apply(0, key, b"value")
    assert records.n_foreign == 5
    assert records.names(0) == [b"m"]
    assert records.latest(0, b"m")[0] == 4


def test_a_partition_has_no_names_of_others() -> None:
    is_wanted = wanted_names(["credit"])
    for name in (b"\0control/7/credit", b"\0checkpoint/7", b"\0control-checkpoint/7", b"\0note/7"):
        assert is_wanted(name, 7)
        assert not is_wanted(name, 8)
        assert not is_wanted(name.replace(b"7", b"07"), 7)
    assert is_wanted(b"credit", 3)
    assert not is_wanted(b"\0control/7/debit", 7)


def test_only_partitions_that_are_ours_are_kept() -> None:
    records = StateRecords()
    for partition in range(3):
        records.apply(partition, head_key(b"m", 1), b"value")
    records.keep_only({1})
    assert [records.names(n) for n in range(3)] == [[], [b"m"], []]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


class TestObjects:
    @pytest.fixture
    def objects(self, tmp_path: Path) -> ObjectStore:
        return ObjectStore(f"file://{tmp_path}", "group")

    def log(self, objects: ObjectStore) -> Log:
        """With a state that is an object."""
        log = Log()
        put(log.owner(1, objects=objects), b"m", blob(1, 50))
        return log

    def owner(self, log: Log, generation: int, objects: ObjectStore, seal: Seal | None = None) -> PartitionStore:
        store = log.owner(generation, seal, objects)
        asyncio.run(store.fetch(b"m"))
        return store

    def test_large_states_are_objects_and_small_ones_are_not(self, objects: ObjectStore, tmp_path: Path) -> None:
        log = Log()
        store = log.owner(1, Seal(KEY), objects)
        for n, length in enumerate(LENGTHS):
            put(store, b"m", blob(n, length))
            assert self.owner(log, 2, objects, Seal(KEY)).load(b"m") == blob(n, length)
        assert all(len(value or b"") < 350 for _, value in log.records)
        assert len(files(tmp_path)) == 2

    def test_an_owner_thought_dead_never_deletes_what_a_later_one_needs(self, objects: ObjectStore) -> None:
        log = Log()
        first = log.owner(1, objects=objects)
        put(first, b"m", blob(1, 50))
        second = log.owner(2, objects=objects)
        put(second, b"m", blob(2, 50))
        for n in range(5):
            put(first, b"m", blob(10 + n, 50))
        assert self.owner(log, 3, objects).load(b"m") == blob(2, 50)

    def test_states_that_are_stored_together_leave_each_other_s_objects(self, objects: ObjectStore) -> None:
        log, names = Log(), [b"m%d" % n for n in range(7)]
        store = log.owner(1, objects=objects)

        async def put_all(n: int) -> None:
            await asyncio.gather(*(store.put(name, blob(n, 50) + name) for name in names))

        for n in range(3):
            asyncio.run(put_all(n))
        successor = log.owner(2, objects=objects)
        for name in names:
            asyncio.run(successor.fetch(name))
            assert successor.load(name) == blob(2, 50) + name

    def test_a_head_that_comes_after_the_next_owner_has_begun_costs_no_object(self, objects: ObjectStore) -> None:
        log = Log()
        put(log.owner(1, objects=objects), b"m", blob(1, 50))
        second = log.owner(2, objects=objects)
        third = log.owner(3, objects=objects)
        put(second, b"m", blob(2, 50))  # its first one, while its partition is already another's
        asyncio.run(third.fetch(b"m"))
        assert third.load(b"m") == blob(1, 50)

    def test_what_has_been_fetched_can_be_read_after_it_was_signed(self, objects: ObjectStore) -> None:
        log = self.log(objects)
        owner = self.owner(log, 2, objects, Seal(KEY, accept_unsigned=True))
        assert asyncio.run(owner.sign()) == 1
        assert owner.load(b"m") == blob(1, 50)
        assert self.owner(log, 3, objects, Seal(KEY)).load(b"m") == blob(1, 50)

    def test_no_more_is_signed_of_a_partition_that_has_gone(self) -> None:
        log = Log()
        for name in (b"m", b"n", b"o"):
            put(log.owner(1), name, blob(1, 5))
        ours = iter([True, False])
        assert asyncio.run(log.owner(2, Seal(KEY, accept_unsigned=True)).sign(lambda: next(ours))) == 1

    def test_what_is_deleted_leaves_neither_record_nor_object(self, objects: ObjectStore, tmp_path: Path) -> None:
        log = Log()
        for generation in (1, 2):
            store = log.owner(generation, objects=objects)
            for n in range(3):
                put(store, b"m", blob(n, 50))
        put(store, b"n", blob(7, 50))
        asyncio.run(store.delete(b"m"))
        assert {key.split(b"\0")[0] for key, value in dict(log.records).items() if value is not None} == {b"n"}
        assert [path.parent.name for path in files(tmp_path)] == ["n"]
        assert self.owner(log, 3, objects).load(b"m") is None

    def test_damage_and_loss_of_an_object_are_found(self, objects: ObjectStore, tmp_path: Path) -> None:
        log = self.log(objects)
        (path,) = files(tmp_path)
        path.write_bytes(blob(2, 50))
        with pytest.raises(DamagedStateError, match="checksum"):
            self.owner(log, 2, objects).load(b"m")
        path.unlink()
        with pytest.raises(DamagedStateError, match="where there is nothing"):
            self.owner(log, 2, objects).load(b"m")

    def test_without_the_store_configured_it_says_so(self, objects: ObjectStore) -> None:
        log = self.log(objects)
        with pytest.raises(StateError, match=r"configure state\.url"):
            log.owner(2).load(b"m")

    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError(30, "Read-only file system")])
    def test_a_full_disk_or_a_read_only_folder_is_waited_for_and_leaves_no_half_state(
        self, error: OSError, objects: ObjectStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr("attributary_agents.state.objects.FIRST_WAIT_S", 0.01)
        write, attempts = objects._write, []

        def full(path: str, content: bytes) -> None:
            attempts.append(path)
            if len(attempts) < 4:
                write(path, content[: len(content) // 2])
                raise error
            write(path, content)

        monkeypatch.setattr(objects, "_write", full)
        log = self.log(objects)
        assert self.owner(log, 2, objects).load(b"m") == blob(1, 50)
        assert len(set(attempts)) == 1
        lines = [r.message for r in caplog.records if r.levelno == logging.ERROR]
        assert len(lines) == 3
        assert error.strerror in lines[0]
        assert "observations wait" in lines[0]

    def test_a_store_that_cannot_be_used_is_said_at_the_start(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(ConfigError, match="cannot be used"):
            ObjectStore(f"file://{tmp_path}/file", "group").check()
        ObjectStore(f"file://{tmp_path}", "group").check()
        with pytest.raises(ConfigError, match=r"state\.url"):
            ObjectStore("nosuch://bucket", "group")
