"""What becomes of the file: two servers, another release, damage, a full disk."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from attributary_agents.errors import AttributaryError, StoreError
from attributary_agents.serve.store.file import DamagedError
from attributary_agents.serve.store.store import Store, StoreFullError

from .events import T0, importance, n_records


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "store.sqlite"


def filled(path: Path, n: int = 3) -> None:
    with Store(path) as store:
        store.take([importance(T0 + at, at + 1) for at in range(n)], {("importances", 0): n})


def test_it_has_what_it_had_when_it_is_opened_again(path: Path) -> None:
    filled(path)
    with Store(path) as store:
        assert n_records(store, "importance") == 3
        assert store.positions() == {("importances", 0): 3}
        assert store.take([importance(T0, 1)]) == []


def test_a_second_server_is_told_to_take_another_file(path: Path) -> None:
    with Store(path), pytest.raises(StoreError) as error:
        Store(path)
    assert issubclass(StoreError, AttributaryError)
    said = str(error.value)
    assert "is open in another server (process " in said
    assert "set serve.store to another file" in said
    assert "\n" not in said


def test_a_server_that_was_killed_leaves_no_lock(path: Path) -> None:
    script = (
        "import os, sys, pathlib; from attributary_agents.serve.store.store import Store; "
        "Store(pathlib.Path(sys.argv[1])); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], timeout=60).returncode == 9
    with Store(path) as store:
        assert store.models() == []


@pytest.mark.long
@pytest.mark.parametrize("n", [0, 3])
def test_what_a_killed_server_has_kept_is_there_for_the_next_one(path: Path, n: int) -> None:
    # What is in the file at once, and not only in the log beside it: nothing has been checkpointed yet.
    script = (
        "import os, sys, pathlib; from attributary_agents.serve.store.store import Store; "
        "from tests.agents.serve.store.events import T0, importance; store = Store(pathlib.Path(sys.argv[1])); "
        "n = int(sys.argv[2]); store.take([importance(T0 + at, at + 1) for at in range(n)], {('importances', 0): n}); "
        "os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path), str(n)], timeout=60).returncode == 9
    assert path.read_bytes()[68:72] == b"ATTY"
    with Store(path) as store:
        assert (n_records(store, "importance"), store.positions()) == (n, {("importances", 0): n})
    assert sorted(one.name for one in path.parent.iterdir()) == ["store.sqlite", "store.sqlite.lock"]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"serve\.store: cannot write .*set serve\.store to a file"):
        Store(tmp_path / "file" / "store.sqlite")


def test_a_file_that_is_no_store_is_set_aside_and_never_lost(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    for n, content in enumerate((b"my thesis", b"SQLite format 3\0" + b"\1" * 200), start=1):
        path.write_bytes(content)
        caplog.clear()
        with caplog.at_level(logging.WARNING), Store(path) as store:
            assert store.models() == []
        assert path.with_name(f"store.sqlite.{n}").read_bytes() == content
        assert len(caplog.records) == 1
        assert "is no store of Attributary" in caplog.text


def test_a_data_base_of_something_else_is_set_aside(path: Path) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("create table mine (x)")
    other.execute("insert into mine values (42)")
    other.commit()
    other.close()
    with Store(path) as store:
        assert store.models() == []
    other = sqlite3.connect(path.with_name("store.sqlite.1"))
    assert other.execute("select x from mine").fetchall() == [(42,)]
    other.close()


def test_the_tables_of_another_release_are_made_anew(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(path)
    db = sqlite3.connect(path)
    db.execute("pragma user_version = 999")
    db.close()
    with caplog.at_level(logging.WARNING), Store(path) as store:
        assert (store.models(), store.positions()) == ([], {})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "its tables are of version 999" in caplog.text
    assert sorted(one.name for one in path.parent.iterdir()) == ["store.sqlite", "store.sqlite.lock"]


@pytest.mark.parametrize("at", [16, 100, 9000])
def test_a_damaged_file_is_made_anew(path: Path, caplog: pytest.LogCaptureFixture, at: int) -> None:
    filled(path, 500)
    content = bytearray(path.read_bytes())
    content[at : at + 4000] = b"\xa5" * 4000
    if at < 72:
        content[68:72] = (0x41545459).to_bytes(4, "big")
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING), Store(path) as store:
        try:
            store.take([importance(T0, 1), importance(T0 + 900, 900)], {("importances", 0): 2})
        except DamagedError:
            store.take([importance(T0, 1), importance(T0 + 900, 900)], {("importances", 0): 2})
        store.models()
        store.window("bank", "pfi")
        store.take([importance(T0 + 1000, 1000)])
        assert store.snapshot("bank", "pfi") is not None


def test_damage_that_is_found_later_empties_it_and_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(path, 3000)
    with Store(path) as store:
        before = store.generation
        content = bytearray(path.read_bytes())
        for at in range(8192 * 2, len(content)):
            content[at] = 0xA5
        path.write_bytes(content)
        with caplog.at_level(logging.WARNING):
            store.window("bank", "pfi")
            found = store.models()
        assert found == []
        assert store.positions() == {}
        assert store.generation > before
        assert len(caplog.records) == 1
        assert "is damaged" in caplog.text
        assert len(store.take([importance(T0, 1)])) == 1


def test_a_full_disk_takes_nothing_and_can_be_tried_again(path: Path) -> None:
    with Store(path) as store:
        store.take([importance(T0, 1)], {("importances", 0): 1})
        limit = store._file._writer.execute("pragma page_count").fetchone()[0] + 4
        store._file._writer.execute(f"pragma max_page_count = {limit}")
        many = [importance(T0 + n, n + 1, {f"f{i}": float(i) for i in range(50)}) for n in range(1, 400)]
        with pytest.raises(StoreFullError, match=r"the disk of .* is full: make room"):
            store.take(many, {("importances", 0): 400})
        assert store.positions() == {("importances", 0): 1}
        assert n_records(store, "importance") == 1
        assert store.models()[0].explainers[0].n_events == 1
        store._file._writer.execute("pragma max_page_count = 1000000")
        assert len(store.take(many, {("importances", 0): 400})) == 399
        assert n_records(store, "importance") == 400


def test_without_a_path_nothing_is_left() -> None:
    store = Store()
    folder = store.path.parent
    assert folder.is_dir()
    store.close()
    assert not folder.exists()
