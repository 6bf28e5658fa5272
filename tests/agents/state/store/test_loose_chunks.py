"""Chunks that no head names take a bounded place, and a state whose chunks were passed over is whole all the same."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.state import records as state_records
from attributary_agents.state.records import StateRecords, chunk_key, head_key
from attributary_agents.state.seal import Head, Seal
from attributary_agents.state.store import PartitionStore

from .changelog import KEY, CrashError, Log, Record, blob, put


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
