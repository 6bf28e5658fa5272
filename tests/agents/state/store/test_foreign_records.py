"""What somebody else has written to the changelog is never taken for a state, and never moves one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.errors import DamagedStateError, StateError
from attributary_agents.state.names import wanted_names
from attributary_agents.state.records import StateRecords, chunk_key, head_key
from attributary_agents.state.seal import MAGIC, Head, Seal
from attributary_agents.state.store import PartitionStore
from tests.agents.stand_ins import config_of

from .changelog import KEY, Log, blob, put


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
    is_wanted = wanted_names(config_of("credit").finder)
    for name in (b"\0control/7/credit", b"\0checkpoint/7", b"\0control-checkpoint/7", b"\0note/7"):
        assert is_wanted(name, 7)
        assert not is_wanted(name, 8)
        assert not is_wanted(name.replace(b"7", b"07"), 7)
    assert is_wanted(b"credit", 3)
    assert not is_wanted(b"\0control/7/debit", 7)
