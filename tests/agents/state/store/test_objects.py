"""States in an object store survive torn writes, late owners and damage as those in the changelog do."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from attributary_agents.errors import ConfigError, DamagedStateError, StateError
from attributary_agents.state.objects import ObjectStore
from attributary_agents.state.seal import Seal
from attributary_agents.state.store import PartitionStore

from .changelog import KEY, LENGTHS, Log, blob, put


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

    def test_in_a_transaction_objects_are_deleted_only_behind_its_end(
        self, objects: ObjectStore, tmp_path: Path
    ) -> None:
        log, written = Log(), []
        store = log.owner(1, objects=objects)
        for n in range(3):
            put(store, b"m", blob(n, 50))
        before = files(tmp_path)

        async def send(partition: int, key: bytes, value: bytes | None) -> None:
            written.append((key, value))

        asyncio.run(store.put(b"m", blob(3, 50), send))
        assert written
        assert set(before) < set(files(tmp_path)), "the transaction may be aborted yet"
        assert self.owner(log, 2, objects).load(b"m") == blob(2, 50), "what is committed is whole"
        asyncio.run(store.delete_outdated())
        assert len(files(tmp_path)) == 2, "the one before stays, as without a transaction"

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
